//! A program on a terminal of its own (`tests/clients/terminal.py`), and what it draws there.
use super::home::Home;
use super::process::{descendants, signal_pid};
use super::{PATIENCE, program};
use rustix::process::Signal;
use serde_json::{Value, json};
use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, ChildStdout, Stdio};

/// Ends with this value.
pub struct Terminal {
    child: Child,
    input: ChildStdin,
    output: BufReader<ChildStdout>,
}

/// How the terminal stands.
#[derive(Debug)]
pub struct Shown {
    pub lines: Vec<String>,
    /// What was put into its clipboard.
    pub copied: Vec<String>,
    /// Whether a view is over what was there before.
    pub alternate: bool,
    /// Whether the cursor shows, keys are echoed and lines edited, as a shell left it.
    pub restored: bool,
    /// Whether anything on the screen has a colour.
    pub coloured: bool,
    /// How the program ended.
    pub ended: Option<i64>,
}

impl Shown {
    pub fn has(&self, text: &str) -> bool {
        self.lines.iter().any(|line| line.contains(text))
    }
}

impl Terminal {
    /// Starts a program of a home on a terminal of this size, with these variables beside those of the home.
    pub fn start(home: &Home, size: &str, env: &[(&str, &str)], program_and_args: &[&str]) -> Self {
        let script = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/clients/terminal.py");
        let args = [&[script, size], program_and_args].concat();
        let mut command = home.command(program("python3").unwrap(), &args);
        command.env("TERM", "xterm-256color").envs(env.iter().copied());
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let (input, output) = (child.stdin.take().unwrap(), BufReader::new(child.stdout.take().unwrap()));
        Self { child, input, output }
    }

    fn ask(&mut self, what: &Value) -> Shown {
        writeln!(self.input, "{what}").unwrap();
        let mut line = String::new();
        self.output.read_line(&mut line).unwrap();
        let said: Value = serde_json::from_str(&line).unwrap_or_else(|e| panic!("{e}: {line:?}"));
        let texts = |key: &str| {
            let all = said[key].as_array().unwrap().iter();
            all.map(|text| text.as_str().unwrap().to_owned()).collect::<Vec<_>>()
        };
        let is = |key: &str| said[key].as_bool().unwrap();
        Shown {
            lines: texts("lines"),
            copied: texts("copied"),
            alternate: is("alternate"),
            coloured: is("coloured"),
            restored: is("cursor") && is("cooked") && !is("alternate"),
            ended: said["ended"].as_i64(),
        }
    }

    pub fn types(&mut self, keys: &str) {
        self.ask(&json!({ "type": keys }));
    }

    pub fn resize(&mut self, width: u16, height: u16) {
        self.ask(&json!({ "size": [width, height] }));
    }

    pub fn signal(&mut self, signal: Signal) {
        self.ask(&json!({ "signal": signal.as_raw() }));
    }

    pub fn look(&mut self) -> Shown {
        self.ask(&json!({}))
    }

    /// Waits until the terminal stands like that.
    #[track_caller]
    pub fn until(&mut self, what: &str, is: impl Fn(&Shown) -> bool) -> Shown {
        let end = std::time::Instant::now() + PATIENCE;
        loop {
            let shown = self.look();
            if is(&shown) {
                return shown;
            }
            assert!(std::time::Instant::now() < end, "not within {PATIENCE:?}: {what}\n{shown:#?}");
            std::thread::sleep(std::time::Duration::from_millis(20));
        }
    }

    /// Waits for a text on the screen.
    #[track_caller]
    pub fn shows(&mut self, text: &str) -> Shown {
        self.until(text, |shown| shown.has(text))
    }

    /// Waits for the program's end.
    #[track_caller]
    pub fn ends(&mut self) -> Shown {
        self.until("its end", |shown| shown.ended.is_some())
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        for pid in descendants(self.child.id()) {
            signal_pid(pid, Signal::KILL);
        }
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

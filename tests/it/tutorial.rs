//! docs/tutorial.md, typed as it stands: its commands do what the page says, and print what it shows.
use crate::support::home::{Home, STADO};
use crate::support::process::{Process, run};
use crate::support::{PATIENCE, ports, program, wait_until};
use rustix::process::Signal;
use std::process::Command;

const PAGE: &str = include_str!(concat!(env!("CARGO_MANIFEST_DIR"), "/docs/tutorial.md"));

/// One thing on the page that a person follows.
#[derive(Debug)]
enum Step<'p> {
    /// Typed into a terminal where it stays.
    Stays(&'p str),
    /// Typed into a terminal; ends.
    Ends(&'p str),
    /// What is seen then, by lines; `…` is anything.
    Sees(&'p str),
    /// Ctrl-C in the terminal where a service runs.
    Interrupt(&'p str),
}

fn steps() -> Vec<Step<'static>> {
    let mut steps = Vec::new();
    let mut rest = PAGE;
    while let Some(at) = rest.find("\n```").map(|at| at + 4) {
        let before = &rest[..at];
        if let Some(named) = before.rsplit_once("<!-- test: interrupt ").and_then(|(_, named)| named.split_once(" -->"))
        {
            steps.push(Step::Interrupt(named.0));
        }
        let (language, body) = rest[at..].split_once('\n').unwrap();
        let (body, after) = body.split_once("\n```").unwrap();
        steps.push(match language {
            "sh" if body.starts_with("stado resolver serve") || body.starts_with("stado service run") => {
                Step::Stays(body)
            }
            "sh" => Step::Ends(body),
            "text" => Step::Sees(body),
            other => panic!("a block of {other:?}"),
        });
        rest = after;
    }
    steps
}

/// Whether the line, with `…` for anything, is in the text. Runs of spaces and dashes count as one: a table is as wide as it is.
fn seen(line: &str, text: &str) -> bool {
    let plain = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
    let pieces: Vec<String> = line.split('…').map(plain).collect();
    text.lines().map(plain).any(|shown| {
        let mut rest = shown.as_str();
        pieces.iter().all(|piece| match rest.find(piece.as_str()) {
            Some(at) => {
                rest = &rest[at + piece.len()..];
                true
            }
            None => false,
        })
    })
}

fn shell(home: &Home, script: &str) -> Command {
    let python = program("python3").unwrap();
    let path = format!("PATH={}:{}:$PATH\n", home.file("bin").display(), python.parent().unwrap().display());
    home.command("/bin/sh", &["-euc", &format!("{path}{script}")])
}

#[test]
fn the_tutorial_does_what_it_says() {
    needs!("python3", "curl");
    let mut home = Home::new();
    std::fs::create_dir_all(home.file("bin")).unwrap();
    std::os::unix::fs::symlink(STADO, home.file("bin/stado")).unwrap();
    // The page's ports may be another test's.
    let lease = ports::one();
    home.set("DEVMESH_HTTP_ADDR", format!("127.0.0.1:{}", lease.port()));
    let mut running: Vec<(&str, Process)> = Vec::new();
    let mut printed = String::new();
    let steps = steps();
    assert!(steps.len() > 14, "the page has other steps now: {steps:#?}");
    for (n, step) in steps.into_iter().enumerate() {
        match step {
            Step::Stays(body) => {
                let name = if body.contains("resolver serve") { "daemon" } else { "hello.web" };
                let script = format!("exec {body}");
                let process = Process::start(&mut shell(&home, &script), &home.file(&format!("terminal-{n}.log")));
                running.push((name, process));
                if name == "daemon" {
                    wait_until("the daemon answers", PATIENCE, || home.stado(&["service", "health"]).code == 0);
                }
            }
            Step::Ends(body) => printed = run(&mut shell(&home, body)).ok().stdout,
            Step::Sees(lines) => {
                for line in lines.lines() {
                    assert!(seen(line, &printed), "the page shows {line:?}, and there was:\n{printed}");
                }
            }
            Step::Interrupt(name) => {
                let at = running.iter().position(|(known, _)| *known == name).unwrap();
                let (_, mut process) = running.remove(at);
                process.signal(Signal::INT);
                process.wait();
            }
        }
    }
    let (_, mut daemon) = running.remove(0);
    assert!(daemon.wait().success(), "the last step stops the daemon");
}

#[test]
fn what_the_page_shows_is_compared_with_what_was_printed() {
    assert!(seen("a … c", "x\na   b c\n") && seen("| web | tcp |", "| web   | tcp |"));
    assert!(!seen("a … c", "a b") && !seen("again …", "behind 1"));
}

//! Processes that end with the value that started them.
use super::{PATIENCE, wait_for, wait_until};
use rustix::process::{Pid, Signal, kill_process};
use std::fs::File;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc::RecvTimeoutError;

/// A started process. Its output goes to a file; dropping it kills it and its descendants.
pub struct Process {
    child: Child,
    log: PathBuf,
    /// Length of the log before this start.
    before: usize,
}

impl Process {
    /// Starts `command` with both outputs in `log`, which is kept across starts.
    pub fn start(command: &mut Command, log: &Path) -> Self {
        let out = File::options().create(true).append(true).open(log).unwrap();
        let before = usize::try_from(out.metadata().unwrap().len()).unwrap();
        let err = out.try_clone().unwrap();
        command.stdin(Stdio::null()).stdout(out).stderr(err);
        let child = command.spawn().unwrap_or_else(|e| panic!("{command:?}: {e}"));
        Self { child, log: log.into(), before }
    }

    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// What it has printed, without its predecessors on the same file.
    pub fn log(&self) -> String {
        let all = std::fs::read(&self.log).unwrap_or_default();
        String::from_utf8_lossy(all.get(self.before..).unwrap_or_default()).into_owned()
    }

    /// Waits for a line of the log.
    pub fn expect(&mut self, text: &str) {
        wait_until(&format!("{text:?} in\n{}", self.log.display()), PATIENCE, || {
            let (found, ended) = (self.log().contains(text), self.ended());
            assert!(found || ended.is_none(), "ended with {ended:?} before {text:?}:\n{}", self.log());
            found
        });
    }

    /// Its status if it has ended.
    pub fn ended(&mut self) -> Option<ExitStatus> {
        self.child.try_wait().unwrap()
    }

    pub fn signal(&self, signal: Signal) {
        signal_pid(self.pid(), signal);
    }

    /// It keeps its connections and says nothing, from the return on: a thread of it may go on for a moment after the signal.
    pub fn freeze(&self) {
        self.signal(Signal::STOP);
        wait_until(&format!("each thread of process {} is stopped", self.pid()), PATIENCE, || self.is_stopped());
    }

    /// Whether it is frozen now.
    pub fn is_stopped(&self) -> bool {
        stopped(self.pid())
    }

    /// It goes on.
    pub fn thaw(&self) {
        self.signal(Signal::CONT);
    }

    /// Waits for its end.
    pub fn wait(&mut self) -> ExitStatus {
        let mut status = None;
        let pid = self.pid();
        wait_until(&format!("the end of process {pid}; {}", self.log.display()), PATIENCE, || {
            status = self.ended();
            status.is_some()
        });
        status.unwrap()
    }

    /// SIGTERM, and its status.
    pub fn stop(mut self) -> ExitStatus {
        self.signal(Signal::TERM);
        self.wait()
    }

    /// SIGKILL to this process alone, as a crash would be.
    pub fn kill9(mut self) {
        self.signal(Signal::KILL);
        self.wait();
    }
}

impl Process {
    /// Where an object API says that it is.
    pub fn object_api(&self) -> String {
        wait_for("the object API says where it is", PATIENCE, || {
            let log = self.log();
            Some(log.split_once("object API at ")?.1.split_once(' ')?.0.to_owned())
        })
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        if self.ended().is_some() {
            return;
        }
        for pid in descendants(self.pid()) {
            signal_pid(pid, Signal::KILL);
        }
        let _ = self.child.kill();
        let _ = self.child.wait();
        if std::thread::panicking() {
            eprintln!("--- {}\n{}", self.log.display(), self.log());
        }
    }
}

/// Sends a signal; a process that is gone is no error.
pub fn signal_pid(pid: u32, signal: Signal) {
    if let Some(pid) = i32::try_from(pid).ok().and_then(Pid::from_raw) {
        let _ = kill_process(pid, signal);
    }
}

/// Whether no thread of a process runs.
fn stopped(pid: u32) -> bool {
    let threads = std::fs::read_dir(format!("/proc/{pid}/task")).expect("the process is there");
    let state = |thread: &std::fs::DirEntry| {
        let stat = std::fs::read_to_string(thread.path().join("stat")).unwrap_or_default();
        stat.rsplit_once(") ").and_then(|(_, rest)| rest.chars().next())
    };
    threads.flatten().all(|thread| matches!(state(&thread), None | Some('T')))
}

/// Children of a process and theirs. A server's sessions lead groups of their own, so a group signal would miss them.
pub fn descendants(root: u32) -> Vec<u32> {
    let mut parents = Vec::new();
    for entry in std::fs::read_dir("/proc").into_iter().flatten().flatten() {
        let Ok(pid) = entry.file_name().to_string_lossy().parse::<u32>() else { continue };
        let Ok(stat) = std::fs::read_to_string(entry.path().join("stat")) else { continue };
        // The name in parentheses may hold spaces: the fields are behind the last one.
        let parent = stat.rsplit_once(") ").and_then(|(_, rest)| rest.split(' ').nth(1)?.parse::<u32>().ok());
        parents.extend(parent.map(|parent| (pid, parent)));
    }
    let mut found = vec![root];
    let mut next = 0;
    while let Some(&parent) = found.get(next) {
        found.extend(parents.iter().filter(|(_, p)| *p == parent).map(|(pid, _)| *pid));
        next += 1;
    }
    found.split_off(1)
}

/// Runs a command to its end: status, stdout, stderr. One that does not end fails the test.
pub fn run(command: &mut Command) -> Run {
    run_with(command, b"")
}

/// [`run`] with `input` on its standard input.
pub fn run_with(command: &mut Command, input: &[u8]) -> Run {
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap_or_else(|e| panic!("{command:?}: {e}"));
    let (mut stdin, pid) = (child.stdin.take().unwrap(), child.id());
    let (done, ended) = std::sync::mpsc::channel::<()>();
    let output = std::thread::scope(|scope| {
        // A command may end without reading its input.
        scope.spawn(move || stdin.write_all(input));
        scope.spawn(move || {
            if ended.recv_timeout(2 * PATIENCE) == Err(RecvTimeoutError::Timeout) {
                descendants(pid).into_iter().chain([pid]).for_each(|pid| signal_pid(pid, Signal::KILL));
            }
        });
        let output = child.wait_with_output().unwrap();
        drop(done);
        output
    });
    Run::from(format!("{command:?}"), output)
}

/// What a command did.
pub struct Run {
    command: String,
    pub code: i32,
    pub stdout: String,
    pub stderr: String,
}

impl Run {
    fn from(command: String, output: std::process::Output) -> Self {
        use std::os::unix::process::ExitStatusExt;
        let code = output.status.code().or_else(|| output.status.signal().map(|s| -s)).unwrap_or(-1);
        let text = |bytes| String::from_utf8_lossy(bytes).into_owned();
        Self { command, code, stdout: text(&output.stdout), stderr: text(&output.stderr) }
    }

    /// Fails the test unless the command ended with `code`.
    #[track_caller]
    pub fn exits(self, code: i32) -> Self {
        assert_eq!(self.code, code, "{}\nstdout: {}\nstderr: {}", self.command, self.stdout, self.stderr);
        self
    }

    /// The answer of a command that succeeded.
    #[track_caller]
    pub fn ok(self) -> Self {
        self.exits(0)
    }

    /// Its standard output as JSON.
    #[track_caller]
    pub fn json(&self) -> serde_json::Value {
        serde_json::from_str(&self.stdout)
            .unwrap_or_else(|e| panic!("{e}: {}\nstdout: {}\nstderr: {}", self.command, self.stdout, self.stderr))
    }
}

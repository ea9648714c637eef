//! Asks another program, and waits for it no longer than it may take, nor than anybody wants its answer.
use super::VaultError;
use super::keyring::Wanted;
use crate::czekam;
use crate::fault::Class;
use rustix::process::{Pid, Signal, kill_process_group};
use std::io::{Read, Write};
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

/// Bytes that are taken of what it says.
const LARGEST: u64 = 4096;
/// From then on the wait is said.
const BLINK: Duration = Duration::from_secs(1);
/// Between two looks whether it has ended.
const LOOK: Duration = Duration::from_millis(5);
/// For what it said before it ended; somebody that it started may hold the pipe.
const REST: Duration = Duration::from_secs(1);

/// What a program said.
pub(super) struct Said {
    pub(super) status: ExitStatus,
    pub(super) stdout: Vec<u8>,
    pub(super) stderr: Vec<u8>,
}

/// Runs a program in a process group of its own, which ends with a call that is given up.
///
/// # Errors
/// The rest of a sentence: it is not there, did not answer in time, or its answer is not wanted any more.
pub(super) fn ask(
    command: &mut Command,
    input: &str,
    within: Duration,
    wanted: Wanted<'_>,
) -> Result<Said, VaultError> {
    let name = command.get_program().to_string_lossy().into_owned();
    let what =
        command.get_args().next().map_or_else(|| name.clone(), |arg| format!("{name} {}", arg.to_string_lossy()));
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).process_group(0);
    let child = command.spawn().map_err(|e| {
        let why = match e.kind() {
            std::io::ErrorKind::NotFound => format!("{name} is not installed"),
            _ => format!("{name}: {e}"),
        };
        VaultError::new(Class::Config, why)
    })?;
    let mut asked = Asked(child);
    if let Some(mut stdin) = asked.0.stdin.take() {
        // One that ended early says why.
        let _ = stdin.write_all(input.as_bytes());
    }
    let (stdout, stderr) = (heard(asked.0.stdout.take()), heard(asked.0.stderr.take()));
    let status = asked.ended(&name, &what, within, wanted)?;
    let said = |pipe: Receiver<Vec<u8>>| pipe.recv_timeout(REST).unwrap_or_default();
    Ok(Said { status, stdout: said(stdout), stderr: said(stderr) })
}

/// A program at work.
struct Asked(Child);

impl Asked {
    fn ended(
        &mut self,
        name: &str,
        what: &str,
        within: Duration,
        wanted: Wanted<'_>,
    ) -> Result<ExitStatus, VaultError> {
        let began = Instant::now();
        let mut wait = None;
        loop {
            let (class, why) = match self.0.try_wait() {
                Ok(Some(status)) => {
                    wait.into_iter().for_each(czekam::Wait::done);
                    return Ok(status);
                }
                Ok(None) if !wanted() => (Class::Unknown, format!("{name} was not waited for any more")),
                Ok(None) if began.elapsed() >= within => {
                    (Class::Timeout, format!("{name} gave no answer within {}s", within.as_secs_f64()))
                }
                Ok(None) => {
                    if wait.is_none() && began.elapsed() >= BLINK {
                        wait = Some(czekam::begin(what, "the keyring of this login session", "vault"));
                    }
                    std::thread::sleep(LOOK);
                    continue;
                }
                Err(e) => (Class::Unknown, format!("{name}: {e}")),
            };
            wait.into_iter().for_each(|wait| {
                wait.failed(&why);
            });
            return Err(VaultError::new(class, why));
        }
    }
}

impl Drop for Asked {
    fn drop(&mut self) {
        if matches!(self.0.try_wait(), Ok(Some(_))) {
            return;
        }
        if let Some(group) = i32::try_from(self.0.id()).ok().and_then(Pid::from_raw) {
            // One that has ended is gone.
            let _ = kill_process_group(group, Signal::KILL);
        }
        let _ = self.0.wait();
    }
}

/// What comes out of a pipe, read beside everything else. What is over the limit is read too, so that nobody stands on it.
fn heard(pipe: Option<impl Read + Send + 'static>) -> Receiver<Vec<u8>> {
    let (tell, told) = channel();
    std::thread::spawn(move || {
        let mut bytes = Vec::new();
        if let Some(mut pipe) = pipe {
            let _ = pipe.by_ref().take(LARGEST).read_to_end(&mut bytes);
            let _ = std::io::copy(&mut pipe, &mut std::io::sink());
        }
        // Nobody may be waiting any more.
        let _ = tell.send(bytes);
    });
    told
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::Path;

    const LONG: Duration = Duration::from_secs(30);

    fn sh(line: &str) -> Command {
        let mut command = Command::new("/bin/sh");
        command.args(["-c", line]);
        command
    }

    fn ends(pids: &Path) {
        let text = std::fs::read_to_string(pids).unwrap();
        let state = || std::fs::read_to_string(format!("/proc/{}/stat", text.trim())).unwrap_or_default();
        let until = Instant::now() + LONG;
        while !state().is_empty() && !state().contains(") Z ") {
            assert!(Instant::now() < until, "it still runs");
            std::thread::sleep(LOOK);
        }
    }

    #[test]
    fn it_answers_with_what_it_was_told_and_says_why_not() {
        let said =
            ask(&mut sh("cat; echo why >&2; exit 3"), "secret", LONG, &|| true).unwrap_or_else(|e| panic!("{e}"));
        assert_eq!((said.status.code(), said.stdout, said.stderr), (Some(3), b"secret".to_vec(), b"why\n".to_vec()));
        let missing = ask(&mut Command::new("no-such-program-here"), "", LONG, &|| true);
        assert_eq!(missing.err().unwrap().sentence, "no-such-program-here is not installed");
        let flood = ask(&mut sh("yes | head -c 300000"), "", LONG, &|| true).unwrap_or_else(|e| panic!("{e}"));
        assert_eq!(flood.stdout.len() as u64, LARGEST);
    }

    #[test]
    fn one_that_hangs_is_given_up_with_all_that_it_started() {
        let dir = tempfile::tempdir().unwrap();
        let pids = dir.path().join("pids");
        let line = format!("sleep 1000 & echo $! >{}; wait", pids.display());
        let late = ask(&mut sh(&line), "", Duration::from_millis(1500), &|| true).err().unwrap();
        assert_eq!((late.sentence.as_str(), late.class), ("/bin/sh gave no answer within 1.5s", Class::Timeout));
        ends(&pids);
    }

    #[test]
    fn one_whose_answer_is_not_wanted_any_more_ends_at_once() {
        let dir = tempfile::tempdir().unwrap();
        let pids = dir.path().join("pids");
        let line = format!("sleep 1000 & echo $! >{0}.new; mv {0}.new {0}; wait", pids.display());
        let gone = ask(&mut sh(&line), "", LONG, &|| !pids.exists()).err().unwrap();
        assert_eq!(gone.sentence, "/bin/sh was not waited for any more");
        ends(&pids);
    }
}

//! A command on this host itself, within the same limits as on another.
use super::HERE;
use crate::exit::Failure;
use rustix::process::{Pid, Signal, kill_process_group};
use stado_fleet::fault::{Blame, Class};
use stado_fleet::link::{ExecLimits, ExecOutput};
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::Stdio;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWriteExt};
use tokio::process::{Child, Command};

/// Bytes of standard error that are kept, as of another host's.
const STDERR: usize = 64 * 1024;

/// Runs a shell line in a process group of its own, which ends with a call that is given up.
pub(super) async fn run(
    (host, home): (&str, Option<&Path>),
    line: &str,
    stdin: &[u8],
    limits: ExecLimits,
) -> Result<ExecOutput, Failure> {
    let mut command = Command::new("/bin/sh");
    command.args(["-c", line]).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    if let Some(home) = home {
        command.current_dir(home);
    }
    let mut child = command
        .process_group(0)
        .kill_on_drop(true)
        .spawn()
        .map_err(|e| Failure::here(format!("cannot start /bin/sh: {e}")))?;
    let group = Group(child.id().and_then(|id| Pid::from_raw(i32::try_from(id).ok()?)));
    let outcome = tokio::time::timeout(limits.deadline, heard(&mut child, stdin, limits.stdout, &group)).await;
    match outcome {
        Ok(ended) => {
            group.spare();
            ended
        }
        Err(_) => {
            let seconds = limits.deadline.as_secs_f64();
            let sentence = format!("command on {host} gave no complete answer within {seconds}s");
            Err(Failure::new(Class::Timeout, Blame::Service, sentence))
        }
    }
}

async fn heard(child: &mut Child, stdin: &[u8], limit: usize, group: &Group) -> Result<ExecOutput, Failure> {
    let (input, output, errors) = (child.stdin.take(), child.stdout.take(), child.stderr.take());
    let feed = async {
        if let Some(mut input) = input {
            // A command that does not read its input is not a failure.
            let _ = input.write_all(stdin).await;
        }
    };
    let stdout = async {
        let (bytes, more) = beginning(output, limit).await;
        if more {
            group.end();
        }
        (bytes, more)
    };
    let stderr = async {
        let mut errors = errors;
        let (bytes, _) = beginning(errors.as_mut(), STDERR).await;
        // What is not kept is read all the same: the command must not stand on it.
        if let Some(mut errors) = errors {
            let _ = tokio::io::copy(&mut errors, &mut tokio::io::sink()).await;
        }
        bytes
    };
    let ((), (stdout, cut), mut stderr) = tokio::join!(feed, stdout, stderr);
    let status = child.wait().await.map_err(|e| Failure::here(format!("cannot wait for /bin/sh: {e}")))?;
    if let Some(signal) = status.signal().filter(|_| !cut) {
        stderr.extend_from_slice(format!("ended by signal {signal}\n").as_bytes());
    }
    let code = status.code().and_then(|code| u32::try_from(code).ok()).filter(|_| !cut);
    Ok(ExecOutput { stdout, stderr, status: code, path: HERE.to_owned(), cut })
}

/// Reads up to `limit` bytes, and whether there is more.
async fn beginning(from: Option<impl AsyncRead + Unpin>, limit: usize) -> (Vec<u8>, bool) {
    let Some(from) = from else { return (Vec::new(), false) };
    let mut bytes = Vec::new();
    let most = u64::try_from(limit).unwrap_or(u64::MAX).saturating_add(1);
    // What came before an error is the answer; the status tells the rest.
    let _ = from.take(most).read_to_end(&mut bytes).await;
    let more = bytes.len() > limit;
    bytes.truncate(limit);
    (bytes, more)
}

/// The command and whatever it started; ended on drop.
struct Group(Option<Pid>);
impl Group {
    /// It has ended; what it left in the background may go on, as on another host.
    fn spare(mut self) {
        self.0 = None;
    }
    fn end(&self) {
        if let Some(group) = self.0 {
            // One that has ended is gone.
            let _ = kill_process_group(group, Signal::KILL);
        }
    }
}
impl Drop for Group {
    fn drop(&mut self) {
        self.end();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    fn limits(stdout: usize, deadline: Duration) -> ExecLimits {
        ExecLimits { stdout, deadline }
    }
    const LONG: Duration = Duration::from_secs(30);

    #[tokio::test]
    async fn a_command_answers_with_output_errors_and_status() {
        let output = run(("here", None), "cat; echo problem >&2; exit 7", b"hello", limits(100, LONG)).await.unwrap();
        assert_eq!((output.stdout, output.stderr), (b"hello".to_vec(), b"problem\n".to_vec()));
        assert_eq!((output.status, output.cut, output.path.as_str()), (Some(7), false, "here"));
    }

    #[tokio::test]
    async fn output_without_end_is_cut_and_its_command_ended() {
        let output = run(("here", None), "yes; echo never", b"", limits(1000, LONG)).await.unwrap();
        assert_eq!((output.stdout.len(), output.status, output.cut), (1000, None, true));
    }

    #[tokio::test]
    async fn a_flood_of_errors_keeps_its_beginning_and_holds_nothing_back() {
        let line = "yes | head -c 3000000 >&2; echo end";
        let output = run(("here", None), line, b"", limits(1000, LONG)).await.unwrap();
        assert_eq!((output.stderr.len(), output.stdout), (STDERR, b"end\n".to_vec()));
    }

    #[tokio::test]
    async fn a_command_that_hangs_is_given_up_with_all_that_it_started() {
        let home = tempfile::tempdir().unwrap();
        let file = home.path().join("pids");
        let line = format!("sleep 1000 & echo $! >{}; wait", file.display());
        let brief = limits(1000, Duration::from_millis(400));
        let error = run(("worker", None), &line, b"", brief).await.unwrap_err();
        assert_eq!(error.class, Class::Timeout);
        assert_eq!(error.message, "command on worker gave no complete answer within 0.4s");
        let pid = std::fs::read_to_string(&file).unwrap();
        let state = || std::fs::read_to_string(format!("/proc/{}/stat", pid.trim())).unwrap_or_default();
        let until = std::time::Instant::now() + LONG;
        while !state().is_empty() && !state().contains(") Z ") {
            assert!(std::time::Instant::now() < until, "it still runs");
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    }

    #[tokio::test]
    async fn a_signal_is_named_and_leaves_no_status() {
        let output = run(("here", None), "kill -TERM $$", b"", limits(1000, LONG)).await.unwrap();
        assert_eq!((output.status, output.stderr), (None, b"ended by signal 15\n".to_vec()));
    }
}

//! A daemon that is there and says nothing: its socket takes connections, and no answer comes.
use super::resolver::is_stopped;
use crate::client::Error;
use crate::config::{Env, HostConfig};
use rustix::process::{Pid, test_kill_process};
use stado_fleet::ledger;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::time::Duration;
use tokio::net::UnixStream;
use tokio::time::timeout;

/// To be taken by a socket whose queue has room.
const TAKEN: Duration = Duration::from_millis(250);

/// Which process it is, as far as that is known, and whether a signal has stopped it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Mute {
    socket: PathBuf,
    pub(crate) pid: Option<u32>,
    pub(crate) stopped: bool,
}

impl Mute {
    /// What is behind a call that failed; `None` when nobody took the connection, or when somebody answered.
    pub(crate) async fn behind(error: &Error, env: &Env) -> Option<Self> {
        let Error::Unreachable { socket, cause } = error else { return None };
        // A socket whose queue is full takes nobody any more.
        if !matches!(cause.kind(), ErrorKind::TimedOut | ErrorKind::WouldBlock) {
            return None;
        }
        // One that was taken over from may have opened the socket: then the one that published is meant.
        let pids: Vec<u32> = peer(socket).await.into_iter().chain(published(env)).filter(|pid| runs(*pid)).collect();
        let stopped = pids.iter().find(|pid| is_stopped(**pid));
        let pid = stopped.or(pids.first()).copied();
        Some(Self { socket: socket.clone(), pid, stopped: stopped.is_some() })
    }

    /// What is so.
    pub(crate) fn sentence(&self) -> String {
        let how = if self.stopped { "is stopped by a signal" } else { "hangs, or has no time" };
        format!(
            "the daemon{} {how}: its socket {} takes connections, and no answer comes",
            self.named(),
            self.socket.display()
        )
    }

    /// What to do.
    pub(crate) fn remedy(&self) -> String {
        match self.pid {
            Some(pid) => remedy(pid, self.stopped),
            None => "See its log; if it stays so, end it and start it again.".to_owned(),
        }
    }

    fn named(&self) -> String {
        self.pid.map(|pid| format!(" (pid {pid})")).unwrap_or_default()
    }
}

/// What to do about a process that says nothing.
pub(crate) fn remedy(pid: u32, stopped: bool) -> String {
    match stopped {
        true => format!("`kill -CONT {pid}` lets it go on."),
        false => format!("See its log; if it stays so, `kill -9 {pid}` ends it, and it can be started again."),
    }
}

/// Who opened the socket, where the system says so.
async fn peer(socket: &Path) -> Option<u32> {
    let stream = timeout(TAKEN, UnixStream::connect(socket)).await.ok()?.ok()?;
    u32::try_from(stream.peer_cred().ok()?.pid()?).ok()
}

/// The resolver of this home.
fn published(env: &Env) -> Option<u32> {
    let paths = HostConfig::read(env, None).ok()?.published;
    ledger::publisher(&paths).ok()?.alive().map(|state| state.pid)
}

fn runs(pid: u32) -> bool {
    let pid = i32::try_from(pid).ok().and_then(Pid::from_raw);
    pid.is_some_and(|pid| test_kill_process(pid).is_ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_socket_that_takes_and_does_not_answer_is_told_from_one_where_nobody_is() {
        let home = tempfile::tempdir().unwrap();
        let env = Env::of([("HOME", home.path().to_str().unwrap())]);
        let socket = home.path().join("s");
        let failed = |kind: ErrorKind| Error::Unreachable { socket: socket.clone(), cause: kind.into() };
        assert_eq!(Mute::behind(&failed(ErrorKind::NotFound), &env).await, None);
        let _listener = std::os::unix::net::UnixListener::bind(&socket).unwrap();
        let mute = Mute::behind(&failed(ErrorKind::TimedOut), &env).await.unwrap();
        assert!(!mute.stopped && mute.sentence().contains(" hangs, or has no time: its socket "), "{mute:?}");
        if cfg!(target_os = "linux") {
            assert_eq!(mute.pid, Some(std::process::id()));
            assert!(mute.remedy().contains(&format!("`kill -9 {}`", std::process::id())));
        }
        let stopped = Mute { stopped: true, pid: Some(7), ..mute };
        assert!(stopped.sentence().starts_with("the daemon (pid 7) is stopped by a signal: "));
        assert_eq!(stopped.remedy(), "`kill -CONT 7` lets it go on.");
    }
}

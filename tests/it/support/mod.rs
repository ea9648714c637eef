//! The rig: hosts with homes of their own, sshd, PostgreSQL, networks that can be cut, ports nobody else takes.
//! Everything it starts ends with the value that started it, by process id.

macro_rules! needs {
    ($($what:literal),+) => {
        $(if !$crate::support::needs::met($what) { return; })+
    };
}

pub mod cable;
pub mod disk;
pub mod docker;
pub mod etcd;
pub mod fleet;
pub mod home;
pub mod http;
pub mod mute;
pub mod needs;
pub mod netns;
pub mod notes;
pub mod object_api;
pub mod ports;
pub mod postgres;
pub mod process;
pub mod python;
#[path = "../../../fleet/src/store/s3/emulator.rs"]
pub mod s3;
pub mod s3_server;
pub mod sshd;
pub mod strace;
pub mod tcp;
pub mod terminal;
pub mod webdriver;

use std::thread::sleep;
use std::time::{Duration, Instant};

/// Polls `condition` until it gives a value; fails the test with `what` after `limit`.
pub fn wait_for<T>(what: &str, limit: Duration, mut condition: impl FnMut() -> Option<T>) -> T {
    let end = Instant::now() + limit;
    loop {
        if let Some(value) = condition() {
            return value;
        }
        assert!(Instant::now() < end, "not within {limit:?}: {what}");
        sleep(Duration::from_millis(20));
    }
}

/// [`wait_for`] for a condition that holds or does not.
pub fn wait_until(what: &str, limit: Duration, mut condition: impl FnMut() -> bool) {
    wait_for(what, limit, || condition().then_some(()));
}

/// Longer than anything honest takes on a slow machine; a test that gets here has failed.
pub const PATIENCE: Duration = Duration::from_secs(30);

/// A program by name: on the PATH, or where Debian keeps what only administrators have on theirs.
pub fn program(name: &str) -> Option<std::path::PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let extra = ["/usr/sbin", "/sbin", "/usr/local/sbin"].map(Into::into);
    std::env::split_paths(&path).chain(extra).map(|dir| dir.join(name)).find(|file| file.is_file())
}

/// Whether this process may do what only root may.
pub fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}

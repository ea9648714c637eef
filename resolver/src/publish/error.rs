//! Why this process may not publish.
use stado_fleet::fault::{Blame, Class, Faulty};
use std::fmt;
use std::path::PathBuf;

/// Another process publishes here.
#[derive(Debug)]
pub struct PublishError {
    /// Its pid, where the lock file names it.
    pub pid: Option<u32>,
    /// The lock.
    pub lock: PathBuf,
}
impl fmt::Display for PublishError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let holder = self.pid.map_or_else(|| "a process that left no pid".to_owned(), |pid| format!("pid {pid}"));
        write!(
            f,
            "another resolver is running: {holder} holds {}; stop it first, or give this one a home or a \
             STADO_RESOLVER_STATE_FILE of its own",
            self.lock.display()
        )
    }
}
impl std::error::Error for PublishError {}
impl Faulty for PublishError {
    fn blame(&self) -> Blame {
        Blame::ThisHost
    }
    fn class(&self) -> Class {
        Class::Refused
    }
}

//! Why this process may not publish.
use stado_fleet::disk::DiskError;
use stado_fleet::fault::{Blame, Class, Faulty};
use std::fmt;
use std::path::PathBuf;

/// A publisher that did not start.
#[derive(Debug)]
pub enum PublishError {
    /// Another process publishes here.
    Held {
        /// Its pid, where the lock file names it.
        pid: Option<u32>,
        /// The lock.
        lock: PathBuf,
    },
    /// The lock file cannot be made or opened.
    Lock(DiskError),
}
impl fmt::Display for PublishError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Held { pid, lock } => {
                let holder = pid.map_or_else(|| "a process that left no pid".to_owned(), |pid| format!("pid {pid}"));
                write!(
                    f,
                    "another resolver is running: {holder} holds {}; stop it first, or give this one a home or a \
                     STADO_RESOLVER_STATE_FILE of its own",
                    lock.display()
                )
            }
            Self::Lock(error) => error.fmt(f),
        }
    }
}
impl std::error::Error for PublishError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Held { .. } => None,
            Self::Lock(error) => Some(error),
        }
    }
}
impl Faulty for PublishError {
    fn blame(&self) -> Blame {
        Blame::ThisHost
    }
    fn class(&self) -> Class {
        match self {
            Self::Held { .. } => Class::Refused,
            Self::Lock(error) => error.class(),
        }
    }
}

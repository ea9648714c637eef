//! The only file writer: atomic replace, locks, owner-checked reads, owner-only modes (design, rule 5).
mod append;
mod aside;
mod lock;
mod read;
mod write;

pub use append::append_line;
pub use aside::{KEPT_ASIDE, move_aside, set_aside};
pub use lock::{Lock, LockAttempt};
pub use read::{read, read_unlinked};
pub use write::{
    Observer, SYNC_DIRECTORY, Staged, WriteStep, create_new, create_new_observed, private_dir, publish,
    publish_observed, replace, replace_observed, rewrite, sweep, sweep_dir, sweep_locked,
};

use std::path::{Path, PathBuf};

/// A file operation that failed: which file, which step, the system's cause.
#[derive(Debug, thiserror::Error)]
#[error("cannot {step} {path}: {source}", path = path.display())]
pub struct DiskError {
    /// What was attempted (`read`, `write`, `lock`, …).
    pub step: &'static str,
    /// The file.
    pub path: PathBuf,
    /// Why.
    #[source]
    pub source: std::io::Error,
}

impl DiskError {
    pub(crate) fn new(step: &'static str, path: &Path, source: impl Into<std::io::Error>) -> Self {
        Self { step, path: path.to_owned(), source: source.into() }
    }

    pub(crate) fn refused(step: &'static str, path: &Path, why: impl Into<String>) -> Self {
        Self::new(step, path, std::io::Error::other(why.into()))
    }

    /// Whether the whole new content is in place and only its durability is unknown: the rename was done and the
    /// directory could not be synced.
    pub fn in_place(&self) -> bool {
        self.step == SYNC_DIRECTORY
    }
}

impl crate::fault::Faulty for DiskError {
    fn blame(&self) -> crate::fault::Blame {
        crate::fault::Blame::ThisHost
    }

    fn class(&self) -> crate::fault::Class {
        match self.source.kind() {
            std::io::ErrorKind::PermissionDenied => crate::fault::Class::Auth,
            std::io::ErrorKind::NotFound => crate::fault::Class::NotFound,
            std::io::ErrorKind::StorageFull | std::io::ErrorKind::QuotaExceeded => crate::fault::Class::InfraDown,
            _ => crate::fault::Class::Config,
        }
    }
}

/// The directory that holds `path`; a bare file name is in the working directory.
fn parent(path: &Path) -> &Path {
    match path.parent() {
        Some(dir) if !dir.as_os_str().is_empty() => dir,
        _ => Path::new("."),
    }
}

#[cfg(test)]
mod tests;

//! Forward markers: `~/.stado/forwards/<service>.local`, one line (fleet contract §5).
mod declared;
mod fossils;
mod keep;

pub use declared::declared;
pub use fossils::Pruned;

use crate::name::LogicalName;
use std::path::{Path, PathBuf};

/// Longest marker that is read; a URL is far shorter.
const LONGEST: u64 = 4096;

/// The markers of one host.
#[derive(Debug, Clone)]
pub struct Forwards {
    dir: PathBuf,
}

/// A marker the directory declares for this host.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
pub struct Declared {
    /// Service.
    pub service: String,
    /// One-line URL.
    pub url: String,
    /// `directory-endpoint` or `resolver-adapter`.
    pub source: &'static str,
}

/// A declared service that gets no marker, with the reason.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
pub struct Skipped {
    /// Service.
    pub service: String,
    /// Why.
    pub reason: String,
}

/// A marker file that the directory does not declare.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
pub struct Fossil {
    /// Service (file stem).
    pub service: String,
    /// Its line, or `(unreadable: …)`.
    pub url: String,
    /// File.
    pub marker: PathBuf,
    /// Seconds since it was written.
    pub age_seconds: u64,
}

/// A marker that is there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Marker {
    /// File.
    pub marker: PathBuf,
    /// Its line, or `(unreadable: …)`.
    pub url: String,
}

impl Forwards {
    /// At `dir`.
    pub fn new(dir: impl Into<PathBuf>) -> Self {
        Self { dir: dir.into() }
    }

    /// The directory.
    pub fn dir(&self) -> &Path {
        &self.dir
    }

    /// Removes what writers that were killed left here.
    pub fn sweep(&self) {
        crate::disk::sweep_dir(&self.dir, &|name| {
            name.strip_suffix(".local").is_some_and(|service| service.parse::<LogicalName>().is_ok())
        });
    }

    /// The marker of a service.
    pub fn marker(&self, service: &str) -> PathBuf {
        self.dir.join(format!("{service}.local"))
    }
}

#[cfg(test)]
mod tests;

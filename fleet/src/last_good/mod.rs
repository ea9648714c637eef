//! The last validated snapshot on disk, with its age (fleet contract §3.4).
mod record;

use crate::admit::Snapshot;
use crate::disk::{self, DiskError, Lock, LockAttempt};
use crate::document::Document;
use crate::validate::validate;
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use std::path::{Path, PathBuf};
use std::sync::Arc;

const DOCUMENT: &str = "registry-last-good.json";
const SIDECAR: &str = "registry-last-good.meta.json";
const LARGEST: u64 = 64 << 20;

/// The copy's place: `~/.stado/cache/registry-last-good.json` and its `.meta.json` sidecar.
#[derive(Debug, Clone)]
pub struct LastGood {
    dir: PathBuf,
}

/// A copy that was read: validated, with its sidecar.
#[derive(Debug, Clone)]
pub struct Copy {
    /// The snapshot; its store version is the recorded generation.
    pub snapshot: Snapshot,
    /// When it was read from the authority.
    pub read_at: Timestamp,
    /// Where it is.
    pub path: PathBuf,
}

impl Copy {
    /// The notice of §3.4: `reading the last-known-good registry copy from <age>s ago (…) because the authority did not answer: <cause>`.
    pub fn notice(&self, now: Timestamp, cause: &str) -> String {
        format!(
            "reading the last-known-good registry copy from {}s ago ({}, read_at {}, generation {}) because the authority \
             did not answer: {cause}{}",
            self.age_seconds(now),
            self.path.display(),
            whole_seconds(self.read_at),
            self.snapshot.store_version,
            self.doubt(now)
        )
    }

    /// A copy from the future has no age that could be told.
    fn doubt(&self, now: Timestamp) -> String {
        match self.read_at.duration_since(now).as_secs() {
            ..=0 => String::new(),
            ahead => format!("; read_at is {ahead}s ahead of this host's clock, so how old the copy is cannot be told"),
        }
    }

    /// Seconds since it was read from the authority; 0 when the clock went back.
    pub fn age_seconds(&self, now: Timestamp) -> u64 {
        u64::try_from(now.duration_since(self.read_at).as_secs()).unwrap_or(0)
    }
}

/// Why a copy was not recorded: a kind of §3.4 and a sentence.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{sentence}")]
pub struct NotRecorded {
    /// `unparseable-document`, `rejected-by-this-build`, `would-lose-recorded-hosts`, `not-written`, `no-cache-location`.
    pub kind: &'static str,
    /// Sentence.
    pub sentence: String,
}

impl crate::fault::Faulty for NotRecorded {
    fn blame(&self) -> crate::fault::Blame {
        match self.kind {
            "not-written" | "no-cache-location" => crate::fault::Blame::ThisHost,
            _ => crate::fault::Blame::Remote,
        }
    }

    fn class(&self) -> crate::fault::Class {
        crate::fault::Class::Config
    }
}

/// `registry-last-good.meta.json`.
#[derive(Debug, Serialize, Deserialize)]
struct Sidecar {
    read_at: String,
    generation: crate::name::StoreVersion,
}

impl LastGood {
    /// `<stado home>/cache`.
    pub fn new(dir: impl AsRef<Path>) -> Self {
        Self { dir: dir.as_ref().to_owned() }
    }

    /// Removes what writers that were killed left here.
    pub fn sweep(&self) {
        disk::sweep(&self.path());
        disk::sweep(&self.sidecar_path());
    }

    /// The document's file.
    pub fn path(&self) -> PathBuf {
        self.dir.join(DOCUMENT)
    }

    fn sidecar_path(&self) -> PathBuf {
        self.dir.join(SIDECAR)
    }

    /// Reads and validates; `Ok(None)` when there is none; a corrupt one is set aside and told in the error, as is half a
    /// copy: what is left after that, and after a writer that was killed between its two files, is never taken for none.
    ///
    /// The sidecar is read first: a writer that comes between leaves a copy that is newer than its age says, never one
    /// that is older.
    pub fn read(&self) -> Result<Option<Copy>, String> {
        let Some(meta) = self.bytes(&self.sidecar_path())? else { return self.without_sidecar() };
        let Some(bytes) = self.bytes(&self.path())? else { return Err(self.half(&self.path())) };
        let (store_version, read_at) = sidecar(&meta).map_err(|e| self.corrupt(&self.sidecar_path(), &e))?;
        let corrupt = |e: &dyn std::fmt::Display| self.corrupt(&self.path(), e);
        let document = Document::parse(bytes).map_err(|e| corrupt(&e))?;
        let valid = validate(document).map_err(|e| corrupt(&e))?;
        Ok(Some(Copy { snapshot: Snapshot { valid: Arc::new(valid), store_version }, read_at, path: self.path() }))
    }

    /// No sidecar: no copy at all, or one whose writer is at work, or one that was never completed.
    fn without_sidecar(&self) -> Result<Option<Copy>, String> {
        let there = |path: &Path| std::fs::symlink_metadata(path).is_ok();
        if !there(&self.path()) {
            return Ok(None);
        }
        match Lock::try_exclusive(&self.lock_path(), false) {
            Ok(LockAttempt::Held(_lock)) if there(&self.sidecar_path()) => self.read(),
            Ok(LockAttempt::Busy { .. }) => Ok(None),
            Ok(LockAttempt::Held(_)) | Err(_) => Err(self.half(&self.sidecar_path())),
        }
    }

    fn half(&self, missing: &Path) -> String {
        format!(
            "the last-known-good registry copy at {} is not used: {} is missing; the next read of the authority replaces it, \
             and `stado registry pull --from` names the authority again",
            self.path().display(),
            missing.display()
        )
    }

    fn lock_path(&self) -> PathBuf {
        self.path().with_extension("lock")
    }

    fn bytes(&self, path: &Path) -> Result<Option<Vec<u8>>, String> {
        disk::read_unlinked(path, LARGEST).map_err(|e| format!("the last-known-good registry copy is not read: {e}"))
    }

    fn corrupt(&self, path: &Path, why: &dyn std::fmt::Display) -> String {
        let kept = match disk::set_aside(path) {
            Ok(copy) => format!("kept as {}", copy.display()),
            Err(DiskError { source, .. }) => format!("it could not be set aside: {source}"),
        };
        format!(
            "the last-known-good registry copy at {} is not used: {why} ({kept}); the next read of the authority replaces it",
            path.display()
        )
    }
}

fn sidecar(bytes: &[u8]) -> Result<(crate::name::StoreVersion, Timestamp), String> {
    let meta: Sidecar = serde_json::from_slice(bytes).map_err(|e| e.to_string())?;
    let read_at = meta.read_at.parse().map_err(|e| format!("read_at {:?}: {e}", meta.read_at))?;
    Ok((meta.generation, read_at))
}

/// `2026-08-19T18:31:00Z`.
fn whole_seconds(at: Timestamp) -> String {
    at.strftime("%Y-%m-%dT%H:%M:%SZ").to_string()
}

#[cfg(test)]
mod tests;

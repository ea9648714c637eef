//! One pair of files, kept current: read again when a file changed, the old certificate kept if the new one does not load.
use super::PairFiles;
use super::identity::Identity;
use super::pem::{self, LoadError};
use super::stamp::Stamp;
use arc_swap::ArcSwapOption;
use jiff::Timestamp;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// A pair and what was last read from it.
#[derive(Debug)]
pub(super) struct Shelf {
    files: PairFiles,
    identity: ArcSwapOption<Identity>,
    seen: Mutex<Seen>,
}

#[derive(Debug, Default)]
struct Seen {
    stamp: Stamp,
    problem: Option<(LoadError, Timestamp)>,
}

impl Shelf {
    /// Reads the pair; an error when it does not load.
    pub(super) fn load(files: PairFiles) -> Result<Self, LoadError> {
        let shelf = Self::open(files);
        match shelf.error() {
            Some(error) => Err(error),
            None => Ok(shelf),
        }
    }

    /// Reads the pair; one that does not load is kept with its reason.
    pub(super) fn open(files: PairFiles) -> Self {
        let shelf = Self { files, identity: ArcSwapOption::empty(), seen: Mutex::default() };
        shelf.read(&mut shelf.seen(), shelf.stamp());
        shelf
    }

    /// Reads the files again if they are not those that were read.
    pub(super) fn refresh(&self) {
        let stamp = self.stamp();
        let mut seen = self.seen();
        if seen.stamp != stamp {
            self.read(&mut seen, stamp);
        }
    }

    /// What is served from it.
    pub(super) fn identity(&self) -> Option<Arc<Identity>> {
        self.identity.load_full()
    }

    pub(super) fn files(&self) -> &PairFiles {
        &self.files
    }

    /// Why the files as they are now do not load, and since when.
    pub(super) fn problem(&self) -> Option<(LoadError, Timestamp)> {
        self.seen().problem.clone()
    }

    pub(super) fn error(&self) -> Option<LoadError> {
        self.problem().map(|(error, _)| error)
    }

    fn read(&self, seen: &mut Seen, stamp: Stamp) {
        seen.stamp = stamp;
        let cert = self.files.cert.display();
        match pem::load(&self.files) {
            Ok(identity) => {
                tracing::info!(target: "stado::mesh", %cert, until = %identity.not_after, "tls_certificate_loaded");
                self.identity.store(Some(Arc::new(identity)));
                seen.problem = None;
            }
            Err(error) => {
                let kept = self.identity.load().is_some();
                tracing::warn!(target: "stado::mesh", %cert, %error, old_one_kept = kept, "tls_certificate_not_loaded");
                seen.problem = Some((error, Timestamp::now()));
            }
        }
    }

    fn stamp(&self) -> Stamp {
        Stamp::of([self.files.cert.as_path(), self.files.key.as_path()])
    }

    fn seen(&self) -> MutexGuard<'_, Seen> {
        self.seen.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

//! The state file on disk: one writer, whole files, one write for all changes that wait for it.
use super::error::MeshError;
use super::state_file::{Document, Unreadable};
use serde::Serialize;
use serde::de::DeserializeOwned;
use stado_fleet::disk::{self, DiskError};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// More than any real file; a larger one is not read into memory.
const LIMIT: u64 = 64 * 1024 * 1024;

/// A remembered map and its file.
#[derive(Debug)]
pub(crate) struct Store<V> {
    path: PathBuf,
    memory: Arc<Mutex<Memory<V>>>,
    /// The change up to which the file is written. Held while writing, by the thread that writes.
    written: Arc<tokio::sync::Mutex<u64>>,
    aside: Option<PathBuf>,
}

#[derive(Debug)]
struct Memory<V> {
    document: Document<V>,
    change: u64,
}

/// A change in memory that has to reach the disk.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Change(u64);

impl<V: Serialize + DeserializeOwned + Clone + Send + 'static> Store<V> {
    /// Reads `path`, whose lock the caller holds, and removes what a killed writer left beside it. A corrupt file is copied aside and read as empty; the original stays until the next save. A newer
    /// file, an unreadable one, and one whose copy cannot be made are errors.
    pub(crate) fn open(path: &Path, key: &'static str) -> Result<Self, MeshError> {
        disk::sweep_locked(path);
        let bytes = disk::read(path, LIMIT)?.unwrap_or_default();
        let (document, aside) = match Document::parse(key, &bytes) {
            Ok(document) => (document, None),
            Err(Unreadable::Version(found)) => return Err(MeshError::Version { path: path.to_owned(), found }),
            Err(Unreadable::Corrupt(why)) => {
                let copy = disk::set_aside(path)?;
                tracing::warn!(target: "stado::mesh", path = %path.display(), copy = %copy.display(), error = %why, "state_corrupt");
                (Document::empty(key), Some(copy))
            }
        };
        let memory = Arc::new(Mutex::new(Memory { document, change: 0 }));
        Ok(Self { path: path.to_owned(), memory, written: Arc::default(), aside })
    }

    /// The copy of a corrupt file that was found when this one was opened.
    pub(crate) fn set_aside(&self) -> Option<&Path> {
        self.aside.as_deref()
    }

    /// The value remembered for `name`.
    pub(crate) fn get(&self, name: &str) -> Option<V> {
        self.memory().document.entries().get(name).cloned()
    }

    /// Everything remembered.
    pub(crate) fn entries(&self) -> BTreeMap<String, V> {
        self.memory().document.entries().clone()
    }

    /// Makes memory hold exactly `entries`; the file follows with [`Store::flush`].
    pub(crate) fn align(&self, entries: BTreeMap<String, V>)
    where
        V: PartialEq,
    {
        let mut memory = self.memory();
        if *memory.document.entries() != entries {
            memory.document.replace(entries);
            memory.change += 1;
        }
    }

    /// Changes memory; the file follows with [`Store::persist`].
    pub(crate) fn set(&self, name: &str, value: Option<V>) -> Change {
        let mut memory = self.memory();
        memory.document.set(name, value);
        memory.change += 1;
        Change(memory.change)
    }

    /// Returns once `change` is durable. Changes that wait at the same time share one write.
    pub(crate) async fn persist(&self, change: Change) -> Result<(), DiskError> {
        let mut written = self.written.clone().lock_owned().await;
        if *written >= change.0 {
            return Ok(());
        }
        let (memory, path) = (self.memory.clone(), self.path.clone());
        // The thread that writes owns the turn, so that a caller that goes away cannot let a later write overtake this one.
        let write = tokio::task::spawn_blocking(move || {
            let up_to = save(&memory, &path)?;
            *written = up_to;
            Ok(())
        });
        write.await.unwrap_or_else(|stopped| Err(fault(&self.path, std::io::Error::other(stopped))))
    }

    /// Writes the file if a change has not reached it.
    pub(crate) async fn flush(&self) -> Result<(), DiskError> {
        let latest = Change(self.memory().change);
        self.persist(latest).await
    }

    fn memory(&self) -> MutexGuard<'_, Memory<V>> {
        self.memory.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn save<V: Serialize + DeserializeOwned + Clone>(memory: &Mutex<Memory<V>>, path: &Path) -> Result<u64, DiskError> {
    let (document, change) = {
        let memory = memory.lock().unwrap_or_else(PoisonError::into_inner);
        (memory.document.clone(), memory.change)
    };
    let bytes = document.render().map_err(|error| fault(path, error.into()))?;
    disk::replace(path, &bytes)?;
    Ok(change)
}

fn fault(path: &Path, source: std::io::Error) -> DiskError {
    DiskError { step: "write", path: path.to_owned(), source }
}

#[cfg(test)]
#[path = "state_store_tests.rs"]
mod tests;

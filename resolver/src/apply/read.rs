//! One read of the registry, in a task of its own and within a deadline of its own.
use super::held::Held;
use stado_fleet::admit::Snapshot;
use stado_fleet::authority::{Refusals, RegistryError, Source, fetch_since};
use stado_fleet::fault::Class;
use stado_fleet::link::Link;
use stado_fleet::store::RegistryStore;
use std::sync::Arc;
use std::time::Duration;
use tokio::task::JoinHandle;

/// A read that takes longer has lost its way: both rounds over all paths have deadlines of their own below this.
const READ_LIMIT: Duration = Duration::from_secs(150);
/// Where the registry is read from.
#[derive(Debug, Clone)]
pub struct Reading {
    /// This host's store.
    pub store: Arc<dyn RegistryStore>,
    /// The way to a remote authority.
    pub link: Link,
    /// Where refused reads are recorded, when this host keeps such records.
    pub refusals: Option<Refusals>,
}

/// One read: what it was asked of, and what came.
pub(super) struct Read {
    pub(super) source: Source,
    pub(super) outcome: Result<Option<Snapshot>, RegistryError>,
}

impl Reading {
    /// Starts a read; a document at the held version is not parsed again.
    pub(super) fn start(&self, source: Source, held: Option<Arc<Held>>) -> JoinHandle<Read> {
        let link = self.link.clone();
        tokio::spawn(async move {
            let before = held.as_ref().map(|held| &held.snapshot);
            let read = tokio::time::timeout(READ_LIMIT, fetch_since(&source, &link, before));
            let late =
                || format!("the registry at {} gave no answer within {}s", source.location(), READ_LIMIT.as_secs());
            let outcome = read.await.unwrap_or_else(|_| Err(RegistryError::new(Class::Timeout, late())));
            Read { source, outcome }
        })
    }

    /// Whether what `source` delivers is recorded as this host's copy: a local directory that no other host reads is not,
    /// since a host whose store is its own directory has no such copy (§3.4).
    pub(super) fn belongs_into_copy(&self, source: &Source) -> bool {
        matches!(source, Source::Remote(_)) || self.store.shared()
    }
}

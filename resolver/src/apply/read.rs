//! One read of the registry, in a task of its own and within a deadline of its own.
use super::held::Held;
use stado_fleet::admit::Snapshot;
use stado_fleet::authority::{Changes, Refusals, RegistryError, Source, fetch_since, settled};
use stado_fleet::fault::Class;
use stado_fleet::link::Link;
use stado_fleet::name::{StoreVersion, TargetName};
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
    /// Changes that the authority told.
    pub changes: Arc<Changes>,
    /// Where refused reads are recorded, when this host keeps such records.
    pub refusals: Option<Refusals>,
}

/// One read: what it was asked of, and what came.
pub(super) struct Read {
    pub(super) source: Source,
    pub(super) outcome: Result<Option<Snapshot>, RegistryError>,
}

/// A directory of this host, and the version of it that was read last.
pub(super) struct Watch {
    store: Arc<dyn RegistryStore>,
    seen: Option<StoreVersion>,
}

impl Watch {
    /// Ends when another version is there. One that cannot be told is left to the next tick.
    async fn changed(&self) {
        if self.store.watch(self.seen.as_ref()).await.is_err() {
            std::future::pending().await
        }
    }
}

/// [`Watch::changed`], never without one.
pub(super) async fn changed(watch: Option<Watch>) {
    match watch {
        Some(watch) => watch.changed().await,
        None => std::future::pending().await,
    }
}

impl Read {
    /// What to watch until the next read: a push on this host is applied at once. Compared with what was read, not with
    /// what is held, so that a version that was refused is not read over and over.
    pub(super) fn watch(&self) -> Option<Watch> {
        match (&self.source, &self.outcome) {
            (Source::Store(store), Ok(snapshot)) if !store.shared() => {
                let seen = snapshot.as_ref().map(|snapshot| snapshot.store_version.clone());
                Some(Watch { store: Arc::clone(store), seen })
            }
            _ => None,
        }
    }
}

/// Reads from a store only once that has shown that it is one.
async fn proven(source: &Source, link: &Link, before: Option<&Snapshot>) -> Result<Option<Snapshot>, RegistryError> {
    if let Source::Store(store) = source {
        store.prove().await?;
    }
    fetch_since(source, link, before).await
}

impl Reading {
    /// Starts a read; a document at the held version is not parsed again, and of one that came of it by changes that were told
    /// already nothing is fetched.
    pub(super) fn start(&self, asked: Source, me: Option<TargetName>, held: Option<Arc<Held>>) -> JoinHandle<Read> {
        let (link, store, changes) = (self.link.clone(), self.store.clone(), Arc::clone(&self.changes));
        tokio::spawn(async move {
            let source = settled(asked.clone(), &|_| me.clone(), &store).await;
            let told = match (&asked, &source, &held) {
                // What another authority told says nothing of this one's document.
                (Source::Remote(asked), Source::Remote(now), Some(held)) if asked == now => {
                    changes.since(&now.target, &held.snapshot.store_version)
                }
                _ => Vec::new(),
            };
            if let Some(held) = held.as_ref().filter(|_| !told.is_empty()) {
                match Changes::apply(told, held.snapshot.clone(), &source.location()).await {
                    Ok(snapshot) => return Read { source, outcome: Ok(Some(snapshot)) },
                    Err(why) => {
                        tracing::info!(target: "stado::fleet", "stado resolver: the registry is read whole: {why}")
                    }
                }
            }
            let before = held.as_ref().map(|held| &held.snapshot);
            let read = tokio::time::timeout(READ_LIMIT, proven(&source, &link, before));
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

#[cfg(test)]
#[path = "read_tests.rs"]
mod tests;

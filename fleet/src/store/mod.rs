//! Where the registry's bytes are kept: one trait, several engines.
#[cfg(any(test, feature = "conformance"))]
#[doc(hidden)]
pub mod conformance;
pub mod etcd;
pub mod history;
pub mod http;
pub mod local;
mod location;
pub mod object;
mod remembered;
pub mod s3;
mod shelved;
use crate::name::StoreVersion;
use std::future::Future;
use std::pin::Pin;
use std::time::Duration;

/// Between two looks of a watcher, where a store has no better way to notice.
const LOOK: Duration = Duration::from_secs(5);

/// A request to a store that takes longer is announced.
const BLINK: Duration = Duration::from_secs(1);

/// Bytes and their version, from one read.
#[derive(Debug, Clone)]
pub struct Stored {
    /// The bytes.
    pub bytes: std::sync::Arc<[u8]>,
    /// Their version.
    pub version: StoreVersion,
}
/// What a swap is conditional on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Expected {
    /// The object must not exist.
    Absent,
    /// The object must be at this version.
    Version(StoreVersion),
}
/// How a swap ended (design, choices: compare-and-swap outcomes).
#[derive(Debug)]
pub enum Swap {
    /// Written; the new version.
    Applied(StoreVersion),
    /// Another version is there (`None`: could not be told).
    Conflict {
        /// What is there.
        found: Option<StoreVersion>,
    },
    /// Nothing is there.
    Absent,
    /// It cannot be told whether it was written; settle it by reading back.
    Unknown(StoreError),
}
/// A store that does not answer or refuses. `Display` begins `registry store unreachable (<location>): …` or says what is wrong.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{sentence}")]
pub struct StoreError {
    /// Whole sentence.
    pub sentence: String,
    /// Class for the exit code.
    pub class: crate::fault::Class,
}
impl crate::fault::Faulty for StoreError {
    fn blame(&self) -> crate::fault::Blame {
        match self.class {
            crate::fault::Class::Auth => crate::fault::Blame::Credentials,
            crate::fault::Class::InfraDown | crate::fault::Class::Timeout => crate::fault::Blame::Remote,
            _ => crate::fault::Blame::ThisHost,
        }
    }
    fn class(&self) -> crate::fault::Class {
        self.class
    }
}
/// Boxed future of the store trait.
pub type StoreFuture<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;
/// The registry object of one store.
pub trait RegistryStore: Send + Sync + std::fmt::Debug {
    /// As people see it: `local:registry.json`, `stado://probierz/registry.json`.
    fn location(&self) -> String;
    /// Whether other hosts read and write the same object; a directory of this host is not shared.
    fn shared(&self) -> bool {
        true
    }
    /// Whether every host that is configured with it reads and writes it by itself, and needs no authority for that: an
    /// engine that keeps its promise whoever asks.
    fn direct(&self) -> bool {
        false
    }
    /// Whether [`RegistryStore::watch`] hears of a change from the store, and does not look for it.
    fn tells(&self) -> bool {
        !self.shared()
    }
    /// Whether the store does what is asked of one: found out once, by trying, where nothing else tells.
    ///
    /// # Errors
    /// It does not, and is not to be used; or it does not answer.
    fn prove(&self) -> StoreFuture<'_, Result<(), StoreError>> {
        Box::pin(async { Ok(()) })
    }
    /// Reads; `None` when there is no object.
    fn read(&self) -> StoreFuture<'_, Result<Option<Stored>, StoreError>>;
    /// Compare-and-swap of the whole object.
    fn swap(&self, expected: Expected, bytes: Vec<u8>) -> StoreFuture<'_, Result<Swap, StoreError>>;
    /// What this store remembers of earlier versions; `None`: it keeps none.
    fn history(&self) -> Option<&dyn history::History> {
        None
    }
    /// Waits until the object is at another version than `held` (`None`: until there is one), and gives that version
    /// (`None`: it is gone). It waits as long as that takes; whoever watches drops it to end it.
    fn watch<'a>(
        &'a self,
        held: Option<&'a StoreVersion>,
    ) -> StoreFuture<'a, Result<Option<StoreVersion>, StoreError>> {
        Box::pin(async move {
            loop {
                let now = self.read().await?.map(|stored| stored.version);
                if now.as_ref() != held {
                    return Ok(now);
                }
                tokio::time::sleep(LOOK).await;
            }
        })
    }
}

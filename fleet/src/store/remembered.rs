//! The history of a registry that is in an engine which hosts share: one index of facts, and one object a version, beside the
//! registry below `.history/`. Written after the swap by whoever made it; a version that was not remembered (its writer was
//! killed, or was another build) is taken in before it is replaced. A history that cannot be written costs a warning, not the
//! write that it is about.
use super::history::{Version, Writer};
use super::{Expected, StoreError, StoreFuture, Stored, Swap};
use crate::document::Document;
use crate::fault::Class;
use crate::name::StoreVersion;
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use std::sync::Arc;
use std::time::Duration;

/// Versions that are kept.
const KEPT: usize = 50;
/// How often the index is written again when another writer was first.
const TRIES: u32 = 20;

/// Objects of an engine by their keys.
pub(super) trait Shelf: Send + Sync {
    /// An object and its version.
    fn fetch<'a>(&'a self, key: &'a str) -> StoreFuture<'a, Result<Option<Stored>, StoreError>>;
    /// Compare-and-swap of an object.
    fn place<'a>(
        &'a self,
        key: &'a str,
        expected: Expected,
        bytes: Vec<u8>,
    ) -> StoreFuture<'a, Result<Swap, StoreError>>;
    /// Takes an object away; that it may stay is no harm.
    fn discard<'a>(&'a self, key: &'a str) -> StoreFuture<'a, ()>;
}

/// What `.history/index.json` says, newest first.
#[derive(Debug, Default, Serialize, Deserialize)]
struct Index {
    versions: Vec<Version>,
}

/// The index as it was read.
#[derive(Debug, Default)]
pub(super) struct Read {
    index: Index,
    at: Option<StoreVersion>,
}

/// The history beside the registry at `key`.
pub(super) struct Remembered<'s> {
    pub(super) shelf: &'s dyn Shelf,
    pub(super) key: &'s str,
}

impl Remembered<'_> {
    fn place(&self, name: &str) -> String {
        let dir = self.key.rsplit_once('/').map_or(String::new(), |(dir, _)| format!("{dir}/"));
        format!("{dir}.history/{name}")
    }

    fn index_key(&self) -> String {
        self.place("index.json")
    }

    /// Whatever an engine calls a version becomes part of a key.
    fn content_key(&self, version: &StoreVersion) -> String {
        let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-');
        let name =
            version.as_str().chars().map(|c| if plain(c) { c.to_string() } else { format!(".{:x}", u32::from(c)) });
        self.place(&name.collect::<String>())
    }

    async fn read(&self) -> Result<Read, StoreError> {
        let Some(stored) = self.shelf.fetch(&self.index_key()).await? else { return Ok(Read::default()) };
        let index = serde_json::from_slice(&stored.bytes).map_err(|e| StoreError {
            sentence: format!("the registry's history at {} is not readable: {e}", self.index_key()),
            class: Class::Config,
        })?;
        Ok(Read { index, at: Some(stored.version) })
    }

    /// The remembered versions, newest first.
    pub(super) async fn versions(&self) -> Result<Vec<Version>, StoreError> {
        Ok(self.read().await?.index.versions)
    }

    /// What a version said.
    pub(super) async fn content(&self, version: &StoreVersion) -> Result<Option<Arc<[u8]>>, StoreError> {
        if let Some(stored) = self.shelf.fetch(&self.content_key(version)).await? {
            return Ok(Some(stored.bytes));
        }
        // One that nobody wrote through this build.
        let now = self.shelf.fetch(self.key).await?;
        Ok(now.filter(|now| now.version == *version).map(|now| now.bytes))
    }

    /// Before a swap: what is about to be replaced is remembered, if it is not yet.
    pub(super) async fn before(&self, expected: &Expected) -> Option<Read> {
        let ready = async {
            let mut read = self.read().await?;
            let Expected::Version(version) = expected else { return Ok(read) };
            if read.index.versions.first().is_some_and(|newest| newest.version == *version) {
                return Ok(read);
            }
            let held = self.shelf.fetch(self.key).await?.filter(|held| held.version == *version);
            if let Some(held) = held {
                let facts = facts(&held.version, None, None, &held.bytes);
                read = self.add(read, &facts, &held.bytes).await?;
            }
            Ok(read)
        };
        warned(ready.await)
    }

    /// After a swap.
    pub(super) async fn after(
        &self,
        read: Option<Read>,
        version: &StoreVersion,
        expected: &Expected,
        writer: &Writer,
        bytes: &[u8],
    ) {
        let Some(read) = read else { return };
        let replaced = if let Expected::Version(version) = expected { Some(version.clone()) } else { None };
        let facts = facts(version, replaced, Some(writer.clone()), bytes);
        warned(self.add(read, &facts, bytes).await);
    }

    /// Remembers a version with what is known of it.
    pub(super) async fn keep(&self, facts: &Version, bytes: &[u8]) -> Result<(), StoreError> {
        let read = self.read().await?;
        self.add(read, facts, bytes).await.map(|_| ())
    }

    /// The content first: what the index names is there.
    async fn add(&self, read: Read, facts: &Version, bytes: &[u8]) -> Result<Read, StoreError> {
        self.shelf.place(&self.content_key(&facts.version), Expected::Absent, bytes.to_vec()).await?;
        let mut read = read;
        for attempt in 0..TRIES {
            let mut index = Index { versions: read.index.versions };
            match index.versions.iter_mut().find(|known| known.version == facts.version) {
                None => index.versions.insert(0, facts.clone()),
                // Taken in by whoever replaced it, before its writer could say who it was.
                Some(known) if known.writer.is_none() => *known = facts.clone(),
                Some(_) => {}
            }
            let dropped = index.versions.split_off(index.versions.len().min(KEPT));
            let text = serde_json::to_vec(&index).unwrap_or_default();
            let expected = read.at.clone().map_or(Expected::Absent, Expected::Version);
            match self.shelf.place(&self.index_key(), expected, text).await? {
                Swap::Applied(at) => {
                    self.discard(&dropped, &index).await;
                    return Ok(Read { index, at: Some(at) });
                }
                Swap::Unknown(e) => return Err(e),
                Swap::Conflict { .. } | Swap::Absent => {
                    let most = 10_u64 << attempt.min(5);
                    tokio::time::sleep(Duration::from_millis(rand::random_range(0..=most))).await;
                    read = self.read().await?;
                }
            }
        }
        Err(StoreError {
            sentence: format!("{} other writers were first, again and again", TRIES),
            class: Class::Moved,
        })
    }

    async fn discard(&self, dropped: &[Version], kept: &Index) {
        for facts in dropped.iter().filter(|facts| kept.versions.iter().all(|k| k.version != facts.version)) {
            self.shelf.discard(&self.content_key(&facts.version)).await;
        }
    }
}

fn facts(version: &StoreVersion, replaced: Option<StoreVersion>, writer: Option<Writer>, bytes: &[u8]) -> Version {
    Version {
        version: version.clone(),
        replaced,
        at: Timestamp::now().strftime("%Y-%m-%dT%H:%M:%SZ").to_string(),
        writer,
        directory_generation: Document::parse(bytes).ok().and_then(|d| d.generation()).map(|g| g.0),
    }
}

fn warned<T>(result: Result<T, StoreError>) -> Option<T> {
    result.map_err(|e| tracing::warn!(target: "stado::fleet", "the registry's history is not kept: {e}")).ok()
}

//! Earlier versions of the registry: when, by whom, and what they said.
use super::{StoreError, StoreFuture};
use crate::name::StoreVersion;
use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// Who made a write: as much as the host that took it can tell.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Writer {
    /// Account.
    pub user: String,
    /// Host on which the write was made.
    pub host: String,
    /// Address of the host that sent it over SSH, when it came that way.
    #[serde(default)]
    pub from: Option<String>,
}

/// One version.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Version {
    /// Its store version.
    pub version: StoreVersion,
    /// The one it replaced; `None` for the first, and where that is not known.
    #[serde(default)]
    pub replaced: Option<StoreVersion>,
    /// When it was written, RFC 3339 UTC.
    pub at: String,
    /// Who wrote it; `None` for a version that another build wrote.
    #[serde(default)]
    pub writer: Option<Writer>,
    /// Its directory generation.
    #[serde(default)]
    pub directory_generation: Option<u64>,
}

/// A store that remembers.
pub trait History: Send + Sync {
    /// The remembered versions, newest first.
    fn versions(&self) -> StoreFuture<'_, Result<Vec<Version>, StoreError>>;
    /// What a version said; `None` when it is not remembered.
    fn content<'a>(&'a self, version: &'a StoreVersion) -> StoreFuture<'a, Result<Option<Arc<[u8]>>, StoreError>>;
    /// Remembers a version of the same registry that another host stored: what a standby holds of its authority.
    fn keep<'a>(&'a self, facts: &'a Version, bytes: Arc<[u8]>) -> StoreFuture<'a, Result<(), StoreError>>;
}

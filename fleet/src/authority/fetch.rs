//! Reads through a source: bytes, document, snapshot.
use super::exec::Exec;
use super::{RegistryError, Source, remote};
use crate::admit::Snapshot;
use crate::document::Document;
use crate::fault::Class;
use crate::last_good::LastGood;
use crate::name::StoreVersion;
use crate::store::Stored;
use crate::validate::validate;
use std::sync::Arc;

/// Reads one snapshot: document, version; validated. A remote authority's must carry a directory, a store's need not.
/// `Ok(None)`: the store has no registry.
pub async fn fetch(source: &Source, exec: &dyn Exec) -> Result<Option<Snapshot>, RegistryError> {
    fetch_since(source, exec, None).await
}

/// As [`fetch`]; a document at the version that is held already is neither parsed nor validated again.
pub async fn fetch_since(
    source: &Source,
    exec: &dyn Exec,
    held: Option<&Snapshot>,
) -> Result<Option<Snapshot>, RegistryError> {
    let Some(stored) = fetch_stored(source, exec).await? else { return Ok(None) };
    if let Some(held) = held.filter(|h| h.store_version == stored.version) {
        return Ok(Some(held.clone()));
    }
    let location = source.location();
    let snapshot = off_thread(move || snapshot(&location, stored)).await?;
    if matches!(source, Source::Remote(_)) && snapshot.valid.registry.directory.is_none() {
        return Err(RegistryError::new(Class::Config, "registry.service_directory is required"));
    }
    Ok(Some(snapshot))
}

/// Reads the raw document and version without requiring validity (for repairs and `pull`).
pub async fn fetch_raw(source: &Source, exec: &dyn Exec) -> Result<Option<(Document, StoreVersion)>, RegistryError> {
    let Some(stored) = fetch_stored(source, exec).await? else { return Ok(None) };
    let location = source.location();
    off_thread(move || {
        let document = Document::parse(stored.bytes).map_err(|e| RegistryError::invalid(&location, &e))?;
        Ok(Some((document, stored.version)))
    })
    .await
}

/// The bytes, whatever they are.
pub(super) async fn fetch_stored(source: &Source, exec: &dyn Exec) -> Result<Option<Stored>, RegistryError> {
    match source {
        Source::Store(store) => Ok(store.read().await?),
        Source::Remote(authority) => remote::read(authority, exec).await.map(Some),
    }
}

/// Bytes of a source as a valid snapshot.
fn snapshot(location: &str, stored: Stored) -> Result<Snapshot, RegistryError> {
    let document = Document::parse(stored.bytes).map_err(|e| RegistryError::invalid(location, &e))?;
    let valid = validate(document).map_err(|e| RegistryError::invalid(location, &e))?;
    Ok(Snapshot { valid: Arc::new(valid), store_version: stored.version })
}

/// A large document takes long enough to hold up other tasks.
pub(super) async fn off_thread<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, RegistryError> + Send + 'static,
) -> Result<T, RegistryError> {
    tokio::task::spawn_blocking(work).await.unwrap_or_else(|e| {
        Err(RegistryError::new(Class::Unknown, format!("reading the registry document ended early: {e}")))
    })
}

/// Records the copy; the stderr-ready sentence when it was not recorded. Blocks for a file write.
pub fn record(last_good: &LastGood, snapshot: &Snapshot) -> Option<String> {
    last_good.record(snapshot, jiff::Timestamp::now()).err().map(|e| e.sentence)
}

//! Reads through a source: bytes, document, snapshot.
use super::error::Rejected;
use super::exec::Exec;
use super::remote::{self, Answered};
use super::successor::successor;
use super::{Origin, RegistryError, RemoteAuthority, SharedStore, Source};
use crate::admit::Snapshot;
use crate::document::Document;
use crate::fault::Class;
use crate::last_good::LastGood;
use crate::name::StoreVersion;
use crate::store::{RegistryStore, Stored};
use crate::validate::validate;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// Reads one snapshot: document, version; validated. A remote authority's must carry a directory, a store's need not.
/// `Ok(None)`: the store has no registry.
pub async fn fetch(source: &Source, exec: &dyn Exec) -> Result<Option<Snapshot>, RegistryError> {
    fetch_since(source, exec, None).await
}

/// As [`fetch`]; a document at the version that is held already is not sent where the authority can tell, and neither
/// parsed nor validated again.
pub async fn fetch_since(
    source: &Source,
    exec: &dyn Exec,
    held: Option<&Snapshot>,
) -> Result<Option<Snapshot>, RegistryError> {
    Ok(said(fetch_told(source, exec, held).await)?.map(|(snapshot, _)| snapshot))
}

/// As [`fetch_since`], with where it came from; lines for standard error are given, not said.
pub(super) async fn fetch_told(
    source: &Source,
    exec: &dyn Exec,
    held: Option<&Snapshot>,
) -> Told<Option<(Snapshot, Origin)>> {
    let Told { notices, result } = fetch_stored(source, exec, held.map(|h| &h.store_version)).await;
    let result = match (result, held) {
        (Err(e), _) => Err(e),
        (Ok((Fetched::Nothing, _)), _) => Ok(None),
        (Ok((Fetched::Same, origin)), held) => Ok(held.map(|held| (held.clone(), origin))),
        (Ok((Fetched::Stored(stored), origin)), Some(held)) if held.store_version == stored.version => {
            Ok(Some((held.clone(), origin)))
        }
        (Ok((Fetched::Stored(stored), origin)), _) => {
            let location = place(source, origin);
            let snapshot = off_thread(move || snapshot(&location, stored, origin)).await;
            snapshot.map(|snapshot| Some((snapshot, origin)))
        }
    };
    Told { notices, result }
}

/// Reads the raw document and version without requiring validity (for repairs and `pull`).
pub async fn fetch_raw(source: &Source, exec: &dyn Exec) -> Result<Option<(Document, StoreVersion)>, RegistryError> {
    let (fetched, origin) = said(fetch_stored(source, exec, None).await)?;
    let Fetched::Stored(stored) = fetched else { return Ok(None) };
    let location = place(source, origin);
    off_thread(move || {
        let document = Document::parse(stored.bytes).map_err(|e| RegistryError::invalid(&location, &e))?;
        Ok(Some((document, stored.version)))
    })
    .await
}

/// What one read brought.
pub(super) enum Fetched {
    /// There is no registry.
    Nothing,
    /// It is at the version that was held.
    Same,
    /// Bytes, whatever they are.
    Stored(Stored),
}

/// A result, and the lines for standard error that belong before it.
pub(super) struct Told<T> {
    pub(super) notices: Vec<String>,
    pub(super) result: Result<T, RegistryError>,
}

/// Says the lines and gives the result. A daemon reads every few seconds: the same line is said once a minute.
pub(super) fn said<T>(told: Told<T>) -> Result<T, RegistryError> {
    const AGAIN: Duration = Duration::from_secs(60);
    static LAST: Mutex<Option<(String, Instant)>> = Mutex::new(None);
    let mut last = LAST.lock().unwrap_or_else(PoisonError::into_inner);
    for line in told.notices {
        if last.as_ref().is_none_or(|(said, at)| *said != line || at.elapsed() > AGAIN) {
            tracing::warn!(target: "stado::fleet", "{line}");
            *last = Some((line, Instant::now()));
        }
    }
    told.result
}

/// The one place where a registry is read: a store, or the authority's snapshot and, when that cannot be read, the store
/// that this host shares with it.
pub(super) async fn fetch_stored(
    source: &Source,
    exec: &dyn Exec,
    held: Option<&StoreVersion>,
) -> Told<(Fetched, Origin)> {
    let authority = match source {
        Source::Store(store) => return Told { notices: Vec::new(), result: from_store(store.as_ref()).await },
        Source::Remote(authority) => authority,
    };
    match (remote::read(authority, exec, held).await, &authority.shared) {
        (Ok(Answered::Unchanged), _) => Told { notices: Vec::new(), result: Ok((Fetched::Same, Origin::Authority)) },
        (Ok(Answered::Whole(stored)), _) => {
            Told { notices: Vec::new(), result: Ok((Fetched::Stored(stored), Origin::Authority)) }
        }
        (Err(e), shared) => {
            if let Some(next) = successor(&authority.standbys, authority.epoch, exec).await {
                let line = format!(
                    "stado: {} was promoted in the place of {} (authority epoch {}), which does not answer ({e}); reading its \
                     registry",
                    next.target, authority.target, next.epoch
                );
                return Told { notices: vec![line], result: Ok((Fetched::Stored(next.stored), Origin::Authority)) };
            }
            let Some(SharedStore(store)) = shared else { return Told { notices: Vec::new(), result: Err(e) } };
            let line = format!(
                "stado: the registry authority's snapshot could not be read ({e}); reading the registry store at {} instead",
                store.location()
            );
            Told { notices: vec![line], result: from_store(store.as_ref()).await }
        }
    }
}

async fn from_store(store: &dyn RegistryStore) -> Result<(Fetched, Origin), RegistryError> {
    let stored = store.read().await?;
    Ok((stored.map_or(Fetched::Nothing, Fetched::Stored), Origin::Store))
}

/// Where a read came from, as people see it.
pub(super) fn place(source: &Source, origin: Origin) -> String {
    match (source, origin) {
        (Source::Remote(RemoteAuthority { shared: Some(SharedStore(store)), .. }), Origin::Store) => store.location(),
        _ => source.location(),
    }
}

/// Bytes of a source as a valid snapshot.
pub(super) fn snapshot(location: &str, stored: Stored, origin: Origin) -> Result<Snapshot, RegistryError> {
    let version = stored.version.clone();
    let rejected = |error: RegistryError, generation, epoch| {
        error.with_rejected(Rejected { version: version.clone(), generation, epoch })
    };
    let document =
        Document::parse(stored.bytes).map_err(|e| rejected(RegistryError::invalid(location, &e), None, 0))?;
    let (generation, epoch) = (generation_of(&document), document.epoch());
    let valid = validate(document).map_err(|e| rejected(RegistryError::invalid(location, &e), generation, epoch))?;
    if origin == Origin::Authority && valid.registry.directory.is_none() {
        let required = RegistryError::new(Class::Config, "registry.service_directory is required");
        return Err(rejected(required, generation, epoch));
    }
    Ok(Snapshot { valid: Arc::new(valid), store_version: stored.version })
}

/// The generation that a document says its directory has.
fn generation_of(document: &Document) -> Option<u64> {
    document.section("service_directory")?.get("generation")?.as_u64()
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

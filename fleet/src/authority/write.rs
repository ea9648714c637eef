//! What a write reads first: the registry as it is, from whoever will take the write.
use super::exec::Exec;
use super::fetch::{Fetched, fetch_stored, off_thread, said};
use super::successor::{follow_successor, refused_write, replaced_by};
use super::{RegistryError, Source};
use crate::document::Document;
use crate::fault::Class;
use crate::name::StoreVersion;
use crate::store::{RegistryStore, Stored};
use std::sync::Arc;

/// Reads the raw document and version that an edit is made on.
///
/// # Errors
/// As a read; that no path answered is said as the failure of the write that it is.
pub async fn fetch_for_write(
    source: &Source,
    exec: &dyn Exec,
) -> Result<Option<(Document, StoreVersion)>, RegistryError> {
    let Some(stored) = before_a_write(source, exec).await? else { return Ok(None) };
    let location = source.location();
    let read = off_thread(move || {
        let document = Document::parse(stored.bytes).map_err(|e| RegistryError::invalid(&location, &e))?;
        Ok((document, stored.version))
    });
    let (document, version) = read.await?;
    still_authority(source, &document)?;
    Ok(Some((document, version)))
}

pub(super) async fn before_a_write(source: &Source, exec: &dyn Exec) -> Result<Option<Stored>, RegistryError> {
    let read = said(fetch_stored(source, exec, None).await);
    match (read, source) {
        (Err(e), Source::Remote(authority)) => Err(e.of_write(&authority.target)),
        (read, source) => {
            let Fetched::Stored(stored) = read?.0 else { return Ok(None) };
            if let Source::Store(store) = source {
                not_replaced(store.as_ref(), &stored, exec).await?;
            }
            Ok(Some(stored))
        }
    }
}

/// An authority that was replaced while it was away takes no write, although nobody could tell it so far.
async fn not_replaced(store: &dyn RegistryStore, stored: &Stored, exec: &dyn Exec) -> Result<(), RegistryError> {
    if store.direct() {
        return Ok(());
    }
    let Some(next) = replaced_by(stored, exec).await else { return Ok(()) };
    let epoch = Document::parse(Arc::clone(&stored.bytes)).map_or(0, |document| document.epoch());
    let followed = follow_successor(store, &stored.version, &next).await;
    Err(refused_write(epoch, &next, followed))
}

/// A host that no longer is the authority by its own document takes no writes: they would be lost, and two hosts that
/// name each other would pass them around for ever.
pub(super) fn still_authority(source: &Source, document: &Document) -> Result<(), RegistryError> {
    let Source::Remote(asked) = source else { return Ok(()) };
    match document.authority() {
        Some(named) if named != asked.target.as_str() => Err(RegistryError::new(
            Class::Refused,
            format!(
                "registry write refused: this host's copy names {} as the authority, and the registry there names {named}. \
                 Nothing was written. If the authority has moved, one read of the registry (`stado registry self`) makes \
                 this host follow it; if both name each other, repair service_directory.authority on the host whose \
                 registry is right",
                asked.target
            ),
        )),
        _ => Ok(()),
    }
}

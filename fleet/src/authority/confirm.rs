//! A write is read back the way every reader reads, and compared as a document, not as bytes: the snapshot carries it
//! re-serialized (fleet contract §3.5).
use super::exec::Exec;
use super::fetch::{fetch_stored, off_thread};
use super::{Committed, RegistryError, Source};
use crate::document::Document;
use crate::fault::Class;
use crate::name::StoreVersion;

/// What was read back.
pub(super) enum ReadBack {
    Nothing,
    /// Not a document.
    NotJson(StoreVersion, String),
    Document(StoreVersion, Document),
}

pub(super) async fn read_back(source: &Source, exec: &dyn Exec) -> Result<ReadBack, RegistryError> {
    let Some(stored) = fetch_stored(source, exec).await? else { return Ok(ReadBack::Nothing) };
    off_thread(move || {
        Ok(match Document::parse(stored.bytes) {
            Ok(document) => ReadBack::Document(stored.version, document),
            Err(e) => ReadBack::NotJson(stored.version, e.to_string()),
        })
    })
    .await
}

/// Confirms an applied write.
pub(super) async fn confirm(
    source: &Source,
    exec: &dyn Exec,
    committed: Committed,
    sent: &Document,
) -> Result<Committed, RegistryError> {
    let why = match read_back(source, exec).await {
        Ok(back) => doubt(&back, &committed.version, sent),
        Err(e) => Some(format!("it could not be read back: {e}")),
    };
    match why {
        None => Ok(committed),
        Some(why) => {
            let Committed { version, location, .. } = &committed;
            let sentence = format!("registry write of generation {version} at {location} is unconfirmed: {why}");
            Err(RegistryError::new(Class::Unknown, sentence))
        }
    }
}

/// Why what was read back does not confirm the write; `None` when it does.
pub(super) fn doubt(back: &ReadBack, written: &StoreVersion, sent: &Document) -> Option<String> {
    let another = |found: &StoreVersion| {
        format!(
            "another generation read back (another write landed since, or the read came from a copy behind the store): \
             {found}"
        )
    };
    match back {
        ReadBack::Nothing => Some("no object read back".into()),
        ReadBack::NotJson(found, _) | ReadBack::Document(found, _) if found != written => Some(another(found)),
        ReadBack::NotJson(_, e) => Some(format!("something that is not JSON read back: {e}")),
        ReadBack::Document(_, document) if document.same_as(sent) => None,
        ReadBack::Document(..) => Some("a different document read back".into()),
    }
}

//! A write is read back the way every reader reads, and compared as a document, not as bytes: the snapshot carries it
//! re-serialized (fleet contract §3.5).
use super::exec::Exec;
use super::fetch::{Fetched, fetch_stored, off_thread, said};
use super::{Committed, RegistryError, Source, commit, content};
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
    let (Fetched::Stored(stored), _) = said(fetch_stored(source, exec, None).await)? else {
        return Ok(ReadBack::Nothing);
    };
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
    let back = read_back(source, exec).await;
    let why = match &back {
        Ok(back) => doubt(back, &committed.version, sent),
        Err(e) => Some(format!("it could not be read back: {e}")),
    };
    match why {
        None => Ok(committed),
        Some(why) => {
            let Committed { version, location, .. } = &committed;
            let sentence = format!("registry write of generation {version} at {location} is unconfirmed: {why}");
            let overtaken = match back {
                Ok(ReadBack::Document(found, _) | ReadBack::NotJson(found, _)) if found != *version => {
                    Some(version.clone())
                }
                _ => None,
            };
            Err(RegistryError { overtaken, ..RegistryError::new(Class::Unknown, sentence) })
        }
    }
}

/// As [`commit`], for an edit that is made among others: where another write landed before the read-back, the history of
/// the store confirms what this one's generation held. A push is told of the other write instead.
pub async fn commit_edit(
    source: &Source,
    exec: &dyn Exec,
    expected: &StoreVersion,
    document: &Document,
) -> Result<Committed, RegistryError> {
    let error = match commit(source, exec, Some(expected), document).await {
        Err(error) if error.overtaken.is_some() => error,
        ended => return ended,
    };
    let Some(version) = error.overtaken.clone() else { return Err(error) };
    match content(source, exec, &version).await {
        Ok(held) if held.same_as(document) => {
            Ok(Committed { version, replaced: Some(expected.clone()), location: source.location() })
        }
        _ => Err(error),
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

//! The verb behind `registry push`, for the command line and for the gate: parse, validate, generation check, guards,
//! swap or create, read-back, receipt (fleet contract §6.2).
use super::error::Found;
use super::exec::Exec;
use super::fetch::off_thread;
use super::receipt::PushReceipt;
use super::write::{before_a_write, still_authority};
use super::{RegistryError, Source, commit};
use crate::document::Document;
use crate::edit::{Overrides, check_write, guard_push};
use crate::fault::{Blame, Class, Faulty};
use crate::name::StoreVersion;
use crate::validate::validate;
use std::sync::Arc;

/// What to push, after the arguments are parsed.
#[derive(Debug, Clone)]
pub struct PushRequest {
    /// The document's bytes; they are written verbatim.
    pub bytes: Arc<[u8]>,
    /// `--if-generation`; the text `0` stands for a registry that must not exist.
    pub if_generation: Option<StoreVersion>,
    /// Guards that are switched off.
    pub overrides: Overrides,
}

/// A push that was not made; a conflict also has a receipt for standard output.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{error}")]
pub struct PushRefused {
    /// Why.
    pub error: RegistryError,
    /// The conflict receipt.
    pub receipt: Option<PushReceipt>,
}

impl Faulty for PushRefused {
    fn blame(&self) -> Blame {
        self.error.blame()
    }

    fn class(&self) -> Class {
        self.error.class
    }
}

/// The registry as it is before the push. A document that cannot be read has a version all the same.
struct Held {
    version: StoreVersion,
    document: Option<Document>,
}

/// Pushes. Never retried on a moved generation: what was meant may no longer be.
pub async fn push(source: &Source, exec: &dyn Exec, request: PushRequest) -> Result<PushReceipt, PushRefused> {
    let location = source.location();
    let expected = request.if_generation.clone();
    push_checked(source, exec, request).await.map_err(|error| {
        let conflict = || PushReceipt::conflict(location, expected, error.found.clone());
        let receipt = (error.class == Class::Moved).then(conflict);
        PushRefused { error, receipt }
    })
}

async fn push_checked(source: &Source, exec: &dyn Exec, request: PushRequest) -> Result<PushReceipt, RegistryError> {
    let PushRequest { bytes, if_generation, overrides } = request;
    let (document, invalid) = off_thread(move || parsed(bytes)).await?;
    let held = match (held(source, exec).await, invalid) {
        (Err(_), Some(invalid)) => return Err(invalid),
        (held, None) => held?,
        (Ok(held), Some(_)) => {
            scoped(held.as_ref(), &document).await?;
            held
        }
    };
    check_generation(&source.location(), if_generation.as_ref(), held.as_ref())?;
    let before = held.as_ref().and_then(|h| Some((h.document.as_ref()?, &h.version)));
    guard_push(before, &document, overrides).map_err(|e| RegistryError::new(Class::Refused, e.to_string()))?;
    let expected = held.map(|h| h.version);
    let committed = commit(source, exec, expected.as_ref(), &document).await?;
    Ok(PushReceipt::pushed(committed.location, if_generation, committed.version, committed.replaced))
}

/// The document, and what is wrong with it.
fn parsed(bytes: Arc<[u8]>) -> Result<(Document, Option<RegistryError>), RegistryError> {
    let document = Document::parse(bytes).map_err(|e| RegistryError::new(Class::Config, e.to_string()))?;
    let invalid = validate(document.clone()).err().map(|e| RegistryError::new(Class::Config, e.to_string()));
    Ok((document, invalid))
}

/// Faults that were there before hold nothing back, where the document leaves their sections as they are.
async fn scoped(held: Option<&Held>, next: &Document) -> Result<(), RegistryError> {
    let (before, next) = (held.and_then(|h| h.document.clone()), next.clone());
    let told = off_thread(move || {
        check_write(before.as_ref(), &next).map_err(|e| RegistryError::new(Class::Config, e.to_string()))
    });
    if let Some(line) = told.await? {
        tracing::warn!(target: "stado::fleet", "{line}");
    }
    Ok(())
}

async fn held(source: &Source, exec: &dyn Exec) -> Result<Option<Held>, RegistryError> {
    let Some(stored) = before_a_write(source, exec).await? else { return Ok(None) };
    let held = off_thread(move || Ok(Held { document: Document::parse(stored.bytes).ok(), version: stored.version }));
    let held = held.await?;
    held.document.as_ref().map_or(Ok(()), |document| still_authority(source, document))?;
    Ok(Some(held))
}

fn check_generation(location: &str, asked: Option<&StoreVersion>, held: Option<&Held>) -> Result<(), RegistryError> {
    let found = held.map(|h| h.version.clone());
    match asked {
        None => Ok(()),
        Some(version) if found.as_ref() == Some(version) => Ok(()),
        Some(version) if found.is_none() && version.as_str() == "0" => Ok(()),
        Some(version) => Err(RegistryError::moved(location, Some(version), found.map_or(Found::Nothing, Found::At))),
    }
}

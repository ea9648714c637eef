//! The verb behind `registry push`, for the command line and for the gate: parse, validate, generation check, guards,
//! swap or create, read-back, receipt (fleet contract §6.2).
use super::error::Found;
use super::exec::Exec;
use super::fetch::{fetch_stored, off_thread};
use super::receipt::PushReceipt;
use super::{RegistryError, Source, commit};
use crate::document::Document;
use crate::edit::{Overrides, guard_push};
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
    let document = off_thread(move || checked(bytes)).await?;
    let held = held(source, exec).await?;
    check_generation(&source.location(), if_generation.as_ref(), held.as_ref())?;
    let before = held.as_ref().and_then(|h| Some((h.document.as_ref()?, &h.version)));
    guard_push(before, &document, overrides).map_err(|e| RegistryError::new(Class::Refused, e.to_string()))?;
    let expected = held.map(|h| h.version);
    let committed = commit(source, exec, expected.as_ref(), &document).await?;
    Ok(PushReceipt::pushed(committed.location, if_generation, committed.version, committed.replaced))
}

fn checked(bytes: Arc<[u8]>) -> Result<Document, RegistryError> {
    let invalid = |e: &dyn std::fmt::Display| RegistryError::new(Class::Config, e.to_string());
    let document = Document::parse(bytes).map_err(|e| invalid(&e))?;
    Ok(validate(document).map_err(|e| invalid(&e))?.document)
}

async fn held(source: &Source, exec: &dyn Exec) -> Result<Option<Held>, RegistryError> {
    let Some(stored) = fetch_stored(source, exec).await? else { return Ok(None) };
    let held = off_thread(move || Ok(Held { document: Document::parse(stored.bytes).ok(), version: stored.version }));
    held.await.map(Some)
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

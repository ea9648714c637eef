//! One edit of the registry: read, change, validate, swap on the version that was read, read back.
use super::fleet::Fleet;
use crate::exit::Failure;
use crate::ui;
use stado_fleet::authority::{self, Committed, Source};
use stado_fleet::document::Document;
use stado_fleet::edit::{Edited, check_write};
use stado_fleet::name::StoreVersion;

/// What a write did.
pub(crate) struct Written<T> {
    /// What the edit says it did.
    pub(crate) done: T,
    /// The version that was read.
    pub(crate) read: StoreVersion,
    /// The write; `None` when nothing changed.
    pub(crate) committed: Option<Committed>,
}

/// Makes an edit once. `edited` finds the next document in what the edit returns.
pub(crate) async fn once<T, E: Into<Failure>>(
    fleet: &Fleet,
    edit: impl Fn(&Document, &str) -> Result<T, E>,
    edited: impl Fn(&T) -> &Edited,
) -> Result<Written<T>, Failure> {
    let source = fleet.source().await?;
    let location = source.location();
    let read = authority::fetch_for_write(&source, &fleet.link).await?;
    let (held, version) = read.ok_or_else(|| Failure::not_found(format!("no registry document at {location}")))?;
    let done = edit(&held, &location).map_err(Into::into)?;
    let next = edited(&done);
    if !next.changed {
        return Ok(Written { done, read: version, committed: None });
    }
    if let Some(line) = check_write(Some(&held), &next.document)? {
        ui::note(line);
    }
    let committed = commit(fleet, &source, &version, &next.document).await?;
    Ok(Written { done, read: version, committed: Some(committed) })
}

/// As [`once`], made again on what another writer left: for edits that mean the same on any document.
pub(crate) async fn retried<T, E: Into<Failure>>(
    fleet: &Fleet,
    edit: impl Fn(&Document, &str) -> Result<T, E>,
    edited: impl Fn(&T) -> &Edited,
) -> Result<Written<T>, Failure> {
    authority::again_while_moved(|| once(fleet, &edit, &edited), |failure: &Failure| failure.class).await
}

async fn commit(fleet: &Fleet, source: &Source, version: &StoreVersion, next: &Document) -> Result<Committed, Failure> {
    Ok(authority::commit_edit(source, &fleet.link, version, next).await?)
}

//! One edit of the registry: read, change, validate, swap on the version that was read, read back.
use super::fleet::Fleet;
use crate::exit::Failure;
use crate::ui;
use stado_fleet::authority::{self, Committed, Source};
use stado_fleet::document::Document;
use stado_fleet::edit::Edited;
use stado_fleet::fault::Class;
use stado_fleet::name::StoreVersion;
use stado_fleet::validate::{Finding, validate};

/// How often an edit that means the same on any document is made again when another writer was first.
const TRIES: usize = 4;

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
    let source = fleet.source();
    let location = source.location();
    let read = authority::fetch_raw(&source, &fleet.link).await?;
    let (held, version) = read.ok_or_else(|| Failure::not_found(format!("no registry document at {location}")))?;
    let done = edit(&held, &location).map_err(Into::into)?;
    let next = edited(&done);
    if !next.changed {
        return Ok(Written { done, read: version, committed: None });
    }
    check(&held, &next.document)?;
    let committed = commit(fleet, &source, &version, &next.document).await?;
    Ok(Written { done, read: version, committed: Some(committed) })
}

/// As [`once`], made again on what another writer left.
pub(crate) async fn retried<T, E: Into<Failure>>(
    fleet: &Fleet,
    edit: impl Fn(&Document, &str) -> Result<T, E>,
    edited: impl Fn(&T) -> &Edited,
) -> Result<Written<T>, Failure> {
    let mut tries = 1;
    loop {
        match once(fleet, &edit, &edited).await {
            Err(failure) if failure.class == Class::Moved && tries < TRIES => tries += 1,
            ended => return ended,
        }
    }
}

async fn commit(fleet: &Fleet, source: &Source, version: &StoreVersion, next: &Document) -> Result<Committed, Failure> {
    Ok(authority::commit(source, &fleet.link, Some(version), next).await?)
}

/// The next document has to be valid; a fault that was there before and that this write does not touch is only told.
fn check(held: &Document, next: &Document) -> Result<(), Failure> {
    let Err(invalid) = validate(next.clone()) else { return Ok(()) };
    let before: Vec<Finding> = validate(held.clone()).err().map(|i| i.0).unwrap_or_default();
    match invalid.0.iter().find(|finding| !before.contains(finding)) {
        Some(new) => Err(Failure::config(new.to_string())),
        None => {
            ui::note(format_args!(
                "[registry] proceeding: this write leaves the invalid section unchanged, and every write that changes it will \
                 be refused until it is repaired: {invalid}"
            ));
            Ok(())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn document(text: &str) -> Document {
        Document::parse(text.as_bytes()).unwrap()
    }

    #[test]
    fn an_old_fault_is_told_and_a_new_one_refuses() {
        let old = document(r#"{"schema_version":2,"targets":"x"}"#);
        let same_fault = document(r#"{"schema_version":2,"targets":"x","channels":{}}"#);
        let new_fault = document(r#"{"schema_version":2,"targets":"x","channels":1}"#);
        assert!(check(&old, &same_fault).is_ok());
        assert_eq!(check(&old, &new_fault).unwrap_err().message, "registry.channels: must be an object");
    }
}

//! A typed change → next document and generation; pure. Edits patch the ordered document, so that a change touches only what
//! it means to (design, choices: unknown keys "in place"). Guards of `registry push` live here too (fleet contract §6.2).
mod api;
pub mod bridge;
mod consumer;
mod diff;
mod empty;
mod guard;
mod host;
mod member;
mod path;
mod placement;
mod promote;
mod restore;
mod route;
mod scoped;
mod set;
#[cfg(test)]
mod tests;
mod way;

use crate::document::Document;
use crate::fault::{Blame, Class, Faulty};
use crate::name::Generation;
use serde_json::{Map, Value};

pub use api::{ApiReassigned, reassign_api};
pub use consumer::{Binding, Bound, ConsumerAdded, ConsumerRemoved, NewConsumer, add_consumer, remove_consumer};
pub use diff::{Difference, diff};
pub use guard::{GuardRefusal, Overrides, guard_push};
pub use host::{NewHost, add_host, remove_host};
pub use member::{Member, add_member, found, found_in, is_member};
pub use path::read_path;
pub use placement::{Claim, claim, claims, commit_move, release};
pub use promote::{Promotion, promote};
pub use restore::restore;
pub use route::move_service;
pub use scoped::check_write;
pub use set::{Set, parse_value, set_path};
pub use way::{NewWay, WaySet, remove_way, set_way, ways};

/// Why a change cannot be made; `Display` is the contract's sentence. Nothing was changed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{sentence}")]
pub struct EditError {
    /// Whole sentence.
    pub sentence: String,
    /// `Usage`, `NotFound`, `Refused` or `Config`.
    pub class: Class,
}

impl Faulty for EditError {
    fn blame(&self) -> Blame {
        Blame::Caller
    }
    fn class(&self) -> Class {
        self.class
    }
}

impl EditError {
    fn usage(sentence: impl Into<String>) -> Self {
        Self { sentence: sentence.into(), class: Class::Usage }
    }
    fn not_found(sentence: impl Into<String>) -> Self {
        Self { sentence: sentence.into(), class: Class::NotFound }
    }
    fn refused(sentence: impl Into<String>) -> Self {
        Self { sentence: sentence.into(), class: Class::Refused }
    }
    fn config(sentence: impl Into<String>) -> Self {
        Self { sentence: sentence.into(), class: Class::Config }
    }
}

/// The next document. It is not validated yet: the caller validates what it is about to write.
#[derive(Debug, Clone)]
pub struct Edited {
    /// The document; the one that was given, byte for byte, when nothing changed.
    pub document: Document,
    /// Its directory generation, when it has one.
    pub generation: Option<Generation>,
    /// Whether it differs from the one that was given.
    pub changed: bool,
}

/// A document under change.
struct Draft<'d> {
    before: &'d Document,
    value: Value,
    /// The directory was asked for: one without services takes its other key at the end.
    directory: bool,
}

impl<'d> Draft<'d> {
    /// Refuses a document with a duplicate key: an edit would keep one of the two meanings without anyone having chosen it.
    fn of(before: &'d Document) -> Result<Self, EditError> {
        match before.duplicate_keys().first() {
            None => Ok(Self { before, value: before.value().clone(), directory: false }),
            Some(twice) => Err(EditError::config(format!(
                "{}: duplicate key '{}'; repair the document by hand before it is edited",
                twice.location, twice.key
            ))),
        }
    }

    /// `service_directory`, for an edit of it; one that is empty so far becomes it.
    fn directory(&mut self) -> Result<&mut Map<String, Value>, EditError> {
        empty::unfold(&mut self.value);
        self.directory = true;
        self.value
            .get_mut("service_directory")
            .and_then(Value::as_object_mut)
            .ok_or_else(|| EditError::not_found("the registry carries no service_directory"))
    }

    /// One service of the directory.
    fn service(&mut self, name: &str) -> Result<&mut Map<String, Value>, EditError> {
        let services = self.directory()?.get_mut("services").and_then(Value::as_object_mut);
        let services = services.ok_or_else(|| EditError::not_found("service_directory carries no services map"))?;
        if !services.contains_key(name) {
            let declared = listed(services.keys().map(String::as_str));
            let sentence = format!("no service \"{name}\" in service_directory; it declares {declared}");
            return Err(EditError::not_found(sentence));
        }
        let service = services.get_mut(name).and_then(Value::as_object_mut);
        service
            .ok_or_else(|| EditError::config(format!("registry.service_directory.services.{name}: must be an object")))
    }

    /// The targets, as written.
    fn targets(&mut self) -> Result<&mut Vec<Value>, EditError> {
        let targets = self.value.get_mut("targets").and_then(Value::as_array_mut);
        targets.ok_or_else(|| EditError::config("registry.targets: must be an array"))
    }

    /// One target by its name.
    fn target(&mut self, name: &str) -> Result<&mut Map<String, Value>, EditError> {
        let named = |t: &&mut Value| t.get("name").and_then(Value::as_str) == Some(name);
        let target = self.targets()?.iter_mut().find(named).and_then(Value::as_object_mut);
        target.ok_or_else(|| EditError::not_found(format!("target '{name}' is not in the canonical registry")))
    }

    fn changed(&self) -> bool {
        self.value != *self.before.value()
    }

    /// Ends an edit of the directory: one generation further when anything changed.
    fn finish_directory(mut self) -> Result<Edited, EditError> {
        empty::fold(&mut self.value);
        if self.changed() {
            self.advance()?;
        }
        Ok(self.finish())
    }

    /// The next directory generation, counted from the document that was given.
    fn advance(&mut self) -> Result<(), EditError> {
        let next = self.before.generation().and_then(|Generation(held)| held.checked_add(1));
        let next = next.ok_or_else(|| {
            EditError::config(
                "registry.service_directory.generation: must be positive; set it before the directory is edited",
            )
        })?;
        self.directory()?.insert("generation".into(), next.into());
        Ok(())
    }

    fn finish(mut self) -> Edited {
        if self.directory {
            empty::fold(&mut self.value);
        }
        let changed = self.changed();
        let document = if changed { Document::from_value(self.value) } else { self.before.clone() };
        Edited { generation: document.generation(), document, changed }
    }
}

/// Names of a list, as sentences give them: `nothing` for an empty one, and a long one is cut.
pub fn listed<'a>(names: impl Iterator<Item = &'a str>) -> String {
    const MOST: usize = 50;
    let names: Vec<&str> = names.collect();
    match names.get(..MOST) {
        None if names.is_empty() => "nothing".to_owned(),
        Some(first) if names.len() > MOST => format!("{} and {} more", first.join(", "), names.len() - MOST),
        _ => names.join(", "),
    }
}

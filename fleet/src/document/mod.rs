//! The registry as types: **one** reader; unknown keys kept in place and reported by path, never refused (design, rule 3).
//! The ordered JSON value is the truth, the types are views of it; an unedited document passes as its bytes.
mod identity;
mod known;
mod number;
mod parse;
mod published;
#[cfg(test)]
mod tests;
mod types;

use crate::fault::{Blame, Class, Faulty};
use crate::name::Generation;
use serde_json::Value;
use std::sync::Arc;

pub use identity::{Ambiguous, lookup_self, normalize_hostname};
pub(crate) use identity::{destination_identity, names_users};
pub use parse::DuplicateKey;
use parse::{Limits, Parsed};
pub use published::{MESH_UNIT, SHARED_CONSUMER, published_unit};
pub use types::*;

/// A key of ours: the directory while it has no service. `service_directory` itself has at least one (§1.6), and a fleet
/// that was just made has an authority and nothing to serve yet.
pub const EMPTY_DIRECTORY: &str = "empty_directory";
/// Bytes a document may have unless the reader says otherwise: 64 MiB.
pub const MAX_BYTES: usize = 64 * 1024 * 1024;
/// Levels of arrays and objects a document may have. Far more than the contract's shapes use, far less than a stack holds.
pub const MAX_DEPTH: usize = 100;
/// Values a document may have. One of two bytes costs a hundred in memory; a large registry has one in twelve bytes.
pub const MAX_VALUES: usize = 8 << 20;

/// A registry document as read: its bytes, and its ordered value. Cloning is cheap.
#[derive(Debug, Clone)]
pub struct Document {
    bytes: Arc<[u8]>,
    value: Arc<Value>,
    duplicates: Arc<[DuplicateKey]>,
}

/// Bytes that are not a registry document at all (not UTF-8, not JSON, not an object, over the size or depth limit).
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct DocumentError(pub String);

impl Faulty for DocumentError {
    fn blame(&self) -> Blame {
        Blame::Caller
    }
    fn class(&self) -> Class {
        Class::Config
    }
}

impl Document {
    /// Reads bytes, up to [`MAX_BYTES`]. Numbers keep their text. Duplicate keys, wrong types and the like are left to [`crate::validate`].
    pub fn parse(bytes: impl Into<Arc<[u8]>>) -> Result<Self, DocumentError> {
        Self::parse_within(bytes, MAX_BYTES)
    }

    /// Reads bytes, up to `max_bytes` of them.
    pub fn parse_within(bytes: impl Into<Arc<[u8]>>, max_bytes: usize) -> Result<Self, DocumentError> {
        let bytes: Arc<[u8]> = bytes.into();
        if bytes.len() > max_bytes {
            return Err(DocumentError(format!(
                "registry document is {} bytes, over the limit of {max_bytes}; raise the limit or make it smaller",
                bytes.len()
            )));
        }
        let text = std::str::from_utf8(&bytes)
            .map_err(|e| DocumentError(format!("registry document is not UTF-8 text: {e}")))?;
        let Parsed { value, duplicates } = parse::parse(text, Limits { depth: MAX_DEPTH, values: MAX_VALUES })?;
        if !value.is_object() {
            return Err(DocumentError("registry: must be an object".into()));
        }
        Ok(Self { value: Arc::new(value), duplicates: duplicates.into(), bytes })
    }

    /// From an edited value: pretty JSON (two spaces) and a newline, as every programmatic edit writes it (§1.7).
    pub fn from_value(value: Value) -> Self {
        let text = format!("{value:#}\n");
        Self { bytes: text.into_bytes().into(), value: Arc::new(value), duplicates: Arc::new([]) }
    }

    /// The bytes, exactly as read.
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// The bytes, shared.
    pub fn shared_bytes(&self) -> Arc<[u8]> {
        self.bytes.clone()
    }

    /// The ordered value. A key that was written twice holds its last value; see [`Self::duplicate_keys`].
    pub fn value(&self) -> &Value {
        &self.value
    }

    /// One top-level section.
    pub fn section(&self, key: &str) -> Option<&Value> {
        self.value.get(key)
    }

    /// Whether both say the same as documents (numbers by text, but for how an exponent is written; order of keys ignored).
    pub fn same_as(&self, other: &Document) -> bool {
        self.bytes == other.bytes || number::same(&self.value, &other.value)
    }

    /// Whether both say the same in one top-level section; a section that is missing in both is the same.
    pub fn same_section(&self, other: &Document, key: &str) -> bool {
        match (self.section(key), other.section(key)) {
            (Some(own), Some(others)) => number::same(own, others),
            (own, others) => own.is_none() && others.is_none(),
        }
    }

    /// Number of entries of `targets` that have a name; 0 when there is no array.
    pub fn target_count(&self) -> usize {
        let named = |target: &&Value| target.get("name").and_then(Value::as_str).is_some_and(|n| !n.is_empty());
        self.section("targets").and_then(Value::as_array).map_or(0, |targets| targets.iter().filter(named).count())
    }

    /// `service_directory`, or what stands for it while it has no service.
    fn directory(&self) -> Option<&Value> {
        self.section("service_directory").or_else(|| self.section(EMPTY_DIRECTORY))
    }

    /// Whether both say the same of the directory, with services or without.
    pub fn same_directory(&self, other: &Document) -> bool {
        ["service_directory", EMPTY_DIRECTORY].iter().all(|key| self.same_section(other, key))
    }

    /// The directory's generation, when it is there and a number.
    pub fn generation(&self) -> Option<Generation> {
        self.directory()?.get("generation")?.as_u64().map(Generation)
    }

    /// `succession.epoch`; 0 where nobody was ever promoted.
    pub fn epoch(&self) -> u64 {
        self.section("succession").and_then(|s| s.get("epoch")?.as_u64()).unwrap_or(0)
    }

    /// The directory's `authority.target`, when it is there and a text.
    pub fn authority(&self) -> Option<&str> {
        self.directory()?.get("authority")?.get("target")?.as_str()
    }

    /// Paths of keys that this build does not know (`targets[worker].x`), in document order.
    pub fn unknown_keys(&self) -> Vec<String> {
        known::unknown_keys(&self.value)
    }

    /// Keys that an object of the document holds twice, in document order.
    pub fn duplicate_keys(&self) -> &[DuplicateKey] {
        &self.duplicates
    }
}

//! Who read what: a line of JSON for each read and each change, appended before the answer is given.
use super::VaultError;
use crate::disk;
use serde::Serialize;
use std::path::Path;

/// Bytes after which the log is put aside, and the one before it goes.
const LARGEST: u64 = 16 << 20;

/// One line. It never holds a value.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Event<'a> {
    /// `read`, `list`, `put`, `remove`, `grant`, `revoke`.
    pub action: &'a str,
    /// How it ended: `given`, `done`, `unauthorized`, `not-granted`, `absent`.
    pub outcome: &'a str,
    /// Who asked, as it calls itself; `owner` for this account's own commands.
    pub consumer: &'a str,
    /// Which item.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub item: Option<&'a str>,
    /// Which field.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub field: Option<&'a str>,
    /// Whose grant was changed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub grantee: Option<&'a str>,
    /// From where.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub from: Option<String>,
}

#[derive(Serialize)]
struct Line<'a> {
    at: String,
    #[serde(flatten)]
    event: &'a Event<'a>,
}

pub(super) fn append(path: &Path, event: &Event<'_>) -> Result<(), VaultError> {
    let line = Line { at: crate::ledger::stamp(jiff::Timestamp::now()), event };
    let unwritable = |e: serde_json::Error| VaultError::new(crate::fault::Class::Unknown, e.to_string());
    let mut text = serde_json::to_vec(&line).map_err(unwritable)?;
    text.push(b'\n');
    Ok(disk::append_line(path, &text, LARGEST)?)
}

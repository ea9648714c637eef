//! The document itself: version, coordinators, duplicate keys.
use super::at::{At, Findings};
use super::read::{self, Object};
use crate::document::Document;
use serde_json::Value;

/// The only version of the format.
const SCHEMA_VERSION: u64 = 2;

pub(super) fn check(root: &Object, out: &mut Findings) {
    if root.get("schema_version").and_then(Value::as_u64) != Some(SCHEMA_VERSION) {
        out.add(At::ROOT.key("schema_version"), format!("must be {SCHEMA_VERSION}"));
    }
}

pub(super) fn check_coordinators(root: &Object, out: &mut Findings) {
    if let Some(coordinators) = root.get("coordinators") {
        read::array(coordinators, At::ROOT.key("coordinators"), out);
    }
}

/// A key that is written twice means two things at once; readers would disagree on which one holds.
pub(super) fn check_duplicates(document: &Document, out: &mut Findings) {
    for duplicate in document.duplicate_keys() {
        let sentence = format!("duplicate key '{}'; keep one of them", duplicate.key);
        out.add_at(duplicate.location.clone(), sentence);
    }
}

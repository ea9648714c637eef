//! Placement transactions: services of their profiles are not resolved while one exists (§1.5).
use super::at::{At, Findings};
use super::placement::Profiles;
use super::read::{self, Object, optional_array};
use super::targets::Targets;
use crate::document::PlacementTransaction;
use serde_json::Value;
use std::collections::HashSet;

pub(super) fn read(
    root: &Object,
    targets: &Targets<'_>,
    profiles: &Profiles<'_>,
    out: &mut Findings,
) -> Vec<PlacementTransaction> {
    let list = optional_array(root, "placement_transactions", At::ROOT, out);
    let at = At::ROOT.key("placement_transactions");
    let mut read = Vec::with_capacity(list.len());
    let mut owned = HashSet::new();
    for (i, value) in list.iter().enumerate() {
        let at = at.index(i);
        let Some(raw) = read::object(value, at, out) else { continue };
        let text = |key: &str| raw.get(key).and_then(Value::as_str).unwrap_or_default();
        if uuid::Uuid::parse_str(text("id")).is_err() {
            out.add(at.key("id"), "must be a UUID");
        }
        let profile = text("profile");
        if !profiles.contains(profile) {
            out.add(at.key("profile"), "references an unknown placement profile");
        } else if !owned.insert(profile) {
            out.add(at.key("profile"), "another transaction already owns this profile");
        }
        let (from, to) = (text("from_host"), text("to_host"));
        if from == to || !targets.contains(from) || !targets.contains(to) {
            out.add(at, "must reference two different registry targets");
        }
        if text("started_at").parse::<jiff::Timestamp>().is_err() {
            out.add(at.key("started_at"), "must be RFC3339");
        }
        read.push(PlacementTransaction { id: text("id").to_owned(), profile: profile.to_owned() });
    }
    read
}

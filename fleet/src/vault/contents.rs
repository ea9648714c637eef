//! What is in a vault: items with their fields, and who may read which. Pure.
use super::Secret;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};

/// Longest name of an item, a field, a consumer, a tag.
const LONGEST: usize = 128;

/// All of it, as it is encrypted.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Contents {
    /// By id.
    #[serde(default)]
    pub items: BTreeMap<String, Item>,
    /// By consumer.
    #[serde(default)]
    pub grants: BTreeMap<String, Grant>,
}

/// One item.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Item {
    /// What kind of thing it is; free text.
    #[serde(rename = "type", default)]
    pub kind: String,
    /// Free texts.
    #[serde(default)]
    pub tags: BTreeSet<String>,
    /// When it was last changed, RFC 3339.
    #[serde(default)]
    pub updated_at: String,
    /// A removed item has no fields, and its versions go on counting when it comes back.
    #[serde(default)]
    pub deleted: bool,
    /// How often it was changed.
    #[serde(default)]
    pub versions: u64,
    /// Values by name.
    #[serde(default)]
    pub fields: BTreeMap<String, Secret>,
}

/// What a consumer may read.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Grant {
    /// SHA-256 of its token, in hexadecimal: the token itself is its holder's alone.
    pub token_sha256: String,
    /// Ids.
    #[serde(default)]
    pub items: BTreeSet<String>,
    /// When it was last changed, RFC 3339.
    #[serde(default)]
    pub updated_at: String,
}

/// An item without its values, as `POST /v1/items/list` tells it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ItemFacts {
    /// Its name.
    pub id: String,
    /// What kind of thing it is.
    #[serde(rename = "type", default)]
    pub kind: serde_json::Value,
    /// Free texts.
    #[serde(default)]
    pub tags: serde_json::Value,
    /// When it was last changed.
    #[serde(default)]
    pub updated_at: serde_json::Value,
    /// Whether it was removed.
    #[serde(default)]
    pub deleted: bool,
    /// How often it was changed.
    #[serde(default)]
    pub versions: serde_json::Value,
}

/// Why a value is not given.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Refused {
    /// No such consumer, or another token; which of them, a stranger is not told.
    Stranger,
    /// The consumer has no grant for it, whether it exists or not.
    NotGranted,
    /// There is no such item or field.
    Absent,
}

impl Contents {
    /// The grant of a consumer that shows its token.
    pub fn admit(&self, consumer: &str, token: &str) -> Result<&Grant, Refused> {
        let digest = hex::encode(Secret::new(token).digest());
        let grant = self.grants.get(consumer).filter(|grant| same(&grant.token_sha256, &digest));
        grant.ok_or(Refused::Stranger)
    }

    /// One value.
    pub fn read(&self, grant: &Grant, item: &str, field: &str) -> Result<&Secret, Refused> {
        if !grant.items.contains(item) {
            return Err(Refused::NotGranted);
        }
        self.items.get(item).and_then(|item| item.fields.get(field)).ok_or(Refused::Absent)
    }

    /// What a grant shows.
    pub fn list(&self, grant: &Grant) -> Vec<ItemFacts> {
        grant.items.iter().filter_map(|id| Some(self.items.get(id)?.facts(id))).collect()
    }

    /// Sets fields; tags and kind where they are given.
    pub fn put(
        &mut self,
        id: &str,
        fields: BTreeMap<String, Secret>,
        kind: Option<String>,
        tags: Option<BTreeSet<String>>,
        now: &str,
    ) -> &Item {
        let item = self.items.entry(id.to_owned()).or_default();
        item.fields.extend(fields);
        item.kind = kind.unwrap_or_else(|| std::mem::take(&mut item.kind));
        item.tags = tags.unwrap_or_else(|| std::mem::take(&mut item.tags));
        item.deleted = false;
        item.touch(now);
        item
    }

    /// Removes an item's values; whether it was there.
    pub fn remove(&mut self, id: &str, now: &str) -> bool {
        let Some(item) = self.items.get_mut(id).filter(|item| !item.deleted) else { return false };
        item.fields.clear();
        item.deleted = true;
        item.touch(now);
        true
    }

    /// Lets a consumer read more items; a new token where one is given. `None`: it has no token yet.
    pub fn grant(
        &mut self,
        consumer: &str,
        items: BTreeSet<String>,
        token: Option<&Secret>,
        now: &str,
    ) -> Option<&Grant> {
        if token.is_none() && !self.grants.contains_key(consumer) {
            return None;
        }
        let grant = self.grants.entry(consumer.to_owned()).or_default();
        if let Some(token) = token {
            grant.token_sha256 = hex::encode(token.digest());
        }
        grant.items.extend(items);
        now.clone_into(&mut grant.updated_at);
        Some(grant)
    }

    /// Takes items from a consumer, or with none named everything, its token too; what was taken, or `None` when there was
    /// nothing.
    pub fn revoke(&mut self, consumer: &str, items: &BTreeSet<String>, now: &str) -> Option<BTreeSet<String>> {
        let grant = self.grants.get_mut(consumer)?;
        if items.is_empty() {
            return self.grants.remove(consumer).map(|grant| grant.items);
        }
        let taken: BTreeSet<String> = grant.items.intersection(items).cloned().collect();
        grant.items.retain(|item| !taken.contains(item));
        now.clone_into(&mut grant.updated_at);
        (!taken.is_empty()).then_some(taken)
    }
}

impl Item {
    /// Without its values.
    pub fn facts(&self, id: &str) -> ItemFacts {
        ItemFacts {
            id: id.to_owned(),
            kind: self.kind.clone().into(),
            tags: self.tags.iter().cloned().collect::<Vec<_>>().into(),
            updated_at: self.updated_at.clone().into(),
            deleted: self.deleted,
            versions: self.versions.into(),
        }
    }

    fn touch(&mut self, now: &str) {
        self.versions += 1;
        now.clone_into(&mut self.updated_at);
    }
}

/// A name of an item, a field, a consumer or a tag.
///
/// # Errors
/// What is wrong with it, as the rest of a sentence.
pub fn check_name(name: &str) -> Result<(), String> {
    let plain = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'_' | b'.' | b'/' | b'@' | b':');
    if name.is_empty() || name.len() > LONGEST || !name.bytes().all(plain) {
        return Err(format!("must be 1 to {LONGEST} letters, digits or any of - _ . / @ :"));
    }
    Ok(())
}

/// Compares without telling where two texts differ.
fn same(a: &str, b: &str) -> bool {
    aws_lc_rs::constant_time::verify_slices_are_equal(a.as_bytes(), b.as_bytes()).is_ok()
}

//! What changed between two documents, small enough to be told to every host: whole documents to a thousand hosts are
//! gigabytes. An edit is JSON, applied to the document that a reader holds; a digest of the result proves that it is the
//! authority's. Whoever cannot apply one reads the whole document, as ever.
//!
//! ```text
//! {"=": value}                            this value in place of the old one
//! {"-": [key…], "~": {key: edit…}, "+": {key: value…}}   an object: keys removed, edited, added behind the others
//! {"@": [[index, edit]…]}                 an array of the same length
//! {"/": [start, removed, [value…]]}       an array: so many values from there replaced by these
//! ```
use super::Origin;
use super::RegistryError;
use super::fetch::{off_thread, snapshot};
use crate::admit::Snapshot;
use crate::document::Document;
use crate::fault::Class;
use crate::name::StoreVersion;
use crate::store::Stored;
use serde_json::{Map, Value, json};
use sha2::{Digest, Sha256};

/// From one stored version to the next.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Change {
    /// The version that it applies to.
    pub from: StoreVersion,
    /// The version that it leads to.
    pub to: StoreVersion,
    edit: Value,
    digest: String,
}

impl Change {
    /// Compares two stored documents; `None` when one of them is no document. Blocks for their parsing.
    pub(super) fn between(old: &Stored, new: &Stored) -> Option<Self> {
        let [before, after] = [old, new].map(|stored| Document::parse(stored.bytes.clone()).ok());
        let (before, after) = (before?, after?);
        let edit = diff(before.value(), after.value()).unwrap_or_else(|| json!({}));
        Some(Self {
            from: old.version.clone(),
            to: new.version.clone(),
            edit,
            digest: digest(&after.value().to_string()),
        })
    }

    /// As a line of a watch tells it, without the newline.
    pub(super) fn line(&self) -> String {
        let (from, to) = (self.from.as_str(), self.to.as_str());
        json!({"store_version": to, "from": from, "digest": self.digest, "edit": self.edit}).to_string()
    }

    /// From a line of a watch; `None` when it tells none, or one that this build cannot read.
    pub(super) fn read(line: &Value) -> Option<Self> {
        let text = |key: &str| line.get(key).and_then(Value::as_str);
        let version = |key: &str| text(key).and_then(|text| text.parse().ok());
        Some(Self {
            from: version("from")?,
            to: version("store_version")?,
            edit: line.get("edit")?.clone(),
            digest: text("digest")?.to_owned(),
        })
    }

    /// The text of the document that it makes of `value`.
    fn made_of(&self, mut value: Value) -> Result<String, &'static str> {
        apply(&mut value, &self.edit)?;
        let text = value.to_string();
        if digest(&text) == self.digest { Ok(text) } else { Err("does not lead to the authority's document") }
    }

    /// The snapshot that this change makes of what is held, as valid as one that was read. `location` names the authority.
    ///
    /// # Errors
    /// It is for another version, does not fit, or leads to another document than the authority's; then the whole document
    /// is to be read.
    pub async fn apply(self, held: Snapshot, location: String) -> Result<Snapshot, RegistryError> {
        off_thread(move || {
            let unfit = |why| RegistryError::new(Class::Refused, format!("the change that {location} told {why}"));
            if held.store_version != self.from {
                return Err(unfit("is for another version"));
            }
            let text = self.made_of(held.valid.document.value().clone()).map_err(unfit)?;
            snapshot(&location, Stored { bytes: text.into_bytes().into(), version: self.to }, Origin::Authority)
        })
        .await
    }
}

/// The document that an edit makes of another one's text.
#[cfg(test)]
impl Change {
    pub(super) fn text(&self, held: &str) -> Result<String, &'static str> {
        self.made_of(serde_json::from_str(held).unwrap())
    }
}

fn digest(text: &str) -> String {
    hex::encode(Sha256::digest(text.as_bytes()))
}

/// The edit that makes `new` of `old`, order of keys included; `None` when they are the same.
fn diff(old: &Value, new: &Value) -> Option<Value> {
    match (old, new) {
        (Value::Object(before), Value::Object(after)) => objects(before, after),
        (Value::Array(before), Value::Array(after)) => arrays(before, after),
        _ if old == new => None,
        _ => Some(replaced(new)),
    }
}

fn replaced(new: &Value) -> Value {
    json!({ "=": new })
}

fn objects(before: &Map<String, Value>, after: &Map<String, Value>) -> Option<Value> {
    let kept = before.keys().filter(|key| after.contains_key(*key));
    let added: Map<String, Value> =
        after.iter().filter(|(key, _)| !before.contains_key(*key)).map(|(key, v)| (key.clone(), v.clone())).collect();
    if !kept.clone().chain(added.keys()).eq(after.keys()) {
        return Some(replaced(&Value::Object(after.clone())));
    }
    let removed: Vec<&String> = before.keys().filter(|key| !after.contains_key(*key)).collect();
    let edited: Map<String, Value> =
        kept.filter_map(|key| Some((key.clone(), diff(before.get(key)?, after.get(key)?)?))).collect();
    let mut edit = Map::new();
    if !removed.is_empty() {
        edit.insert("-".into(), json!(removed));
    }
    if !edited.is_empty() {
        edit.insert("~".into(), Value::Object(edited));
    }
    if !added.is_empty() {
        edit.insert("+".into(), Value::Object(added));
    }
    (!edit.is_empty()).then_some(Value::Object(edit))
}

fn arrays(before: &[Value], after: &[Value]) -> Option<Value> {
    if before.len() == after.len() {
        let pairs = before.iter().zip(after).enumerate();
        let edits: Vec<Value> = pairs.filter_map(|(at, (b, a))| Some(json!([at, diff(b, a)?]))).collect();
        return (!edits.is_empty()).then(|| json!({ "@": edits }));
    }
    // The order of keys counts: two objects may be equal and not the same.
    let same = |(b, a): &(&Value, &Value)| diff(b, a).is_none();
    let start = before.iter().zip(after).take_while(same).count();
    let rest = before.len().min(after.len()) - start;
    let same_end = before.iter().rev().zip(after.iter().rev()).take(rest).take_while(same).count();
    let inserted = after.get(start..after.len() - same_end).unwrap_or_default();
    Some(json!({ "/": [start, before.len() - same_end - start, inserted] }))
}

/// Applies an edit. What does not fit is an error, with the value in an unknown state.
fn apply(value: &mut Value, edit: &Value) -> Result<(), &'static str> {
    const UNREADABLE: &str = "cannot be read";
    const UNFIT: &str = "does not fit what is held";
    let edit = edit.as_object().ok_or(UNREADABLE)?;
    for (kind, what) in edit {
        match (kind.as_str(), &mut *value, what) {
            ("=", value, new) => *value = new.clone(),
            ("-", Value::Object(object), Value::Array(keys)) => {
                for key in keys {
                    let key = key.as_str().ok_or(UNREADABLE)?;
                    object.shift_remove(key).ok_or(UNFIT)?;
                }
            }
            ("~", Value::Object(object), Value::Object(edits)) => {
                for (key, edit) in edits {
                    apply(object.get_mut(key).ok_or(UNFIT)?, edit)?;
                }
            }
            ("+", Value::Object(object), Value::Object(added)) => {
                for (key, new) in added {
                    if object.insert(key.clone(), new.clone()).is_some() {
                        return Err(UNFIT);
                    }
                }
            }
            ("@", Value::Array(array), Value::Array(edits)) => {
                for pair in edits {
                    let at = pair.get(0).and_then(Value::as_u64).and_then(|at| usize::try_from(at).ok());
                    let place = at.and_then(|at| array.get_mut(at)).ok_or(UNFIT)?;
                    apply(place, pair.get(1).ok_or(UNREADABLE)?)?;
                }
            }
            ("/", Value::Array(array), what) => {
                let number = |at: usize| what.get(at).and_then(Value::as_u64).and_then(|n| usize::try_from(n).ok());
                let (start, removed) = (number(0).ok_or(UNREADABLE)?, number(1).ok_or(UNREADABLE)?);
                let inserted = what.get(2).and_then(Value::as_array).ok_or(UNREADABLE)?;
                let end = start.checked_add(removed).filter(|end| *end <= array.len()).ok_or(UNFIT)?;
                array.splice(start..end, inserted.iter().cloned());
            }
            _ => return Err(UNFIT),
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Values with few keys and leaves, so that two of them have much in common.
    fn value() -> impl Strategy<Value = Value> {
        let leaf = prop_oneof![(0..4u8).prop_map(Value::from), "[ab=@/]{0,2}".prop_map(Value::from), Just(Value::Null)];
        leaf.prop_recursive(4, 40, 5, |inner| {
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..5).prop_map(Value::from),
                prop::collection::vec(("[a-e=~]", inner), 0..5)
                    .prop_map(|pairs| Value::Object(pairs.into_iter().collect())),
            ]
        })
    }

    proptest! {
        #[test]
        fn an_edit_leads_from_one_document_to_the_other_to_the_letter(old in value(), new in value()) {
            let mut edited = old.clone();
            match diff(&old, &new) {
                None => prop_assert_eq!(old.to_string(), new.to_string()),
                Some(edit) => {
                    let told: Value = serde_json::from_str(&edit.to_string()).unwrap();
                    apply(&mut edited, &told).unwrap();
                    prop_assert_eq!(edited.to_string(), new.to_string());
                }
            }
        }

        #[test]
        fn an_edit_that_does_not_fit_is_an_error_or_another_document_and_never_a_panic(a in value(), b in value(), c in value()) {
            let mut other = c;
            if let Some(edit) = diff(&a, &b) {
                let _ = apply(&mut other, &edit);
            }
            let _ = apply(&mut other, &b);
        }
    }

    #[test]
    fn one_move_in_a_large_document_is_a_small_edit() {
        let targets: Vec<Value> = (0..1000).map(|n| json!({"name": format!("host-{n}"), "services": []})).collect();
        let services: Map<String, Value> = (0..1000)
            .map(|n| {
                (
                    format!("s{n}"),
                    json!({"active_host": "host-1", "endpoints": {"host-1": {"url": format!("tcp://127.0.0.1:{n}")}}}),
                )
            })
            .collect();
        let old = json!({"targets": targets, "service_directory": {"generation": 7, "services": services}});
        let mut new = old.clone();
        new["service_directory"]["generation"] = json!(8);
        new["service_directory"]["services"]["s500"]["active_host"] = json!("host-2");
        new["targets"].as_array_mut().unwrap().insert(500, json!({"name": "new"}));
        let edit = diff(&old, &new).unwrap().to_string();
        assert!(edit.len() < 250, "{edit}");
        let mut edited = old;
        apply(&mut edited, &serde_json::from_str(&edit).unwrap()).unwrap();
        assert_eq!(edited.to_string(), new.to_string());
    }
}

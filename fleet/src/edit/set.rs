//! `registry set --path P --value V` (fleet contract §6.4).
use super::path::{Step, follow, reach};
use super::{Draft, EditError, Edited};
use crate::document::Document;
use crate::name::Generation;
use serde_json::Value;

/// What a `set` did.
#[derive(Debug, Clone)]
pub struct Set {
    /// What was there; `None` for a key that is new.
    pub previous: Option<Value>,
    /// The next document.
    pub edited: Edited,
}

/// `--value`: JSON when it parses, else a text.
///
/// # Errors
/// JSON that holds a key twice, nests too deep, or uses a reserved key.
pub fn parse_value(text: &str) -> Result<Value, EditError> {
    let Ok(value) = serde_json::from_str::<Value>(text) else {
        return Ok(Value::String(text.to_owned()));
    };
    // The document's own reader judges it, inside an object, since a document is one.
    let wrapped = Document::parse(format!("{{\"value\":{text}}}").into_bytes());
    let wrapped = wrapped.map_err(|e| EditError::usage(format!("--value cannot be used: {e}")))?;
    match wrapped.duplicate_keys().first() {
        None => Ok(value),
        Some(twice) => Err(EditError::usage(format!("--value holds the key '{}' twice", twice.key))),
    }
}

/// Sets the value at a path. Only the last part of the path may be new. A change below `service_directory` advances its
/// generation by one.
///
/// # Errors
/// The sentences of §6.3 for a path that leads nowhere, of §6.4 for an empty one, and a refusal of a generation that does not rise.
pub fn set_path(document: &Document, path: &str, value: Value) -> Result<Set, EditError> {
    let mut draft = Draft::of(document)?;
    let followed = follow(document.value(), path, true)?;
    let previous = followed.value.cloned();
    let steps = followed.steps;
    let whole_directory = steps.as_slice() == [key("service_directory")];
    let value = if whole_directory { with_next_generation(document, value) } else { value };
    put(&mut draft.value, &steps, value).ok_or_else(|| EditError::not_found(format!("registry has no `{path}`")))?;
    if draft.changed() && steps.first() == Some(&key("service_directory")) && !whole_directory {
        if steps.as_slice() == [key("service_directory"), key("generation")] {
            must_rise(document, &draft.value)?;
        } else {
            draft.advance()?;
            // What was asked for, to the letter: a directory that lost its services is not moved, and validation judges it.
            draft.directory = false;
        }
    }
    let edited = draft.finish();
    if edited.changed {
        Document::parse(edited.document.shared_bytes()).map_err(|e| EditError::refused(e.0))?;
    }
    Ok(Set { previous, edited })
}

fn key(name: &str) -> Step {
    Step::Key(name.to_owned())
}

fn put(root: &mut Value, steps: &[Step], value: Value) -> Option<()> {
    let (last, outer) = steps.split_last()?;
    match (reach(root, outer)?, last) {
        (Value::Object(map), Step::Key(key)) => {
            map.insert(key.clone(), value);
        }
        (Value::Array(list), Step::Index(index)) => match list.get_mut(*index) {
            Some(element) => *element = value,
            None => list.push(value),
        },
        _ => return None,
    }
    Some(())
}

/// A directory that is replaced whole keeps a generation that already rises; any other becomes the next one.
fn with_next_generation(document: &Document, mut value: Value) -> Value {
    let same = document.section("service_directory") == Some(&value);
    let (Some(Generation(held)), Some(directory)) = (document.generation(), value.as_object_mut()) else {
        return value;
    };
    let rises = directory.get("generation").and_then(Value::as_u64).is_some_and(|new| new > held);
    if !same && !rises {
        directory.insert("generation".into(), held.saturating_add(1).into());
    }
    value
}

fn must_rise(document: &Document, next: &Value) -> Result<(), EditError> {
    let new = next.get("service_directory").and_then(|d| d.get("generation")).and_then(Value::as_u64);
    match (document.generation(), new) {
        (Some(Generation(held)), Some(new)) if new <= held => Err(EditError::refused(format!(
            "registry upload refused: its service directory is generation {new} and the registry already carries {held}. A \
             generation only rises."
        ))),
        _ => Ok(()),
    }
}

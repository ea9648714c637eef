//! Small readers shared by the sections: a value of the right type, or a finding.
use super::at::{At, Findings};
use serde_json::{Map, Value};

/// A JSON object.
pub(super) type Object = Map<String, Value>;

/// What is there, when it is there and not null.
pub(super) fn some<'v>(object: &'v Object, key: &str) -> Option<&'v Value> {
    object.get(key).filter(|v| !v.is_null())
}

/// The value as an object.
pub(super) fn object<'v>(value: &'v Value, at: At<'_>, out: &mut Findings) -> Option<&'v Object> {
    let object = value.as_object();
    if object.is_none() {
        out.add(at, "must be an object");
    }
    object
}

/// The value as a list.
pub(super) fn array<'v>(value: &'v Value, at: At<'_>, out: &mut Findings) -> Option<&'v [Value]> {
    let array = value.as_array();
    if array.is_none() {
        out.add(at, "must be an array");
    }
    array.map(Vec::as_slice)
}

/// A key that must be there, as an object.
pub(super) fn required_object<'v>(from: &'v Object, key: &str, at: At<'_>, out: &mut Findings) -> Option<&'v Object> {
    object(from.get(key).unwrap_or(&Value::Null), at.key(key), out)
}

/// A key that must be there, as a text.
pub(super) fn required_text<'v>(from: &'v Object, key: &str, at: At<'_>, out: &mut Findings) -> Option<&'v str> {
    let text = from.get(key).and_then(Value::as_str);
    if text.is_none() {
        out.add(at.key(key), "must be a string");
    }
    text
}

/// A key that may be missing or null, as a text.
pub(super) fn optional_text<'v>(from: &'v Object, key: &str, at: At<'_>, out: &mut Findings) -> Option<&'v str> {
    let text = some(from, key)?.as_str();
    if text.is_none() {
        out.add(at.key(key), "must be a string");
    }
    text
}

/// A key that may be missing, as an object; empty when it is missing.
pub(super) fn optional_object<'v>(from: &'v Object, key: &str, at: At<'_>, out: &mut Findings) -> Option<&'v Object> {
    some(from, key).and_then(|v| object(v, at.key(key), out))
}

/// A key that may be missing, as a list; empty when it is missing.
pub(super) fn optional_array<'v>(from: &'v Object, key: &str, at: At<'_>, out: &mut Findings) -> &'v [Value] {
    some(from, key).and_then(|v| array(v, at.key(key), out)).unwrap_or_default()
}

/// A list of texts; an element of another type is a finding.
pub(super) fn texts<'v>(list: &'v [Value], at: At<'_>, out: &mut Findings) -> Vec<&'v str> {
    let mut read = Vec::with_capacity(list.len());
    for (i, value) in list.iter().enumerate() {
        match value.as_str() {
            Some(text) => read.push(text),
            None => out.add(at.index(i), "must be a string"),
        }
    }
    read
}

/// An absolute path without `..`.
pub(super) fn is_absolute_path(text: &str) -> bool {
    text.starts_with('/') && !text.contains('\0') && text.split('/').all(|part| part != "..")
}

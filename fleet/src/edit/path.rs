//! Paths into the registry, as `registry pull --path` reads them and `registry set --path` changes them (§6.3, §6.4).
//!
//! `a.b.c`: object keys, and in lists an index or an element's `name`. Names may hold dots: where `b` is not a key, `b.c` is
//! tried. The places that findings print are accepted too: `registry.targets[0].ssh`, `targets[worker.one].ssh`.
use super::{EditError, listed};
use crate::document::Document;
use serde_json::Value;

/// One step to an existing value, or to where a new one belongs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Step {
    Key(String),
    Index(usize),
}

/// A path that was followed: its steps, and what is there now.
pub(super) struct Followed<'v> {
    pub(super) steps: Vec<Step>,
    pub(super) value: Option<&'v Value>,
}

/// A part of a path as written. One that stood in brackets is never joined with the next.
struct Part {
    text: String,
    whole: bool,
}

/// The value at a path.
///
/// # Errors
/// The sentences of §6.3, for a path that leads nowhere.
pub fn read_path<'d>(document: &'d Document, path: &str) -> Result<&'d Value, EditError> {
    let followed = follow(document.value(), path, false)?;
    followed.value.ok_or_else(|| EditError::not_found(format!("registry has no `{path}`")))
}

/// Follows a path. With `last_may_be_new` the last part may name a key that is not there, or the place after a list's end.
pub(super) fn follow<'v>(root: &'v Value, path: &str, last_may_be_new: bool) -> Result<Followed<'v>, EditError> {
    let parts = parts(path, root)?;
    let mut rest = parts.as_slice();
    let mut steps = Vec::with_capacity(rest.len());
    let mut here = root;
    while let Some(first) = rest.first() {
        let may_be_new = last_may_be_new && rest.len() == 1;
        let found = match here {
            Value::Object(map) => joined(rest).find_map(|(name, used)| Some((map.get(&name)?, Step::Key(name), used))),
            Value::Array(list) => element(list, rest),
            _ => None,
        };
        match found {
            Some((value, step, used)) => {
                steps.push(step);
                here = value;
                rest = rest.get(used..).unwrap_or_default();
            }
            None if may_be_new && let Some(step) = new_step(here, &first.text) => {
                steps.push(step);
                return Ok(Followed { steps, value: None });
            }
            None => return Err(nowhere(here, &first.text, &steps)),
        }
    }
    Ok(Followed { steps, value: Some(here) })
}

/// The value behind steps that were followed in the same document.
pub(super) fn reach<'v>(root: &'v mut Value, steps: &[Step]) -> Option<&'v mut Value> {
    steps.iter().try_fold(root, |here, step| match step {
        Step::Key(key) => here.get_mut(key),
        Step::Index(index) => here.get_mut(*index),
    })
}

fn parts(path: &str, root: &Value) -> Result<Vec<Part>, EditError> {
    let mut parts = Vec::new();
    let mut rest = path;
    loop {
        let end = rest.find(['.', '[']).unwrap_or(rest.len());
        let (name, after) = rest.split_at(end);
        if name.is_empty() && !after.starts_with('[') {
            return Err(empty(path));
        }
        if !name.is_empty() {
            parts.push(Part { text: name.to_owned(), whole: false });
        }
        let mut after = after;
        while let Some(inner) = after.strip_prefix('[') {
            let (name, tail) = inner.split_once(']').ok_or_else(|| empty(path))?;
            parts.push(Part { text: name.to_owned(), whole: true });
            after = tail;
        }
        match after.strip_prefix('.') {
            Some(next) => rest = next,
            None if after.is_empty() => break,
            None => return Err(empty(path)),
        }
    }
    let prefixed = parts.len() > 1 && parts.first().is_some_and(|p| p.text == "registry");
    if prefixed && root.get("registry").is_none() {
        parts.remove(0);
    }
    Ok(parts)
}

fn empty(path: &str) -> EditError {
    let sentence = "--path names the field to change, as `registry pull --path` reads it";
    if path.is_empty() {
        return EditError::usage(sentence);
    }
    EditError::usage(format!("{sentence}; `{path}` has an empty or unfinished part"))
}

/// The names that the next parts may mean, each with how many parts it takes: `a`, `a.b`, `a.b.c`.
fn joined(parts: &[Part]) -> impl Iterator<Item = (String, usize)> + '_ {
    let plain = parts.iter().take_while(|part| !part.whole).count().max(1);
    (1..=plain).map(|used| {
        let texts: Vec<&str> = parts.iter().take(used).map(|part| part.text.as_str()).collect();
        (texts.join("."), used)
    })
}

/// An element by index, else by name.
fn element<'v>(list: &'v [Value], parts: &[Part]) -> Option<(&'v Value, Step, usize)> {
    let index = parts.first().and_then(|part| part.text.parse::<usize>().ok());
    if let Some((index, value)) = index.and_then(|index| Some((index, list.get(index)?))) {
        return Some((value, Step::Index(index), 1));
    }
    joined(parts).find_map(|(name, used)| {
        let index = list.iter().position(|e| e.get("name").and_then(Value::as_str) == Some(name.as_str()))?;
        Some((list.get(index)?, Step::Index(index), used))
    })
}

fn new_step(here: &Value, name: &str) -> Option<Step> {
    match here {
        Value::Object(_) => Some(Step::Key(name.to_owned())),
        Value::Array(list) => name.parse().ok().filter(|index| *index == list.len()).map(Step::Index),
        _ => None,
    }
}

/// The sentences of §6.3.
fn nowhere(here: &Value, name: &str, steps: &[Step]) -> EditError {
    let walked = walked(steps);
    EditError::not_found(match here {
        Value::Object(map) => {
            let keys = listed(map.keys().map(String::as_str));
            format!("registry has no `{name}` under `{walked}`; keys there: {keys}")
        }
        Value::Array(list) if name.parse::<usize>().is_ok() => {
            format!("registry array `{walked}` has {} element(s), no index {name}", list.len())
        }
        Value::Array(list) => {
            let names = listed(list.iter().filter_map(|element| element.get("name")?.as_str()));
            format!("registry array `{walked}` has no element named `{name}`; names there: {names}")
        }
        other => format!("registry value at `{walked}` is a {}, which has no `{name}` inside", kind(other)),
    })
}

fn walked(steps: &[Step]) -> String {
    if steps.is_empty() {
        return "<root>".into();
    }
    let texts: Vec<String> = steps
        .iter()
        .map(|step| match step {
            Step::Key(key) => key.clone(),
            Step::Index(index) => index.to_string(),
        })
        .collect();
    texts.join(".")
}

fn kind(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "boolean",
        Value::Number(_) => "number",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    }
}

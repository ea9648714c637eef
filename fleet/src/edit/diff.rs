//! What differs between two documents, by path.
use crate::document::Document;
use serde_json::Value;

/// One difference. `before` is `None` for what is new, `after` for what is gone.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
pub struct Difference {
    /// As `registry pull --path` reads it; elements of lists by their `name` where all have one.
    pub path: String,
    /// Value in the first document.
    pub before: Option<Value>,
    /// Value in the second.
    pub after: Option<Value>,
}

impl std::fmt::Display for Difference {
    /// `+ path: value`, `- path: value`, `~ path: old -> new`.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match (&self.before, &self.after) {
            (Some(before), Some(after)) => write!(f, "~ {}: {before} -> {after}", self.path),
            (None, Some(after)) => write!(f, "+ {}: {after}", self.path),
            (Some(before), None) => write!(f, "- {}: {before}", self.path),
            (None, None) => Ok(()),
        }
    }
}

/// The differences, in the order of the first document, then of the second.
pub fn diff(before: &Document, after: &Document) -> Vec<Difference> {
    let mut found = Vec::new();
    values(before.value(), after.value(), "", &mut found);
    found
}

fn values(before: &Value, after: &Value, path: &str, found: &mut Vec<Difference>) {
    if before == after {
        return;
    }
    match (before, after) {
        (Value::Object(old), Value::Object(new)) => {
            for (key, value) in old {
                one(Some(value), new.get(key), &join(path, key), found);
            }
            for (key, value) in new.iter().filter(|(key, _)| !old.contains_key(*key)) {
                one(None, Some(value), &join(path, key), found);
            }
        }
        (Value::Array(old), Value::Array(new)) => match (names(old), names(new)) {
            (Some(old_names), Some(new_names)) => {
                for (name, value) in old_names.iter().zip(old) {
                    let other = new_names.iter().position(|n| n == name).and_then(|at| new.get(at));
                    one(Some(value), other, &join(path, name), found);
                }
                for (name, value) in new_names.iter().zip(new).filter(|(name, _)| !old_names.contains(name)) {
                    one(None, Some(value), &join(path, name), found);
                }
            }
            _ => {
                for at in 0..old.len().max(new.len()) {
                    one(old.get(at), new.get(at), &join(path, &at.to_string()), found);
                }
            }
        },
        _ => one(Some(before), Some(after), path, found),
    }
}

fn one(before: Option<&Value>, after: Option<&Value>, path: &str, found: &mut Vec<Difference>) {
    match (before, after) {
        (Some(old), Some(new)) if both_hold_more(old, new) => values(old, new, path, found),
        (old, new) if old == new => {}
        (old, new) => found.push(Difference { path: path.to_owned(), before: old.cloned(), after: new.cloned() }),
    }
}

fn both_hold_more(old: &Value, new: &Value) -> bool {
    matches!((old, new), (Value::Object(_), Value::Object(_)) | (Value::Array(_), Value::Array(_)))
}

/// The names of all elements, when each has another one.
fn names(list: &[Value]) -> Option<Vec<&str>> {
    let names: Vec<&str> = list.iter().map(|e| e.get("name").and_then(Value::as_str)).collect::<Option<_>>()?;
    let distinct = names.iter().collect::<std::collections::HashSet<_>>().len() == names.len();
    (distinct && !names.is_empty()).then_some(names)
}

fn join(path: &str, key: &str) -> String {
    if path.is_empty() { key.to_owned() } else { format!("{path}.{key}") }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(before: &str, after: &str) -> Vec<String> {
        let document = |text: &str| Document::parse(text.as_bytes()).unwrap();
        diff(&document(before), &document(after)).iter().map(ToString::to_string).collect()
    }

    #[test]
    fn differences_are_named_by_path() {
        let before = r#"{"targets":[{"name":"a","ssh":"x"},{"name":"b","ssh":"y"}],"list":[1,2],"gone":null,"n":1.0}"#;
        let after = r#"{"targets":[{"name":"b","ssh":"z"},{"name":"c"}],"list":[1,3,4],"n":1.50,"new":{"k":true}}"#;
        assert_eq!(
            lines(before, after),
            [
                r#"- targets.a: {"name":"a","ssh":"x"}"#,
                r#"~ targets.b.ssh: "y" -> "z""#,
                r#"+ targets.c: {"name":"c"}"#,
                "~ list.1: 2 -> 3",
                "+ list.2: 4",
                "- gone: null",
                "~ n: 1.0 -> 1.50",
                r#"+ new: {"k":true}"#,
            ]
        );
        assert!(lines(before, before).is_empty());
        assert_eq!(lines(r#"{"a":[1]}"#, r#"{"a":{}}"#), ["~ a: [1] -> {}"]);
    }
}

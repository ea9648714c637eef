//! The configuration file's shape → setting names: flat snake_case keys and nested `docker` and `http` objects.
use super::{ConfigError, FIELDS, Kind, wrong};
use crate::config::nearest;
use serde_json::{Map, Value};
use std::path::Path;

const RETIRED: &str = "runtime_idle_ttl";

/// Values by setting name, and sentences about what was ignored.
#[derive(Debug, Default)]
pub(super) struct File {
    pub(super) values: Vec<(&'static str, String)>,
    pub(super) warnings: Vec<String>,
}

/// Reads and maps the file.
pub(super) fn read(path: &Path) -> Result<File, ConfigError> {
    let text = std::fs::read_to_string(path)
        .map_err(|e| ConfigError(format!("cannot read config file {}: {e}", path.display())))?;
    let invalid = |e: &dyn std::fmt::Display| ConfigError(format!("invalid config file {}: {e}", path.display()));
    let yaml = path.extension().is_some_and(|e| e == "yaml" || e == "yml");
    let value: Value = if yaml {
        serde_norway::from_str(&text).map_err(|e| invalid(&e))?
    } else {
        serde_json::from_str(&text).map_err(|e| invalid(&e))?
    };
    let mut file = map(&value).map_err(|e| invalid(&e))?;
    for warning in &mut file.warnings {
        *warning = format!("config file {}: {warning}", path.display());
    }
    Ok(file)
}

/// Maps the whole value; a null counts as absent everywhere.
pub(super) fn map(value: &Value) -> Result<File, ConfigError> {
    let mut file = File::default();
    let Some(root) = mapping("config", value)? else { return Ok(file) };
    if root.get(RETIRED).is_some_and(|v| !v.is_null()) {
        return wrong(format!("{RETIRED} is no longer supported: frontend listeners are kept until the daemon stops"));
    }
    walk("", root, &mut file)?;
    Ok(file)
}

fn walk(prefix: &str, object: &Map<String, Value>, file: &mut File) -> Result<(), ConfigError> {
    for (key, value) in object {
        let path = if prefix.is_empty() { key.clone() } else { format!("{prefix}.{key}") };
        if value.is_null() {
            continue;
        } else if prefix.is_empty() && (key == "docker" || key == "http") {
            if let Some(inner) = mapping(key, value)? {
                walk(key, inner, file)?;
            }
        } else if let Some(field) = FIELDS.iter().find(|f| !f.key.is_empty() && f.key == path) {
            file.values.push((field.name, scalar(field.kind, &path, value)?));
        } else {
            file.warnings.push(unknown(&path));
        }
    }
    Ok(())
}

fn mapping<'a>(path: &str, value: &'a Value) -> Result<Option<&'a Map<String, Value>>, ConfigError> {
    match value {
        Value::Null => Ok(None),
        Value::Object(object) => Ok(Some(object)),
        other => wrong(format!("{path}: expected a mapping, got {}", kind_of(other))),
    }
}

/// A value of the file as text, when its JSON type fits the setting.
fn scalar(kind: Kind, path: &str, value: &Value) -> Result<String, ConfigError> {
    let wanted = match (kind, value) {
        (_, Value::String(text)) => return Ok(text.clone()),
        (Kind::Number, Value::Number(number)) => return Ok(number.to_string()),
        (Kind::Bool, Value::Bool(flag)) => return Ok(flag.to_string()),
        (Kind::List, Value::Array(items)) => {
            let texts: Option<Vec<&str>> = items.iter().map(Value::as_str).collect();
            match texts {
                Some(texts) => return Ok(texts.join(",")),
                None => "a list of strings",
            }
        }
        (Kind::Number, _) => "a number",
        (Kind::Bool, _) => "true or false",
        (Kind::Duration, _) => "a duration like \"15s\"",
        (Kind::List, _) => "a list of strings",
        (Kind::Text, _) => "a string",
    };
    wrong(format!("{path}: expected {wanted}, got {}", kind_of(value)))
}

fn kind_of(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "bool",
        Value::Number(_) => "number",
        Value::String(_) => "string",
        Value::Array(_) => "list",
        Value::Object(_) => "mapping",
    }
}

fn unknown(path: &str) -> String {
    let keys = FIELDS.iter().map(|f| f.key).filter(|key| !key.is_empty()).chain(["docker", "http"]);
    match nearest(path, keys) {
        Some(key) => format!("unknown key {path} is ignored; did you mean {key}?"),
        None => format!("unknown key {path} is ignored"),
    }
}

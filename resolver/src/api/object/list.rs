//! `GET /api/object/list`: the objects of a namespace below a prefix, sorted by key.
use super::name::Name;
use super::objects::Objects;
use serde_json::{Value, json};
use std::io;
use std::path::Path;
use std::time::SystemTime;

/// Random characters at the end of a temporary file's name.
const RANDOM: usize = 6;

pub(super) fn list(objects: &Objects, namespace: &str, prefix: &str) -> io::Result<Vec<Value>> {
    let root = objects.root().join("ecosystem").join(namespace);
    let mut keys = Vec::new();
    walk(&root, "", prefix, &mut keys)?;
    let registry = Name { namespace: namespace.to_owned(), key: "registry.json".into() };
    if Objects::is_registry(&registry) && registry.key.starts_with(prefix) && !keys.contains(&registry.key) {
        // A store that was served late keeps it at its root.
        keys.push(registry.key);
    }
    keys.sort();
    let mut found = Vec::with_capacity(keys.len());
    for key in keys {
        let name = Name { namespace: namespace.to_owned(), key };
        // One that is removed meanwhile is not there.
        let Some(object) = objects.find(&name)? else { continue };
        found.push(json!({
            "uri": name.to_string(), "namespace": name.namespace, "key": name.key, "size": object.size,
            "updated_at": timestamp(object.modified), "metadata": objects.metadata(&name),
        }));
    }
    Ok(found)
}

/// As every time of the API is written.
pub(super) fn timestamp(at: SystemTime) -> String {
    jiff::Timestamp::try_from(at)
        .map_or_else(|_| String::new(), |at| at.strftime("%Y-%m-%dT%H:%M:%S%.6f+00:00").to_string())
}

/// Only directories that the prefix can be in are looked into.
fn walk(dir: &Path, below: &str, prefix: &str, keys: &mut Vec<String>) -> io::Result<()> {
    let entries = match std::fs::read_dir(dir) {
        Ok(entries) => entries,
        Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(()),
        Err(e) => return Err(e),
    };
    for entry in entries {
        let entry = entry?;
        // A name that is no text was not written by this API.
        let Ok(part) = entry.file_name().into_string() else { continue };
        let (kind, key) = (entry.file_type()?, format!("{below}{part}"));
        if kind.is_dir() {
            let below = format!("{key}/");
            if below.starts_with(prefix) || prefix.starts_with(&below) {
                walk(&entry.path(), &below, prefix, keys)?;
            }
        } else if kind.is_file() && key.starts_with(prefix) && !temporary(&part) {
            keys.push(key);
        }
    }
    Ok(())
}

/// `.name.XXXXXX`: a write under way, or what a killed writer left.
fn temporary(file: &str) -> bool {
    let random = file.strip_prefix('.').and_then(|rest| rest.rsplit_once('.')).map(|(_, random)| random);
    random.is_some_and(|r| r.len() == RANDOM && r.bytes().all(|b| b.is_ascii_alphanumeric()))
}

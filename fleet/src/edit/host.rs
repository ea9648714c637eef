//! `registry host add` (fleet contract §6.6).
use super::{Draft, EditError, Edited};
use crate::document::Document;
use serde_json::{Value, json};

/// A host to declare.
#[derive(Debug, Clone)]
pub struct NewHost {
    /// Target name.
    pub name: String,
    /// `local`, `gcp` or `vast`.
    pub kind: String,
    /// `[user@]host[:port]`
    pub ssh: String,
    /// `darwin-arm64` or `linux-amd64`.
    pub release_platform: String,
}

/// Declares a host, as the last target. `location` is how people see the store (`local:registry.json`).
///
/// # Errors
/// Empty arguments (usage) and a name that is already declared.
pub fn add_host(document: &Document, location: &str, host: &NewHost) -> Result<Edited, EditError> {
    if host.name.trim().is_empty() {
        return Err(EditError::usage("HOST must not be empty"));
    }
    if host.ssh.trim().is_empty() {
        return Err(EditError::usage("--ssh must not be empty"));
    }
    let mut draft = Draft::of(document)?;
    if let Ok(declared) = draft.target(&host.name) {
        let kind = declared.get("kind").and_then(Value::as_str).unwrap_or("unknown");
        return Err(EditError::refused(format!(
            "{} is already declared in {location} (kind={kind}); refusing to add a duplicate",
            host.name
        )));
    }
    draft.targets()?.push(json!({
        "name": host.name, "kind": host.kind, "release_platform": host.release_platform, "ssh": host.ssh,
    }));
    Ok(draft.finish())
}

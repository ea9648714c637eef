//! `registry host add` (fleet contract §6.6).
use super::{Draft, EditError, Edited};
use crate::document::{Document, EMPTY_DIRECTORY};
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

/// Takes a host out of the registry.
///
/// # Errors
/// An unknown host, and one that the directory, a placement or a coordinator still names: what it serves would be nowhere.
pub fn remove_host(document: &Document, host: &str) -> Result<Edited, EditError> {
    let mut draft = Draft::of(document)?;
    draft.target(host)?;
    let named = naming(document.value(), host);
    if !named.is_empty() {
        return Err(EditError::refused(format!(
            "{host} is still named by {}; move what it serves, then remove it",
            super::listed(named.iter().map(String::as_str))
        )));
    }
    draft.targets()?.retain(|target| target.get("name").and_then(Value::as_str) != Some(host));
    Ok(draft.finish())
}

/// Places that name a host, but for its own entry.
fn naming(document: &Value, host: &str) -> Vec<String> {
    let is = |value: Option<&Value>| value.and_then(Value::as_str) == Some(host);
    let mut found = Vec::new();
    let empty = document.get(EMPTY_DIRECTORY).filter(|_| document.get("service_directory").is_none());
    if is(empty.and_then(|directory| directory.get("authority")?.get("target"))) {
        found.push(format!("{EMPTY_DIRECTORY}.authority"));
    }
    if let Some(directory) = document.get("service_directory") {
        if is(directory.get("authority").and_then(|a| a.get("target"))) {
            found.push("service_directory.authority".to_owned());
        }
        for (name, service) in directory.get("services").and_then(Value::as_object).into_iter().flatten() {
            let keyed = |key: &str| service.get(key).is_some_and(|hosts| hosts.get(host).is_some());
            for (place, here) in [
                ("active_host", is(service.get("active_host"))),
                ("endpoints", keyed("endpoints")),
                ("standby", keyed("standby")),
            ] {
                if here {
                    found.push(format!("service_directory.services.{name}.{place}"));
                }
            }
        }
    }
    let list = |key: &str| document.get(key).and_then(Value::as_array).into_iter().flatten().enumerate();
    for (i, profile) in list("placement_profiles") {
        if profile.get("hosts").is_some_and(|hosts| hosts.get(host).is_some()) {
            found.push(format!("placement_profiles[{i}].hosts"));
        }
    }
    for (i, transaction) in list("placement_transactions") {
        if is(transaction.get("from_host")) || is(transaction.get("to_host")) {
            found.push(format!("placement_transactions[{i}]"));
        }
    }
    for (i, coordinator) in list("coordinators") {
        if is(coordinator.get("host")) {
            found.push(format!("coordinators[{i}].host"));
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::document;

    #[test]
    fn a_host_that_serves_something_is_not_removed() {
        let refused = remove_host(&document(1, 1), "control").unwrap_err().sentence;
        assert_eq!(
            refused,
            "control is still named by service_directory.authority, service_directory.services.db.active_host, \
             service_directory.services.db.endpoints, service_directory.services.web.active_host, \
             service_directory.services.web.endpoints; move what it serves, then remove it"
        );
        let edited = remove_host(&document(1, 1), "desk").unwrap();
        assert_eq!(edited.document.target_count(), 1);
        assert!(edited.document.same_section(&document(1, 1), "service_directory"), "its generation stays");
        assert!(remove_host(&document(1, 1), "nobody").is_err());
    }
}

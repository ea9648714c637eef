//! Connection paths of a host: `registry host path list|set|remove` (fleet contract §6.7).
use super::{Draft, EditError, Edited};
use crate::document::Document;
use serde_json::{Map, Value, json};

/// The name of `ssh` among the paths.
const PRIMARY: &str = "primary";

/// A connection path to declare.
#[derive(Debug, Clone)]
pub struct NewWay {
    /// `primary`, or a name of its own.
    pub path: String,
    /// `[user@]host[:port]`
    pub ssh: String,
    /// Place among the fallbacks, from 1; where it is, or last, without.
    pub priority: Option<usize>,
}

/// What a `host path set` did.
#[derive(Debug, Clone)]
pub struct WaySet {
    /// The next document.
    pub edited: Edited,
}

/// The declared paths of a host, in the order in which they are tried.
///
/// # Errors
/// An unknown host.
pub fn ways(document: &Document, host: &str) -> Result<Vec<(String, String)>, EditError> {
    let mut draft = Draft::of(document)?;
    let target = draft.target(host)?;
    let primary = target.get("ssh").and_then(Value::as_str).map(|ssh| (PRIMARY.to_owned(), ssh.to_owned()));
    let text = |path: &Value, key: &str| path.get(key).and_then(Value::as_str).unwrap_or_default().to_owned();
    let fallbacks = target.get("ssh_fallbacks").and_then(Value::as_array).into_iter().flatten();
    Ok(primary.into_iter().chain(fallbacks.map(|path| (text(path, "name"), text(path, "destination")))).collect())
}

/// Declares a path, or points one elsewhere.
///
/// # Errors
/// The usage sentences of §6.7, an unknown host.
pub fn set_way(document: &Document, host: &str, way: &NewWay) -> Result<WaySet, EditError> {
    if way.path.trim().is_empty() {
        return Err(EditError::usage("PATH must not be empty"));
    }
    if way.ssh.trim().is_empty() {
        return Err(EditError::usage("--ssh must not be empty"));
    }
    if way.priority == Some(0) {
        return Err(EditError::usage("--priority starts at 1"));
    }
    let mut draft = Draft::of(document)?;
    let target = draft.target(host)?;
    if way.path == PRIMARY {
        if way.priority.is_some() {
            return Err(EditError::usage("the primary path is always preferred and does not take --priority"));
        }
        target.insert("ssh".into(), way.ssh.clone().into());
    } else {
        place(fallbacks(target, host)?, way)?;
    }
    Ok(WaySet { edited: draft.finish() })
}

/// Takes a path away. A host without any is reached by nobody, which validation judges.
///
/// # Errors
/// An unknown host or path.
pub fn remove_way(document: &Document, host: &str, path: &str) -> Result<Edited, EditError> {
    let declared: Vec<String> = ways(document, host)?.into_iter().map(|(name, _)| name).collect();
    if !declared.iter().any(|name| name == path) {
        let names = super::listed(declared.iter().map(String::as_str));
        return Err(EditError::not_found(format!("{host} declares no connection path {path}; it declares {names}")));
    }
    let mut draft = Draft::of(document)?;
    let target = draft.target(host)?;
    if path == PRIMARY {
        target.insert("ssh".into(), Value::Null);
    } else {
        let paths = fallbacks(target, host)?;
        paths.retain(|declared| declared.get("name").and_then(Value::as_str) != Some(path));
        if paths.is_empty() {
            target.shift_remove("ssh_fallbacks");
        }
    }
    Ok(draft.finish())
}

fn fallbacks<'v>(target: &'v mut Map<String, Value>, host: &str) -> Result<&'v mut Vec<Value>, EditError> {
    let paths = target.entry("ssh_fallbacks").or_insert_with(|| json!([])).as_array_mut();
    paths.ok_or_else(|| EditError::config(format!("registry.targets[{host}].ssh_fallbacks: must be an array")))
}

/// Keeps whatever else a declared path says.
fn place(paths: &mut Vec<Value>, way: &NewWay) -> Result<(), EditError> {
    let at = paths.iter().position(|path| path.get("name").and_then(Value::as_str) == Some(way.path.as_str()));
    let count = paths.len() + usize::from(at.is_none());
    if let Some(priority) = way.priority.filter(|priority| *priority > count) {
        return Err(EditError::usage(format!("--priority {priority} is outside 1..={count}")));
    }
    let mut entry = match at {
        Some(at) => paths.remove(at),
        None => json!({"name": way.path}),
    };
    if let Some(entry) = entry.as_object_mut() {
        entry.insert("destination".into(), way.ssh.clone().into());
    }
    let place = way.priority.map(|priority| priority - 1).or(at).unwrap_or(paths.len());
    paths.insert(place.min(paths.len()), entry);
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::document;

    fn set(held: &Document, path: &str, ssh: &str, priority: Option<usize>) -> Result<Document, String> {
        let way = NewWay { path: path.into(), ssh: ssh.into(), priority };
        set_way(held, "control", &way).map(|set| set.edited.document).map_err(|e| e.sentence)
    }
    fn shown(document: &Document) -> String {
        let ways = ways(document, "control").unwrap();
        ways.iter().map(|(name, to)| format!("{name}={to}")).collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn paths_are_set_moved_and_removed_in_order() {
        let start = document(1, 1);
        let one = set(&start, "lan", "ops@control.local", None).unwrap();
        let two = set(&one, "overlay", "ops@control.overlay.example", Some(1)).unwrap();
        assert_eq!(shown(&two), "primary=ops@127.0.0.2:22 overlay=ops@control.overlay.example lan=ops@control.local");
        let moved = set(&two, "lan", "ops@control2.local", Some(1)).unwrap();
        assert_eq!(
            shown(&moved),
            "primary=ops@127.0.0.2:22 lan=ops@control2.local overlay=ops@control.overlay.example"
        );
        let primary = set(&moved, "primary", "ops@control", None).unwrap();
        assert!(shown(&primary).starts_with("primary=ops@control lan="));
        let way = NewWay { path: "primary".into(), ssh: "ops@control".into(), priority: None };
        assert!(!set_way(&primary, "control", &way).unwrap().edited.changed);

        let without = remove_way(&two, "control", "overlay").unwrap().document;
        assert!(without.same_as(&one));
        assert!(
            remove_way(&without, "control", "lan").unwrap().document.section("targets").unwrap()[0]
                .get("ssh_fallbacks")
                .is_none()
        );
    }

    #[test]
    fn what_cannot_be_meant_is_refused_by_its_sentence() {
        let start = document(1, 1);
        let refused = |path: &str, ssh: &str, priority| set(&start, path, ssh, priority).unwrap_err();
        assert_eq!(refused(" ", "x", None), "PATH must not be empty");
        assert_eq!(refused("lan", "", None), "--ssh must not be empty");
        assert_eq!(refused("lan", "x", Some(0)), "--priority starts at 1");
        assert_eq!(
            refused("primary", "x", Some(1)),
            "the primary path is always preferred and does not take --priority"
        );
        assert_eq!(refused("lan", "x", Some(2)), "--priority 2 is outside 1..=1");
        let gone = remove_way(&start, "control", "lan").unwrap_err().sentence;
        assert_eq!(gone, "control declares no connection path lan; it declares primary");
        assert_eq!(ways(&start, "nobody").unwrap_err().sentence, "target 'nobody' is not in the canonical registry");
    }
}

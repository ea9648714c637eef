//! Hosts that join by themselves: the registry of a new fleet, and a host with the keys by which it is known.
use super::{Draft, EditError, Edited};
use crate::document::{Document, EMPTY_DIRECTORY};
use serde_json::{Map, Value, json};

/// A host that joins.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Member {
    /// Target name.
    pub name: String,
    /// `darwin-arm64` or `linux-amd64`.
    pub release_platform: String,
    /// Where others reach it, `[user@]host[:port]`; `None` leaves what is declared.
    pub ssh: Option<String>,
    /// Absolute path of `stado` there.
    pub command: String,
    /// Keys by which it is known there; empty leaves what is declared.
    pub host_keys: Vec<String>,
    /// Its own key, `type base64`.
    pub key: String,
}

/// The registry of a fleet that begins: `member` is its only host and its authority, and nothing is served yet.
pub fn found(member: &Member) -> Document {
    Document::from_value(json!({
        "schema_version": 2,
        "targets": [target(member)],
        "coordinators": [],
        EMPTY_DIRECTORY: {"authority": {"target": member.name, "command": member.command}, "generation": 1},
    }))
}

/// The registry with `member`, which keeps it, as its authority; what another authority keeps is not changed.
///
/// # Errors
/// As [`add_member`].
pub fn found_in(document: &Document, member: &Member) -> Result<Edited, EditError> {
    let edited = add_member(document, member, true)?;
    if document.authority().is_some() {
        return Ok(edited);
    }
    let mut value = edited.document.value().clone();
    if let Some(root) = value.as_object_mut() {
        let authority = json!({"target": member.name, "command": member.command});
        root.insert(EMPTY_DIRECTORY.into(), json!({"authority": authority, "generation": 1}));
    }
    let document = Document::from_value(value);
    Ok(Edited { generation: document.generation(), document, changed: true })
}

/// Declares a host that joins; one that is declared with the same key is brought up to date. `adopt`: a target that says no
/// keys yet may become this host's.
///
/// # Errors
/// A name that is another host's, a key that is another target's.
pub fn add_member(document: &Document, member: &Member, adopt: bool) -> Result<Edited, EditError> {
    let mut draft = Draft::of(document)?;
    let has_key = |target: &Value| keys(target).any(|key| same_key(key, &member.key));
    let named = |target: &Value| target.get("name").and_then(Value::as_str) == Some(member.name.as_str());
    let targets = draft.targets()?;
    if let Some(other) = targets.iter().find(|target| has_key(target) && !named(target)) {
        let other = other.get("name").and_then(Value::as_str).unwrap_or_default();
        return Err(EditError::refused(format!(
            "this host is in the fleet as {other} already, by its key; `stado fleet leave` takes it out under that name"
        )));
    }
    match targets.iter_mut().find(|target| named(target)) {
        None => targets.push(target(member)),
        Some(declared) if has_key(declared) || (adopt && keys(declared).next().is_none()) => {
            if let Some(declared) = declared.as_object_mut() {
                bring_up_to_date(declared, member);
            }
        }
        Some(_) => {
            let name = &member.name;
            return Err(EditError::refused(format!(
                "{name} is another host of this fleet: join under another name (`--name`), or, if {name} is this host \
                 installed anew, take the old one out first (`stado registry host remove {name}`)"
            )));
        }
    }
    Ok(draft.finish())
}

/// Whether the target is there, with this key of its own.
pub fn is_member(document: &Document, name: &str, key: &str) -> bool {
    let targets = document.section("targets").and_then(Value::as_array);
    let mut named =
        targets.into_iter().flatten().filter(|target| target.get("name").and_then(Value::as_str) == Some(name));
    named.any(|target| keys(target).any(|own| same_key(own, key)))
}

fn keys(target: &Value) -> impl Iterator<Item = &str> {
    target.get("resolver_keys").and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_str)
}

/// The same type and bits, whatever comment stands behind them.
fn same_key(a: &str, b: &str) -> bool {
    a.split_whitespace().take(2).eq(b.split_whitespace().take(2))
}

fn target(member: &Member) -> Value {
    let mut target = json!({
        "name": member.name, "kind": "local", "release_platform": member.release_platform, "ssh": member.ssh,
        "stado_command": member.command, "services": [], "service_resolver": resolver(), "resolver_keys": [member.key],
    });
    if let Some(target) = target.as_object_mut().filter(|_| !member.host_keys.is_empty()) {
        target.insert("ssh_host_keys".into(), json!(member.host_keys));
    }
    target
}

fn resolver() -> Value {
    json!({"api_bind": "127.0.0.1:17600", "refresh_seconds": 5, "max_stale_seconds": 15, "adapters": []})
}

fn bring_up_to_date(declared: &mut Map<String, Value>, member: &Member) {
    if let Some(ssh) = &member.ssh {
        declared.insert("ssh".into(), json!(ssh));
    }
    if !member.host_keys.is_empty() {
        declared.insert("ssh_host_keys".into(), json!(member.host_keys));
    }
    declared.insert("release_platform".into(), json!(member.release_platform));
    declared.insert("stado_command".into(), json!(member.command));
    declared.entry("service_resolver").or_insert_with(resolver);
    let keys = declared.entry("resolver_keys").or_insert_with(|| json!([]));
    if let Some(keys) =
        keys.as_array_mut().filter(|keys| !keys.iter().any(|k| k.as_str().is_some_and(|k| same_key(k, &member.key))))
    {
        keys.push(json!(member.key));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::name::Generation;
    use crate::testing::document;
    use crate::validate::validate;

    const A: &str = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIJdD7y3aLq454yWBdwLWbieU1ebz9/cu7/QEXn9OIeZJ";
    const B: &str = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIJdD7y3aLq454yWBdwLWbieU1ebz9/cu7/QEXn9OIeZK";

    fn member(name: &str, key: &str, ssh: Option<&str>) -> Member {
        Member {
            name: name.into(),
            release_platform: "linux-amd64".into(),
            ssh: ssh.map(str::to_owned),
            command: "/usr/local/bin/stado".into(),
            host_keys: ssh.map(|_| B.to_owned()).into_iter().collect(),
            key: key.into(),
        }
    }

    #[test]
    fn a_fleet_begins_with_one_host_and_grows_by_one_each() {
        let first = found(&member("tower", A, Some("me@tower.local:17622")));
        let valid = validate(first.clone()).unwrap();
        let directory = valid.registry.directory.as_ref().unwrap();
        assert_eq!((directory.authority_target.as_str(), directory.generation), ("tower", Generation(1)));
        assert_eq!(valid.document.unknown_keys(), Vec::<String>::new());
        let second = add_member(&first, &member("laptop", B, None), false).unwrap();
        assert!(second.changed && second.generation == Some(Generation(1)), "no directory changes by it");
        let valid = validate(second.document.clone()).unwrap();
        let laptop = &valid.registry.targets["laptop"];
        assert_eq!((laptop.resolver_keys.as_slice(), laptop.paths.len()), (&[B.to_owned()][..], 0));
        assert!(laptop.resolver.is_some());
        let again = add_member(&second.document, &member("laptop", B, None), false).unwrap();
        assert!(!again.changed, "the same host once more is nothing new");
    }

    #[test]
    fn a_name_belongs_to_its_key_and_a_key_to_its_name() {
        let first = found(&member("tower", A, Some("me@tower.local:17622")));
        let second = add_member(&first, &member("laptop", B, None), false).unwrap().document;
        let refused = |m: &Member| add_member(&second, m, false).unwrap_err().sentence;
        assert!(refused(&member("tower", &format!("{A}x"), None)).starts_with("tower is another host of this fleet"));
        assert!(refused(&member("desk", B, None)).starts_with("this host is in the fleet as laptop already"));
        assert!(
            refused(&member("desk", &format!("{B} me@desk"), None)).contains("laptop"),
            "a comment is no other key"
        );
    }

    #[test]
    fn a_host_that_was_declared_by_hand_is_adopted_only_where_that_is_asked_for() {
        let held = document(3, 1);
        let me = member("control", A, Some("ops@control.local:17622"));
        assert!(add_member(&held, &me, false).is_err());
        let adopted = add_member(&held, &me, true).unwrap().document;
        let valid = validate(adopted).unwrap();
        let control = &valid.registry.targets["control"];
        assert_eq!(control.paths[0].destination.to_string(), "ops@control.local:17622");
        assert_eq!((control.host_keys.len(), control.resolver_keys.len()), (1, 1));
    }

    #[test]
    fn a_key_that_is_none_is_a_finding() {
        let mut value = found(&member("tower", A, Some("tower.local"))).value().clone();
        value["targets"][0]["resolver_keys"] = json!(["ssh-ed25519 nonsense"]);
        let why = validate(Document::from_value(value)).unwrap_err().to_string();
        assert_eq!(why, "registry.targets[0].resolver_keys[0]: must be an SSH public key, as `ssh-ed25519 AAAA…`");
    }
}

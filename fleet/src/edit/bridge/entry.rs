//! Where a publication stands in a document.
use super::super::{Draft, EditError, listed};
use crate::document::{MESH_UNIT, published_unit};
use serde_json::{Map, Value, json};

/// What a resolver needs that nobody configured yet.
const API_BIND: &str = "127.0.0.1:17600";
const REFRESH_SECONDS: u64 = 5;
const MAX_STALE_SECONDS: u64 = 60;

pub(super) fn text<'v>(map: &'v Map<String, Value>, key: &str) -> &'v str {
    map.get(key).and_then(Value::as_str).unwrap_or_default()
}

/// Whether an entry of the directory was published from a mesh.
pub(super) fn is_published(service: &str, entry: &Map<String, Value>) -> bool {
    text(entry, "managed_service") == published_unit(service)
}

/// Whether the entry names `host` under `key` (`endpoints`, `standby`).
pub(super) fn names(entry: &Map<String, Value>, key: &str, host: &str) -> bool {
    entry.get(key).is_some_and(|hosts| hosts.get(host).is_some())
}

/// Hosts that stand by, in document order.
pub(super) fn standbys(entry: &Map<String, Value>) -> Vec<String> {
    let hosts = entry.get("standby").and_then(Value::as_object);
    hosts.into_iter().flat_map(|hosts| hosts.keys().cloned()).collect()
}

/// Consumers that are declared, in document order.
pub(super) fn consumers(entry: &Map<String, Value>) -> Vec<String> {
    let all = entry.get("consumers").and_then(Value::as_object);
    all.into_iter().flat_map(|all| all.keys().cloned()).collect()
}

/// An object below `map`, made when it is missing.
pub(super) fn object<'v>(
    map: &'v mut Map<String, Value>,
    key: &str,
    at: &str,
) -> Result<&'v mut Map<String, Value>, EditError> {
    let value = map.entry(key).or_insert_with(|| json!({}));
    value.as_object_mut().ok_or_else(|| EditError::config(format!("{at}.{key}: must be an object")))
}

/// A list below `map`, made when it is missing.
pub(super) fn list<'v>(map: &'v mut Map<String, Value>, key: &str, at: &str) -> Result<&'v mut Vec<Value>, EditError> {
    let value = map.entry(key).or_insert_with(|| json!([]));
    value.as_array_mut().ok_or_else(|| EditError::config(format!("{at}.{key}: must be an array")))
}

/// The unit of a published service on a host; `None` when the host declares none.
pub(super) fn unit<'v>(target: &'v mut Map<String, Value>, service: &str) -> Option<&'v mut Map<String, Value>> {
    let units = target.get_mut("services")?.as_array_mut()?;
    units.iter_mut().filter_map(Value::as_object_mut).find(|unit| is_unit(unit, service))
}

pub(super) fn is_unit(unit: &Map<String, Value>, service: &str) -> bool {
    text(unit, "name") == published_unit(service) && text(unit, "kind") == MESH_UNIT
}

/// Takes the unit of a published service from a host.
pub(super) fn drop_unit(target: &mut Map<String, Value>, service: &str) {
    if let Some(units) = target.get_mut("services").and_then(Value::as_array_mut) {
        units.retain(|unit| !unit.as_object().is_some_and(|unit| is_unit(unit, service)));
    }
}

/// Takes a host from a map of addresses; an emptied `standby` goes with its last one.
pub(super) fn take(entry: &mut Map<String, Value>, key: &str, host: &str) -> Option<Value> {
    let hosts = entry.get_mut(key)?.as_object_mut()?;
    let taken = hosts.shift_remove(host);
    if key == "standby" && hosts.is_empty() {
        entry.shift_remove(key);
    }
    taken
}

/// The adapters of a target; a target without a resolver policy gets the usual one.
pub(super) fn adapters<'v>(draft: &'v mut Draft<'_>, host: &str) -> Result<&'v mut Vec<Value>, EditError> {
    let target = draft.target(host)?;
    let resolver = target.entry("service_resolver").or_insert_with(|| {
        json!({
            "api_bind": API_BIND, "refresh_seconds": REFRESH_SECONDS, "max_stale_seconds": MAX_STALE_SECONDS,
            "adapters": [],
        })
    });
    let at = format!("registry.targets[{host}].service_resolver");
    let resolver = resolver.as_object_mut().ok_or_else(|| EditError::config(format!("{at}: must be an object")))?;
    list(resolver, "adapters", &at)
}

/// Removes adapters everywhere; the hosts that had one.
pub(super) fn drop_adapters(
    draft: &mut Draft<'_>,
    gone: impl Fn(&str, &Value) -> bool,
) -> Result<Vec<String>, EditError> {
    let mut hosts = Vec::new();
    for target in draft.targets()? {
        let name = target.get("name").and_then(Value::as_str).unwrap_or_default().to_owned();
        let adapters = target.get_mut("service_resolver").and_then(|r| r.get_mut("adapters"));
        let Some(adapters) = adapters.and_then(Value::as_array_mut) else { continue };
        let before = adapters.len();
        adapters.retain(|adapter| !gone(&name, adapter));
        if adapters.len() < before {
            hosts.push(name);
        }
    }
    Ok(hosts)
}

/// The sentence for a service that another way put into the directory.
pub(super) fn not_ours(service: &str, entry: &Map<String, Value>) -> String {
    match text(entry, "placement_profile") {
        "" => format!("{service} runs under the unit {:?}", text(entry, "managed_service")),
        profile => format!("{service} is placed by the profile {profile:?}"),
    }
}

/// A list of names for a sentence; `nobody` when it is empty.
pub(super) fn named(all: &[String]) -> String {
    if all.is_empty() { "nobody".to_owned() } else { listed(all.iter().map(String::as_str)) }
}

//! `resolver api-reassign`: another address for a host's resolution API (fleet contract §6.10).
use super::{Draft, EditError, Edited};
use crate::document::Document;
use serde_json::Value;
use std::collections::BTreeSet;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};

/// Ports that are given out, lowest first: those after the usual one, which any daemon without a registry takes.
const PORTS: std::ops::RangeInclusive<u16> = 17601..=17999;

/// A resolution API that has another address.
#[derive(Debug, Clone)]
pub struct ApiReassigned {
    /// What was declared, as written.
    pub previous: String,
    /// What is declared now.
    pub api_bind: SocketAddr,
    /// The next document.
    pub edited: Edited,
}

/// Gives the resolution API of a host the lowest port that the registry names for nothing on it, and that `taken` does not
/// hold: those that something listens on there. Never the one that it had.
///
/// # Errors
/// A host that is not declared or has no resolver, and one without a free port.
pub fn reassign_api(document: &Document, target: &str, taken: &BTreeSet<u16>) -> Result<ApiReassigned, EditError> {
    let mut draft = Draft::of(document)?;
    let declared = declared(document.value(), target);
    let entry = draft.target(target)?;
    let resolver = entry.get_mut("service_resolver").and_then(Value::as_object_mut).ok_or_else(|| {
        EditError::not_found(format!("registry target {target} has no service_resolver configuration"))
    })?;
    let previous = resolver.get("api_bind").and_then(Value::as_str).unwrap_or_default().to_owned();
    let held = previous.parse::<SocketAddr>().ok();
    let ip = held.map_or(IpAddr::V4(Ipv4Addr::LOCALHOST), |held| held.ip());
    let free =
        |port: &u16| held.is_none_or(|held| held.port() != *port) && !declared.contains(port) && !taken.contains(port);
    let port = PORTS.into_iter().find(free).ok_or_else(|| {
        EditError::refused(format!("no port of {}-{} is free on {target}", PORTS.start(), PORTS.end()))
    })?;
    let api_bind = SocketAddr::new(ip, port);
    resolver.insert("api_bind".into(), api_bind.to_string().into());
    Ok(ApiReassigned { previous, api_bind, edited: draft.finish() })
}

/// Every port that the registry names for a host: its adapters, what it serves or would serve, what its releases claim.
fn declared(root: &Value, target: &str) -> BTreeSet<u16> {
    let mut ports = BTreeSet::new();
    let targets = root.get("targets").and_then(Value::as_array).into_iter().flatten();
    for entry in targets.filter(|entry| entry.get("name").and_then(Value::as_str) == Some(target)) {
        entry.get("service_resolver").into_iter().for_each(|resolver| addresses(resolver, &mut ports));
    }
    let services = root.get("service_directory").and_then(|d| d.get("services")).and_then(Value::as_object);
    for service in services.into_iter().flat_map(|services| services.values()) {
        for holders in ["endpoints", "standby"] {
            service.get(holders).and_then(|h| h.get(target)).into_iter().for_each(|e| addresses(e, &mut ports));
        }
    }
    root.get("release_control").into_iter().for_each(|claims| addresses(claims, &mut ports));
    ports
}

/// The ports of every address below a value. One too many costs nothing: there are others.
fn addresses(value: &Value, ports: &mut BTreeSet<u16>) {
    match value {
        Value::Array(all) => all.iter().for_each(|one| addresses(one, ports)),
        Value::Object(all) => all.values().for_each(|one| addresses(one, ports)),
        Value::Number(number) => ports.extend(number.as_u64().and_then(|n| u16::try_from(n).ok())),
        Value::String(text) => {
            let tail = text.trim_end_matches('/').rsplit_once(':').map(|(_, port)| port);
            ports.extend(tail.and_then(|port| port.parse::<u16>().ok()));
        }
        Value::Null | Value::Bool(_) => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn document() -> Document {
        Document::from_value(json!({
            "schema_version": 2,
            "targets": [
                {"name": "a", "service_resolver": {"api_bind": "127.0.0.1:17600", "refresh_seconds": 5, "adapters": [
                    {"service": "web", "consumer": "x", "bind": "127.0.0.1:17601"}]}},
                {"name": "b", "service_resolver": {"api_bind": "127.0.0.1:17604", "adapters": []}},
                {"name": "c"},
            ],
            "service_directory": {"generation": 7, "services": {"web": {
                "endpoints": {"a": {"url": "http://127.0.0.1:17602"}, "b": {"url": "http://127.0.0.1:17605"}},
                "standby": {"a": {"url": "tcp://127.0.0.1:17603"}}}}},
        }))
    }

    #[test]
    fn the_lowest_port_that_nothing_has_is_given_and_nothing_else_changes() {
        let document = document();
        let given = |taken: &[u16]| reassign_api(&document, "a", &taken.iter().copied().collect()).unwrap();
        let one = given(&[]);
        assert_eq!((one.previous.as_str(), one.api_bind.to_string().as_str()), ("127.0.0.1:17600", "127.0.0.1:17604"));
        assert_eq!(given(&[17604, 17605]).api_bind.port(), 17606);
        let mut back = one.edited.document.value().clone();
        back["targets"][0]["service_resolver"]["api_bind"] = json!("127.0.0.1:17600");
        assert_eq!(&back, document.value());
        assert!(
            one.edited.changed && one.edited.generation == document.generation(),
            "it is no change of the directory"
        );
    }

    #[test]
    fn a_host_without_a_resolver_or_a_free_port_is_refused() {
        let error =
            |target: &str, taken: BTreeSet<u16>| reassign_api(&document(), target, &taken).unwrap_err().sentence;
        assert_eq!(error("c", BTreeSet::new()), "registry target c has no service_resolver configuration");
        assert_eq!(error("x", BTreeSet::new()), "target 'x' is not in the canonical registry");
        assert_eq!(error("a", PORTS.collect()), "no port of 17601-17999 is free on a");
    }
}

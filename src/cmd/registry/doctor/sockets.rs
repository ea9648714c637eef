//! Addresses that lead back to where they are asked.
use super::Divergence;
use serde_json::Value;
use stado_fleet::document::{Document, Registry, ResolverPolicy};
use stado_fleet::name::{Endpoint, TargetName};

/// Endpoints and standby addresses that are one of the same host's own resolver sockets. Never a validation error: it
/// would make every resolver refuse the document (§1.6).
pub(super) fn self_references(document: &Document, registry: &Registry) -> Vec<Divergence> {
    let services = document.value().pointer("/service_directory/services").and_then(Value::as_object);
    let mut found = Vec::new();
    for (service, entry) in services.into_iter().flatten() {
        for section in ["endpoints", "standby"] {
            for (target, endpoint) in entry.get(section).and_then(Value::as_object).into_iter().flatten() {
                let url = endpoint.get("url").and_then(Value::as_str).and_then(|url| url.parse::<Endpoint>().ok());
                let policy =
                    target.parse::<TargetName>().ok().and_then(|t| registry.targets.get(&t)?.resolver.as_ref());
                let Some((endpoint, policy)) = url.zip(policy) else { continue };
                let Some(socket) = own_socket(policy, &endpoint) else { continue };
                let place = format!("service_directory.services.{service}.{section}.{target}");
                found.push(Divergence {
                    finding: "self-referencing-endpoint",
                    subject: service.clone(),
                    detail: format!(
                        "{place} is {}, which is {socket} on that same target: the adapter would proxy to itself",
                        endpoint.addr
                    ),
                    remedy: format!(
                        "give {place} the address that the service itself listens on, or the adapter another bind"
                    ),
                });
            }
        }
    }
    found
}

fn own_socket(policy: &ResolverPolicy, endpoint: &Endpoint) -> Option<String> {
    let candidates = endpoint.addr.candidates();
    if candidates.contains(&policy.api_bind) {
        return Some("the resolver's own API".to_owned());
    }
    let adapter = policy.adapters.iter().find(|a| a.bind.is_some_and(|bind| candidates.contains(&bind)));
    adapter.map(|adapter| format!("adapter for {}", adapter.service))
}

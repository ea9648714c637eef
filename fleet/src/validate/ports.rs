//! Port ownership: one loopback port of a host has one owner, the resolver or a release (§1.6).
//!
//! Releases are declared in `release_control.products.<p>` by a system of its own. Only what this check needs is read, and only
//! in this form: `stable_bind` and `candidate_port`, in the product or in its entry for a host under `hosts` or `targets`.
use super::at::{At, Findings};
use super::read::Object;
use super::targets::Targets;
use crate::document::ResolverPolicy;
use serde_json::Value;
use std::net::SocketAddr;

/// A port that a release declares on a host.
struct Claim<'v> {
    product: &'v str,
    what: &'static str,
    port: u16,
}

pub(super) fn check(root: &Object, targets: &Targets<'_>, out: &mut Findings) {
    let products = root.get("release_control").and_then(|r| r.get("products")).and_then(Value::as_object);
    let Some(products) = products else { return };
    let at = At::ROOT.key("targets");
    for (name, known) in &targets.0 {
        let Some(policy) = &known.typed.resolver else { continue };
        let claims: Vec<Claim<'_>> = products.iter().flat_map(|(p, value)| claims(p, value, name.as_str())).collect();
        let at = at.name(name.as_str());
        let at = at.key("service_resolver");
        for (owner, bind) in binds(policy) {
            for claim in claims.iter().filter(|c| c.port == bind.port()) {
                out.add(at, sentence(&owner, bind, claim));
            }
        }
    }
}

fn binds(policy: &ResolverPolicy) -> impl Iterator<Item = (String, SocketAddr)> + '_ {
    let adapters = policy.adapters.iter().filter_map(|a| Some((format!("resolver adapter {}", a.service), a.bind?)));
    std::iter::once(("resolver api_bind".to_owned(), policy.api_bind)).chain(adapters)
}

fn sentence(owner: &str, bind: SocketAddr, claim: &Claim<'_>) -> String {
    format!(
        "{owner} claims {bind}, which registry.release_control.products.{} declares as its {} on this host; one \
         loopback port has one owner",
        claim.product, claim.what
    )
}

/// What a product declares on one host.
fn claims<'v>(product: &'v str, value: &'v Value, host: &str) -> Vec<Claim<'v>> {
    let own = ["hosts", "targets"].iter().find_map(|key| on_host(value.get(key)?, host));
    let Some(own) = own else { return Vec::new() };
    let mut claims = Vec::new();
    for place in [value, own] {
        let stable = place.get("stable_bind").and_then(port);
        let candidate = place.get("candidate_port").and_then(port);
        let claim = |what, port| Claim { product, what, port };
        claims.extend(stable.map(|port| claim("stable_bind", port)));
        claims.extend(candidate.map(|port| claim("candidate port", port)));
    }
    claims
}

/// The entry of a host: by key, or a list element that is its name or has it.
fn on_host<'v>(hosts: &'v Value, host: &str) -> Option<&'v Value> {
    match hosts {
        Value::Object(by_name) => by_name.get(host),
        Value::Array(list) => list.iter().find(|entry| {
            entry.as_str() == Some(host)
                || ["name", "target", "host"].iter().any(|k| entry.get(k).and_then(Value::as_str) == Some(host))
        }),
        _ => None,
    }
}

/// The port of `127.0.0.1:8080`, or of a bare number.
fn port(value: &Value) -> Option<u16> {
    match value {
        Value::String(text) => text.rsplit(':').next()?.parse().ok(),
        other => other.as_u64().and_then(|port| u16::try_from(port).ok()),
    }
}

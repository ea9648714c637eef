//! `service_resolver` of each target. Here a target is named by its NAME, unlike everywhere else (§1.6).
use super::at::{At, Findings};
use super::read::{self, Object, optional_array, required_text, some};
use super::targets::Targets;
use crate::document::{AdapterPolicy, ResolverPolicy};
use crate::name::{ConsumerId, LogicalName};
use serde_json::Value;
use std::collections::HashSet;
use std::net::SocketAddr;

/// What older documents leave out (§1.4).
const REFRESH_SECONDS: u64 = 5;
const MAX_STALE_SECONDS: u64 = 60;

/// Reads the policy of every target into its typed view.
pub(super) fn read(root: &Object, targets: &mut Targets<'_>, out: &mut Findings) {
    let services = root.get("service_directory").and_then(|d| d.get("services")).and_then(Value::as_object);
    let at = At::ROOT.key("targets");
    for (name, known) in &mut targets.0 {
        let at = at.name(name.as_str());
        let at = at.key("service_resolver");
        let policy = some(known.raw, "service_resolver").and_then(|raw| read::object(raw, at, out));
        known.typed.resolver = policy.and_then(|raw| read_policy(raw, services, at, out));
    }
}

fn read_policy(raw: &Object, services: Option<&Object>, at: At<'_>, out: &mut Findings) -> Option<ResolverPolicy> {
    let refresh_seconds = seconds(raw, "refresh_seconds", REFRESH_SECONDS);
    if refresh_seconds == 0 {
        out.add(at.key("refresh_seconds"), "must be positive");
    }
    let max_stale_seconds = seconds(raw, "max_stale_seconds", MAX_STALE_SECONDS);
    if max_stale_seconds < refresh_seconds {
        out.add(at.key("max_stale_seconds"), "must not be shorter than refresh_seconds");
    }
    let api_bind = bind(raw.get("api_bind").unwrap_or(&Value::Null), at.key("api_bind"), out);
    let mut taken: HashSet<SocketAddr> = api_bind.filter(|bind| bind.port() != 0).into_iter().collect();
    let list = optional_array(raw, "adapters", at, out);
    let adapters_at = at.key("adapters");
    let mut adapters = Vec::with_capacity(list.len());
    for (i, value) in list.iter().enumerate() {
        let at = adapters_at.index(i);
        let adapter = read::object(value, at, out).and_then(|raw| adapter(raw, services, &mut taken, at, out));
        adapters.extend(adapter);
    }
    Some(ResolverPolicy { api_bind: api_bind?, refresh_seconds, max_stale_seconds, adapters })
}

/// A number of seconds; anything that is not one counts as 0, which is refused where it matters.
fn seconds(raw: &Object, key: &str, missing: u64) -> u64 {
    some(raw, key).map_or(missing, |value| value.as_u64().unwrap_or(0))
}

fn bind(value: &Value, at: At<'_>, out: &mut Findings) -> Option<SocketAddr> {
    let Some(bind) = value.as_str().and_then(|text| text.parse::<SocketAddr>().ok()) else {
        out.add(at, "must be an IP socket address");
        return None;
    };
    if !bind.ip().is_loopback() {
        out.add(at, "must be loopback");
        return None;
    }
    Some(bind)
}

fn adapter(
    raw: &Object,
    services: Option<&Object>,
    taken: &mut HashSet<SocketAddr>,
    at: At<'_>,
    out: &mut Findings,
) -> Option<AdapterPolicy> {
    // Port 0 asks for any port, as an adapter without `bind` does; the allocator gives one that stays.
    let bind = some(raw, "bind").and_then(|value| bind(value, at.key("bind"), out)).filter(|bind| bind.port() != 0);
    if bind.is_some_and(|bind| !taken.insert(bind)) {
        out.add(at.key("bind"), "duplicate resolver bind");
    }
    let service = required_text(raw, "service", at, out);
    let consumer = required_text(raw, "consumer", at, out);
    check_route(service, consumer, services, at, out);
    let budget = |key: &str| some(raw, key).map(|value| value.as_u64().unwrap_or(0));
    Some(AdapterPolicy {
        service: service?.parse::<LogicalName>().ok()?,
        consumer: consumer?.parse::<ConsumerId>().ok()?,
        bind,
        // Readers in the field ignore both keys, so no value of theirs may refuse a document.
        connect_seconds: budget("connect_seconds").filter(|seconds| *seconds > 0),
        idle_seconds: budget("idle_seconds"),
    })
}

/// Compares with the directory as written, so that a service with a finding of its own is not also called unknown.
/// A registry without a directory has no routes to compare with: its adapters are unserved, which is no fault of the document.
fn check_route(
    service: Option<&str>,
    consumer: Option<&str>,
    services: Option<&Object>,
    at: At<'_>,
    out: &mut Findings,
) {
    let (Some(services), Some(service), Some(consumer)) = (services, service, consumer) else { return };
    let Some(route) = services.get(service) else {
        out.add(at.key("service"), "unknown logical service");
        return;
    };
    if !route.get("consumers").and_then(Value::as_object).is_some_and(|c| c.contains_key(consumer)) {
        out.add(at.key("consumer"), "is not authorized by the service route");
    }
}

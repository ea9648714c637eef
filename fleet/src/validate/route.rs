//! One service of the directory: where it is placed, its addresses, who may use it, what runs it.
use super::at::{At, Findings};
use super::endpoint;
use super::placed;
use super::placement::Profiles;
use super::read::{
    self, Object, optional_array, optional_object, optional_text, required_object, required_text, texts,
};
use super::targets::Targets;
use crate::document::{DirectoryService, MESH_UNIT, PublishedUnit, published_unit};
use crate::name::{ConsumerId, Endpoint, NameError, TargetName};
use indexmap::IndexMap;
use serde_json::Value;
use std::collections::HashSet;

/// Consumers that were read: most of them use many services, and one name in memory is enough.
#[derive(Default)]
pub(super) struct Consumers(HashSet<ConsumerId>);

impl Consumers {
    fn parse(&mut self, name: &str) -> Result<ConsumerId, NameError> {
        if let Some(known) = self.0.get(name) {
            return Ok(known.clone());
        }
        let new: ConsumerId = name.parse()?;
        self.0.insert(new.clone());
        Ok(new)
    }
}

pub(super) fn read(
    name: &str,
    service: &Object,
    targets: &Targets<'_>,
    profiles: &Profiles<'_>,
    known: &mut Consumers,
    at: At<'_>,
    out: &mut Findings,
) -> Option<DirectoryService> {
    let active = active_host(service, targets, at, out);
    let endpoints = endpoints(service, active.as_ref(), targets, at, out);
    let standby = standby(service, active.as_ref(), targets, at, out);
    let consumers = consumers(service, known, at, out);
    declaration(service, at, out);
    let hosts = placed::Hosts { active: active.as_ref(), endpoints: &endpoints, standby: &standby };
    let placement_profile = placed::check(name, service, &hosts, targets, profiles, at, out);
    let published = published(name, service, active.as_ref(), targets);
    let endpoints = endpoints.into_iter().filter_map(|(host, endpoint)| Some((host, endpoint?))).collect();
    Some(DirectoryService { active_host: active?, endpoints, consumers, placement_profile, published })
}

/// The unit of a service that the mesh of its active host publishes. What is missing in it is no finding: older builds and
/// hands write units too.
fn published(
    name: &str,
    service: &Object,
    active: Option<&TargetName>,
    targets: &Targets<'_>,
) -> Option<PublishedUnit> {
    let managed = service.get("managed_service").and_then(Value::as_str)?;
    if managed != published_unit(name) {
        return None;
    }
    let units = targets.get(active?.as_str())?.raw.get("services")?.as_array()?;
    let text = |unit: &Value, key: &str| unit.get(key).and_then(Value::as_str).unwrap_or_default().to_owned();
    let unit = units.iter().find(|unit| text(unit, "name") == managed && text(unit, "kind") == MESH_UNIT)?;
    Some(PublishedUnit {
        mesh: text(unit, "mesh"),
        hostname: Some(text(unit, "hostname")).filter(|host| !host.is_empty()),
        app_protocol: text(unit, "app_protocol"),
    })
}

fn active_host(service: &Object, targets: &Targets<'_>, at: At<'_>, out: &mut Findings) -> Option<TargetName> {
    let name = required_text(service, "active_host", at, out)?;
    let known = targets.get(name).map(|t| t.typed.name.clone());
    if known.is_none() {
        out.add(at.key("active_host"), "unknown registry target");
    }
    known
}

/// Addresses by host: `None` for one that is there but cannot be read, so that it is not also called missing.
pub(super) type Addresses = IndexMap<TargetName, Option<Endpoint>>;

fn endpoints(
    service: &Object,
    active: Option<&TargetName>,
    targets: &Targets<'_>,
    at: At<'_>,
    out: &mut Findings,
) -> Addresses {
    let Some(raw) = required_object(service, "endpoints", at, out) else {
        return Addresses::new();
    };
    let endpoints_at = at.key("endpoints");
    if raw.is_empty() {
        out.add(endpoints_at, "must not be empty");
    }
    let endpoints = addresses(raw, targets, endpoints_at, out, |host, at, out| {
        if targets.get(host).is_some_and(|t| t.typed.paths.is_empty()) {
            out.add(at, "remote resolution requires targets[].ssh");
        }
    });
    if !raw.is_empty() && active.is_some_and(|host| !endpoints.contains_key(host)) {
        out.add(at.key("active_host"), "has no declared endpoint");
    }
    endpoints
}

fn standby(
    service: &Object,
    active: Option<&TargetName>,
    targets: &Targets<'_>,
    at: At<'_>,
    out: &mut Findings,
) -> Addresses {
    let Some(raw) = optional_object(service, "standby", at, out) else {
        return Addresses::new();
    };
    addresses(raw, targets, at.key("standby"), out, |host, at, out| {
        if active.is_some_and(|active| active.as_str() == host) {
            out.add(at, "is the active host, which serves rather than stands by");
        }
    })
}

fn addresses(
    raw: &Object,
    targets: &Targets<'_>,
    at: At<'_>,
    out: &mut Findings,
    also: impl Fn(&str, At<'_>, &mut Findings),
) -> Addresses {
    let mut read = Addresses::with_capacity(raw.len());
    for (host, value) in raw {
        let at = at.key(host);
        let known = targets.get(host).map(|t| t.typed.name.clone());
        if known.is_none() {
            out.add(at, "unknown registry target");
        }
        also(host, at, out);
        let endpoint = read::object(value, at, out).and_then(|entry| endpoint::read(entry, at, out));
        if let Some(host) = known {
            read.insert(host, endpoint);
        }
    }
    read
}

fn consumers(
    service: &Object,
    known: &mut Consumers,
    at: At<'_>,
    out: &mut Findings,
) -> IndexMap<ConsumerId, Vec<String>> {
    let Some(raw) = required_object(service, "consumers", at, out) else {
        return IndexMap::new();
    };
    let at = at.key("consumers");
    if raw.is_empty() {
        out.add(at, "must not be empty");
    }
    let mut read = IndexMap::with_capacity(raw.len());
    for (name, value) in raw {
        let at = at.key(name);
        let parsed = known.parse(name).map_err(|e| out.add(at, e.0)).ok();
        let capabilities = read::object(value, at, out).map(|consumer| capabilities(consumer, at, out));
        if let (Some(name), Some(capabilities)) = (parsed, capabilities) {
            read.insert(name, capabilities);
        }
    }
    read
}

fn capabilities(consumer: &Object, at: At<'_>, out: &mut Findings) -> Vec<String> {
    let list = optional_array(consumer, "capabilities", at, out);
    let at = at.key("capabilities");
    let mut known = HashSet::with_capacity(list.len());
    for (i, value) in list.iter().enumerate() {
        if value.as_str().is_some_and(|capability| !known.insert(capability)) {
            out.add(at.index(i), "duplicate capability");
        }
    }
    texts(list, at, out).into_iter().map(str::to_owned).collect()
}

/// What a service is built from; only its digest has a form.
fn declaration(service: &Object, at: At<'_>, out: &mut Findings) {
    let Some(source) = service.get("declaration").and_then(|d| d.get("source")).and_then(Value::as_object) else {
        return;
    };
    let at = at.key("declaration");
    let at = at.key("source");
    let Some(digest) = optional_text(source, "sha256", at, out) else { return };
    if digest.len() != 64 || !digest.bytes().all(|b| matches!(b, b'0'..=b'9' | b'a'..=b'f')) {
        out.add(at.key("sha256"), "must be 64 lowercase hex");
    }
}

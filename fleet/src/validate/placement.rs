//! Placement profiles (`registry.placement_profiles[i]`).
use super::at::{At, Findings};
use super::read::{self, Object, optional_array, required_text, texts};
use super::targets::Targets;
use crate::name::LogicalName;
use indexmap::IndexMap;
use serde_json::Value;
use std::collections::{HashMap, HashSet};
use std::net::IpAddr;
use url::{Host, Url};

/// One profile: its services, and its hosts as written.
pub(super) struct Profile<'v> {
    services: Vec<LogicalName>,
    members: HashSet<LogicalName>,
    pub(super) hosts: Option<&'v Object>,
}

impl Profile<'_> {
    pub(super) fn has(&self, service: &str) -> bool {
        self.members.contains(service)
    }
}

/// Profiles by name, in document order.
#[derive(Default)]
pub(super) struct Profiles<'v> {
    by_name: IndexMap<String, Profile<'v>>,
    /// The first profile of each service.
    first: HashMap<LogicalName, String>,
}

impl<'v> Profiles<'v> {
    /// The first of a name counts.
    fn add(&mut self, name: &str, profile: Profile<'v>) {
        if self.contains(name) {
            return;
        }
        for service in &profile.services {
            self.first.entry(service.clone()).or_insert_with(|| name.to_owned());
        }
        self.by_name.insert(name.to_owned(), profile);
    }
    pub(super) fn get(&self, name: &str) -> Option<&Profile<'v>> {
        self.by_name.get(name)
    }
    pub(super) fn contains(&self, name: &str) -> bool {
        self.by_name.contains_key(name)
    }
    /// The first profile that has a service.
    pub(super) fn of(&self, service: &str) -> Option<&str> {
        self.first.get(service).map(String::as_str)
    }
    pub(super) fn into_services(self) -> IndexMap<String, Vec<LogicalName>> {
        self.by_name.into_iter().map(|(name, profile)| (name, profile.services)).collect()
    }
}

pub(super) fn read<'v>(root: &'v Object, targets: &Targets<'_>, out: &mut Findings) -> Profiles<'v> {
    let mut profiles = Profiles::default();
    let list = optional_array(root, "placement_profiles", At::ROOT, out);
    let at = At::ROOT.key("placement_profiles");
    for (i, value) in list.iter().enumerate() {
        let at = at.index(i);
        let Some(raw) = read::object(value, at, out) else { continue };
        let name = required_text(raw, "name", at, out);
        if name.is_some_and(|name| profiles.contains(name)) {
            out.add(at.key("name"), format!("duplicate placement profile {:?}", name.unwrap_or_default()));
        }
        let profile = profile(raw, targets, at, out);
        if let Some(name) = name {
            profiles.add(name, profile);
        }
    }
    profiles
}

fn profile<'v>(raw: &'v Object, targets: &Targets<'_>, at: At<'_>, out: &mut Findings) -> Profile<'v> {
    let services = services(raw, at, out);
    for key in ["stop_order", "start_order"] {
        let order = texts(optional_array(raw, key, at, out), at.key(key), out);
        if !names_each_once(order.iter().copied(), &services) {
            out.add(at.key(key), "must contain every profile service exactly once");
        }
    }
    let hosts = raw.get("hosts").and_then(|hosts| read::object(hosts, at.key("hosts"), out));
    if hosts.is_none_or(|hosts| hosts.len() < 2) {
        out.add(at.key("hosts"), "must contain at least two destinations");
    }
    let hosts_at = at.key("hosts");
    for (host, value) in hosts.into_iter().flatten() {
        let at = hosts_at.key(host);
        if !targets.contains(host) {
            out.add(at, "host is not a registry target");
        }
        if let Some(raw) = read::object(value, at, out) {
            destination(raw, &services, at, out);
        }
    }
    state(raw, at, out);
    Profile { members: services.iter().cloned().collect(), services, hosts }
}

fn services(raw: &Object, at: At<'_>, out: &mut Findings) -> Vec<LogicalName> {
    let list = optional_array(raw, "services", at, out);
    let at = at.key("services");
    if list.is_empty() {
        out.add(at, "must not be empty");
    }
    let mut read = Vec::with_capacity(list.len());
    for (i, text) in texts(list, at, out).into_iter().enumerate() {
        match text.parse::<LogicalName>() {
            Ok(name) => read.push(name),
            Err(e) => out.add(at.index(i), e.0),
        }
    }
    read
}

fn names_each_once<'a>(names: impl Iterator<Item = &'a str>, services: &[LogicalName]) -> bool {
    let mut named: Vec<&str> = names.collect();
    let mut wanted: Vec<&str> = services.iter().map(LogicalName::as_str).collect();
    named.sort_unstable();
    wanted.sort_unstable();
    named == wanted
}

fn destination(raw: &Object, services: &[LogicalName], at: At<'_>, out: &mut Findings) {
    let units = raw.get("units").and_then(Value::as_object);
    if !names_each_once(units.into_iter().flatten().map(|(name, _)| name.as_str()), services) {
        out.add(at.key("units"), "must define every profile service exactly once");
    }
    let probes = optional_array(raw, "probes", at, out);
    let at = at.key("probes");
    let probed = |service: &LogicalName| {
        probes.iter().any(|p| p.get("service").and_then(Value::as_str) == Some(service.as_str()))
    };
    if !services.iter().all(probed) {
        out.add(at, "must probe every profile service");
    }
    for (i, probe) in probes.iter().enumerate() {
        if !probe.get("url").and_then(Value::as_str).is_some_and(is_loopback_url) {
            out.add(at.index(i).key("url"), "must use a loopback address and explicit port");
        }
    }
}

fn is_loopback_url(text: &str) -> bool {
    let Ok(url) = Url::parse(text) else { return false };
    let loopback = match url.host() {
        Some(Host::Ipv4(ip)) => ip.is_loopback(),
        Some(Host::Ipv6(ip)) => ip.is_loopback(),
        // The address of a URL whose scheme the standard does not know (`tcp://127.0.0.1:5432`) is read as a name.
        Some(Host::Domain(name)) => name == "localhost" || name.parse::<IpAddr>().is_ok_and(|ip| ip.is_loopback()),
        None => false,
    };
    // A URL forgets a port that is its scheme's own; what was written still holds it.
    let authority = text.split_once("://").map(|(_, rest)| rest.split(['/', '?', '#']).next().unwrap_or_default());
    let explicit = authority.and_then(|a| a.rsplit_once(':')).is_some_and(|(_, port)| port.parse::<u16>().is_ok());
    loopback && explicit
}

fn state(raw: &Object, at: At<'_>, out: &mut Findings) {
    let list = optional_array(raw, "state", at, out);
    let at = at.key("state");
    if list.is_empty() {
        out.add(at, "must not be empty");
    }
    for (j, entry) in list.iter().enumerate() {
        let path = entry.get("path").and_then(Value::as_str).unwrap_or_default();
        let clean = |part: &str| !part.is_empty() && part != "." && part != ".." && !part.contains('\0');
        if !path.split('/').all(clean) {
            out.add(
                at.index(j).key("path"),
                "must be a clean path relative to its root ($HOME, or the host's work_root with root: work)",
            );
        }
    }
}

//! What a directory entry has to say about what runs it: a managed service of its host, or a placement profile (§1.3).
use super::at::{At, Findings};
use super::placement::Profiles;
use super::read::{Object, optional_text};
use super::route::Addresses;
use super::targets::Targets;
use crate::name::TargetName;
use serde_json::Value;

/// The hosts that a directory entry names.
pub(super) struct Hosts<'a> {
    pub(super) active: Option<&'a TargetName>,
    pub(super) endpoints: &'a Addresses,
    pub(super) standby: &'a Addresses,
}

/// Exactly one of `placement_profile` and `managed_service`, and what each of them demands (§1.3). Gives the profile.
pub(super) fn check(
    name: &str,
    service: &Object,
    hosts: &Hosts<'_>,
    targets: &Targets<'_>,
    profiles: &Profiles<'_>,
    at: At<'_>,
    out: &mut Findings,
) -> Option<String> {
    let chosen = optional_text(service, "placement_profile", at, out);
    let managed = optional_text(service, "managed_service", at, out);
    match chosen {
        Some(chosen) => {
            if managed.is_some() {
                let sentence = "placement-backed routes derive their managed unit from the profile";
                out.add(at.key("managed_service"), sentence);
            }
            check_profile(name, chosen, hosts, targets, profiles, at, out);
        }
        None => check_fixed(name, managed, hosts, targets, profiles, at, out),
    }
    chosen.map(str::to_owned)
}

fn check_fixed(
    name: &str,
    managed: Option<&str>,
    hosts: &Hosts<'_>,
    targets: &Targets<'_>,
    profiles: &Profiles<'_>,
    at: At<'_>,
    out: &mut Findings,
) {
    let managed = managed.filter(|m| !m.is_empty());
    if managed.is_none() {
        out.add(at.key("managed_service"), "fixed routes must name their managed service");
    }
    let active = hosts.active.and_then(|host| targets.get(host.as_str()));
    if let (Some(managed), Some(active)) = (managed, active)
        && !active.declares_unit(managed)
    {
        out.add(at.key("managed_service"), "is not declared on the active host");
    }
    if let Some(profile) = profiles.of(name) {
        out.add(at.key("placement_profile"), format!("must be \"{profile}\""));
    }
}

fn check_profile(
    name: &str,
    chosen: &str,
    hosts: &Hosts<'_>,
    targets: &Targets<'_>,
    profiles: &Profiles<'_>,
    at: At<'_>,
    out: &mut Findings,
) {
    let Some(profile) = profiles.get(chosen) else {
        out.add(at.key("placement_profile"), "unknown placement profile");
        return;
    };
    if !profile.has(name) {
        out.add(at.key("placement_profile"), "profile does not contain this service");
        return;
    }
    let Some(destinations) = profile.hosts else { return };
    let named_once = |host: &str| hosts.endpoints.contains_key(host) != hosts.standby.contains_key(host);
    let only_destinations =
        hosts.endpoints.keys().chain(hosts.standby.keys()).all(|h| destinations.contains_key(h.as_str()));
    if !only_destinations || !destinations.keys().all(|host| named_once(host)) {
        out.add(at, "endpoints and standby together must name every placement host exactly once");
    }
    check_active_unit(name, chosen, destinations, hosts.active, targets, at, out);
}

/// The active host is the one whose target declares the unit that the profile gives it.
fn check_active_unit(
    name: &str,
    chosen: &str,
    destinations: &Object,
    active: Option<&TargetName>,
    targets: &Targets<'_>,
    at: At<'_>,
    out: &mut Findings,
) {
    let unit = |destination: &Value| destination.get("units").and_then(|u| u.get(name)).cloned().unwrap_or_default();
    // A unit that a release controller runs is in no list of units; which host has it cannot be told from here.
    if destinations.values().any(|d| unit(d).get("controller").is_some()) {
        return;
    }
    let runs = |host: &str, destination: &Value| {
        let unit = unit(destination);
        let declared = |key: &str| {
            let wanted = unit.get(key).and_then(Value::as_str).filter(|w| !w.is_empty());
            wanted.is_some_and(|wanted| targets.get(host).is_some_and(|t| t.declares_unit(wanted)))
        };
        declared("unit") || declared("name")
    };
    let holders: Vec<&str> = destinations.iter().filter(|(h, d)| runs(h, d)).map(|(h, _)| h.as_str()).collect();
    let subject = format!("placement profile \"{chosen}\" service \"{name}\"");
    match holders.as_slice() {
        [] => out.add_bare(format!("{subject} has no active managed unit")),
        [only] if active.is_some_and(|active| active.as_str() != *only) => {
            out.add(at.key("active_host"), format!("must match the managed unit on \"{only}\""));
        }
        [_] => {}
        many => out.add_bare(format!("{subject} has multiple active managed units: {}", many.join(", "))),
    }
}

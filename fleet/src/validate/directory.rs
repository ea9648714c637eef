//! `service_directory`: authority, generation, services.
use super::at::{At, Findings};
use super::placement::Profiles;
use super::read::{self, Object, required_object, required_text};
use super::route::{self, Consumers};
use super::targets::Targets;
use crate::document::{EMPTY_DIRECTORY, ServiceDirectory};
use crate::name::{Generation, LogicalName, TargetName};
use indexmap::IndexMap;
use serde_json::Value;

/// Reads the directory. A registry without one is valid; one whose directory cannot be read is not. One in which nobody
/// publishes anything yet, or any more, has a key of its own.
pub(super) fn read(
    root: &Object,
    targets: &Targets<'_>,
    profiles: &Profiles<'_>,
    out: &mut Findings,
) -> Option<ServiceDirectory> {
    let Some(directory) = root.get("service_directory") else { return read_empty(root, targets, out) };
    let at = At::ROOT.key("service_directory");
    let directory = read::object(directory, at, out)?;
    let generation = generation(directory, at, out);
    let raw_services = required_object(directory, "services", at, out);
    if raw_services.is_some_and(Object::is_empty) {
        out.add(at.key("services"), "must not be empty");
    }
    let authority = authority(directory, targets, at, out);
    let services_at = at.key("services");
    let mut services = IndexMap::with_capacity(raw_services.map_or(0, Object::len));
    let mut consumers = Consumers::default();
    for (name, value) in raw_services.into_iter().flatten() {
        let at = services_at.key(name);
        let parsed = name.parse::<LogicalName>().map_err(|e| out.add(at, e.0)).ok();
        let service =
            read::object(value, at, out).and_then(|s| route::read(name, s, targets, profiles, &mut consumers, at, out));
        if let (Some(name), Some(service)) = (parsed, service) {
            services.insert(name, service);
        }
    }
    let (authority_target, authority_command) = authority?;
    Some(ServiceDirectory { authority_target, authority_command, generation: generation?, services })
}

/// A directory that has no service yet, or no more.
fn read_empty(root: &Object, targets: &Targets<'_>, out: &mut Findings) -> Option<ServiceDirectory> {
    let at = At::ROOT.key(EMPTY_DIRECTORY);
    let directory = read::object(root.get(EMPTY_DIRECTORY)?, at, out)?;
    let generation = generation(directory, at, out);
    let (authority_target, authority_command) = authority(directory, targets, at, out)?;
    Some(ServiceDirectory { authority_target, authority_command, generation: generation?, services: IndexMap::new() })
}

fn generation(directory: &Object, at: At<'_>, out: &mut Findings) -> Option<Generation> {
    let generation = directory.get("generation").and_then(Value::as_u64).filter(|g| *g > 0);
    if generation.is_none() {
        out.add(at.key("generation"), "must be positive");
    }
    generation.map(Generation)
}

fn authority(
    directory: &Object,
    targets: &Targets<'_>,
    at: At<'_>,
    out: &mut Findings,
) -> Option<(TargetName, String)> {
    let authority = required_object(directory, "authority", at, out)?;
    let at = at.key("authority");
    let name = required_text(authority, "target", at, out);
    let target = name.and_then(|name| targets.get(name));
    if name.is_some() && target.is_none() {
        out.add(at.key("target"), "unknown registry target");
    }
    let command = required_text(authority, "command", at, out);
    if command.is_some_and(|c| !read::is_absolute_path(c)) {
        out.add(at.key("command"), "must be an absolute path without '..'");
    }
    if target.is_some_and(|t| t.typed.paths.is_empty()) {
        out.add(at.key("target"), "must declare an SSH connection path");
    }
    Some((target?.typed.name.clone(), command?.to_owned()))
}

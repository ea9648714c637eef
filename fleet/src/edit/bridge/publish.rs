//! A service of a host's mesh enters the directory, or its entry follows what it is now.
use super::super::{Draft, EditError, Edited};
use super::entry::{self, is_published, names, text};
use super::uses::{self, Policy};
use crate::document::{Document, MESH_UNIT, SHARED_CONSUMER, published_unit};
use crate::name::{Endpoint, LogicalName};
use serde_json::{Map, Value, json};

/// A service of a mesh to publish.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewPublication {
    /// Name in the directory.
    pub service: String,
    /// The host that publishes it.
    pub host: String,
    /// Name in that host's mesh.
    pub mesh: String,
    /// That host's stable frontend.
    pub endpoint: Endpoint,
    /// Hostname, for one that is routed by hostname.
    pub hostname: Option<String>,
    /// What the service speaks, as it was registered; may be empty.
    pub app_protocol: String,
    /// Who may use it; [`SHARED_CONSUMER`] for a new entry when nobody is named. Consumers that are declared stay.
    pub consumers: Vec<String>,
    /// Whether it may stand by for another host that publishes the same service.
    pub standby: bool,
    /// Now, RFC 3339.
    pub at: String,
}

/// What a host is to a published service.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Role {
    /// Connections go there.
    Active,
    /// It can be moved there.
    Standby,
}

/// What a publication did.
#[derive(Debug, Clone)]
pub struct Published {
    /// What the publishing host is to it now.
    pub role: Role,
    /// Where connections go.
    pub active_host: String,
    /// Who may use it.
    pub consumers: Vec<String>,
    /// Hosts that were given an adapter because they asked for all services of one of its consumers.
    pub given: Vec<String>,
    /// The next document.
    pub edited: Edited,
}

/// Enters the service, or brings its entry to what it is now. The same publication again changes nothing.
///
/// # Errors
/// A name that is no directory name or is taken, a host that others could not reach, a document without a directory.
pub fn publish(document: &Document, new: &NewPublication) -> Result<Published, EditError> {
    let NewPublication { service, host, mesh, .. } = new;
    service.parse::<LogicalName>().map_err(|e| {
        EditError::usage(format!("{service:?} cannot be a name of the directory: it {e}; give it one with --as"))
    })?;
    let mut draft = Draft::of(document)?;
    reachable(draft.target(host)?, host)?;
    let role = role(&mut draft, new)?;
    declare_unit(draft.target(host)?, new, mesh)?;
    let entry = write_entry(&mut draft, new, role)?;
    let (active_host, consumers) = (text(entry, "active_host").to_owned(), entry::consumers(entry));
    let holders: Vec<String> = entry::standbys(entry).into_iter().chain([active_host.clone()]).collect();
    let given = give(&mut draft, service, &consumers, &holders)?;
    Ok(Published { role, active_host, consumers, given, edited: draft.finish_directory()? })
}

/// The registry demands a way to every host that serves something.
fn reachable(target: &Map<String, Value>, host: &str) -> Result<(), EditError> {
    let fallbacks = target.get("ssh_fallbacks").and_then(Value::as_array).is_some_and(|paths| !paths.is_empty());
    if fallbacks || !text(target, "ssh").is_empty() {
        return Ok(());
    }
    Err(EditError::refused(format!(
        "the registry declares no way to {host}, so no other host could reach what it publishes; declare one with `stado \
         registry host path set {host} primary --ssh [USER@]HOST[:PORT]`"
    )))
}

/// What the host may be to the service, as the document stands.
fn role(draft: &mut Draft<'_>, new: &NewPublication) -> Result<Role, EditError> {
    let NewPublication { service, host, .. } = new;
    let services = draft.directory()?.get("services").and_then(Value::as_object);
    let Some(entry) = services.and_then(|services| services.get(service)).and_then(Value::as_object) else {
        return Ok(Role::Active);
    };
    if !is_published(service, entry) {
        return Err(EditError::refused(format!(
            "service_directory already has a {service} that no mesh publishes: {}; publish this one under another name with \
             --as",
            entry::not_ours(service, entry)
        )));
    }
    let active = text(entry, "active_host");
    if active == host {
        return Ok(Role::Active);
    }
    if new.standby || names(entry, "standby", host) {
        return Ok(Role::Standby);
    }
    Err(EditError::refused(format!(
        "{service} is published by {active}; publish this one under another name with --as, or with --standby if it is the \
         same service and {host} is to stand by for `stado service move`"
    )))
}

fn declare_unit(target: &mut Map<String, Value>, new: &NewPublication, mesh: &str) -> Result<(), EditError> {
    let NewPublication { service, host, .. } = new;
    if entry::unit(target, service).is_none() {
        let unit = json!({"name": published_unit(service), "kind": MESH_UNIT, "mesh": mesh, "managed_since": new.at});
        entry::list(target, "services", &format!("registry.targets[{host}]"))?.push(unit);
    }
    let Some(unit) = entry::unit(target, service) else { return Ok(()) };
    let held = text(unit, "mesh");
    if held != mesh {
        return Err(EditError::refused(format!(
            "{host} publishes its {held} as {service}; take that back with `stado service unpublish {service}`, or publish \
             {mesh} under another name with --as"
        )));
    }
    set(unit, "hostname", new.hostname.as_deref().unwrap_or_default());
    set(unit, "app_protocol", &new.app_protocol);
    Ok(())
}

/// A text that is there only while it says something.
fn set(map: &mut Map<String, Value>, key: &str, value: &str) {
    if value.is_empty() {
        map.shift_remove(key);
    } else {
        map.insert(key.into(), value.into());
    }
}

fn write_entry<'v>(
    draft: &'v mut Draft<'_>,
    new: &NewPublication,
    role: Role,
) -> Result<&'v Map<String, Value>, EditError> {
    let NewPublication { service, host, .. } = new;
    let at = format!("registry.service_directory.services.{service}");
    let services = entry::object(draft.directory()?, "services", "registry.service_directory")?;
    let fresh = !services.contains_key(service);
    let entry = services.entry(service.as_str()).or_insert_with(
        || json!({"managed_service": published_unit(service), "active_host": host, "endpoints": {}, "consumers": {}}),
    );
    let entry = entry.as_object_mut().ok_or_else(|| EditError::config(format!("{at}: must be an object")))?;
    let addresses = entry::object(entry, if role == Role::Active { "endpoints" } else { "standby" }, &at)?;
    let address = addresses.entry(host.as_str()).or_insert_with(|| json!({}));
    if let Some(address) = address.as_object_mut() {
        address.insert("url".into(), new.endpoint.to_string().into());
    }
    let consumers = entry::object(entry, "consumers", &at)?;
    let shared = [SHARED_CONSUMER.to_owned()];
    let wanted = if fresh && new.consumers.is_empty() { shared.as_slice() } else { new.consumers.as_slice() };
    for consumer in wanted {
        if consumer.trim().is_empty() {
            return Err(EditError::usage("consumer identity must not be empty"));
        }
        consumers.entry(consumer.as_str()).or_insert_with(|| json!({"capabilities": []}));
    }
    Ok(entry)
}

/// Adapters on the hosts that asked for everything that one of their consumers may use. `holders` serve it themselves.
fn give(
    draft: &mut Draft<'_>,
    service: &str,
    consumers: &[String],
    holders: &[String],
) -> Result<Vec<String>, EditError> {
    let mut given = Vec::new();
    for Policy { host, acts_as } in uses::policies(draft)? {
        let consumer = acts_as.iter().find(|consumer| consumers.contains(consumer));
        let Some(consumer) = consumer.filter(|_| !holders.contains(&host)) else { continue };
        if uses::give_adapter(draft, &host, service, consumer)? {
            given.push(host);
        }
    }
    Ok(given)
}

//! A host wants a service: an adapter of its own, or one for everything that its consumers may use.
use super::super::consumer::{Binding, bind, is_for};
use super::super::{Draft, EditError, Edited};
use super::entry::{self, consumers, is_published, names, text};
use crate::document::{Document, SHARED_CONSUMER};
use serde_json::{Map, Value, json};
use std::net::{Ipv4Addr, SocketAddr};

/// A service that a host wants.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewUse {
    /// Name in the directory.
    pub service: String,
    /// The host.
    pub host: String,
    /// As whom; the host's own name, else [`SHARED_CONSUMER`], when nobody is named.
    pub consumer: Option<String>,
    /// Port of the adapter; the host gives one out and remembers it when absent.
    pub port: Option<u16>,
}

/// What a use did.
#[derive(Debug, Clone)]
pub struct Used {
    /// As whom the host uses it.
    pub consumer: String,
    /// Declared bind; `None` where the host gives out a port.
    pub bind: Option<String>,
    /// Where the service is.
    pub active_host: String,
    /// The next document.
    pub edited: Edited,
}

/// What a use of everything did.
#[derive(Debug, Clone)]
pub struct UsedAll {
    /// As whom the host uses services, in order of preference.
    pub consumers: Vec<String>,
    /// Services that it was given an adapter for now.
    pub given: Vec<String>,
    /// The next document.
    pub edited: Edited,
}

/// What was taken back.
#[derive(Debug, Clone)]
pub struct Unused {
    /// Consumers whose adapters went.
    pub consumers: Vec<String>,
    /// The next document.
    pub edited: Edited,
}

/// A host that asked for all services of some consumers.
pub(super) struct Policy {
    pub(super) host: String,
    pub(super) acts_as: Vec<String>,
}

/// Declares the adapter of `host` for a service, whoever put that into the directory. The same again changes nothing.
///
/// # Errors
/// An unknown service or host, and a service that the host may not use.
pub fn use_service(document: &Document, new: &NewUse) -> Result<Used, EditError> {
    let NewUse { service, host, .. } = new;
    let mut draft = Draft::of(document)?;
    let held = entry::adapters(&mut draft, host)?.iter().filter_map(|adapter| own_consumer(adapter, service));
    let held: Vec<String> = held.collect();
    let service_entry = draft.service(service)?;
    let active_host = text(service_entry, "active_host").to_owned();
    let consumer = acting_as(new, &held, service_entry, &active_host)?;
    let addr = new.port.map(|port| SocketAddr::from((Ipv4Addr::LOCALHOST, port)));
    let binding = Binding { target: host.clone(), bind: addr, reassign: addr.is_some() };
    let bound = bind(&mut draft, service, &consumer, &binding)?;
    Ok(Used { consumer, bind: bound.bind, active_host, edited: draft.finish_directory()? })
}

fn own_consumer(adapter: &Value, service: &str) -> Option<String> {
    let text = |key: &str| adapter.get(key).and_then(Value::as_str);
    text("consumer").filter(|_| text("service") == Some(service)).map(str::to_owned)
}

/// As whom the host uses the service: as told, as it does already, as itself, or as any host.
fn acting_as(
    new: &NewUse,
    held: &[String],
    entry: &Map<String, Value>,
    active_host: &str,
) -> Result<String, EditError> {
    let NewUse { service, host, consumer, .. } = new;
    let declared = consumers(entry);
    let may = |name: &str| declared.iter().any(|known| known == name);
    let own = match (consumer, held) {
        (Some(consumer), _) => Some(consumer.as_str()),
        (None, [one]) => Some(one.as_str()),
        (None, _) => [host.as_str(), SHARED_CONSUMER].into_iter().find(|name| may(name)),
    };
    if let Some(own) = own.filter(|own| may(own)) {
        return Ok(own.to_owned());
    }
    let (asked, publish) = match consumer {
        Some(consumer) => (consumer.as_str(), format!("stado service directory consumer add {service} {consumer}")),
        None => (host.as_str(), format!("stado service directory consumer add {service} {host}")),
    };
    Err(EditError::refused(format!(
        "{service} of {active_host} is for {}, and not for {asked}; let it in with `{publish}`, or say with --consumer as \
         whom {host} uses it",
        entry::named(&declared)
    )))
}

/// Makes `host` use everything that is published for one of `consumers` (the host's own name and [`SHARED_CONSUMER`] when there are
/// none), now and later.
///
/// # Errors
/// An unknown host, and a consumer without a name.
pub fn use_all(document: &Document, host: &str, consumers: &[String]) -> Result<UsedAll, EditError> {
    let mut draft = Draft::of(document)?;
    let usual = [host.to_owned(), SHARED_CONSUMER.to_owned()];
    let consumers = if consumers.is_empty() { usual.as_slice() } else { consumers };
    if consumers.iter().any(|consumer| consumer.trim().is_empty()) {
        return Err(EditError::usage("consumer identity must not be empty"));
    }
    draft.target(host)?.insert("use".into(), json!({"consumers": consumers}));
    let mut given = Vec::new();
    for (service, declared) in published_elsewhere(&mut draft, host)? {
        let consumer = consumers.iter().find(|consumer| declared.contains(consumer));
        if let Some(consumer) = consumer
            && give_adapter(&mut draft, host, &service, consumer)?
        {
            given.push(service);
        }
    }
    Ok(UsedAll { consumers: consumers.to_vec(), given, edited: draft.finish_directory()? })
}

/// Published services that `host` does not hold itself, with their consumers.
fn published_elsewhere(draft: &mut Draft<'_>, host: &str) -> Result<Vec<(String, Vec<String>)>, EditError> {
    let services = draft.directory()?.get("services").and_then(Value::as_object);
    let elsewhere = services.into_iter().flatten().filter_map(|(name, entry)| {
        let entry = entry.as_object()?;
        let held = names(entry, "endpoints", host) || names(entry, "standby", host);
        (is_published(name, entry) && !held).then(|| (name.clone(), consumers(entry)))
    });
    Ok(elsewhere.collect())
}

/// Hosts that asked for everything, in document order.
pub(super) fn policies(draft: &mut Draft<'_>) -> Result<Vec<Policy>, EditError> {
    let policy = |target: &Value| {
        let list = target.get("use")?.get("consumers")?.as_array()?;
        let acts_as = list.iter().filter_map(Value::as_str).map(str::to_owned).collect();
        Some(Policy { host: target.get("name")?.as_str()?.to_owned(), acts_as })
    };
    Ok(draft.targets()?.iter().filter_map(policy).collect())
}

/// Declares an adapter unless the host has one for the service; whether it did.
pub(super) fn give_adapter(
    draft: &mut Draft<'_>,
    host: &str,
    service: &str,
    consumer: &str,
) -> Result<bool, EditError> {
    let adapters = entry::adapters(draft, host)?;
    if adapters.iter().any(|adapter| own_consumer(adapter, service).is_some()) {
        return Ok(false);
    }
    adapters.push(json!({"service": service, "consumer": consumer}));
    Ok(true)
}

/// Takes the adapters of `host` for a service back: all, or the one of a consumer.
///
/// # Errors
/// The host uses no such service.
pub fn unuse(document: &Document, host: &str, service: &str, consumer: Option<&str>) -> Result<Unused, EditError> {
    let mut draft = Draft::of(document)?;
    draft.target(host)?;
    let wanted = |adapter: &Value| match consumer {
        Some(consumer) => is_for(adapter, service, consumer),
        None => own_consumer(adapter, service).is_some(),
    };
    let of_host = entry::adapters(&mut draft, host)?.iter().filter(|adapter| wanted(adapter));
    let consumers: Vec<String> = of_host.filter_map(|adapter| own_consumer(adapter, service)).collect();
    if consumers.is_empty() {
        let whom = consumer.map(|consumer| format!(" as {consumer}")).unwrap_or_default();
        return Err(EditError::not_found(format!("{host} does not use {service}{whom}")));
    }
    entry::drop_adapters(&mut draft, |name, adapter| name == host && wanted(adapter))?;
    Ok(Unused { consumers, edited: draft.finish_directory()? })
}

/// The host no longer uses everything: what it has stays, and what comes is asked for one by one.
///
/// # Errors
/// An unknown host.
pub fn leave_all(document: &Document, host: &str) -> Result<Edited, EditError> {
    let mut draft = Draft::of(document)?;
    draft.target(host)?.shift_remove("use");
    draft.finish_directory()
}

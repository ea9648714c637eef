//! `service directory consumer add|remove` (fleet contract §6.9).
use super::{Draft, EditError, Edited, listed};
use crate::document::Document;
use serde_json::{Map, Value, json};
use std::net::SocketAddr;

/// A consumer to declare for a service.
#[derive(Debug, Clone, Default)]
pub struct NewConsumer {
    /// Identity.
    pub consumer: String,
    /// What it may do; `None` leaves those of a consumer that is already declared.
    pub capabilities: Option<Vec<String>>,
    /// An adapter for it on a target.
    pub binding: Option<Binding>,
}

/// An adapter to declare with a consumer.
#[derive(Debug, Clone)]
pub struct Binding {
    /// Target whose resolver serves it.
    pub target: String,
    /// Where; the host gives out a port and remembers it when absent.
    pub bind: Option<SocketAddr>,
    /// Whether an adapter that is already declared may move.
    pub reassign: bool,
}

/// An adapter as it is declared.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Bound {
    /// Target.
    pub target: String,
    /// Declared bind as written; `None` where the host gives out a port.
    pub bind: Option<String>,
}

/// What `consumer add` did.
#[derive(Debug, Clone)]
pub struct ConsumerAdded {
    /// Capabilities as they are now.
    pub capabilities: Vec<String>,
    /// The adapter, when one was asked for.
    pub binding: Option<Bound>,
    /// The next document.
    pub edited: Edited,
}

/// What `consumer remove` did.
#[derive(Debug, Clone)]
pub struct ConsumerRemoved {
    /// Adapters of this consumer that went with it: they would be unauthorized.
    pub bindings: Vec<Bound>,
    /// The next document.
    pub edited: Edited,
}

/// Declares a consumer, and an adapter for it when asked. Asking again for what is declared changes nothing.
///
/// # Errors
/// The sentences of §6.9.
pub fn add_consumer(document: &Document, service: &str, new: &NewConsumer) -> Result<ConsumerAdded, EditError> {
    if new.consumer.trim().is_empty() {
        return Err(EditError::usage("consumer identity must not be empty"));
    }
    let mut draft = Draft::of(document)?;
    let capabilities = declare(draft.service(service)?, service, new)?;
    let binding = match &new.binding {
        Some(binding) => Some(bind(&mut draft, service, &new.consumer, binding)?),
        None => None,
    };
    Ok(ConsumerAdded { capabilities, binding, edited: draft.finish_directory()? })
}

fn consumers<'v>(service: &'v mut Map<String, Value>, name: &str) -> Result<&'v mut Map<String, Value>, EditError> {
    let consumers = service.entry("consumers").or_insert_with(|| json!({})).as_object_mut();
    consumers.ok_or_else(|| {
        EditError::config(format!("registry.service_directory.services.{name}.consumers: must be an object"))
    })
}

fn declare(service: &mut Map<String, Value>, name: &str, new: &NewConsumer) -> Result<Vec<String>, EditError> {
    let entry = consumers(service, name)?.entry(new.consumer.as_str()).or_insert_with(|| json!({"capabilities": []}));
    let mut wanted: Vec<&str> = Vec::new();
    for capability in new.capabilities.iter().flatten() {
        if !wanted.contains(&capability.as_str()) {
            wanted.push(capability);
        }
    }
    if let (Some(_), Some(entry)) = (&new.capabilities, entry.as_object_mut()) {
        entry.insert("capabilities".into(), json!(wanted));
    }
    let now = entry.get("capabilities").and_then(Value::as_array).into_iter().flatten();
    Ok(now.filter_map(Value::as_str).map(str::to_owned).collect())
}

pub(super) fn bind(draft: &mut Draft<'_>, service: &str, consumer: &str, wanted: &Binding) -> Result<Bound, EditError> {
    if wanted.bind.is_some_and(|bind| !bind.ip().is_loopback() || bind.port() == 0) {
        return Err(EditError::usage("consumer binding requires a loopback IP and a nonzero port"));
    }
    let target = &wanted.target;
    let resolver = draft.target(target)?.get_mut("service_resolver").and_then(Value::as_object_mut);
    let unconfigured = || EditError::not_found(format!("resolver target \"{target}\" has no configured adapters"));
    let adapters = resolver.ok_or_else(unconfigured)?.entry("adapters").or_insert_with(|| json!([]));
    let adapters = adapters.as_array_mut().ok_or_else(unconfigured)?;
    let held = adapters.iter_mut().find(|adapter| is_for(adapter, service, consumer)).and_then(Value::as_object_mut);
    let adapter = match held {
        Some(adapter) => {
            rebind(adapter, service, consumer, wanted)?;
            &*adapter
        }
        None => {
            let mut adapter = Map::new();
            adapter.insert("service".into(), service.into());
            adapter.insert("consumer".into(), consumer.into());
            write_bind(&mut adapter, wanted.bind);
            adapters.push(Value::Object(adapter));
            return Ok(Bound { target: target.clone(), bind: wanted.bind.map(|b| b.to_string()) });
        }
    };
    Ok(bound(target, adapter))
}

pub(super) fn is_for(adapter: &Value, service: &str, consumer: &str) -> bool {
    let text = |key: &str| adapter.get(key).and_then(Value::as_str);
    text("service") == Some(service) && text("consumer") == Some(consumer)
}

/// Moves an adapter that is declared, where the caller said so.
fn rebind(adapter: &mut Map<String, Value>, service: &str, consumer: &str, wanted: &Binding) -> Result<(), EditError> {
    let held = adapter.get("bind").and_then(Value::as_str).map(str::to_owned);
    let asked = wanted.bind.map(|bind| bind.to_string());
    match held {
        _ if wanted.reassign => write_bind(adapter, wanted.bind),
        Some(_) if asked.is_none() => {}
        Some(held) if asked.as_ref() != Some(&held) => {
            return Err(EditError::refused(format!(
                "{} already declares an adapter for {service} as consumer {consumer} at {held}; pass --reassign to move it",
                wanted.target
            )));
        }
        _ => write_bind(adapter, wanted.bind),
    }
    Ok(())
}

fn write_bind(adapter: &mut Map<String, Value>, bind: Option<SocketAddr>) {
    match bind {
        Some(bind) => {
            adapter.insert("bind".into(), bind.to_string().into());
        }
        None => {
            adapter.shift_remove("bind");
        }
    }
}

fn bound(target: &str, adapter: &Map<String, Value>) -> Bound {
    Bound { target: target.to_owned(), bind: adapter.get("bind").and_then(Value::as_str).map(str::to_owned) }
}

/// Removes a consumer, and every adapter that was declared for it.
///
/// # Errors
/// The sentences of §6.9.
pub fn remove_consumer(document: &Document, service: &str, consumer: &str) -> Result<ConsumerRemoved, EditError> {
    let mut draft = Draft::of(document)?;
    let consumers = consumers(draft.service(service)?, service)?;
    if consumers.shift_remove(consumer).is_none() {
        let declared = listed(consumers.keys().map(String::as_str));
        let sentence = format!("\"{service}\" does not declare \"{consumer}\"; it declares {declared}");
        return Err(EditError::not_found(sentence));
    }
    let mut bindings = Vec::new();
    for target in draft.targets()? {
        let name = target.get("name").and_then(Value::as_str).unwrap_or_default().to_owned();
        let adapters = target.get_mut("service_resolver").and_then(|r| r.get_mut("adapters"));
        if let Some(adapters) = adapters.and_then(Value::as_array_mut) {
            let gone = |adapter: &Value| is_for(adapter, service, consumer);
            bindings.extend(adapters.iter().filter(|a| gone(a)).filter_map(|a| Some(bound(&name, a.as_object()?))));
            adapters.retain(|adapter| !gone(adapter));
        }
    }
    Ok(ConsumerRemoved { bindings, edited: draft.finish_directory()? })
}

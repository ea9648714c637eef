//! What a host has published, as a document tells it.
use super::entry::{is_published, is_unit, text};
use crate::document::Document;
use crate::name::Endpoint;
use serde_json::{Map, Value};

/// One publication of a host.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Resting {
    /// Name in the directory.
    pub service: String,
    /// Name in the host's mesh.
    pub mesh: String,
    /// The frontend that the directory names; `None` for one that cannot be read.
    pub endpoint: Option<Endpoint>,
    /// Whether connections go to this host.
    pub active: bool,
    /// Its hostname, for one that is routed by hostname.
    pub hostname: String,
    /// What it speaks.
    pub app_protocol: String,
}

/// Everything that `host` publishes, in document order.
pub fn publications(document: &Document, host: &str) -> Vec<Resting> {
    let services = document.section("service_directory").and_then(|d| d.get("services")).and_then(Value::as_object);
    let targets = document.section("targets").and_then(Value::as_array);
    let named = |target: &&Value| target.get("name").and_then(Value::as_str) == Some(host);
    let target = targets.and_then(|targets| targets.iter().find(named));
    let units = target.and_then(|target| target.get("services")).and_then(Value::as_array);
    let mut all = Vec::new();
    for (service, entry) in services.into_iter().flatten() {
        let Some(entry) = entry.as_object().filter(|entry| is_published(service, entry)) else { continue };
        let units = units.into_iter().flatten().filter_map(Value::as_object);
        if let Some(unit) = units.into_iter().find(|unit| is_unit(unit, service)) {
            all.extend(resting(service, entry, unit, host));
        }
    }
    all
}

fn resting(service: &str, entry: &Map<String, Value>, unit: &Map<String, Value>, host: &str) -> Option<Resting> {
    let active = text(entry, "active_host") == host;
    let address = entry.get(if active { "endpoints" } else { "standby" })?.get(host)?;
    Some(Resting {
        service: service.to_owned(),
        mesh: text(unit, "mesh").to_owned(),
        endpoint: address.get("url").and_then(Value::as_str).and_then(|url| url.parse().ok()),
        active,
        hostname: text(unit, "hostname").to_owned(),
        app_protocol: text(unit, "app_protocol").to_owned(),
    })
}

//! Where a service runs: its active host and its endpoint there.
use super::{Draft, EditError, Edited};
use crate::document::Document;
use crate::name::Endpoint;
use serde_json::{Map, Value, json};

/// Places a service on `host`, at `endpoint` there, or at the endpoint that is declared for the host. Other hosts keep theirs.
/// A standby address of the host becomes its endpoint, with whatever else the entry says.
///
/// # Errors
/// An unknown service or target, and a host without an endpoint when none is given.
pub fn move_service(
    document: &Document,
    service: &str,
    host: &str,
    endpoint: Option<Endpoint>,
) -> Result<Edited, EditError> {
    let mut draft = Draft::of(document)?;
    draft.target(host)?;
    let entry = draft.service(service)?;
    let stood_by = take_standby(entry, host);
    let endpoints = entry.entry("endpoints").or_insert_with(|| json!({})).as_object_mut();
    let endpoints = endpoints.ok_or_else(|| {
        EditError::config(format!("registry.service_directory.services.{service}.endpoints: must be an object"))
    })?;
    if let Some(stood_by) = stood_by {
        endpoints.entry(host).or_insert(stood_by);
    }
    match (endpoint, endpoints.get_mut(host)) {
        (Some(endpoint), Some(Value::Object(declared))) => write_url(declared, endpoint),
        (Some(endpoint), _) => {
            let mut declared = Map::new();
            write_url(&mut declared, endpoint);
            endpoints.insert(host.to_owned(), Value::Object(declared));
        }
        (None, Some(_)) => {}
        (None, None) => {
            let sentence =
                format!("service_directory declares no endpoint for {service} on {host}; name its address there");
            return Err(EditError::not_found(sentence));
        }
    }
    entry.insert("active_host".into(), host.into());
    draft.finish_directory()
}

fn take_standby(entry: &mut Map<String, Value>, host: &str) -> Option<Value> {
    entry.get_mut("standby")?.as_object_mut()?.shift_remove(host)
}

fn write_url(declared: &mut Map<String, Value>, endpoint: Endpoint) {
    declared.insert("url".into(), endpoint.to_string().into());
}

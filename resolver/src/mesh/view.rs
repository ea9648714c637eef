//! What is known of a name, as the API shows it (mesh contract §1.3).
use super::record::{Kind, Record};
use super::start::PORT_LOST;
use crate::http::Listening;
use stado_fleet::fault::Hop;
use stado_fleet::name::ServiceName;
use stado_fleet::wire::{BackendAddr, Frontend, Inspect, Service};

/// The list's form of a record.
pub(crate) fn service(name: &ServiceName, record: &Record, router: &Listening) -> Service {
    let (reason, since) = absence(record);
    Service {
        name: name.to_string(),
        kind: record.kind.as_str().into(),
        app_protocol: record.app_protocol.clone(),
        status: status(record).into(),
        frontend: frontend(record, router),
        reason,
        since,
        note: unreachable(record, router),
    }
}

/// The debug form of a record.
pub(crate) fn inspect(name: &ServiceName, record: &Record, router: &Listening) -> Inspect {
    let (reason, since) = absence(record);
    let backend = record.backend.as_ref();
    Inspect {
        name: name.to_string(),
        kind: record.kind.as_str().into(),
        app_protocol: record.app_protocol.clone(),
        status: status(record).into(),
        frontend: frontend(record, router),
        backend: backend.map(|b| BackendAddr { host: b.host.clone(), port: b.port.into() }),
        source: record.source.map(|s| s.as_str().to_owned()).unwrap_or_default(),
        owner_key: record.owner_key.clone(),
        producer_id: record.producer_id.clone(),
        docker_container_id: record.container_id.clone(),
        hostname: record.hostname.clone().unwrap_or_default(),
        hop: reason.as_deref().map(|reason| hop(reason).code().to_owned()),
        reason,
        since,
        note: record.note.clone().or_else(|| unreachable(record, router)),
    }
}

/// The stable address of a record.
pub(crate) fn frontend(record: &Record, router: &Listening) -> Frontend {
    match (record.kind, record.frontend, &record.hostname) {
        (Kind::Tcp, Some(addr), _) => Frontend { host: addr.ip().to_string(), port: addr.port(), url: String::new() },
        (Kind::Http, _, Some(hostname)) => {
            Frontend { url: router.url(hostname).unwrap_or_default(), ..Frontend::default() }
        }
        _ => Frontend::default(),
    }
}

/// Why a service that is known by its hostname has no address.
fn unreachable(record: &Record, router: &Listening) -> Option<String> {
    let served = record.kind != Kind::Http || router.http.or(router.https).is_some();
    router.reason.as_ref().filter(|_| !served).map(|reason| format!("no address: {reason}"))
}

/// The stable address is there and nobody behind it, unless it is the address that is lost.
fn hop(reason: &str) -> Hop {
    if reason.starts_with(PORT_LOST) { Hop::Adapter } else { Hop::Service }
}

fn status(record: &Record) -> &'static str {
    if record.backend.is_some() { "ready" } else { "unavailable" }
}

fn absence(record: &Record) -> (Option<String>, Option<String>) {
    if record.backend.is_some() {
        return (None, None);
    }
    (Some(record.reason.to_string()), Some(record.since.text()))
}

//! What another process needs to go on with this mesh, as a value: names with their producers, leases with their tokens and
//! what is left of them, remembered ports and hostnames. It travels between two daemons of one user and is never written
//! to a file or a log.
use super::backend::Backend;
use super::clock::Now;
use super::lease::{Answer, Lease};
use super::record::{Kind, Record, Source};
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use stado_fleet::directory::Route;
use stado_fleet::name::{ConnectionPath, Endpoint, Scheme, ServiceName};
use stado_fleet::wire::{RefusedList, RegisterRequest, RegisterResponse};
use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

/// A mesh on its way.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct Handed {
    /// The steady clock at that moment; all other ticks are of the same clock, and it goes on.
    pub(crate) tick: Duration,
    /// Remembered ports.
    pub(crate) ports: BTreeMap<String, i64>,
    /// Remembered hostnames.
    pub(crate) hosts: BTreeMap<String, String>,
    /// Remembered ports of http services.
    pub(crate) exposed: BTreeMap<String, i64>,
    /// What is known of each name.
    pub(crate) records: BTreeMap<String, HandedRecord>,
    /// Live leases.
    pub(crate) leases: Vec<HandedLease>,
    /// What containers are refused.
    pub(crate) refused: RefusedList,
}

/// One name.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct HandedRecord {
    http: bool,
    app_protocol: String,
    source: Option<String>,
    owner_key: String,
    producer_id: String,
    container_id: String,
    backend: Option<HandedBackend>,
    frontend: Option<SocketAddr>,
    hostname: Option<String>,
    #[serde(default)]
    publish: bool,
    reason: String,
    note: Option<String>,
    since_tick: Duration,
    since: Timestamp,
}

/// Where a producer listens.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct HandedBackend {
    host: String,
    port: u16,
    addr: String,
    via: Option<HandedRoute>,
}

/// The way to another host's loopback.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct HandedRoute {
    service: String,
    active_host: String,
    http: bool,
    endpoint: String,
    capabilities: Vec<String>,
    /// Name and destination.
    paths: Vec<(String, String)>,
    local: bool,
    stado_command: Option<String>,
}

/// One lease, and the answer that its `Idempotency-Key` repeats.
#[derive(Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct HandedLease {
    id: String,
    name: String,
    token: String,
    ttl: Duration,
    /// On the clock of [`Handed::tick`].
    expires: Duration,
    key: Option<(String, RegisterRequest, RegisterResponse)>,
}

impl std::fmt::Debug for HandedLease {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("HandedLease").field("id", &self.id).field("name", &self.name).finish_non_exhaustive()
    }
}

/// A value that this version does not understand, in words.
pub(crate) type Strange = String;

fn read<T: std::str::FromStr>(text: &str, what: &str) -> Result<T, Strange>
where
    T::Err: std::fmt::Display,
{
    text.parse().map_err(|error| format!("{what} {text:?}: {error}"))
}

impl HandedRecord {
    pub(super) fn of(record: &Record) -> Self {
        Self {
            http: record.kind == Kind::Http,
            app_protocol: record.app_protocol.clone(),
            source: record.source.map(|source| source.as_str().to_owned()),
            owner_key: record.owner_key.clone(),
            producer_id: record.producer_id.clone(),
            container_id: record.container_id.clone(),
            backend: record.backend.as_ref().map(HandedBackend::of),
            frontend: record.frontend,
            hostname: record.hostname.clone(),
            publish: record.publish,
            reason: record.reason.to_string(),
            note: record.note.clone(),
            since_tick: record.since.tick,
            since: record.since.wall,
        }
    }

    pub(super) fn record(self) -> Result<Record, Strange> {
        let source = match self.source.as_deref() {
            None => None,
            Some("process") => Some(Source::Process),
            Some("manual") => Some(Source::Manual),
            Some("docker") => Some(Source::Docker),
            Some(other) => return Err(format!("source {other:?}")),
        };
        Ok(Record {
            kind: if self.http { Kind::Http } else { Kind::Tcp },
            app_protocol: self.app_protocol,
            source,
            owner_key: self.owner_key,
            producer_id: self.producer_id,
            container_id: self.container_id,
            backend: self.backend.map(HandedBackend::backend).transpose()?,
            frontend: self.frontend,
            hostname: self.hostname,
            publish: self.publish,
            reason: self.reason.into(),
            note: self.note,
            since: Now { tick: self.since_tick, wall: self.since },
        })
    }
}

impl HandedBackend {
    fn of(backend: &Backend) -> Self {
        Self {
            host: backend.host.clone(),
            port: backend.port,
            addr: backend.addr.to_string(),
            via: backend.via.as_deref().map(HandedRoute::of),
        }
    }

    fn backend(self) -> Result<Backend, Strange> {
        let via = self.via.map(HandedRoute::route).transpose()?.map(Arc::new);
        Ok(Backend { host: self.host, port: self.port, addr: read(&self.addr, "backend")?, via })
    }
}

impl HandedRoute {
    fn of(route: &Route) -> Self {
        let path = |path: &ConnectionPath| (path.name.clone(), path.destination.to_string());
        Self {
            service: route.service.to_string(),
            active_host: route.active_host.to_string(),
            http: route.endpoint.scheme == Scheme::Http,
            endpoint: route.endpoint.addr.to_string(),
            capabilities: route.capabilities.clone(),
            paths: route.paths.iter().map(path).collect(),
            local: route.local,
            stado_command: route.stado_command.clone(),
        }
    }

    fn route(self) -> Result<Route, Strange> {
        let path = |(name, destination): (String, String)| {
            Ok::<_, Strange>(ConnectionPath { name, destination: read(&destination, "destination")? })
        };
        let scheme = if self.http { Scheme::Http } else { Scheme::Tcp };
        Ok(Route {
            service: read(&self.service, "service")?,
            active_host: read(&self.active_host, "host")?,
            endpoint: Endpoint { scheme, addr: read(&self.endpoint, "endpoint")? },
            capabilities: self.capabilities,
            paths: self.paths.into_iter().map(path).collect::<Result<_, _>>()?,
            local: self.local,
            stado_command: self.stado_command,
        })
    }
}

impl HandedLease {
    pub(super) fn of(lease: &Lease, answer: Option<&Answer>) -> Self {
        let repeated = answer.map(|answer| (answer.request.clone(), answer.response.clone()));
        Self {
            id: lease.id.clone(),
            name: lease.name.to_string(),
            token: lease.token.clone(),
            ttl: lease.ttl,
            expires: lease.expires,
            key: lease.key.clone().zip(repeated).map(|(key, (request, response))| (key, request, response)),
        }
    }

    pub(super) fn lease(self) -> Result<(Lease, Option<Answer>), Strange> {
        let name: ServiceName = read(&self.name, "service")?;
        let (key, answer) = match self.key {
            None => (None, None),
            Some((key, request, response)) => (Some(key), Some(Answer { id: self.id.clone(), request, response })),
        };
        Ok((Lease { id: self.id, name, token: self.token, ttl: self.ttl, expires: self.expires, key }, answer))
    }
}

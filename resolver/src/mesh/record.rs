//! What is said and known of a name: a producer's claim, and the record that it leaves.
use super::backend::Backend;
use super::clock::Now;
use crate::conn;
use stado_fleet::name::ServiceName;
use std::net::SocketAddr;
use std::sync::Arc;

/// How consumers reach a service.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// A port of its own.
    Tcp,
    /// A hostname on the shared router.
    Http,
}

impl Kind {
    /// The word on the wire.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Tcp => "tcp",
            Self::Http => "http",
        }
    }
}

/// Where a registration came from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Source {
    /// A native process.
    Process,
    /// A person.
    Manual,
    /// A container.
    Docker,
}

impl Source {
    /// The word on the wire, and the first part of an owner key.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Process => "process",
            Self::Manual => "manual",
            Self::Docker => "docker",
        }
    }
}

/// A producer's claim that the backend of `name` is at an address now.
#[derive(Debug, Clone, PartialEq)]
pub struct Publication {
    /// The name that is claimed.
    pub name: ServiceName,
    /// Kind.
    pub kind: Kind,
    /// Display hint; may be empty.
    pub app_protocol: String,
    /// Where the claim comes from.
    pub source: Source,
    /// The logical owner: publications with the same key may replace each other.
    pub owner_key: String,
    /// This very publication: a registration id or a container id. Removals name it.
    pub producer_id: String,
    /// Container, for docker; else empty.
    pub container_id: String,
    /// Where the producer listens.
    pub backend: Backend,
    /// Hostname, for [`Kind::Http`].
    pub hostname: Option<String>,
    /// Whether its producer asks for it to be offered to the other hosts of the fleet.
    pub publish: bool,
}

/// What is known of a name, with or without a producer.
#[derive(Debug, Clone)]
pub(super) struct Record {
    /// Kind.
    pub kind: Kind,
    /// Display hint.
    pub app_protocol: String,
    /// Source of the last producer; `None` when there was none in this run.
    pub source: Option<Source>,
    /// Owner key of the last producer.
    pub owner_key: String,
    /// Id of the last producer.
    pub producer_id: String,
    /// Container of the last producer.
    pub container_id: String,
    /// The current backend; `None` is `unavailable`.
    pub backend: Option<Backend>,
    /// The port that is held or remembered, for [`Kind::Tcp`].
    pub frontend: Option<SocketAddr>,
    /// Hostname, for [`Kind::Http`].
    pub hostname: Option<String>,
    /// Whether its producer asks for it to be offered to the other hosts of the fleet.
    pub publish: bool,
    /// Why there is no backend; empty while there is one.
    pub reason: Arc<str>,
    /// Something worth showing beside it, such as a health check's word.
    pub note: Option<String>,
    /// Since when the status holds.
    pub since: Now,
}

impl Record {
    /// What new connections and requests are given.
    pub(super) fn stands_behind(&self) -> conn::Backend {
        match &self.backend {
            Some(Backend { via: Some(route), .. }) => conn::Backend::Fleet(route.clone()),
            Some(backend) => conn::Backend::Local(backend.addr),
            None => conn::Backend::None(self.reason.clone()),
        }
    }

    /// Kind and hostname are fixed once a producer of this run has named them.
    pub(super) fn is_settled(&self) -> bool {
        self.source.is_some()
    }
}

/// What an earlier run remembers of a name.
#[derive(Debug, Clone)]
pub(super) enum Place {
    /// The address of a tcp service.
    Port(SocketAddr),
    /// The hostname of an http service.
    Host(String),
}

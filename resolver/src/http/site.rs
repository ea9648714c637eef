//! What stands behind one hostname: a value that a request reads once and keeps to its end.
use super::stats::SiteStats;
use crate::conn::ledger::Slot;
use crate::conn::{Backend, FrontendId};
use stado_fleet::fault::Hop;
use std::sync::Arc;
use std::time::Duration;

/// How a backend wants to be spoken to (design, choices: a backend's protocol).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Protocol {
    /// HTTP/1.1 in clear.
    Http1,
    /// HTTP/2 in clear with prior knowledge.
    H2c,
    /// TLS to a loopback backend.
    Https,
}

impl Protocol {
    /// Read from a registration's `app_protocol`, whatever its case.
    pub fn of(app_protocol: &str) -> Self {
        match app_protocol.trim().to_ascii_lowercase().as_str() {
            "h2c" | "grpc" => Self::H2c,
            "https" => Self::Https,
            _ => Self::Http1,
        }
    }
}

/// One hostname's service. Never changed: a change of the service is another value in the next table.
#[derive(Debug)]
pub struct Site {
    /// Service name.
    pub service: Arc<str>,
    /// Consumer, for an adapter of the fleet; `None` for a service of the mesh.
    pub consumer: Option<Arc<str>>,
    /// Hostname, normalised; begins with `*.` when it stands for all names under it.
    pub host: Arc<str>,
    /// How the backend is spoken to.
    pub protocol: Protocol,
    /// What stands behind it.
    pub backend: Backend,
    /// Since when it does.
    pub since: jiff::Timestamp,
    /// How long a dial may take.
    pub budget: Duration,
    /// What its ledger entries carry.
    pub frontend: Arc<FrontendId>,
    /// Connections, shared with the service's own frontend if it has one.
    pub slot: Arc<Slot>,
    /// Requests.
    pub stats: Arc<SiteStats>,
}

impl Site {
    /// Where the way to it ends while it has no backend: a service of the mesh lacks its producer, an adapter a way.
    pub(super) fn without_backend(&self) -> Hop {
        if self.consumer.is_some() { Hop::Adapter } else { Hop::Service }
    }

    /// Whether a request would find the same behind both.
    pub(super) fn same_as(&self, other: &Self) -> bool {
        let backend = match (&self.backend, &other.backend) {
            (Backend::Local(a), Backend::Local(b)) => a == b,
            (Backend::Fleet(a), Backend::Fleet(b)) => a == b,
            (Backend::None(a), Backend::None(b)) => a == b,
            _ => false,
        };
        backend
            && self.service == other.service
            && self.consumer == other.consumer
            && self.host == other.host
            && self.protocol == other.protocol
            && self.budget == other.budget
            && self.frontend == other.frontend
    }
}

//! Connections without sockets, for tests.
use super::{Entry, Ledger, Slot};
use crate::conn::{Backend, FrontendId};
use stado_fleet::directory::Route;
use std::sync::Arc;

pub(super) fn frontend(consumer: Option<&str>) -> Arc<FrontendId> {
    let bind = "127.0.0.1:17601".parse().unwrap();
    Arc::new(FrontendId { service: "svc".into(), consumer: consumer.map(Arc::from), bind })
}

pub(super) fn fleet_backend() -> Backend {
    Backend::Fleet(Arc::new(Route {
        service: "svc".parse().unwrap(),
        active_host: "host".parse().unwrap(),
        endpoint: stado_fleet::name::Endpoint {
            scheme: stado_fleet::name::Scheme::Tcp,
            addr: "127.0.0.1:8080".parse().unwrap(),
        },
        capabilities: Vec::new(),
        paths: [].into(),
        local: false,
        stado_command: None,
    }))
}

pub(super) fn enter(
    ledger: &Ledger,
    consumer: Option<&str>,
    backend: &Backend,
    limit: usize,
) -> (Arc<Slot>, Option<Entry>) {
    let frontend = frontend(consumer);
    let slot = ledger.slot(&frontend);
    let client = "127.0.0.1:50000".parse().unwrap();
    let entry = Entry::open(ledger, &slot, &frontend, backend, client, limit);
    (slot, entry)
}

/// An adapter in a ledger.
pub(crate) struct Adapter {
    ledger: Ledger,
    slot: Arc<Slot>,
    frontend: Arc<FrontendId>,
}
impl Adapter {
    pub(crate) fn new(ledger: &Ledger, service: &str, consumer: &str) -> Self {
        let bind = "127.0.0.1:17601".parse().unwrap();
        let frontend = Arc::new(FrontendId { service: service.into(), consumer: Some(consumer.into()), bind });
        Self { slot: ledger.slot(&frontend), ledger: ledger.clone(), frontend }
    }
    /// A connection to a service of another host.
    pub(crate) fn enter(&self) -> Entry {
        let client = "127.0.0.1:50000".parse().unwrap();
        Entry::open(&self.ledger, &self.slot, &self.frontend, &fleet_backend(), client, 10).unwrap()
    }
}

//! The mesh's metrics, and the registry that other rooms add theirs to. Names are in [`names`].
use super::allocator::Stage;
use super::error::Code;
use super::metric_names::{self as names, Metric};
use super::metrics_connections::Connections;
use super::metrics_requests::Requests;
use crate::conn::ledger::Ledger;
use crate::http::Sites;
use prometheus_client::encoding::text::encode;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::registry::Registry;
use std::sync::{Arc, Mutex, PoisonError};

type Labels = [(&'static str, &'static str); 1];

/// Counters of one mesh, rendered by `GET /metrics`.
#[derive(Debug)]
pub struct Metrics {
    registry: Mutex<Registry>,
    registrations: Family<Labels, Counter>,
    heartbeats: Family<Labels, Counter>,
    allocations: Family<Labels, Counter>,
    expired: Counter,
    save_failures: Counter,
    services: Family<Labels, Gauge>,
    leases: Gauge,
    frontends: Gauge,
    event_readers: Gauge,
    relay_withdrawn: Family<[(&'static str, String); 2], Counter>,
}

/// What is counted at the moment of rendering.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Gauges {
    pub(crate) ready: usize,
    pub(crate) unavailable: usize,
    pub(crate) leases: usize,
    pub(crate) frontends: usize,
    pub(crate) event_readers: usize,
}

fn put(registry: &mut Registry, metric: Metric, own: impl prometheus_client::registry::Metric) {
    registry.register(metric.name, metric.help, own);
}

impl Metrics {
    pub(crate) fn new(ledger: Ledger, sites: Arc<Sites>) -> Self {
        let metrics = Self {
            registry: Mutex::new(Registry::with_prefix("stado")),
            registrations: Family::default(),
            heartbeats: Family::default(),
            allocations: Family::default(),
            expired: Counter::default(),
            save_failures: Counter::default(),
            services: Family::default(),
            leases: Gauge::default(),
            frontends: Gauge::default(),
            event_readers: Gauge::default(),
            relay_withdrawn: Family::default(),
        };
        metrics.add(|registry| {
            put(registry, names::REGISTRATIONS, metrics.registrations.clone());
            put(registry, names::HEARTBEATS, metrics.heartbeats.clone());
            put(registry, names::ALLOCATIONS, metrics.allocations.clone());
            put(registry, names::EXPIRED, metrics.expired.clone());
            put(registry, names::SAVE_FAILURES, metrics.save_failures.clone());
            put(registry, names::SERVICES, metrics.services.clone());
            put(registry, names::LEASES, metrics.leases.clone());
            put(registry, names::FRONTENDS, metrics.frontends.clone());
            put(registry, names::EVENT_READERS, metrics.event_readers.clone());
            put(registry, names::RELAY_WITHDRAWN, metrics.relay_withdrawn.clone());
            registry.register_collector(Box::new(Connections(ledger)));
            registry.register_collector(Box::new(Requests(sites)));
        });
        metrics
    }

    /// Lets another room register its metrics (connections, relays) on the same page.
    pub fn add(&self, register: impl FnOnce(&mut Registry)) {
        register(&mut self.registry.lock().unwrap_or_else(PoisonError::into_inner));
    }

    pub(crate) fn registration(&self, refused: Option<Code>) {
        let result = refused.map_or("created", Code::as_str);
        self.registrations.get_or_create(&[("result", result)]).inc();
    }

    pub(crate) fn heartbeat(&self, renewed: bool) {
        self.heartbeats.get_or_create(&[("result", if renewed { "renewed" } else { "refused" })]).inc();
    }

    pub(crate) fn allocation(&self, stage: Stage) {
        self.allocations.get_or_create(&[("stage", stage.as_str())]).inc();
    }

    pub(crate) fn expired(&self) {
        self.expired.inc();
    }

    pub(crate) fn save_failed(&self) {
        self.save_failures.inc();
    }

    /// This host's gate ended a stream of another host.
    pub(crate) fn relay_withdrawn(&self, service: &str, host: &str) {
        self.relay_withdrawn.get_or_create(&[("service", service.to_owned()), ("host", host.to_owned())]).inc();
    }

    pub(crate) fn render(&self, now: Gauges) -> String {
        let number = |count: usize| i64::try_from(count).unwrap_or(i64::MAX);
        self.services.get_or_create(&[("status", "ready")]).set(number(now.ready));
        self.services.get_or_create(&[("status", "unavailable")]).set(number(now.unavailable));
        self.leases.set(number(now.leases));
        self.frontends.set(number(now.frontends));
        self.event_readers.set(number(now.event_readers));
        let mut text = String::new();
        // Writing to a String cannot fail.
        let _ = encode(&mut text, &self.registry.lock().unwrap_or_else(PoisonError::into_inner));
        text
    }
}

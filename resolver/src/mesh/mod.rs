//! This host's registrations: ownership, leases, allocator, remembered ports (`mesh.md`).
//!
//! [`Mesh`] is the whole: the pure cores (`registry`, `lease`), the ports ([`allocator`], `state_file`, `state_store`) and
//! the running `frontends`, and the walks that connect them: `start`, `register`, `remove`, `manage`, `sweep`.
//! The cores' lock is never held over a wait; changes of one name are in line on its stripe; serving waits for none of it.

pub mod adapter_ports;
mod adapters;
pub mod allocator;
mod also_bind;
mod backend;
pub(crate) mod changes;
mod clock;
mod config;
mod error;
mod events;
mod expose;
mod frontends;
pub(crate) mod hand_over;
pub(crate) mod handed;
mod hold;
mod hosts;
mod ids;
mod lease;
mod manage;
pub mod metric_names;
mod metrics;
mod metrics_connections;
mod metrics_requests;
pub mod names;
mod offers;
mod record;
mod register;
mod registry;
mod remove;
mod start;
pub(crate) mod state_file;
mod state_store;
mod stripes;
mod sweep;
mod tune;
mod view;

pub use adapter_ports::AdapterPorts;
pub use adapters::Standing;
pub use allocator::Allocator;
pub use backend::Backend;
pub use clock::Now;
pub use config::{Config, Tuning};
pub use error::{Code, MeshError, Refusal};
pub use events::{Changes, Event};
pub use metrics::Metrics;
pub use offers::Offer;
pub use record::{Kind, Publication, Source};

use crate::conn;
use crate::http::{Listening, Sites};
use arc_swap::ArcSwap;
use changes::Changes as ChangeDoor;
use clock::Clock;
use events::Events;
use frontends::Frontends;
use lease::Leases;
use registry::Registry;
use stado_fleet::disk;
use stado_fleet::ledger::Leaving;
use stado_fleet::name::ServiceName;
use stado_fleet::wire::{ConnectionList, Health, Inspect, RefusedList, Service};
use state_store::Store;
use std::collections::BTreeSet;
use std::sync::atomic::{AtomicU8, Ordering};
use std::sync::{Arc, Mutex, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};
use stripes::Stripes;
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

/// The mesh of one daemon.
#[derive(Debug)]
pub struct Mesh {
    config: Config,
    tuning: RwLock<Tuning>,
    clock: Clock,
    core: RwLock<Core>,
    names: Stripes,
    keys: Stripes,
    allocator: Arc<Allocator>,
    ports: Store<i64>,
    hosts: Store<String>,
    /// Ports of http services beside their hostnames.
    exposed: Store<i64>,
    /// Names that other hosts dial: their frontends stay bound, whoever stands behind them.
    offered: Mutex<BTreeSet<String>>,
    withheld: Mutex<BTreeSet<String>>,
    frontends: Frontends,
    sites: Arc<Sites>,
    router: ArcSwap<Listening>,
    events: Events,
    metrics: Metrics,
    docker: AtomicU8,
    refused: watch::Sender<RefusedList>,
    stop: CancellationToken,
    /// `None` once another process has the mesh.
    lock: Mutex<Option<disk::Lock>>,
    /// Whether changes are allowed: not while it is handed over.
    changes: ChangeDoor,
    /// Listeners that were taken up and do not serve yet.
    parked: Mutex<Vec<hand_over::Parked>>,
    /// Daemons that were taken over and still have streams.
    leaving: RwLock<Vec<Leaving>>,
}

/// Names and leases change together, so that an expiry and a takeover cannot cross.
#[derive(Debug, Default)]
struct Core {
    registry: Registry,
    leases: Leases,
}

/// What the container adapter says of itself in `GET /v1/health`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub enum DockerStatus {
    /// Not configured.
    Disabled,
    /// Listed and listening.
    Connected,
    /// Configured and not connected.
    Degraded,
}

impl Mesh {
    /// All services, by name; unavailable ones too.
    pub fn list(&self) -> Vec<Service> {
        self.list_where(|_| true)
    }

    /// The services whose last producer has this owner key, or one that begins with it and a colon: `docker:checkout`
    /// finds what the containers of that project registered.
    pub fn list_owned(&self, owner: &str) -> Vec<Service> {
        self.list_where(|record| {
            record.owner_key.strip_prefix(owner).is_some_and(|rest| rest.is_empty() || rest.starts_with(':'))
        })
    }

    fn list_where(&self, wanted: impl Fn(&record::Record) -> bool) -> Vec<Service> {
        let (core, router) = (self.read(), self.router.load());
        let all = core.registry.iter().filter(|(_, record)| wanted(record));
        all.map(|(name, record)| view::service(name, record, &router)).collect()
    }

    /// One service. `name` is not validated: an impossible one is unknown.
    pub fn resolve(&self, name: &str) -> Result<Service, Refusal> {
        self.look_up(name, |name, record| view::service(name, record, &self.router.load()))
    }

    /// One service with its backend and owner.
    pub fn inspect(&self, name: &str) -> Result<Inspect, Refusal> {
        let mut found = self.look_up(name, |name, record| view::inspect(name, record, &self.router.load()))?;
        if let Ok(name) = name.parse()
            && let Some(half) = self.frontends.missing_part(&name)
        {
            found.reason.get_or_insert(half);
        }
        Ok(found)
    }

    /// Who is connected to a service, and who was. Services of the fleet that have an adapter here are known too.
    pub fn connections(&self, name: &str) -> Result<ConnectionList, Refusal> {
        match self.frontends.ledger().connections(name) {
            Some(list) => Ok(list),
            None => {
                self.look_up(name, |name, _| ConnectionList { service: name.to_string(), ..ConnectionList::default() })
            }
        }
    }

    /// Where its connections are counted.
    pub(crate) fn ledger(&self) -> &crate::conn::ledger::Ledger {
        self.frontends.ledger()
    }

    /// Every service as [`Mesh::inspect`] shows it, by name, with the time since which its status holds.
    pub fn overview(&self) -> Vec<(Inspect, jiff::Timestamp)> {
        let (core, router) = (self.read(), self.router.load());
        let all = core.registry.iter();
        all.map(|(name, record)| (view::inspect(name, record, &router), record.since.wall)).collect()
    }

    /// Changes from now on, with a snapshot in front.
    pub fn events(self: &Arc<Self>) -> Changes {
        Changes { mesh: self.clone(), receiver: self.events.subscribe(), whole: true }
    }

    /// Wakes at every change from now on; what changed is asked for.
    pub(crate) fn changes(&self) -> tokio::sync::broadcast::Receiver<Arc<Event>> {
        self.events.subscribe()
    }

    /// The daemon's health; always `ok`, whatever Docker says.
    pub fn health(&self) -> Health {
        let docker = match self.docker.load(Ordering::Relaxed) {
            1 => "connected",
            2 => "degraded",
            _ => "disabled",
        };
        let leaving = self.leaving.read().unwrap_or_else(PoisonError::into_inner).clone();
        Health { status: "ok".into(), version: self.config.version.into(), docker: docker.into(), leaving }
    }

    /// The daemons that health lists as still having streams, from now on.
    pub(crate) fn set_leaving(&self, leaving: Vec<Leaving>) {
        *self.leaving.write().unwrap_or_else(PoisonError::into_inner) = leaving;
    }

    /// The door that changes go through.
    pub(crate) fn door(&self) -> &ChangeDoor {
        &self.changes
    }

    /// What health says of the container adapter from now on.
    pub fn set_docker_status(&self, status: DockerStatus) {
        self.docker.store(status as u8, Ordering::Relaxed);
    }

    /// The configuration it was started with.
    pub fn config(&self) -> &Config {
        &self.config
    }

    /// The allocator, for adapters without `bind` (see [`AdapterPorts`]).
    pub fn allocator(&self) -> Arc<Allocator> {
        self.allocator.clone()
    }

    /// The counters, for other rooms to add theirs.
    pub fn metrics(&self) -> &Metrics {
        &self.metrics
    }

    /// Prometheus text of the moment.
    pub fn render_metrics(&self) -> String {
        let (ready, unavailable, leases) = {
            let core = self.read();
            let all = core.registry.iter().count();
            let ready = core.registry.iter().filter(|(_, record)| record.backend.is_some()).count();
            (ready, all - ready, core.leases.count())
        };
        self.metrics.render(metrics::Gauges {
            ready,
            unavailable,
            leases,
            frontends: self.frontends.len(),
            event_readers: self.events.readers(),
        })
    }

    /// Makes the running frontend and the event stream follow what the core says of `name`.
    fn settle(&self, name: &ServiceName) {
        self.frontends.sync(name, || self.current_backend(name));
        self.settle_host(name);
        self.tell(name);
    }

    /// Sends what `name` is now to whoever listens.
    fn tell(&self, name: &ServiceName) {
        self.events.send(|| {
            let core = self.read();
            let record = core.registry.get(name)?;
            Some(Event::Changed { service: view::service(name, record, &self.router.load()) })
        });
    }

    fn current_backend(&self, name: &ServiceName) -> conn::Backend {
        let core = self.read();
        match core.registry.get(name) {
            None => conn::Backend::None("forgotten".into()),
            Some(record) => record.stands_behind(),
        }
    }

    fn look_up<T>(&self, name: &str, show: impl FnOnce(&ServiceName, &record::Record) -> T) -> Result<T, Refusal> {
        let unknown = || Refusal::NoService(name.to_owned());
        let parsed: ServiceName = name.parse().map_err(|_| unknown())?;
        let core = self.read();
        core.registry.get(&parsed).map(|record| show(&parsed, record)).ok_or_else(unknown)
    }

    fn read(&self) -> RwLockReadGuard<'_, Core> {
        self.core.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn write(&self) -> RwLockWriteGuard<'_, Core> {
        self.core.write().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Mesh {
    fn drop(&mut self) {
        self.stop.cancel();
    }
}

/// Who a port of a mesh service is reserved for, as people are told.
fn owner_label(name: &ServiceName) -> String {
    format!("service {name}")
}

#[cfg(test)]
pub(crate) mod rig;
#[cfg(test)]
mod tests;

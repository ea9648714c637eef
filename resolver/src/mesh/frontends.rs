//! The bound frontends of this mesh, by name. A listener exists only because it was bound and is in here.
use super::also_bind::AlsoBind;
use super::hand_over::Lent;
use crate::conn::ledger::Ledger;
use crate::conn::{self, Backend, Bound, Ending, Frontend, FrontendId};
use futures_util::future::join_all;
use stado_fleet::name::{LoopbackAddr, ServiceName};
use std::collections::HashMap;
use std::net::{IpAddr, SocketAddr};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// A mesh frontend dials its backend for at most this long (design, choices).
const DIAL_BUDGET: Duration = Duration::from_secs(3);

/// The frontends, and what a new one needs.
#[derive(Debug)]
pub(crate) struct Frontends {
    running: Mutex<HashMap<ServiceName, Runtime>>,
    context: conn::Context,
    pub(super) also_bind: AlsoBind,
}

/// The frontend of one name, and its copies on further addresses of this machine.
#[derive(Debug)]
pub(crate) struct Runtime {
    addr: SocketAddr,
    parts: Vec<Frontend>,
}

impl Frontends {
    pub(crate) fn new(context: conn::Context, also_bind: AlsoBind) -> Self {
        Self { running: Mutex::default(), context, also_bind }
    }

    /// Which address that `backend` would dial is one that this daemon listens on, and for what.
    pub(crate) fn loop_of(&self, backend: &LoopbackAddr) -> Option<(SocketAddr, Arc<str>)> {
        let purpose = |addr: SocketAddr| self.context.own.purpose(addr).map(|purpose| (addr, purpose));
        backend.candidates().into_iter().find_map(purpose)
    }

    /// The address that is bound for `name`.
    pub(crate) fn addr(&self, name: &ServiceName) -> Option<SocketAddr> {
        self.running().get(name).map(|runtime| runtime.addr)
    }

    /// Where connections are entered, those of the fleet's adapters too.
    pub(crate) fn ledger(&self) -> &Ledger {
        &self.context.ledger
    }

    /// Starts serving on `bound`, and on the same port of the further addresses where that is free.
    pub(crate) fn start(&self, name: &ServiceName, bound: Bound, backend: Backend) {
        let addr = bound.addr;
        let mut all = vec![bound];
        all.extend(self.also_bind.bind_all(name, addr.port()));
        self.run(name, addr, all, &backend);
    }

    /// Serves `name` on exactly these.
    pub(super) fn run(&self, name: &ServiceName, addr: SocketAddr, bound: Vec<Bound>, backend: &Backend) {
        let parts = bound.into_iter().map(|bound| self.part(name, bound, backend)).collect();
        self.running().insert(name.clone(), Runtime { addr, parts });
    }

    fn part(&self, name: &ServiceName, bound: Bound, backend: &Backend) -> Frontend {
        let id = FrontendId { service: name.as_str().into(), consumer: None, bind: bound.addr };
        Frontend::start(bound, id, backend.clone(), DIAL_BUDGET, self.context.clone())
    }

    /// The names that are not served on `ip`, with their ports.
    pub(super) fn without(&self, ip: IpAddr) -> Vec<(ServiceName, u16)> {
        let running = self.running();
        let missing = running.iter().filter(|(_, runtime)| !runtime.has(ip));
        missing.map(|(name, runtime)| (name.clone(), runtime.port())).collect()
    }

    /// Serves `name` on `bound` too, if it still has that port and not that address. As for [`Frontends::sync`], `current`
    /// is asked under the lock.
    pub(super) fn add(&self, name: &ServiceName, bound: Bound, current: impl FnOnce() -> Backend) {
        let mut running = self.running();
        let Some(runtime) = running.get_mut(name) else { return };
        if runtime.port() == bound.addr.port() && !runtime.has(bound.addr.ip()) {
            runtime.parts.push(self.part(name, bound, &current()));
        }
    }

    /// Gives new connections of `name` the backend that `current` tells. Asking under the lock keeps the last word right
    /// when two changes meet.
    pub(crate) fn sync(&self, name: &ServiceName, current: impl FnOnce() -> Backend) {
        let running = self.running();
        let Some(runtime) = running.get(name) else { return };
        let backend = current();
        for part in &runtime.parts {
            part.set_backend(backend.clone());
        }
    }

    /// Takes the runtime of `name` out.
    pub(crate) fn take(&self, name: &ServiceName) -> Option<Runtime> {
        self.running().remove(name)
    }

    /// Takes all runtimes out.
    pub(crate) fn take_all(&self) -> Vec<Runtime> {
        self.running().drain().map(|(_, runtime)| runtime).collect()
    }

    /// The pause of all accept loops of the daemon.
    pub(crate) fn hold(&self) -> &conn::Hold {
        &self.context.hold
    }

    /// All open listeners, to hand them over.
    pub(crate) fn lend(&self) -> Vec<Lent> {
        let running = self.running();
        let of = |(service, runtime): (&ServiceName, &Runtime)| {
            let (service, addr) = (service.clone(), runtime.addr);
            let lent = move |part: &Frontend| Lent {
                service: service.clone(),
                addr,
                bind: part.id().bind,
                missing_half: part.missing_half(),
                listeners: part.lend(),
            };
            runtime.parts.iter().map(lent).collect::<Vec<_>>()
        };
        running.iter().flat_map(of).collect()
    }

    /// The listeners of `from` serve `to` from now on. They stay open meanwhile, and so do the streams.
    pub(crate) async fn rename(&self, from: &ServiceName, to: &ServiceName, backend: Backend) {
        let Some(runtime) = self.take(from) else { return };
        let bound = join_all(runtime.parts.into_iter().map(Frontend::release)).await;
        self.run(to, runtime.addr, bound.into_iter().filter_map(|(bound, _)| bound).collect(), &backend);
    }

    /// Why the other loopback family of `name`, or a further address, is not served, while it is not.
    pub(crate) fn missing_part(&self, name: &ServiceName) -> Option<String> {
        let running = self.running();
        let runtime = running.get(name)?;
        runtime.parts.first().and_then(Frontend::missing_half).or_else(|| self.also_bind.missing(runtime))
    }

    /// How many names have a bound frontend.
    pub(crate) fn len(&self) -> usize {
        self.running().len()
    }

    fn running(&self) -> MutexGuard<'_, HashMap<ServiceName, Runtime>> {
        self.running.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Runtime {
    pub(super) fn port(&self) -> u16 {
        self.addr.port()
    }

    pub(super) fn has(&self, ip: IpAddr) -> bool {
        self.addr.ip() == ip || self.parts.iter().any(|part| part.id().bind.ip() == ip)
    }

    /// Stops accepting and frees the port; streams go on.
    pub(crate) async fn retire(self) -> Vec<Ending> {
        join_all(self.parts.into_iter().map(Frontend::retire)).await
    }

    /// Stops accepting at once; streams may go on for `grace`.
    pub(crate) async fn close(self, grace: Duration) {
        join_all(self.parts.into_iter().map(|part| part.close(grace))).await;
    }
}

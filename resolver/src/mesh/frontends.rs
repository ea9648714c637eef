//! The bound frontends of this mesh, by name. A listener exists only because it was bound and is in here.
use crate::conn::{self, Backend, Bound, Families, Frontend, FrontendId};
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
    also_bind: Vec<IpAddr>,
}

/// The frontend of one name, and its copies on further addresses of this machine.
#[derive(Debug)]
pub(crate) struct Runtime {
    addr: SocketAddr,
    parts: Vec<Frontend>,
}

impl Frontends {
    pub(crate) fn new(context: conn::Context, also_bind: Vec<IpAddr>) -> Self {
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

    /// Starts serving on `bound`, and on the same port of the further addresses where that is free.
    pub(crate) fn start(&self, name: &ServiceName, bound: Bound, backend: Backend) {
        let addr = bound.addr;
        let mut all = vec![bound];
        for ip in &self.also_bind {
            match conn::bind(SocketAddr::new(*ip, addr.port()), Families::AtLeastOne) {
                Ok(extra) => all.push(extra),
                Err(error) => {
                    tracing::warn!(target: "stado::mesh", service = %name, error = %error, "frontend_also_bind_failed");
                }
            }
        }
        self.run(name, addr, all, &backend);
    }

    fn run(&self, name: &ServiceName, addr: SocketAddr, bound: Vec<Bound>, backend: &Backend) {
        let service: Arc<str> = name.as_str().into();
        let part = |bound: Bound| {
            let id = FrontendId { service: service.clone(), consumer: None, bind: bound.addr };
            Frontend::start(bound, id, backend.clone(), DIAL_BUDGET, self.context.clone())
        };
        let parts = bound.into_iter().map(part).collect();
        self.running().insert(name.clone(), Runtime { addr, parts });
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

    /// The listeners of `from` serve `to` from now on. They stay open meanwhile, and so do the streams.
    pub(crate) async fn rename(&self, from: &ServiceName, to: &ServiceName, backend: Backend) {
        let Some(runtime) = self.take(from) else { return };
        let bound = join_all(runtime.parts.into_iter().map(Frontend::release)).await;
        self.run(to, runtime.addr, bound.into_iter().flatten().collect(), &backend);
    }

    /// Why the other loopback family of `name` is not served, while it is not.
    pub(crate) fn missing_half(&self, name: &ServiceName) -> Option<String> {
        self.running().get(name).and_then(|runtime| runtime.parts.first().and_then(Frontend::missing_half))
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
    /// Stops accepting and frees the port; streams go on.
    pub(crate) async fn retire(self) {
        join_all(self.parts.into_iter().map(Frontend::retire)).await;
    }

    /// Stops accepting at once; streams may go on for `grace`.
    pub(crate) async fn close(self, grace: Duration) {
        join_all(self.parts.into_iter().map(|part| part.close(grace))).await;
    }
}

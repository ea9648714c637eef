//! From files to a running mesh: lock, read, bind every remembered frontend, sweep; and its end.
use super::allocator::Allocator;
use super::also_bind::AlsoBind;
use super::clock::{Clock, Now};
use super::error::MeshError;
use super::events::Events;
use super::frontends::Frontends;
use super::metrics::Metrics;
use super::record::{Kind, Place};
use super::state_store::Store;
use super::stripes::Stripes;
use super::{Config, Core, Mesh, owner_label};
use crate::conn::{self, Families};
use crate::http::{Listening, Sites};
use arc_swap::ArcSwap;
use stado_fleet::disk::{Lock, LockAttempt};
use stado_fleet::name::ServiceName;
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicU8;
use std::sync::{Arc, Mutex, RwLock};

/// How the reason of a name begins whose port is somebody else's now.
pub(super) const PORT_LOST: &str = "its port could not be taken back";
/// Why a service of an earlier run has no backend yet.
const NOT_BACK: &str = "producer not back since restart";

impl Mesh {
    /// Locks and reads the state, binds the remembered frontends, and starts sweeping. Must be called inside a runtime.
    /// A frontend that cannot be bound is listed with its reason and stops nothing; only the state file itself can.
    pub fn start(config: Config, context: conn::Context) -> Result<Arc<Self>, MeshError> {
        let allocator = Arc::new(Allocator::new(config.frontend_host, config.port_min, config.port_max));
        Self::start_over(config, context, allocator)
    }

    /// As [`Mesh::start`], over an allocator of the configured range that others of this daemon use already.
    pub fn start_over(
        config: Config,
        context: conn::Context,
        allocator: Arc<Allocator>,
    ) -> Result<Arc<Self>, MeshError> {
        config.validate()?;
        let lock = lock(&config)?;
        let mesh = Self::assemble(config, context, allocator, lock, Clock::start())?;
        mesh.restore();
        mesh.start_sweeper();
        mesh.follow_tuning();
        Ok(mesh)
    }

    /// A mesh that knows what its files say, and no name yet.
    pub(super) fn assemble(
        config: Config,
        context: conn::Context,
        allocator: Arc<Allocator>,
        lock: Lock,
        clock: Clock,
    ) -> Result<Arc<Self>, MeshError> {
        let sites = Arc::new(Sites::new(context.ledger.clone()));
        Ok(Arc::new(Self {
            tuning: RwLock::new(config.tuning()),
            clock,
            core: RwLock::new(Core::default()),
            names: Stripes::new(),
            keys: Stripes::new(),
            allocator,
            ports: Store::open(&config.state_path, "tcp_ports")?,
            hosts: Store::open(&hostnames_path(&config.state_path), "hostnames")?,
            exposed: Store::open(&super::expose::path(&config.state_path), "ports")?,
            offered: Mutex::default(),
            withheld: Mutex::default(),
            metrics: Metrics::new(context.ledger.clone(), sites.clone()),
            frontends: Frontends::new(
                context,
                AlsoBind::new(config.also_bind.clone(), config.beyond_this_machine.clone()),
            ),
            sites,
            router: ArcSwap::from_pointee(Listening::none(super::hosts::NO_ROUTER)),
            events: Events::new(),
            docker: AtomicU8::new(super::DockerStatus::Disabled as u8),
            refused: tokio::sync::watch::Sender::default(),
            stop: tokio_util::sync::CancellationToken::new(),
            lock: Mutex::new(Some(lock)),
            changes: super::ChangeDoor::new(),
            parked: Default::default(),
            leaving: RwLock::default(),
            config,
        }))
    }

    /// Stops accepting, lets streams end within the shutdown timeout, and saves what is not saved yet.
    pub async fn shutdown(&self) {
        self.stop.cancel();
        let grace = self.tuning().shutdown_timeout;
        let closing = self.frontends.take_all().into_iter().map(|runtime| runtime.close(grace));
        futures_util::future::join_all(closing).await;
        self.save_all().await;
    }

    /// Saves what is not saved yet.
    pub(super) async fn save_all(&self) {
        for saved in [self.ports.flush().await, self.hosts.flush().await, self.exposed.flush().await] {
            if let Err(error) = saved {
                tracing::warn!(target: "stado::mesh", error = %error, "state_save_failed");
            }
        }
    }

    /// A name with a hostname was http last; a port from before that is only kept for it.
    fn restore(&self) {
        let (now, hosts) = (self.clock.now(), self.hosts.entries());
        for (name, host) in &hosts {
            if let (Ok(name), Ok(host)) = (name.parse(), super::names::hostname(host)) {
                self.remember_host(name, host, NOT_BACK, now);
            }
        }
        for (name, port) in self.ports.entries() {
            let port = u16::try_from(port).ok().filter(|port| *port != 0);
            let (Ok(parsed), Some(port)) = (name.parse::<ServiceName>(), port) else { continue };
            if hosts.contains_key(&name) {
                self.allocator.reserve(port, &owner_label(&parsed));
            } else {
                self.restore_port(parsed, port, now);
            }
        }
        self.restore_exposed();
    }

    /// One that cannot be bound gets another port when it is asked for again.
    fn restore_exposed(&self) {
        for (name, port) in self.exposed.entries() {
            let port = u16::try_from(port).ok().filter(|port| *port != 0);
            let (Ok(name), Some(port)) = (name.parse::<ServiceName>(), port) else { continue };
            if self.read().registry.get(&name).is_none_or(|record| record.kind != Kind::Http) {
                continue;
            }
            if let Err(why) = self.rebind(&name, port) {
                let addr = self.allocator.addr(port);
                tracing::warn!(target: "stado::mesh", service = %name, frontend = %addr, error = %why, "frontend_remembered_unavailable");
            }
        }
    }

    fn restore_port(&self, name: ServiceName, port: u16, now: Now) {
        let addr = self.allocator.addr(port);
        let reason = match self.rebind(&name, port) {
            Ok(()) => {
                tracing::info!(target: "stado::mesh", service = %name, frontend = %addr, "frontend_reused");
                NOT_BACK.to_owned()
            }
            Err(why) => {
                let reason = format!("{PORT_LOST}: {why}; the next registration gets another port");
                tracing::warn!(target: "stado::mesh", service = %name, frontend = %addr, error = %why, "frontend_remembered_unavailable");
                reason
            }
        };
        self.write().registry.remember(name, Kind::Tcp, Place::Port(addr), &reason, now);
    }

    fn rebind(&self, name: &ServiceName, port: u16) -> Result<(), String> {
        if !self.allocator.reserve(port, &owner_label(name)) {
            let holder = self.allocator.holder(port).unwrap_or_default();
            return Err(format!("port {port} is remembered for {holder} as well"));
        }
        let bound =
            conn::bind(self.allocator.addr(port), Families::AtLeastOne).map_err(|error| conn::refused(&error))?;
        self.frontends.start(name, bound, conn::Backend::None(NOT_BACK.into()));
        Ok(())
    }
}

/// Two daemons never share a state: each would hand out what the other remembers.
fn lock(config: &Config) -> Result<Lock, MeshError> {
    let state = &config.state_path;
    if let Some(parent) = state.parent() {
        stado_fleet::disk::private_dir(parent)?;
    }
    match Lock::try_exclusive(&config.lock_path(), true)? {
        LockAttempt::Held(lock) => Ok(lock),
        LockAttempt::Busy { pid } => Err(MeshError::Locked { path: state.to_owned(), pid }),
    }
}

/// `hostnames.json` beside `state.json`; beside a state file of another name, `<its stem>.hostnames.json`, so that two
/// states in one directory do not share it.
fn hostnames_path(state: &Path) -> PathBuf {
    match state.file_stem().and_then(|stem| stem.to_str()) {
        None | Some("state") => state.with_file_name("hostnames.json"),
        Some(stem) => state.with_file_name(format!("{stem}.hostnames.json")),
    }
}

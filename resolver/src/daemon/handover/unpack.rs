//! What came, as the values that a daemon is built from. Anything that is not as promised ends the hand-over.
use super::parcel::{HeldParcel, Offer, Parcel, Role};
use crate::api::control::ControlSocket;
use crate::apply::held::Arrival;
use crate::apply::plan::AdapterId;
use crate::conn::Bound;
use crate::daemon::config::Config;
use crate::daemon::fleet_side::Inherited;
use crate::docker::Containers;
use crate::mesh::hand_over::Parked;
use crate::mesh::handed::Handed;
use stado_fleet::admit::Snapshot;
use stado_fleet::disk::Lock;
use stado_fleet::document::Document;
use stado_fleet::name::ServiceName;
use std::collections::BTreeMap;
use std::net::{SocketAddr, TcpListener};
use std::os::fd::OwnedFd;
use std::sync::Arc;

/// A daemon in parts. What this one has no use for is closed.
pub(in crate::daemon) struct Unpacked {
    pub(in crate::daemon) pid: u32,
    pub(in crate::daemon) mesh: Handed,
    pub(in crate::daemon) mesh_lock: Lock,
    pub(in crate::daemon) frontends: Vec<Parked>,
    pub(in crate::daemon) control: ControlSocket,
    pub(in crate::daemon) metrics: Option<Bound>,
    pub(in crate::daemon) gate: Option<Bound>,
    pub(in crate::daemon) objects: Option<Bound>,
    pub(in crate::daemon) router: Vec<TcpListener>,
    pub(in crate::daemon) passed: Vec<SocketAddr>,
    pub(in crate::daemon) resolver_lock: Option<Lock>,
    pub(in crate::daemon) fleet: Option<Inherited>,
    pub(in crate::daemon) containers: Containers,
}

/// Looks at everything that came. Must run inside a tokio runtime.
pub(in crate::daemon) fn unpack(
    config: &Config,
    parcel: Parcel,
    offers: Vec<(Offer, Vec<OwnedFd>)>,
) -> Result<Unpacked, String> {
    let mut parts = Parts::default();
    for (offer, fds) in offers {
        parts.take(config, offer, fds)?;
    }
    let snapshot = match parcel.fleet.as_ref().and_then(|fleet| fleet.held.as_ref()) {
        Some(held) if config.fleet.is_some() => Some(snapshot(held)?),
        _ => None,
    };
    let Parts { mesh_lock, control, frontends, metrics, gate, objects, router, resolver_lock, adapters, api } = parts;
    let fleet = parcel.fleet.map(|_| Inherited { adapters, api, snapshot });
    Ok(Unpacked {
        pid: parcel.pid,
        mesh: parcel.mesh,
        mesh_lock: mesh_lock.ok_or("the lock of the state file is not among it")?,
        frontends: frontends.into_values().collect(),
        control: control.ok_or("the control socket is not among it")?,
        metrics,
        gate,
        objects,
        router,
        passed: parcel.passed,
        resolver_lock,
        fleet,
        containers: parcel.containers,
    })
}

#[derive(Default)]
struct Parts {
    mesh_lock: Option<Lock>,
    control: Option<ControlSocket>,
    frontends: BTreeMap<ServiceName, Parked>,
    metrics: Option<Bound>,
    gate: Option<Bound>,
    objects: Option<Bound>,
    router: Vec<TcpListener>,
    resolver_lock: Option<Lock>,
    adapters: BTreeMap<AdapterId, Bound>,
    api: Option<Bound>,
}

impl Parts {
    fn take(&mut self, config: &Config, offer: Offer, fds: Vec<OwnedFd>) -> Result<(), String> {
        match offer.role.clone() {
            Role::MeshLock => self.mesh_lock = Some(lock(fds, &config.mesh.lock_path())?),
            Role::ResolverLock => {
                self.resolver_lock = config.fleet.as_ref().map(|fleet| lock(fds, &fleet.paths.lock)).transpose()?;
            }
            Role::Control => {
                let socket = ControlSocket::received(&config.mesh.socket, only(fds)?);
                self.control = Some(socket.map_err(|error| error.to_string())?);
            }
            Role::Metrics => self.metrics = Some(bound(offer, fds)?),
            Role::Gate => self.gate = Some(bound(offer, fds)?),
            Role::ObjectApi => self.objects = Some(bound(offer, fds)?),
            Role::Router => self.router.extend(fds.into_iter().map(listener).collect::<Result<Vec<_>, _>>()?),
            Role::ResolutionApi => self.api = Some(bound(offer, fds)?),
            Role::Mesh { service, addr } => {
                let service: ServiceName = read(&service)?;
                let parked = Parked { service: service.clone(), addr, bound: Vec::new() };
                self.frontends.entry(service).or_insert(parked).bound.push(bound(offer, fds)?);
            }
            Role::Adapter { service, consumer, declared } => {
                let id = AdapterId { service: read(&service)?, consumer: read(&consumer)?, declared };
                self.adapters.insert(id, bound(offer, fds)?);
            }
        }
        Ok(())
    }
}

/// For whoever looks at its address by itself.
fn listener(fd: OwnedFd) -> Result<TcpListener, String> {
    match crate::conn::listens(&fd) {
        Ok(true) => Ok(fd.into()),
        Ok(false) => Err("a port of the router that does not listen is among it".into()),
        Err(error) => Err(error.to_string()),
    }
}

fn bound(offer: Offer, fds: Vec<OwnedFd>) -> Result<Bound, String> {
    let addr = offer.bind.ok_or("a listener without its address is among it")?;
    Bound::received(addr, fds, offer.missing_half).map_err(|error| error.to_string())
}

fn lock(fds: Vec<OwnedFd>, path: &std::path::Path) -> Result<Lock, String> {
    Lock::adopt_at(only(fds)?.into(), path).map_err(|error| error.to_string())
}

fn only(fds: Vec<OwnedFd>) -> Result<OwnedFd, String> {
    fds.into_iter().next().ok_or_else(|| "a descriptor is missing".to_owned())
}

fn read<T: std::str::FromStr>(text: &str) -> Result<T, String>
where
    T::Err: std::fmt::Display,
{
    text.parse().map_err(|error| format!("{text:?}: {error}"))
}

fn snapshot(held: &HeldParcel) -> Result<(Snapshot, Arrival), String> {
    let document = Document::parse(held.document.as_bytes()).map_err(|error| error.to_string())?;
    let valid = stado_fleet::validate::validate(document).map_err(|invalid| invalid.to_string())?;
    let snapshot = Snapshot { valid: Arc::new(valid), store_version: read(&held.store_version)? };
    Ok((snapshot, Arrival::Handed { loaded_at: held.loaded_at, age: held.age }))
}

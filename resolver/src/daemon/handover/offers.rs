//! Every descriptor of a running daemon that its successor needs, with its role.
use super::parcel::{Offer, Role};
use crate::apply::refresh::Refresh;
use crate::apply::walk::Walk;
use crate::conn::Lent;
use crate::daemon::assemble::Daemon;
use crate::daemon::mesh_side::MeshSide;
use crate::daemon::router_side::RouterSide;
use std::fs::File;
use std::net::SocketAddr;
use std::sync::Arc;

/// An offer with its descriptors.
pub(super) struct Offered {
    pub(super) offer: Offer,
    pub(super) lent: Vec<Lent>,
}

/// All of them. `refresh`: the fleet side's loop, which does not run meanwhile.
pub(super) fn all(daemon: &Daemon, refresh: Option<&mut Refresh>) -> std::io::Result<Vec<Offered>> {
    let mut all = Vec::new();
    daemon.mesh.slot().with(|side| mesh(side, &mut all)).transpose()?;
    if let Some(refresh) = refresh {
        let (walk, reporter) = refresh.parts();
        // A home that cannot be written has none.
        let held = reporter.publisher().lock().map(|held| held.file().try_clone()).transpose()?;
        all.extend(held.map(|held| lock(Role::ResolverLock, held)));
        fleet(walk, &mut all);
    }
    let gate = daemon.gate.slot().with(|gate| gate.lend().map(|listener| (gate.local_addr(), listener))).flatten();
    all.extend(gate.map(|(bind, listener)| tcp(Role::Gate, bind, None, vec![listener as Lent])));
    let objects = daemon.objects.slot().with(|side| side.server.lend().map(|listener| (side.server.bind(), listener)));
    let objects = objects.flatten();
    all.extend(objects.map(|(bind, listener)| tcp(Role::ObjectApi, bind, None, vec![listener as Lent])));
    Ok(all)
}

fn mesh(side: &MeshSide, all: &mut Vec<Offered>) -> std::io::Result<()> {
    all.push(lock(Role::MeshLock, side.mesh.lend_lock()?));
    all.extend(side.control.upgrade().map(|listener| offered(Role::Control, None, None, vec![listener as Lent])));
    all.extend(side.metrics.slot().with(|page| tcp(Role::Metrics, page.bind(), None, page.lend())));
    let router = side.router.as_ref().map(RouterSide::lend).unwrap_or_default();
    all.extend(router.into_iter().map(|(bind, listeners)| tcp(Role::Router, bind, None, listeners)));
    all.extend(side.mesh.lend().into_iter().map(|lent| {
        let role = Role::Mesh { service: lent.service.to_string(), addr: lent.addr };
        tcp(role, lent.bind, lent.missing_half, lent.listeners)
    }));
    Ok(())
}

fn fleet(walk: &Walk, all: &mut Vec<Offered>) {
    all.extend(walk.api().lend().map(|(bind, missing, listeners)| tcp(Role::ResolutionApi, bind, missing, listeners)));
    all.extend(walk.lend().into_iter().map(|lent| {
        let (service, consumer) = (lent.id.service.to_string(), lent.id.consumer.to_string());
        let role = Role::Adapter { service, consumer, declared: lent.id.declared };
        tcp(role, lent.bind, lent.missing_half, lent.listeners)
    }));
}

fn tcp(role: Role, bind: SocketAddr, missing_half: Option<String>, listeners: Vec<Lent>) -> Offered {
    offered(role, Some(bind), missing_half, listeners)
}

fn lock(role: Role, file: File) -> Offered {
    offered(role, None, None, vec![Arc::new(file)])
}

fn offered(role: Role, bind: Option<SocketAddr>, missing_half: Option<String>, lent: Vec<Lent>) -> Offered {
    Offered { offer: Offer { role, bind, missing_half, count: lent.len() }, lent }
}

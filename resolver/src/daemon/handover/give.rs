//! The side that serves: freezes what changes, sends what it has, and is freed of it by `Running`. Whatever fails before
//! that, it goes on as if nothing had been asked.
use super::error::GiveError;
use super::offers::{self, Offered};
use super::parcel::{Ask, Comer, FleetParcel, HeldParcel, Parcel, Server};
use super::remain;
use super::wire::{BATCH, Wire, WireError};
use super::{STEP, WORK};
use crate::apply::held::Held;
use crate::apply::refresh::Refresh;
use crate::daemon::Shutdown;
use crate::daemon::assemble::Daemon;
use crate::daemon::router_side::RouterSide;
use crate::docker::Containers;
use crate::mesh::Mesh;
use std::os::fd::AsFd;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

/// For changes that are under way when a hand-over begins: binds and writes to the disk.
const CHANGES: Duration = Duration::from_secs(10);

/// What stands still meanwhile.
pub(in crate::daemon) struct Frozen {
    containers: Containers,
    pub(in crate::daemon) refresh: Option<Box<Refresh>>,
    /// Since when.
    pub(in crate::daemon) since: String,
    /// What was open when the word was given, as both sides tell it.
    pub(in crate::daemon) streams: u64,
}

/// Hands everything to the process behind `wire`. After `Ok` that one serves and publishes.
pub(in crate::daemon) async fn give(
    daemon: &mut Daemon,
    wire: &mut Wire,
    ask: &Ask,
    shutdown: &Shutdown,
) -> Result<Frozen, GiveError> {
    if let Err(why) = check(daemon, ask) {
        // Whether it hears it or not: it is refused.
        let _ = wire.send(&Server::Refused { why: why.clone() }, &[]).await;
        return Err(GiveError::Refused(why));
    }
    let mut frozen = freeze(daemon).await?;
    let prepared = tokio::select! {
        biased;
        () = shutdown.draining() => Err(GiveError::Stopping),
        sent = send(daemon, &mut frozen, wire) => sent,
    };
    let given = match prepared {
        Ok(()) => go(daemon, &mut frozen, wire).await,
        Err(error) => Err(error),
    };
    match given {
        Ok(()) => Ok(frozen),
        Err(error) => {
            thaw(daemon, frozen);
            Err(error)
        }
    }
}

/// Whether `ask` comes from a daemon of this home that can serve all of it.
fn check(daemon: &Daemon, ask: &Ask) -> Result<(), String> {
    let Some(mesh) = mesh_of(daemon) else { return Err("it does not serve a mesh".into()) };
    let config = mesh.config();
    if !same(&config.state_path, &ask.mesh_state) {
        let (ours, theirs) = (config.state_path.display(), ask.mesh_state.display());
        return Err(format!("its mesh has the state file {ours}, the other process was told {theirs}"));
    }
    if config.frontend_host != ask.frontend_host {
        let (ours, theirs) = (config.frontend_host, ask.frontend_host);
        return Err(format!("its frontends are bound on {ours}, the other process was told to bind on {theirs}"));
    }
    match (&daemon.fleet, &ask.fleet_home) {
        (Some(_), None) => {
            Err("it serves the fleet too, which the other process would not; use `stado resolver serve \
                                --take-over`"
                .into())
        }
        (Some(fleet), Some(home)) if !same(&fleet.home, home) => {
            Err(format!("its home is {}, the other process was told {}", fleet.home.display(), home.display()))
        }
        _ => Ok(()),
    }
}

fn mesh_of(daemon: &Daemon) -> Option<Arc<Mesh>> {
    daemon.mesh.slot().with(|side| side.mesh.clone())
}

fn same(a: &Path, b: &Path) -> bool {
    let real = |path: &Path| std::fs::canonicalize(path).or_else(|_| std::path::absolute(path));
    a == b || matches!((real(a), real(b)), (Ok(a), Ok(b)) if a == b)
}

/// Containers first: their watcher changes the mesh. Then the fleet's loop, then everybody else's changes.
async fn freeze(daemon: &mut Daemon) -> Result<Frozen, GiveError> {
    let containers = match daemon.mesh.slot().with_mut(|side| side.docker.take()).flatten() {
        Some(docker) => docker.close().await,
        None => Vec::new(),
    };
    let mut frozen = Frozen { containers, refresh: None, since: remain::now(), streams: 0 };
    if let Some(fleet) = &mut daemon.fleet {
        frozen.refresh = fleet.pause().await;
        if frozen.refresh.is_none() {
            thaw(daemon, frozen);
            return Err(GiveError::Stopping);
        }
    }
    if let Some(mesh) = mesh_of(daemon)
        && !mesh.freeze(CHANGES).await
    {
        thaw(daemon, frozen);
        return Err(GiveError::Busy);
    }
    Ok(frozen)
}

/// As before [`freeze`].
fn thaw(daemon: &mut Daemon, frozen: Frozen) {
    if let (Some(fleet), Some(refresh)) = (&mut daemon.fleet, frozen.refresh) {
        fleet.resume(refresh);
    }
    daemon.mesh.slot().with_mut(|side| {
        side.mesh.thaw();
        side.watch(frozen.containers);
    });
}

/// Everything up to `Ready`.
async fn send(daemon: &Daemon, frozen: &mut Frozen, wire: &mut Wire) -> Result<(), GiveError> {
    let parcel = Server::Parcel(Box::new(parcel(daemon, frozen)));
    step(wire.send(&parcel, &[]).await, "sending what is known")?;
    let refresh = frozen.refresh.as_deref_mut();
    let offered = step(offers::all(daemon, refresh).map_err(WireError::Broken), "collecting the listeners")?;
    for batch in batches(offered) {
        let fds: Vec<_> = batch.iter().flat_map(|offered| offered.lent.iter().map(AsFd::as_fd)).collect();
        let offers = batch.iter().map(|offered| offered.offer.clone()).collect();
        step(wire.send(&Server::Batch { offers }, &fds).await, "sending listeners")?;
        // One batch at a time: the system counts descriptors that are on their way.
        hear(wire, STEP, "sending listeners", |said| matches!(said, Comer::Got)).await?;
    }
    step(wire.send(&Server::All, &[]).await, "sending listeners")?;
    hear(wire, WORK, "waiting until the other process is ready", |said| matches!(said, Comer::Ready)).await
}

/// From the moment that only the other process publishes.
async fn go(daemon: &Daemon, frozen: &mut Frozen, wire: &mut Wire) -> Result<(), GiveError> {
    if let Some(refresh) = &mut frozen.refresh
        && !refresh.parts().1.publisher().pause().await
    {
        return Err(GiveError::Disk);
    }
    // From here on only the other one accepts: it may change what this one would still believe.
    if let Some(mesh) = mesh_of(daemon) {
        mesh.hold_accepting();
    }
    let last = remain::remainder(daemon, &frozen.since);
    frozen.streams = last.leaving.streams;
    let go = Server::Go { last, behind: daemon.behind.all() };
    step(wire.send(&go, &[]).await, "giving the word")?;
    hear(wire, WORK, "waiting until the other process serves", |said| matches!(said, Comer::Running)).await
}

fn parcel(daemon: &Daemon, frozen: &mut Frozen) -> Parcel {
    let fleet = frozen.refresh.as_mut().map(|refresh| {
        let held = refresh.parts().0.held();
        FleetParcel { held: held.as_deref().map(held_parcel) }
    });
    Parcel {
        pid: std::process::id(),
        version: daemon.version.to_owned(),
        mesh: mesh_of(daemon).map(|mesh| mesh.hand_out()).unwrap_or_default(),
        passed: daemon
            .mesh
            .slot()
            .with(|side| side.router.as_ref().map(RouterSide::passed))
            .flatten()
            .unwrap_or_default(),
        containers: frozen.containers.clone(),
        fleet,
    }
}

fn held_parcel(held: &Held) -> HeldParcel {
    HeldParcel {
        document: String::from_utf8_lossy(held.snapshot.valid.document.bytes()).into_owned(),
        store_version: held.snapshot.store_version.to_string(),
        loaded_at: held.loaded_at,
        age: held.fresh_at.map(|at| at.elapsed()),
    }
}

/// Groups of offers with at most [`BATCH`] descriptors together.
fn batches(offered: Vec<Offered>) -> Vec<Vec<Offered>> {
    let mut batches: Vec<Vec<Offered>> = Vec::new();
    let mut room = 0;
    for offered in offered {
        let count = offered.lent.len();
        match batches.last_mut() {
            Some(batch) if count <= room => batch.push(offered),
            _ => {
                batches.push(vec![offered]);
                room = BATCH;
            }
        }
        room = room.saturating_sub(count);
    }
    batches
}

fn step<T>(result: Result<T, WireError>, step: &'static str) -> Result<T, GiveError> {
    result.map_err(|source| GiveError::Broken { step, source })
}

async fn hear(
    wire: &mut Wire,
    patience: Duration,
    at: &'static str,
    good: impl FnOnce(&Comer) -> bool,
) -> Result<(), GiveError> {
    match step(wire.receive::<Comer>(patience).await, at)?.0 {
        said if good(&said) => Ok(()),
        Comer::Refused { why } => Err(GiveError::GaveUp(why)),
        _ => step(Err(WireError::Strange("it is not its turn to say that".into())), at),
    }
}

//! The end of a daemon: accepting stops at once, streams end by themselves within the grace, a second signal ends them now;
//! then the last state is published, the lock is given back and the socket is removed (design, rule 9).
use super::assemble::Daemon;
use super::fleet_side::{Ended, FleetSide};
use super::mesh_side::MeshSide;
use super::objects_side::ObjectsSide;
use super::{DaemonError, Shutdown};
use crate::apply::report::Reporter;
use crate::apply::state::Phase;
use crate::apply::walk::Walk;
use crate::gate::Gate;
use stado_fleet::link::Link;
use std::time::Duration;

/// For SSH sessions to close in order.
const GOODBYE: Duration = Duration::from_secs(1);

/// Ends all parts. `ended`: the fleet side ended by itself, with an error that is returned here.
pub(super) async fn drain(daemon: Daemon, ended: Option<()>, shutdown: &Shutdown) -> Result<(), DaemonError> {
    let grace = daemon.grace();
    let Daemon { mesh, fleet, gate, objects, behind, .. } = daemon;
    let (mesh, gate, objects) = (mesh.take().await, gate.take().await, objects.take().await);
    let Stopped { walk, reporter, link, result } = match fleet {
        None => Stopped { walk: None, reporter: None, link: None, result: Ok(()) },
        Some(side) => stop_loop(side, ended.is_some()).await,
    };
    let closing = async {
        tokio::join!(close_mesh(mesh), close_walk(walk, grace), close_gate(gate), close_objects(objects, grace));
    };
    tokio::select! {
        biased;
        () = shutdown.ending_now() => {}
        () = closing => {}
    }
    if let Some(reporter) = reporter {
        let (phase, reason) = match &result {
            Ok(()) => (Phase::Stopped, "stopped on request; its listeners are closed".to_owned()),
            Err(error) => (Phase::Failed, error.to_string()),
        };
        reporter.end(phase, reason).await;
    }
    if let Some(link) = link {
        // Sessions that do not say goodbye in time end with the process.
        let _ = tokio::time::timeout(GOODBYE, link.close()).await;
    }
    // Those that were taken over look for whoever comes next.
    behind.dissolve();
    result
}

/// What a fleet side leaves behind when its loop has ended.
struct Stopped {
    walk: Option<Walk>,
    reporter: Option<Reporter>,
    link: Option<Link>,
    result: Result<(), DaemonError>,
}

async fn stop_loop(side: FleetSide, by_itself: bool) -> Stopped {
    side.stop.cancel();
    let link = Some(side.link);
    let Some(task) = side.task else {
        let result = Err(DaemonError::Lost("its task is gone".into()));
        return Stopped { walk: None, reporter: None, link, result };
    };
    let ended: Result<Ended, _> = task.await;
    let (parts, result) = match ended {
        Ok(Ok(refresh)) => (Some(refresh.into_parts()), Ok(())),
        Ok(Err(failed)) => (Some(*failed.parts), Err(failed.error.into())),
        Err(lost) if by_itself || lost.is_panic() => (None, Err(DaemonError::Lost(lost.to_string()))),
        Err(_) => (None, Ok(())),
    };
    let (walk, reporter) = parts.unzip();
    Stopped { walk, reporter, link, result }
}

async fn close_mesh(mesh: Option<MeshSide>) {
    if let Some(mesh) = mesh {
        mesh.close().await;
    }
}

async fn close_walk(walk: Option<Walk>, grace: Duration) {
    if let Some(walk) = walk {
        walk.close(grace).await;
    }
}

async fn close_objects(objects: Option<ObjectsSide>, grace: Duration) {
    if let Some(objects) = objects {
        objects.server.close(grace).await;
    }
}

async fn close_gate(gate: Option<Gate>) {
    if let Some(gate) = gate {
        gate.close().await;
    }
}

//! Assemble, bind, announce, run, drain.
//!
//! [`run`] is the whole life of a daemon. `assemble` starts its parts: the mesh ([`mesh_side`]), the fleet ([`fleet_side`]
//! with [`identity`]) and the gate ([`gate_verbs`]); `drain` ends them, and [`handover`] gives
//! them to the next daemon, or takes them from the one that runs. It prints nothing: what a person should see goes to
//! the caller as an [`Announcement`].
mod announce;
mod assemble;
mod config;
mod drain;
mod error;
mod fleet_side;
mod gate_verbs;
mod handover;
pub mod identity;
mod mesh_side;
mod objects_side;
mod outside;
mod part;
mod router_ports;
mod router_side;
mod shutdown;
#[cfg(test)]
mod tests;

pub use announce::{Announcement, Served};
pub use config::{Config, FleetConfig};
pub use error::DaemonError;
pub use handover::TakeError;
pub use shutdown::Shutdown;

use crate::apply::report::FleetReport;
use crate::apply::state::Phase;
use assemble::{Daemon, Origin};
use fleet_side::FleetSide;
use handover::give::{Frozen, give};
use handover::wire::Wire;
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

/// Runs a daemon until `shutdown`, or until an error that stops it. Announces what it serves as soon as that is known, once
/// more when the fleet side reaches `serving` later, and the beginning of the end. Dropping the future ends everything at
/// once, as a kill would.
///
/// # Errors
/// A mesh alone (`fleet: None`): its socket or state is another daemon's, or unusable. With a fleet: the resolver lock is
/// held, or a declared resolution API cannot be bound while starting.
pub async fn run(
    config: Config,
    announce: impl Fn(Announcement) + Send + Sync + 'static,
    shutdown: Shutdown,
) -> Result<(), DaemonError> {
    let mut daemon = tokio::select! {
        biased;
        daemon = Daemon::start(config) => daemon?,
        () = shutdown.ending_now() => return Ok(()),
    };
    match daemon.origin {
        Origin::Started => {}
        Origin::NobodyToTakeOver => announce(Announcement::NobodyToTakeOver),
        Origin::TookOver { pid, streams } => announce(Announcement::TookOver { pid, streams }),
    }
    let ended = match attend(&mut daemon, &announce, &shutdown).await {
        End::Asked => {
            announce(Announcement::Draining(daemon.open_streams()));
            None
        }
        End::ByItself => Some(()),
        End::TakenOver { pid, wire, frozen } => {
            shutdown.leave();
            announce(Announcement::HandedOver { pid, streams: frozen.streams });
            handover::remain::remain(daemon, frozen, wire, &shutdown).await;
            return Ok(());
        }
    };
    drain::drain(daemon, ended, &shutdown).await
}

/// Why a daemon no longer attends.
enum End {
    /// It was asked to.
    Asked,
    /// The fleet side ended by itself.
    ByItself,
    /// Another process serves.
    TakenOver { pid: u32, wire: Wire, frozen: Frozen },
}

/// Announces what changes, and hands over to whoever asks, until the daemon is to end.
async fn attend(daemon: &mut Daemon, announce: &(impl Fn(Announcement) + Send + Sync), shutdown: &Shutdown) -> End {
    let mut reports = daemon.fleet.as_ref().map(FleetSide::reports);
    if reports.is_none() {
        announce(Announcement::Up(daemon.served(None)));
    }
    let mut announced = None;
    loop {
        let report = reports.as_mut().and_then(|reports| reports.borrow_and_update().clone());
        if let Some(report) = report {
            let phase = report.phase;
            match announced {
                None => announce(Announcement::Up(daemon.served(Some(report)))),
                Some(before) if before == phase => {}
                Some(_) if phase == Phase::Serving => announce(Announcement::Serving(daemon.served(Some(report)))),
                Some(_) => announce(Announcement::Unwell(daemon.served(Some(report)))),
            }
            announced = Some(phase);
        }
        let ended = daemon.fleet.as_ref().map(|fleet| fleet.ended.clone());
        tokio::select! {
            biased;
            () = shutdown.draining() => return End::Asked,
            () = cancelled(ended.as_ref()) => return End::ByItself,
            Some((mut wire, ask)) = daemon.asks.recv() => {
                match give(daemon, &mut wire, &ask, shutdown).await {
                    Ok(frozen) => return End::TakenOver { pid: ask.pid, wire, frozen },
                    Err(error) => tracing::warn!(target: "stado::mesh", pid = ask.pid, version = ask.version, error = %error, "hand_over_failed"),
                }
            }
            () = changed(reports.as_mut()) => {}
        }
    }
}

/// Never, for a mesh alone.
async fn cancelled(token: Option<&CancellationToken>) {
    match token {
        Some(token) => token.cancelled().await,
        None => std::future::pending().await,
    }
}

async fn changed(reports: Option<&mut watch::Receiver<Option<FleetReport>>>) {
    let gone = match reports {
        Some(reports) => reports.changed().await.is_err(),
        None => true,
    };
    if gone {
        std::future::pending().await
    }
}

//! Assemble, bind, announce, run, drain.
//!
//! [`run`] is the whole life of a daemon. `assemble` starts its parts: the mesh ([`mesh_side`]), the fleet ([`fleet_side`]
//! with [`identity`]) and the gate ([`gate_verbs`]); `drain` ends them. It prints nothing: what a person should see goes to
//! the caller as an [`Announcement`].
mod announce;
mod assemble;
mod config;
mod drain;
mod error;
mod fleet_side;
mod gate_verbs;
pub mod identity;
mod mesh_side;
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
pub use shutdown::Shutdown;

use crate::apply::state::Phase;
use assemble::Daemon;

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
    let daemon = tokio::select! {
        biased;
        daemon = Daemon::start(config) => daemon?,
        () = shutdown.ending_now() => return Ok(()),
    };
    let ended = attend(&daemon, &announce, &shutdown).await;
    if ended.is_none() {
        announce(Announcement::Draining(daemon.open_streams()));
    }
    drain::drain(daemon, ended, &shutdown).await
}

/// Announces what changes until the daemon is to end. `Some`: the fleet side ended by itself.
async fn attend(daemon: &Daemon, announce: &(impl Fn(Announcement) + Send + Sync), shutdown: &Shutdown) -> Option<()> {
    let Some(fleet) = &daemon.fleet else {
        announce(Announcement::Up(daemon.served(None)));
        shutdown.draining().await;
        return None;
    };
    let mut reports = fleet.reports();
    let mut announced = None;
    loop {
        let report = reports.borrow_and_update().clone();
        if let Some(report) = report {
            let phase = report.phase;
            match announced {
                None => announce(Announcement::Up(daemon.served(Some(report)))),
                Some(before) if before != phase && phase == Phase::Serving => {
                    announce(Announcement::Serving(daemon.served(Some(report))));
                }
                Some(_) => {}
            }
            announced = Some(phase);
        }
        tokio::select! {
            biased;
            () = shutdown.draining() => return None,
            () = fleet.ended.cancelled() => return Some(()),
            _ = reports.changed() => {}
        }
    }
}

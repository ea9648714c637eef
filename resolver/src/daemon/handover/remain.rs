//! The rest of a daemon's life after it was taken over: it accepts nothing, publishes nothing, tells its successor what it
//! still serves, and ends with its last stream. Only a signal sets a deadline.
use super::give::Frozen;
use super::obey::Obey;
use super::parcel::{Comer, Remainder};
use super::take;
use super::wire::Wire;
use crate::conn::Ending;
use crate::conn::ledger::Ledger;
use crate::daemon::Shutdown;
use crate::daemon::assemble::Daemon;
use crate::daemon::fleet_side::FleetSide;
use crate::daemon::objects_side::ObjectsSide;
use crate::daemon::part::Part;
use crate::gate::Gate;
use crate::http::Router;
use futures_util::future::join_all;
use stado_fleet::ledger::{Leaving, stamp};
use std::path::PathBuf;
use std::time::Duration;
use tokio::time::{Instant, sleep, sleep_until};

/// For requests that were accepted a moment before, and answers that are under way.
const LINGER: Duration = Duration::from_millis(300);
/// Between two looks at what is open.
const LOOK: Duration = Duration::from_millis(200);
/// Between two attempts to find a successor that does not answer.
const AGAIN: Duration = Duration::from_secs(1);
/// For resets and goodbyes at the very end.
const GOODBYE: Duration = Duration::from_secs(2);

/// This moment, as it is published.
pub(super) fn now() -> String {
    stamp(jiff::Timestamp::now())
}

/// What `daemon` itself serves now.
pub(super) fn remainder(daemon: &Daemon, since: &str) -> Remainder {
    what_remains(&daemon.ledger, daemon.open_streams(), since)
}

fn what_remains(ledger: &Ledger, streams: usize, since: &str) -> Remainder {
    let leaving = Leaving {
        pid: std::process::id(),
        streams: u64::try_from(streams).unwrap_or(u64::MAX),
        since: since.to_owned(),
    };
    Remainder { leaving, waits: ledger.own_waits(), answers: ledger.snapshot_answers() }
}

/// Lives until the last stream ends, or for the shutdown timeout once a signal asks for the end.
pub(in crate::daemon) async fn remain(daemon: Daemon, frozen: Frozen, wire: Wire, shutdown: &Shutdown) {
    daemon.behind.dissolve();
    let grace = daemon.grace();
    // Whoever came here a moment too late asks the successor instead.
    drop(daemon.asks);
    let ledger = daemon.ledger;
    let mut endings: Vec<Ending> = Vec::new();
    let mut socket = PathBuf::new();
    let mut control = None;
    let mut routers = Vec::new();
    if let Some(mut side) = daemon.mesh.take().await {
        endings.extend(side.mesh.leave().await);
        if let Some(router) = side.router.take() {
            routers = router.leave().await;
        }
        side.metrics = Part::none();
        socket.clone_from(&side.socket);
        control = Some(side);
    }
    if let Some(refresh) = frozen.refresh {
        // The reporter goes without a last word: the lock and the files are the successor's.
        let (walk, _) = refresh.into_parts();
        endings.extend(walk.leave(GOODBYE).await);
    }
    let obey = daemon.fleet.as_ref().map(FleetSide::obey);
    let link = daemon.fleet.map(|fleet| {
        fleet.stop.cancel();
        fleet.link
    });
    let gate = daemon.gate.take().await;
    if let Some(gate) = &gate {
        gate.leave();
    }
    let objects = daemon.objects.take().await;
    if let Some(objects) = &objects {
        objects.server.leave();
    }
    let mut teller = Teller { wire: Some(wire), socket, told: None, next: Instant::now(), since: frozen.since };
    tokio::select! {
        biased;
        () = shutdown.ending_now() => {}
        () = teller.until_over(&ledger, || others(gate.as_ref(), objects.as_ref(), &routers)) => {}
        () = asked_to_end(shutdown, grace) => {}
        () = follow(obey, &ledger, &endings) => {}
    }
    let cut = async {
        join_all(endings.into_iter().map(|ending| ending.close(Duration::ZERO))).await;
        join_all(routers.into_iter().map(|router| router.close(Duration::ZERO))).await;
        if let Some(gate) = gate {
            gate.close().await;
        }
        if let Some(objects) = objects {
            objects.server.close(Duration::ZERO).await;
        }
        if let Some(link) = link {
            link.close().await;
        }
        if let Some(side) = control {
            side.end().await;
        }
    };
    tokio::select! {
        biased;
        () = shutdown.ending_now() => {}
        // Whoever does not say goodbye in time ends with the process.
        _ = tokio::time::timeout(GOODBYE, cut) => {}
    }
}

/// Never returns.
async fn follow(obey: Option<Obey>, ledger: &Ledger, endings: &[Ending]) {
    match obey {
        Some(obey) => obey.run(ledger, endings).await,
        None => std::future::pending().await,
    }
}

/// What is open beside the streams of frontends.
fn others(gate: Option<&Gate>, objects: Option<&ObjectsSide>, routers: &[Router]) -> usize {
    let objects = objects.map_or(0, |side| side.server.open());
    gate.map_or(0, Gate::open) + objects + routers.iter().map(Router::connections).sum::<usize>()
}

async fn asked_to_end(shutdown: &Shutdown, grace: Duration) {
    shutdown.draining().await;
    sleep(grace).await;
}

/// Tells whoever serves the control socket, the successor or a later one, what is left here.
struct Teller {
    wire: Option<Wire>,
    socket: PathBuf,
    told: Option<Remainder>,
    /// When a lost successor is looked for again.
    next: Instant,
    since: String,
}

impl Teller {
    /// Returns when nothing is open any more.
    async fn until_over(&mut self, ledger: &Ledger, others: impl Fn() -> usize) {
        let linger = Instant::now() + LINGER;
        loop {
            let remainder = what_remains(ledger, ledger.streams() + others(), &self.since);
            if remainder.leaving.streams == 0 && Instant::now() >= linger {
                return;
            }
            self.tell(remainder).await;
            match &self.wire {
                Some(wire) => tokio::select! {
                    () = sleep(LOOK) => {}
                    () = wire.ended() => self.wire = None,
                },
                None => sleep_until(self.next.min(Instant::now() + LOOK)).await,
            }
        }
    }

    async fn tell(&mut self, remainder: Remainder) {
        if self.wire.is_none() && Instant::now() >= self.next {
            // A successor of the successor, or one that was started after it: it lists this process too.
            self.wire = take::connect(&self.socket).await.ok().flatten();
            self.told = None;
            self.next = Instant::now() + AGAIN;
        }
        let Some(wire) = &mut self.wire else { return };
        if self.told.as_ref() == Some(&remainder) {
            return;
        }
        match wire.send(&Comer::Remains(remainder.clone()), &[]).await {
            Ok(()) => self.told = Some(remainder),
            Err(_) => self.wire = None,
        }
    }
}

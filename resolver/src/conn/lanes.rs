//! The threads that carry connections: for each processor one, with a runtime of its own.
//!
//! A connection stays on the lane that it was given at accept, so its two sockets are watched by one poll of the kernel, and
//! no lock is shared with other lanes while bytes move. Streams to other hosts are carried beside their SSH session instead,
//! on the thread where that lives.
use stado_fleet::link::threads;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;
use tokio::runtime::Handle;
use tokio::sync::Notify;
use tokio_util::sync::{CancellationToken, DropGuard};

/// A lane may carry this part more than the one with the fewest.
const SLACK: usize = 4;
/// How often a lane's clock rings while it carries connections. A timer that is set for later than the next ring needs no
/// call to the kernel; one that would be the first does, and every half-closed connection has one.
const RING: Duration = Duration::from_secs(1);

/// All lanes of a daemon. Cheap to clone; they end with the last clone, which every open connection holds.
#[derive(Debug, Clone)]
pub struct Lanes(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    lanes: Vec<Lane>,
    turn: AtomicUsize,
    _stop: DropGuard,
}

#[derive(Debug)]
struct Lane {
    runtime: Handle,
    carried: Arc<AtomicUsize>,
    busy: Arc<Notify>,
}

impl Default for Lanes {
    fn default() -> Self {
        Self::new(std::thread::available_parallelism().map_or(1, usize::from))
    }
}

impl Lanes {
    /// Starts up to `count` lanes. Where no thread can be had there are fewer, or none.
    fn new(count: usize) -> Self {
        let stop = CancellationToken::new();
        let lanes = (0..count.min(threads::MOST)).map_while(|n| Lane::start(n, stop.clone())).collect();
        Self(Arc::new(Inner { lanes, turn: AtomicUsize::new(0), _stop: stop.drop_guard() }))
    }

    /// Where an accept loop runs, and its number: one lane after the other. `None` without lanes.
    pub(super) fn next(&self) -> Option<(Handle, usize)> {
        let turn = self.0.turn.fetch_add(1, Ordering::Relaxed).checked_rem(self.0.lanes.len())?;
        Some((self.0.lanes.get(turn)?.runtime.clone(), turn))
    }

    /// The lane that carries the fewest connections, with a place on it; the one called `near` as long as it carries hardly
    /// more, since a connection that stays on the thread that accepted it costs no waking of another. `None` without lanes.
    pub(super) fn least(&self, near: Option<usize>) -> Option<(&Handle, Place)> {
        let carried = |lane: &&Lane| lane.carried.load(Ordering::Relaxed);
        let least = self.0.lanes.iter().min_by_key(carried)?;
        let most = carried(&least) + carried(&least) / SLACK;
        let lane = near.and_then(|n| self.0.lanes.get(n)).filter(|lane| carried(lane) <= most).unwrap_or(least);
        if lane.carried.fetch_add(1, Ordering::Relaxed) == 0 {
            lane.busy.notify_one();
        }
        Some((&lane.runtime, Place(Arc::clone(&lane.carried))))
    }
}

impl Lane {
    fn start(n: usize, stop: CancellationToken) -> Option<Self> {
        let runtime = threads::start(format!("stado-lane-{n}"), stop)?;
        let (carried, busy) = (Arc::<AtomicUsize>::default(), Arc::<Notify>::default());
        runtime.spawn(clock(Arc::clone(&carried), Arc::clone(&busy)));
        Some(Self { runtime, carried, busy })
    }
}

/// Rings while the lane carries connections; without any it sleeps, and an idle daemon with it.
async fn clock(carried: Arc<AtomicUsize>, busy: Arc<Notify>) {
    loop {
        busy.notified().await;
        while carried.load(Ordering::Relaxed) > 0 {
            tokio::time::sleep(RING).await;
        }
    }
}

/// One connection's place on its lane.
#[derive(Debug)]
pub(super) struct Place(Arc<AtomicUsize>);
impl Drop for Place {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn connections_go_where_fewest_are() {
        let lanes = Lanes::new(3);
        let mut places: Vec<Place> = (0..9).map(|_| lanes.least(None).unwrap().1).collect();
        let carried = || lanes.0.lanes.iter().map(|lane| lane.carried.load(Ordering::Relaxed)).collect::<Vec<_>>();
        assert_eq!(carried(), [3, 3, 3]);
        let lane = Arc::clone(&places[0].0);
        places.retain(|place| !Arc::ptr_eq(&place.0, &lane));
        places.extend((0..3).map(|_| lanes.least(None).unwrap().1));
        assert_eq!(carried(), [3, 3, 3]);
    }

    #[test]
    fn a_connection_stays_where_it_was_accepted_unless_that_lane_carries_clearly_more() {
        let lanes = Lanes::new(2);
        let carried = || lanes.0.lanes.iter().map(|lane| lane.carried.load(Ordering::Relaxed)).collect::<Vec<_>>();
        // One at a time never leaves its lane; two that last are on two lanes.
        for _ in 0..4 {
            let _place = lanes.least(Some(1)).unwrap().1;
            assert_eq!(carried(), [0, 1]);
        }
        let places: Vec<Place> = (0..100).map(|_| lanes.least(Some(1)).unwrap().1).collect();
        let [far, near] = carried()[..] else { panic!() };
        assert!(near >= far && near <= far + far / SLACK + 1, "{far} {near}");
        drop(places);
        assert_eq!(carried(), [0, 0]);
    }

    #[test]
    fn without_threads_there_are_no_lanes() {
        let lanes = Lanes::new(0);
        assert!(lanes.next().is_none() && lanes.least(None).is_none());
    }

    #[test]
    fn lanes_end_with_the_last_clone() {
        let lanes = Lanes::new(1);
        let (ended, seen) = std::sync::mpsc::channel::<()>();
        lanes.next().unwrap().0.spawn(async move {
            let _ended = ended;
            std::future::pending::<()>().await;
        });
        drop(lanes);
        // The sender is dropped with the runtime that held its task.
        assert!(
            seen.recv_timeout(std::time::Duration::from_secs(20))
                == Err(std::sync::mpsc::RecvTimeoutError::Disconnected)
        );
    }
}

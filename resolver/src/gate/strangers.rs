//! Connections that are not authenticated yet: a bounded number, and no one can shut the gate by holding them all. A
//! newcomer always gets a place; where there is none, the oldest one of whoever holds most has to go.
use std::collections::{BTreeMap, HashMap};
use std::net::IpAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

/// Places.
pub(super) const PLACES: usize = 64;
/// Between two lines about those that had to go.
const REPEAT: Duration = Duration::from_secs(60);

/// All of a gate's.
#[derive(Debug, Clone, Default)]
pub(super) struct Strangers(Arc<Mutex<Inner>>);

#[derive(Debug, Default)]
struct Inner {
    births: u64,
    /// Oldest first.
    all: BTreeMap<u64, (IpAddr, CancellationToken)>,
    gone: u64,
    said: Option<Instant>,
}

/// One of them, while it is one.
#[derive(Debug)]
pub(super) struct Stranger {
    birth: u64,
    has_to_go: CancellationToken,
    all: Strangers,
}

impl Strangers {
    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A place for a connection from `peer`.
    pub(super) fn enter(&self, peer: IpAddr) -> Stranger {
        let mut inner = self.lock();
        if inner.all.len() >= PLACES {
            inner.send_away(Instant::now());
        }
        inner.births += 1;
        let (birth, has_to_go) = (inner.births, CancellationToken::new());
        inner.all.insert(birth, (peer, has_to_go.clone()));
        Stranger { birth, has_to_go, all: self.clone() }
    }
}

impl Inner {
    fn send_away(&mut self, now: Instant) {
        let mut held: HashMap<IpAddr, usize> = HashMap::new();
        self.all.values().for_each(|(peer, _)| *held.entry(*peer).or_default() += 1);
        let most = held.values().max().copied();
        let oldest = self.all.iter().find(|(_, (peer, _))| held.get(peer).copied() == most).map(|(birth, _)| *birth);
        let Some((peer, has_to_go)) = oldest.and_then(|birth| self.all.remove(&birth)) else { return };
        has_to_go.cancel();
        self.gone += 1;
        if self.said.is_none_or(|said| now.saturating_duration_since(said) >= REPEAT) {
            self.said = Some(now);
            tracing::warn!(
                target: "stado::fleet",
                "stado gate: {PLACES} connections are not authenticated yet, most of them from {peer}; the oldest of these is closed \
                 for each new one ({} so far)", self.gone
            );
        }
    }
}

impl Stranger {
    /// When its place is needed.
    pub(super) async fn has_to_go(&self) {
        self.has_to_go.cancelled().await;
    }
}

impl Drop for Stranger {
    fn drop(&mut self) {
        self.all.lock().all.remove(&self.birth);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ip(n: u8) -> IpAddr {
        [10, 0, 0, n].into()
    }

    fn stays(stranger: &Stranger) -> bool {
        !stranger.has_to_go.is_cancelled()
    }

    #[tokio::test(start_paused = true)]
    async fn a_newcomer_gets_the_place_of_the_oldest_of_whoever_holds_most() {
        let all = Strangers::default();
        let quiet = all.enter(ip(1));
        let crowd: Vec<Stranger> = (0..300).map(|_| all.enter(ip(2))).collect();
        assert!(stays(&quiet), "one that holds one place is not in the way");
        assert_eq!(crowd.iter().filter(|stranger| stays(stranger)).count(), PLACES - 1);
        assert!(crowd.iter().rev().take(PLACES - 1).all(stays), "the newest stay");
        let newcomer = all.enter(ip(3));
        assert!(stays(&newcomer) && stays(&quiet));
        assert_eq!(all.lock().all.len(), PLACES);
    }

    #[tokio::test(start_paused = true)]
    async fn who_leaves_or_comes_in_frees_the_place() {
        let all = Strangers::default();
        let mut held: Vec<Stranger> = (0..PLACES).map(|_| all.enter(ip(1))).collect();
        held.pop();
        let next = all.enter(ip(1));
        assert!(held.iter().all(stays) && stays(&next));
        drop((held, next));
        assert!(all.lock().all.is_empty());
    }
}

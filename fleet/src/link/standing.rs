//! How a host stands with us: whose turn it is to shake hands with it, when the next attempt is due, which path answers.
use super::error::{LinkError, Stage, seconds};
use super::handler::lock;
use crate::fault::Class;
use crate::name::ConnectionPath;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};
use tokio::sync::Semaphore;

/// First pause, and the longest: a client waits for each attempt, so that it is not the half minute of an unattended
/// reconnect.
const BASE: Duration = Duration::from_millis(500);
const CAP: Duration = Duration::from_secs(5);

/// One host of the pool.
#[derive(Debug)]
pub(super) struct Standing {
    /// Which of the threads its sessions live on.
    pub(super) thread: usize,
    /// One handshake at a time.
    pub(super) turn: Semaphore,
    inner: Mutex<Inner>,
}

#[derive(Debug, Default)]
struct Inner {
    /// Attempts in a row that reached the host and brought no lasting session.
    failures: u32,
    not_before: Option<Instant>,
    last: Option<(Instant, LinkError)>,
    detour: Option<Detour>,
}

/// The path that answers while a better one does not.
#[derive(Debug, Clone)]
struct Detour {
    paths: Arc<[ConnectionPath]>,
    position: usize,
}

impl Standing {
    pub(super) fn new(thread: usize) -> Self {
        Self { thread, turn: Semaphore::new(1), inner: Mutex::default() }
    }

    /// Waits until the next attempt is due.
    pub(super) async fn due(&self) {
        let at = lock(&self.inner).not_before;
        if let Some(at) = at {
            tokio::time::sleep_until(at.into()).await;
        }
    }

    /// What came out while somebody waited for their turn: they need not ask again.
    pub(super) fn failed_since(&self, since: Instant) -> Option<LinkError> {
        lock(&self.inner).last.as_ref().filter(|(at, _)| *at > since).map(|(_, error)| error.clone())
    }

    /// Notes a failure. Only attempts that reached the host delay the next one: what a TCP connect costs it is nothing, and
    /// a host that comes back is found at once. `draw` is in 0..1.
    pub(super) fn failed(&self, error: &LinkError, now: Instant, draw: f64) {
        let mut inner = lock(&self.inner);
        inner.last = Some((now, error.clone()));
        if error.stage != Stage::Connect {
            inner.failures = inner.failures.saturating_add(1);
            inner.not_before = Some(now + pause(inner.failures, draw));
        }
    }

    /// A session that came to stand and ended at once counts as a failure.
    pub(super) fn died_young(&self, now: Instant, draw: f64) {
        let mut inner = lock(&self.inner);
        inner.failures = inner.failures.saturating_add(1);
        inner.not_before = Some(now + pause(inner.failures, draw));
    }

    /// A session has stood for the stable period.
    pub(super) fn stable(&self) {
        let mut inner = lock(&self.inner);
        (inner.failures, inner.not_before, inner.last) = (0, None, None);
    }

    /// Forgets pauses: the network is another one, or this machine slept.
    pub(super) fn fresh(&self) {
        let mut inner = lock(&self.inner);
        (inner.failures, inner.not_before) = (0, None);
    }

    /// Whether an attempt failed so that another at once may do better: sshd turns away what is beyond its MaxStartups.
    pub(super) fn worth_another(&self, error: &LinkError) -> bool {
        error.class == Class::RateLimit && lock(&self.inner).failures <= 8
    }

    /// Where to begin among `paths`.
    pub(super) fn answered_last(&self, paths: &Arc<[ConnectionPath]>) -> Option<usize> {
        lock(&self.inner).detour.as_ref().filter(|d| d.paths == *paths).map(|d| d.position)
    }

    /// Notes which path answered; true when a detour begins.
    pub(super) fn answered(&self, paths: &Arc<[ConnectionPath]>, position: usize) -> bool {
        let mut inner = lock(&self.inner);
        let before = inner.detour.take().filter(|d| d.paths == *paths);
        if position > 0 {
            inner.detour = Some(Detour { paths: paths.clone(), position });
        }
        position > 0 && before.is_none()
    }

    /// The declared order holds again.
    pub(super) fn home(&self) {
        lock(&self.inner).detour = None;
    }

    /// For whoever ran out of time: what is known of the host.
    pub(super) fn why(&self, now: Instant) -> String {
        let inner = lock(&self.inner);
        let Some((at, error)) = &inner.last else { return String::new() };
        let next = inner.not_before.filter(|at| *at > now);
        let next = next.map_or_else(String::new, |at| format!(", the next attempt is due in {}", rounded(at - now)));
        format!(" (last attempt, {} ago: {error}{next})", rounded(now.saturating_duration_since(*at)))
    }
}

fn rounded(duration: Duration) -> String {
    seconds(Duration::from_millis(u64::try_from(duration.as_millis() / 100 * 100).unwrap_or(0)))
}

/// Full jitter: anything between nothing and the doubled base, capped before the draw.
fn pause(failures: u32, draw: f64) -> Duration {
    let doubled = BASE.saturating_mul(1 << failures.saturating_sub(1).min(10));
    doubled.min(CAP).mul_f64(draw.clamp(0.0, 1.0))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn a_pause_is_drawn_from_the_whole_range_up_to_its_cap(failures in 1u32..200, draw in 0f64..1.0) {
            let whole = pause(failures, 1.0);
            prop_assert!(whole >= BASE && whole <= CAP);
            prop_assert!(pause(failures, draw) <= whole);
            prop_assert_eq!(pause(failures, 0.0), Duration::ZERO);
            prop_assert!(pause(failures + 1, 1.0) >= whole);
        }
    }

    #[test]
    fn only_what_reached_the_host_delays_the_next_attempt_and_only_stability_clears_it() {
        let (standing, now) = (Standing::new(0), Instant::now());
        let at = |stage| LinkError::new(stage, Class::InfraDown, "down");
        standing.failed(&at(Stage::Connect), now, 1.0);
        assert_eq!(lock(&standing.inner).not_before, None);
        standing.failed(&at(Stage::Handshake), now, 1.0);
        standing.died_young(now, 1.0);
        assert_eq!(lock(&standing.inner).not_before, Some(now + 2 * BASE));
        assert!(standing.why(now).contains("down, the next attempt is due in 1s"), "{}", standing.why(now));
        standing.stable();
        assert_eq!(standing.why(now), "");
        assert_eq!(lock(&standing.inner).not_before, None);
    }
}

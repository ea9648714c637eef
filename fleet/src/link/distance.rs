//! How far hosts are, and the window of an SSH channel that fits (`ssh-relay.md` §3.5). russh gives a session's channels
//! the window that the session began with: so the distance is guessed from the connect, measured once the session stands,
//! and a session that was guessed too near makes room for one that fits.
use super::config::Timing;
use super::handler::lock;
use super::session::Session;
use crate::name::SshDestination;
use std::collections::HashMap;
use std::sync::Mutex;
use std::time::{Duration, Instant};
use tokio::time::timeout;

/// Below this a host is near, and larger windows cost more than they bring.
pub(super) const NEAR: Duration = Duration::from_millis(2);
/// Window of a channel to a host that is near.
const SHORT: u32 = 2 << 20;
/// Window of a channel to any other: 320 MiB/s at 50 ms.
const LONG: u32 = 16 << 20;
/// From here on a session is worth replacing: below it a busy machine may be all that is far.
const FAR: Duration = Duration::from_millis(10);
/// Pings that agree tell a distance; others stand behind something.
const AGREE: usize = 3;
const PINGS: usize = 8;

/// Window of an SSH channel for a round trip, in bytes.
pub fn channel_window(rtt: Duration) -> u32 {
    if rtt < NEAR { SHORT } else { LONG }
}

/// What was measured last, by destination: as many as a registry names.
#[derive(Debug, Default)]
pub(super) struct Distances(Mutex<HashMap<SshDestination, Duration>>);

impl Distances {
    /// The round trip to a destination, once measured.
    pub(super) fn of(&self, destination: &SshDestination) -> Option<Duration> {
        lock(&self.0).get(destination).copied()
    }

    fn note(&self, destination: &SshDestination, rtt: Duration) {
        lock(&self.0).insert(destination.clone(), rtt);
    }

    /// Measures the session's round trip, once; whether its window fits. A session that does not answer fits: whoever uses
    /// it finds out.
    pub(super) async fn fits(&self, session: &Session, timing: &Timing) -> bool {
        let rtt = session.rtt.get_or_init(|| measure(session, timing.probe)).await;
        match rtt {
            Some(rtt) => {
                self.note(&session.destination, *rtt);
                *rtt < FAR || channel_window(*rtt) <= session.window
            }
            None => true,
        }
    }
}

/// The shortest of a few pings: one where the host is near, as many as it takes to agree where it is not.
async fn measure(session: &Session, limit: Duration) -> Option<Duration> {
    let mut took = Vec::new();
    while took.len() < PINGS && !settled(&took) {
        let began = Instant::now();
        match timeout(limit, session.handle.send_ping()).await {
            Ok(Ok(())) => took.push(began.elapsed()),
            _ => break,
        }
    }
    // What they do not agree on is no distance.
    took.iter().min().copied().filter(|_| settled(&took))
}

/// Whether pings say enough.
fn settled(took: &[Duration]) -> bool {
    if took.iter().any(|took| *took < FAR) {
        return true;
    }
    let last = took.get(took.len().saturating_sub(AGREE)..).unwrap_or_default();
    match (last.iter().min(), last.iter().max()) {
        (Some(least), Some(most)) => last.len() == AGREE && *most - *least <= *least / 10,
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_far_host_gets_a_window_that_keeps_it_busy_and_a_near_one_does_not() {
        let at = |ms| channel_window(Duration::from_millis(ms));
        assert_eq!([at(0), at(1), at(2), at(20), at(500)], [SHORT, SHORT, LONG, LONG, LONG]);
    }

    #[test]
    fn a_distance_is_what_pings_agree_on_and_nearness_what_one_of_them_shows() {
        let told = |ms: &[u64]| settled(&ms.iter().map(|ms| Duration::from_millis(*ms)).collect::<Vec<_>>());
        assert!(told(&[1]) && told(&[19, 3]) && told(&[20, 21, 20]) && told(&[60, 20, 21, 20]));
        assert!(!told(&[]) && !told(&[20, 20]) && !told(&[12, 30, 14]));
    }
}

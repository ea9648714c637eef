//! The round trip of a multiplex, and the credit that fits it.
use super::STREAM_WINDOW;
use super::pace::Pace;
use crate::link::distance::NEAR;
use h2::{Ping, PingPong};
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

/// Between two measurements while streams are open.
pub(super) const BETWEEN: Duration = Duration::from_secs(15);
/// The rate of one stream that its credit shall allow.
const RATE: f64 = 400.0 * 1024.0 * 1024.0;
/// The largest credit of one stream.
const LARGEST: u32 = 8 << 20;

/// Measures by pings.
pub(super) struct Meter {
    pings: Option<PingPong>,
    sent: Option<Instant>,
    /// The shortest round trip seen: others stood behind data.
    pub(super) best: Option<Duration>,
}

impl Meter {
    pub(super) fn new(pings: Option<PingPong>) -> Self {
        Self { pings, sent: None, best: None }
    }

    /// Asks, unless an answer is awaited; whether one is now.
    pub(super) fn ask(&mut self) -> bool {
        if self.sent.is_none() && self.pings.as_mut().is_some_and(|pings| pings.send_ping(Ping::opaque()).is_ok()) {
            self.sent = Some(Instant::now());
        }
        self.sent.is_some()
    }

    /// Asks for `pace`, if it wants to.
    pub(super) fn poll_pace(&mut self, cx: &Context<'_>, pace: &Pace) {
        if pace.poll_wanted(cx) && !self.ask() {
            pace.over();
        }
    }

    /// Tells `pace` of an answer that has come, and gives the credit to give from now on, if that changed what is known.
    pub(super) fn poll(&mut self, cx: &mut Context<'_>, pace: &Pace) -> Option<u32> {
        let (pings, sent) = (self.pings.as_mut()?, self.sent?);
        let Poll::Ready(Ok(_)) = pings.poll_pong(cx) else { return None };
        self.sent = None;
        let took = sent.elapsed();
        pace.answered(self.best.map_or(took, |best| best.min(took)));
        if self.best.is_some_and(|best| best <= took) {
            return None;
        }
        self.best = Some(took);
        Some(window(took))
    }
}

/// Credit for a round trip.
pub(super) fn window(rtt: Duration) -> u32 {
    if rtt < NEAR {
        return STREAM_WINDOW;
    }
    let bytes = (rtt.as_secs_f64() * RATE).min(f64::from(LARGEST));
    // Below 2³² after the cap.
    (bytes as u32).next_power_of_two().clamp(STREAM_WINDOW, LARGEST)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn credit_fits_the_round_trip_within_its_bounds() {
        let ms = |n| window(Duration::from_millis(n));
        assert_eq!(
            [ms(0), ms(1), ms(3), ms(5), ms(20), ms(500)],
            [1 << 20, 1 << 20, 2 << 20, 2 << 20, 8 << 20, 8 << 20]
        );
    }
}

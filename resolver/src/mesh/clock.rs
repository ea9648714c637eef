//! The two clocks: a steady one that decides, and the wall clock that people read.
use jiff::Timestamp;
use std::time::Duration;

/// One moment on both clocks. Leases are judged by `tick`, so that a changed wall clock or a suspended laptop ends none.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Now {
    /// Time since the daemon, or the first of a row of daemons that took over from each other, started; never goes back.
    pub tick: Duration,
    /// Wall clock.
    pub wall: Timestamp,
}

impl Now {
    /// This moment plus `span`, as the mesh API writes times: RFC 3339, UTC, whole seconds (mesh contract §1.3).
    pub fn text_after(&self, span: Duration) -> String {
        let later = self.wall.as_second().saturating_add(i64::try_from(span.as_secs()).unwrap_or(i64::MAX));
        // A span of at most an hour carries at most one second over from the parts below a second.
        let carry = i64::from(self.wall.subsec_nanosecond() as u32 + span.subsec_nanos() >= 1_000_000_000);
        Timestamp::from_second(later.saturating_add(carry)).unwrap_or(self.wall).to_string()
    }

    /// This moment as the mesh API writes times.
    pub fn text(&self) -> String {
        self.text_after(Duration::ZERO)
    }
}

/// Reads both clocks.
#[derive(Debug)]
pub(crate) struct Clock {
    origin: tokio::time::Instant,
    /// What an earlier process counted before.
    before: Duration,
}

impl Clock {
    pub(crate) fn start() -> Self {
        Self::at(Duration::ZERO)
    }

    /// Goes on from the tick of a process that handed over.
    pub(crate) fn at(before: Duration) -> Self {
        Self { origin: tokio::time::Instant::now(), before }
    }

    pub(crate) fn now(&self) -> Now {
        Now { tick: self.before.saturating_add(self.origin.elapsed()), wall: Timestamp::now() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_utc_whole_seconds_and_truncated() {
        let now = Now { tick: Duration::ZERO, wall: "2026-11-30T01:02:45.9Z".parse().unwrap() };
        assert_eq!(now.text(), "2026-11-30T01:02:45Z");
        assert_eq!(now.text_after(Duration::from_secs(15)), "2026-11-30T01:03:00Z");
        assert_eq!(now.text_after(Duration::from_millis(1200)), "2026-11-30T01:02:47Z");
    }
}

//! When to read the registry next, and what to say about failures. Pure: `now` is passed in.
use std::time::Duration;
use tokio::time::Instant;

/// Interval before a policy is known, and while a host without a registry waits for its first document.
const UNDECLARED: Duration = Duration::from_secs(5);

/// Counts failed reads in a row and names the next wait.
#[derive(Debug, Clone, Default)]
pub struct Schedule {
    declared: Option<u64>,
    failed: u64,
}

impl Schedule {
    /// The `refresh_seconds` that the held policy declares.
    pub fn declare(&mut self, refresh_seconds: u64) {
        self.declared = Some(refresh_seconds.max(1));
    }

    /// Failed attempts in a row.
    pub fn failed(&self) -> u64 {
        self.failed
    }

    /// The wait until the next read: the declared interval, or, while none is known, 1, 2, 4 and then every 5 seconds.
    pub fn interval(&self) -> Duration {
        match self.declared {
            Some(seconds) => Duration::from_secs(seconds),
            None => {
                let doubled = 1_u64.checked_shl(u32::try_from(self.failed.saturating_sub(1)).unwrap_or(u32::MAX));
                Duration::from_secs(doubled.unwrap_or(u64::MAX)).min(UNDECLARED)
            }
        }
    }

    /// Notes a failure; the line for the log.
    pub fn fail(&mut self, cause: &str) -> String {
        self.failed = self.failed.saturating_add(1);
        let seconds = self.interval().as_secs();
        let attempt = self.failed;
        match self.declared {
            Some(_) => format!(
                "stado resolver refresh failed, attempt {attempt}, next on the declared {seconds}s interval: {cause}"
            ),
            None => format!("stado resolver start failed, attempt {attempt}, next in {seconds}s: {cause}"),
        }
    }

    /// Notes a success; the line for the log when there were failures.
    pub fn succeed(&mut self) -> Option<String> {
        let failed = std::mem::take(&mut self.failed);
        (failed > 0).then(|| format!("stado resolver refresh recovered after {failed} failed attempts"))
    }
}

/// The next multiple of `interval` after `started`; missed ones are skipped.
pub(super) fn next_tick(started: Instant, interval: Duration, now: Instant) -> Instant {
    let elapsed = now.saturating_duration_since(started);
    let missed = elapsed.as_nanos().checked_div(interval.as_nanos()).unwrap_or(0);
    let ticks = u32::try_from(missed.saturating_add(1)).unwrap_or(u32::MAX);
    started + interval.saturating_mul(ticks)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn without_a_policy_the_wait_doubles_up_to_five_seconds() {
        let mut schedule = Schedule::default();
        let waits: Vec<u64> = (0..6)
            .map(|_| {
                schedule.fail("x");
                schedule.interval().as_secs()
            })
            .collect();
        assert_eq!(waits, [1, 2, 4, 5, 5, 5]);
        for _ in 0..200 {
            schedule.fail("x");
        }
        assert_eq!(schedule.interval(), UNDECLARED);
    }

    #[test]
    fn failures_are_counted_in_the_contracts_words_and_recovery_is_said_once() {
        let mut schedule = Schedule::default();
        schedule.declare(7);
        assert_eq!(schedule.succeed(), None);
        assert_eq!(
            schedule.fail("no answer"),
            "stado resolver refresh failed, attempt 1, next on the declared 7s interval: no answer"
        );
        assert_eq!(schedule.fail("e"), "stado resolver refresh failed, attempt 2, next on the declared 7s interval: e");
        assert_eq!(schedule.interval(), Duration::from_secs(7));
        assert_eq!(schedule.succeed().as_deref(), Some("stado resolver refresh recovered after 2 failed attempts"));
        assert_eq!((schedule.succeed(), schedule.failed()), (None, 0));
    }

    #[test]
    fn missed_ticks_are_skipped() {
        let (started, second) = (Instant::now(), Duration::from_secs(1));
        let after = |millis: u64| next_tick(started, second * 5, started + Duration::from_millis(millis)) - started;
        assert_eq!(after(0), second * 5);
        assert_eq!(after(4_999), second * 5);
        assert_eq!(after(5_000), second * 10);
        assert_eq!(after(61_000), second * 65);
    }
}

//! Whether this machine slept: then every session is half open until the host is asked.
use std::time::Duration;

/// Between two looks at the clocks.
pub(super) const LOOK: Duration = Duration::from_secs(2);
/// Clocks differ by less between two looks, unless the machine slept.
const JUMP: Duration = Duration::from_secs(3);

/// Time that one clock counted and the other did not: the one goes on in sleep.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Slept(Duration);

impl Slept {
    /// From the clocks of this machine.
    #[cfg(target_os = "linux")]
    pub(super) fn now() -> Self {
        use rustix::time::{ClockId, clock_gettime};
        let read = |id| Duration::try_from(clock_gettime(id)).unwrap_or_default();
        Self(read(ClockId::Boottime).saturating_sub(read(ClockId::Monotonic)))
    }

    /// From the clocks of this machine: where no clock is known to stand still, the time of day is compared, and one that
    /// was set costs a needless question to each host.
    #[cfg(not(target_os = "linux"))]
    pub(super) fn now() -> Self {
        use std::sync::LazyLock;
        use std::time::{Instant, SystemTime};
        static BEGAN: LazyLock<(Instant, SystemTime)> = LazyLock::new(|| (Instant::now(), SystemTime::now()));
        let day = BEGAN.1.elapsed().unwrap_or_default();
        Self(day.saturating_sub(BEGAN.0.elapsed()))
    }

    /// So much of it.
    #[cfg(test)]
    pub(super) fn of(slept: Duration) -> Self {
        Self(slept)
    }

    /// Whether the machine slept between `before` and `self`.
    pub(super) fn since(self, before: Self) -> bool {
        self.0.saturating_sub(before.0) >= JUMP
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_jump_is_sleep_and_drift_is_not() {
        let at = |ms| Slept(Duration::from_millis(ms));
        assert!(at(4_000).since(at(500)) && !at(2_000).since(at(500)) && !at(0).since(at(9_000)));
        let now = Slept::now();
        assert!(!Slept::now().since(now), "this machine is awake");
    }
}

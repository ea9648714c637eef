//! When the next write is due. Pure: the clock is passed in.
use std::time::Duration;
use tokio::time::Instant;

/// Least time between two writes (design, rule 6).
pub(super) const GAP: Duration = Duration::from_millis(100);
/// A wait that is over sooner is a blink, and worth no write.
const BLINK: Duration = Duration::from_millis(50);
/// Least time between two writes that would only renew `last_answered_at`.
pub(super) const ROUTINE: Duration = Duration::from_secs(1);
/// When a write that failed is tried again.
const RETRY: Duration = Duration::from_secs(1);
/// Least time between two warnings about a failing disk.
const WARN: Duration = Duration::from_secs(60);

/// Why something may have to be written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Cause {
    /// The state was changed.
    State,
    /// Waits or answers changed.
    Ledger,
    /// Only routine is left over from the last round.
    Routine,
    /// The last round failed.
    Failure,
}

/// The schedule of one writer.
#[derive(Debug, Default)]
pub(super) struct Pace {
    due: Option<Instant>,
    written: Option<Instant>,
    warned: Option<Instant>,
}
impl Pace {
    /// Something changed: brings the next write forward where that is allowed.
    pub(super) fn wants(&mut self, cause: Cause, now: Instant) {
        let delay = match cause {
            Cause::State => Duration::ZERO,
            Cause::Ledger => BLINK,
            Cause::Routine => ROUTINE,
            Cause::Failure => RETRY,
        };
        let allowed = self.written.map_or(now, |written| written + GAP);
        let at = (now + delay).max(allowed);
        self.due = Some(self.due.map_or(at, |due| due.min(at)));
    }

    /// When to write, if there is anything to write.
    pub(super) fn due(&self) -> Option<Instant> {
        self.due
    }

    /// A round starts.
    pub(super) fn writing(&mut self, now: Instant) {
        self.due = None;
        self.written = Some(now);
    }

    /// Whether a failure may be said now.
    pub(super) fn may_warn(&mut self, now: Instant) -> bool {
        if self.warned.is_some_and(|warned| now.duration_since(warned) < WARN) {
            return false;
        }
        self.warned = Some(now);
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn cause() -> impl Strategy<Value = Cause> {
        prop_oneof![Just(Cause::State), Just(Cause::Ledger), Just(Cause::Routine), Just(Cause::Failure)]
    }

    proptest! {
        /// Whatever changes and when: two writes are 100 ms apart, and a changed state or ledger is written within 100 ms.
        #[test]
        fn writes_are_coalesced_and_never_late(events in proptest::collection::vec((0u64..150, cause()), 1..200)) {
            let mut pace = Pace::default();
            let mut now = Instant::now();
            let (mut last, mut asked): (Option<Instant>, Option<Instant>) = (None, None);
            for (later, cause) in events {
                let until = now + Duration::from_millis(later);
                while let Some(due) = pace.due().filter(|due| *due <= until) {
                    prop_assert!(last.is_none_or(|last| due.duration_since(last) >= GAP));
                    prop_assert!(asked.is_none_or(|asked| due.duration_since(asked) <= GAP));
                    pace.writing(due);
                    (last, asked) = (Some(due), None);
                }
                now = until;
                pace.wants(cause, now);
                if matches!(cause, Cause::State | Cause::Ledger) {
                    asked = asked.or(Some(now));
                }
                prop_assert!(pace.due().is_some());
            }
        }
    }

    #[test]
    fn a_failing_disk_is_said_once_a_minute() {
        let mut pace = Pace::default();
        let start = Instant::now();
        let said = (0..180).filter(|s| pace.may_warn(start + Duration::from_secs(*s))).count();
        assert_eq!(said, 3);
    }
}

//! How many streams a client may give up before they are answered (rapid reset).
use std::sync::Mutex;
use std::time::{Duration, Instant};

/// Over this long the whole budget comes back.
const REFILL: Duration = Duration::from_secs(10);

/// One connection's budget of resets. A browser that leaves a page resets what it waits for, which is fine; who opens and
/// resets without an end makes work that nobody reads.
#[derive(Debug)]
pub(super) struct Budget {
    most: u32,
    state: Mutex<(f64, Instant)>,
}

impl Budget {
    /// `most` at once, and as many again every ten seconds.
    pub(super) fn new(most: usize, now: Instant) -> Self {
        let most = u32::try_from(most).unwrap_or(u32::MAX);
        Self { most, state: Mutex::new((f64::from(most), now)) }
    }

    /// Takes one reset out of it; `false` when there is none left.
    pub(super) fn spend(&self, now: Instant) -> bool {
        let mut state = self.state.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        let (left, at) = *state;
        let back = now.saturating_duration_since(at).as_secs_f64() / REFILL.as_secs_f64() * f64::from(self.most);
        let left = (left + back).min(f64::from(self.most)) - 1.0;
        *state = (left.max(-1.0), now);
        left >= 0.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_burst_is_fine_and_a_flood_is_not() {
        let start = Instant::now();
        let budget = Budget::new(10, start);
        assert!((0..10).all(|_| budget.spend(start)));
        assert!(!budget.spend(start) && !budget.spend(start));
        let later = start + REFILL;
        assert!((0..8).all(|_| budget.spend(later)));
        assert!((1..500).all(|second| budget.spend(later + Duration::from_secs(second))));
    }
}

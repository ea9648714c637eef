//! How long to wait before trying again: 100 ms doubling to 5 s, each ±20 % (mesh contract §2).
use rand::Rng;
use std::time::Duration;

const FIRST: Duration = Duration::from_millis(100);
const CAP: Duration = Duration::from_secs(5);

/// Waits of one run of failures. Pure: the randomness is handed in.
#[derive(Debug, Clone)]
pub(super) struct Backoff {
    next: Duration,
}

impl Default for Backoff {
    fn default() -> Self {
        Self { next: FIRST }
    }
}

impl Backoff {
    /// The next wait. Jitter comes after the cap, so that many clients of one daemon stay spread.
    pub(super) fn next(&mut self, random: &mut impl Rng) -> Duration {
        let base = self.next;
        self.next = base.saturating_mul(2).min(CAP);
        base.mul_f64(random.random_range(0.8..=1.2))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand::SeedableRng;
    use rand::rngs::StdRng;

    #[test]
    fn waits_double_from_100_ms_to_5_s_within_a_fifth() {
        let (mut backoff, mut random) = (Backoff::default(), StdRng::seed_from_u64(7));
        for base in [100.0, 200.0, 400.0, 800.0, 1600.0, 3200.0, 5000.0, 5000.0, 5000.0] {
            let wait = backoff.next(&mut random).as_secs_f64() * 1000.0;
            assert!((base * 0.8 - 0.01..=base * 1.2 + 0.01).contains(&wait), "{wait} for {base}");
        }
    }

    #[test]
    fn the_same_seed_gives_the_same_waits_and_another_does_not() {
        let waits = |seed| {
            let (mut backoff, mut random) = (Backoff::default(), StdRng::seed_from_u64(seed));
            (0..8).map(|_| backoff.next(&mut random)).collect::<Vec<_>>()
        };
        assert_eq!(waits(1), waits(1));
        assert_ne!(waits(1), waits(2));
    }

    #[test]
    fn waits_at_the_cap_still_differ() {
        let (mut backoff, mut random) = (Backoff::default(), StdRng::seed_from_u64(3));
        let late = (0..16).map(|_| backoff.next(&mut random)).skip(8).collect::<std::collections::BTreeSet<_>>();
        assert!(late.len() > 4, "{late:?}");
    }
}

//! Waits between attempts. Pure; they never end.
use std::time::Duration;

/// The wait after the `failures`-th failure in a row (1 is the first): doubling from `first` to `most`.
pub(super) fn wait(failures: u32, first: Duration, most: Duration) -> Duration {
    let doublings = failures.saturating_sub(1).min(20);
    first.saturating_mul(1 << doublings).min(most)
}

/// Inspections of a running container whose port is not published yet (`mesh.md`, "The Docker adapter").
pub(super) const NOT_PUBLISHED: [Duration; 7] = [
    Duration::from_millis(50),
    Duration::from_millis(100),
    Duration::from_millis(200),
    Duration::from_millis(400),
    Duration::from_millis(800),
    Duration::from_millis(1500),
    Duration::from_millis(2000),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_double_up_to_the_cap_and_stay_there() {
        let seconds = |n| wait(n, Duration::from_secs(1), Duration::from_secs(30)).as_secs();
        assert_eq!((1..=7).map(seconds).collect::<Vec<_>>(), [1, 2, 4, 8, 16, 30, 30]);
        assert_eq!(seconds(u32::MAX), 30);
    }
}

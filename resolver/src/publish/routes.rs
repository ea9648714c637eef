//! When the routes file is written and what its rates are. Pure, but for [`restore`].
use super::pace::{GAP, ROUTINE};
use crate::conn::ledger::Ledger;
use stado_fleet::ledger::{self, PublishedPaths, RouteState};
use std::time::Duration;
use tokio::time::Instant;

/// So many rows are written at the full pace; more of them more seldom, so that the bytes a second stay bounded.
const ROWS: usize = 1000;

/// What is known of the file.
#[derive(Debug, Default)]
pub(super) struct Routes {
    /// Something went through an adapter since the file was looked at.
    wanted: bool,
    /// And something failed.
    failed: bool,
    looked: Option<Instant>,
    rows: usize,
}

impl Routes {
    /// Something went through an adapter.
    pub(super) fn touched(&mut self) {
        self.wanted = true;
    }

    /// Whether the rows are to be looked at in this round; a failure is told sooner than traffic.
    pub(super) fn due(&self, now: Instant) -> bool {
        let pace = if self.failed { GAP } else { ROUTINE };
        let gap = pace * u32::try_from(1 + self.rows / ROWS).unwrap_or(u32::MAX);
        (self.wanted || self.failed) && self.looked.is_none_or(|looked| now.duration_since(looked) >= gap)
    }

    /// Something failed.
    pub(super) fn failure(&mut self, failed: bool) {
        self.failed |= failed;
    }

    /// Whether another look is still owed.
    pub(super) fn owed(&self) -> bool {
        self.wanted || self.failed
    }

    /// Gives the rows their rates, from what was published before, and notes that they were looked at. While something moves
    /// they are looked at again, so that a rate does not outlive its traffic.
    pub(super) fn look(&mut self, mut rows: Vec<RouteState>, before: &[RouteState], now: Instant) -> Vec<RouteState> {
        if let Some(elapsed) = self.looked.map(|looked| now.duration_since(looked)) {
            rows.iter_mut().for_each(|row| rate(row, before, elapsed));
        }
        let moves = |row: &RouteState| row.active > 0 || row.up_per_second > 0 || row.down_per_second > 0;
        *self = Self { wanted: rows.iter().any(moves), failed: false, looked: Some(now), rows: rows.len() };
        rows
    }
}

fn rate(row: &mut RouteState, before: &[RouteState], elapsed: Duration) {
    let key = |row: &RouteState| (row.service.clone(), row.consumer.clone());
    let wanted = key(row);
    let old = before.binary_search_by(|old| key(old).cmp(&wanted)).ok().and_then(|at| before.get(at));
    let (up, down) = old.map_or((0, 0), |old| (old.bytes_up, old.bytes_down));
    row.up_per_second = per_second(row.bytes_up.saturating_sub(up), elapsed);
    row.down_per_second = per_second(row.bytes_down.saturating_sub(down), elapsed);
}

fn per_second(bytes: u64, elapsed: Duration) -> u64 {
    let millis = elapsed.as_millis().max(1);
    u64::try_from(u128::from(bytes) * 1000 / millis).unwrap_or(u64::MAX)
}

/// Takes up when routes worked and failed before this process. A file that cannot be read is written anew.
pub(super) fn restore(paths: &PublishedPaths, ledger: &Ledger) {
    match ledger::routes(paths) {
        Ok(rows) => ledger.restore_routes(rows),
        Err(why) => tracing::warn!(target: "stado::fleet", "the history of routes starts anew: {why}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(service: &str, up: u64, active: u64) -> RouteState {
        RouteState { service: service.into(), consumer: "c".into(), bytes_up: up, active, ..RouteState::default() }
    }

    #[test]
    fn a_rate_is_of_the_time_between_two_looks_and_ends_with_its_traffic() {
        let (mut routes, start) = (Routes::default(), Instant::now());
        assert!(!routes.due(start));
        routes.touched();
        assert!(routes.due(start));
        let first = routes.look(vec![row("a", 500, 0), row("b", 9, 0)], &[], start);
        assert_eq!(first[0].up_per_second, 0, "nobody knows since when");
        assert!(!routes.owed());
        routes.touched();
        let later = start + Duration::from_millis(500);
        assert!(!routes.due(later) && routes.owed());
        let later = start + Duration::from_secs(2);
        assert!(routes.due(later));
        let second = routes.look(vec![row("a", 2500, 0), row("b", 9, 0)], &first, later);
        assert_eq!((second[0].up_per_second, second[1].up_per_second), (1000, 0));
        assert!(routes.owed(), "it has to be told that it is over");
        let third = routes.look(vec![row("a", 2500, 0), row("b", 9, 0)], &second, later + Duration::from_secs(1));
        assert!(third[0].up_per_second == 0 && !routes.owed());
    }

    #[test]
    fn a_failure_is_told_at_once_and_many_rows_are_told_more_seldom() {
        let (mut routes, start) = (Routes::default(), Instant::now());
        routes.touched();
        routes.look(vec![row("a", 0, 1)], &[], start);
        routes.failure(false);
        assert!(!routes.due(start + GAP), "traffic alone");
        routes.failure(true);
        assert!(routes.due(start + GAP));
        let many: Vec<_> = (0..2000).map(|n| row(&format!("s{n:04}"), 0, 1)).collect();
        routes.look(many, &[], start);
        assert!(!routes.due(start + 2 * ROUTINE) && routes.due(start + 3 * ROUTINE));
        routes.failure(true);
        assert!(!routes.due(start + 2 * GAP) && routes.due(start + 3 * GAP));
    }
}

//! One line of the index: what was counted is added to how a service stands.
use super::super::stats::{Counted, SiteStats};
use crate::conn::ledger::{Counters, LastFailure};
use stado_fleet::wire::LastError;

/// One service, or one adapter of the fleet.
pub(super) use stado_fleet::wire::Standing as Row;

/// Adds what was counted of its connections.
pub(super) fn add_connections(row: &mut Row, counted: &Counters, last: Option<&LastFailure>) {
    row.traffic.opened = counted.opened;
    row.traffic.active += counted.active;
    row.traffic.bytes_up += counted.bytes_up;
    row.traffic.bytes_down += counted.bytes_down;
    if let Some(last) = last {
        failure(row, last.at, &last.cause, Some(last.hop.code()));
    }
}

/// Adds what was counted of its requests.
pub(super) fn add_requests(row: &mut Row, stats: &SiteStats) {
    let counted: Counted = stats.counted();
    row.traffic.requests = counted.requests();
    row.traffic.failed = counted.failed();
    row.traffic.active = row.traffic.active.max(counted.in_flight);
    if let Some(error) = stats.last_error() {
        failure(row, error.at, &error.cause, None);
    }
}

/// The later one stays.
fn failure(row: &mut Row, at: jiff::Timestamp, cause: &str, hop: Option<&str>) {
    let at = second(at);
    if row.last_error.as_ref().is_none_or(|known| known.at < at) {
        row.last_error = Some(LastError { at, cause: cause.to_owned(), hop: hop.map(str::to_owned) });
    }
}

/// A moment in whole seconds.
pub(super) fn second(at: jiff::Timestamp) -> String {
    at.strftime("%Y-%m-%dT%H:%M:%SZ").to_string()
}

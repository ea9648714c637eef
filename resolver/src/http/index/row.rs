//! One line of the index.
use super::super::stats::{Counted, SiteStats};
use crate::conn::ledger::{Counters, Outcome, Recent};
use serde::Serialize;

/// One service, or one adapter of the fleet.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub(super) struct Row {
    /// The same for as long as the service is known.
    pub(super) id: String,
    pub(super) name: String,
    /// Who uses it, for an adapter.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub(super) consumer: String,
    /// `mesh` or `fleet`.
    pub(super) from: &'static str,
    /// `http` or `tcp`.
    pub(super) kind: String,
    /// `ready`, `unavailable`, or `unserved`.
    pub(super) state: &'static str,
    /// What a client connects to: a URL or host and port; empty while there is none.
    pub(super) address: String,
    /// Where it stands now; empty while it does nowhere.
    pub(super) place: String,
    /// Since when the state holds, RFC 3339.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub(super) since: String,
    /// Why it is not ready, or something else worth knowing.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub(super) reason: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) last_error: Option<Failure>,
    pub(super) traffic: Traffic,
}

/// The last thing that went wrong on the way to it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(super) struct Failure {
    /// When, RFC 3339.
    pub(super) at: String,
    pub(super) cause: String,
}

/// Counted since the service became known; the reader makes rates of them.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub(super) struct Traffic {
    /// Answered requests, of an http service.
    pub(super) requests: u64,
    /// Of them, answered with 500 or more.
    pub(super) failed: u64,
    /// Connections that reached the backend.
    pub(super) opened: u64,
    /// Requests and connections now.
    pub(super) active: u64,
    /// Bytes to it.
    pub(super) bytes_up: u64,
    /// Bytes from it.
    pub(super) bytes_down: u64,
}

impl Row {
    /// Adds what was counted of its connections.
    pub(super) fn connections(&mut self, counted: &Counters, last: Option<&Recent>) {
        self.traffic.opened = counted.opened;
        self.traffic.active += counted.active;
        self.traffic.bytes_up += counted.bytes_up;
        self.traffic.bytes_down += counted.bytes_down;
        if let Some(recent) = last
            && let Outcome::Refused(cause) | Outcome::ServiceReset(cause) = &recent.outcome
        {
            self.failure(recent.ended, cause);
        }
    }

    /// Adds what was counted of its requests.
    pub(super) fn requests(&mut self, stats: &SiteStats) {
        let counted: Counted = stats.counted();
        self.traffic.requests = counted.requests();
        self.traffic.failed = counted.failed();
        self.traffic.active = self.traffic.active.max(counted.in_flight);
        if let Some(error) = stats.last_error() {
            self.failure(error.at, &error.cause);
        }
    }

    /// The later one stays.
    fn failure(&mut self, at: jiff::Timestamp, cause: &str) {
        let at = second(at);
        if self.last_error.as_ref().is_none_or(|known| known.at < at) {
            self.last_error = Some(Failure { at, cause: cause.to_owned() });
        }
    }
}

/// A moment in whole seconds.
pub(super) fn second(at: jiff::Timestamp) -> String {
    at.strftime("%Y-%m-%dT%H:%M:%SZ").to_string()
}

//! What was seen of services and hosts, and from where: `~/.stado/observations.json` (fleet contract §6.9). Best effort.
use super::age;
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use stado_fleet::disk::{self, Lock, LockAttempt};
use stado_fleet::ledger;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Older observations are stale, seconds.
const TTL: u64 = 3600;
const LARGEST: u64 = 16 << 20;
const FILE: &str = "observations.json";
/// For another writer's turn.
const PATIENCE: Duration = Duration::from_secs(1);

/// One row: newest of its (fact, vantage).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Observation {
    /// `service:<name>@<target>`, `host:<target>`, `beacon:<target>`.
    pub(crate) fact: String,
    /// Who looked.
    pub(crate) vantage: String,
    /// `observed`, `unreachable`, `unverified`.
    pub(crate) state: String,
    /// What was seen; of a beacon, when its host wrote it.
    #[serde(default)]
    pub(crate) detail: Option<String>,
    /// When, RFC 3339.
    #[serde(default)]
    pub(crate) at: Option<String>,
}

/// The file of one host.
pub(crate) struct Observations {
    path: PathBuf,
    rows: Vec<Observation>,
}

impl Observation {
    /// Something seen just now.
    pub(crate) fn seen(fact: String, vantage: &str, state: &str, detail: String, now: Timestamp) -> Self {
        let at = Some(ledger::stamp(now));
        Self { fact, vantage: vantage.to_owned(), state: state.to_owned(), detail: Some(detail), at }
    }
}

/// Name of the fact that a service is reached as seen from a target.
pub(crate) fn fact(service: &str, target: &str) -> String {
    format!("service:{service}@{target}")
}

/// Name of the fact that a host is reached.
pub(crate) fn host_fact(target: &str) -> String {
    format!("host:{target}")
}

/// Name of the fact that a host's resolver publishes.
pub(crate) fn beacon_fact(target: &str) -> String {
    format!("beacon:{target}")
}

impl Observations {
    /// Reads; a missing or unreadable file is no observation.
    pub(crate) fn read(stado_home: &Path) -> Self {
        let path = stado_home.join(FILE);
        let bytes = disk::read(&path, LARGEST).ok().flatten().unwrap_or_default();
        Self { rows: serde_json::from_slice(&bytes).unwrap_or_default(), path }
    }

    /// `just now`, `14m ago`, `stale (3h)`, `stale (undated)`, `never`.
    pub(crate) fn text(&self, fact: &str, now: Timestamp) -> String {
        let dated = |row: &Observation| row.at.as_deref()?.parse::<Timestamp>().ok();
        let rows: Vec<&Observation> = self.rows.iter().filter(|r| r.fact == fact && r.state == "observed").collect();
        let newest = rows.iter().filter_map(|row| dated(row)).max();
        match newest {
            None if rows.is_empty() => "never".to_owned(),
            None => "stale (undated)".to_owned(),
            Some(at) => match u64::try_from(now.duration_since(at).as_secs()).unwrap_or(0) {
                seconds if seconds > TTL => format!("stale ({})", age::span(seconds)),
                seconds => age::ago(seconds),
            },
        }
    }

    /// The newest row of a fact that says it was observed, whoever saw it: when, and what.
    pub(crate) fn newest(&self, fact: &str) -> Option<(Timestamp, &str)> {
        let rows = self.rows.iter().filter(|row| row.fact == fact && row.state == "observed");
        rows.filter_map(|row| Some((row.at.as_deref()?.parse().ok()?, row.detail.as_deref()?)))
            .max_by_key(|(at, _)| *at)
    }

    /// Records rows in place of the older ones; one that only says `unverified` replaces none that says more. What cannot be
    /// written is nobody's failure: it is told in the log.
    pub(crate) fn record(stado_home: &Path, rows: Vec<Observation>) {
        let path = stado_home.join(FILE);
        let write = || -> Result<(), String> {
            // Nobody waits for what is only best effort.
            let lock = Lock::within(&path.with_extension("lock"), PATIENCE).map_err(|e| e.to_string())?;
            let LockAttempt::Held(_lock) = lock else { return Err("another process holds the lock".to_owned()) };
            let mut all = Self::read(stado_home);
            for row in rows {
                let same = |r: &Observation| (&r.fact, &r.vantage) == (&row.fact, &row.vantage);
                if row.state == "unverified" && all.rows.iter().any(same) {
                    continue;
                }
                all.rows.retain(|r| !same(r));
                all.rows.push(row);
            }
            let bytes = serde_json::to_vec_pretty(&all.rows).map_err(|e| e.to_string())?;
            disk::replace(&all.path, &bytes).map_err(|e| e.to_string())
        };
        if let Err(error) = write() {
            tracing::warn!(%error, "observation_not_recorded");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(state: &str, at: Option<&str>) -> Observation {
        Observation {
            fact: fact("brama", "worker"),
            vantage: "worker".into(),
            state: state.into(),
            detail: None,
            at: at.map(str::to_owned),
        }
    }

    #[test]
    fn the_newest_row_of_a_vantage_is_kept_and_read_as_an_age() {
        let home = tempfile::tempdir().unwrap();
        let now: Timestamp = "2026-10-20T10:00:00Z".parse().unwrap();
        let text = || Observations::read(home.path()).text("service:brama@worker", now);
        assert_eq!(text(), "never");
        Observations::record(home.path(), vec![row("observed", None)]);
        assert_eq!(text(), "stale (undated)");
        Observations::record(home.path(), vec![row("observed", Some("2026-10-20T06:30:00Z"))]);
        assert_eq!(text(), "stale (3h)");
        Observations::record(home.path(), vec![row("observed", Some("2026-10-20T09:46:00Z"))]);
        assert_eq!(text(), "14m ago");
        assert_eq!(Observations::read(home.path()).rows.len(), 1);
        Observations::record(home.path(), vec![row("unreachable", Some("2026-10-20T09:59:00Z"))]);
        assert_eq!(text(), "never", "what does not answer was not observed");
    }

    #[test]
    fn an_untried_address_is_recorded_only_where_nothing_is_known() {
        let home = tempfile::tempdir().unwrap();
        let state = || Observations::read(home.path()).rows[0].state.clone();
        Observations::record(home.path(), vec![row("unverified", None)]);
        assert_eq!(state(), "unverified");
        Observations::record(home.path(), vec![row("observed", Some("2026-10-20T09:46:00Z"))]);
        Observations::record(home.path(), vec![row("unverified", Some("2026-10-20T09:50:00Z"))]);
        assert_eq!(state(), "observed");
    }

    #[test]
    fn the_newest_of_all_vantages_counts_and_many_rows_are_one_write() {
        let home = tempfile::tempdir().unwrap();
        let now: Timestamp = "2026-10-20T10:00:00Z".parse().unwrap();
        let earlier = now - jiff::SignedDuration::from_mins(5);
        let seen = |vantage: &str, detail: &str, at| {
            Observation::seen(beacon_fact("worker"), vantage, "observed", detail.to_owned(), at)
        };
        Observations::record(home.path(), vec![seen("desk", "old", earlier), seen("control", "new", now)]);
        let all = Observations::read(home.path());
        assert_eq!(all.newest("beacon:worker"), Some((now, "new")));
        assert_eq!(all.newest("beacon:other"), None);
    }
}

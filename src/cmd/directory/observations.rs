//! What was seen of services, and from where: `~/.stado/observations.json` (fleet contract §6.9). Best effort.
use super::age;
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use stado_fleet::disk::{self, Lock};
use std::path::{Path, PathBuf};

/// Older observations are stale, seconds.
const TTL: u64 = 3600;
const LARGEST: u64 = 16 << 20;
const FILE: &str = "observations.json";

/// One row: newest of its (fact, vantage).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Observation {
    /// `service:<name>@<target>`.
    pub(super) fact: String,
    /// Who looked.
    pub(super) vantage: String,
    /// `observed`, `unreachable`, `unverified`.
    pub(super) state: String,
    /// What was seen.
    #[serde(default)]
    pub(super) detail: Option<String>,
    /// When, RFC 3339.
    #[serde(default)]
    pub(super) at: Option<String>,
}

/// The file of one host.
pub(super) struct Observations {
    path: PathBuf,
    rows: Vec<Observation>,
}

/// Name of the fact that a service is reached as seen from a target.
pub(super) fn fact(service: &str, target: &str) -> String {
    format!("service:{service}@{target}")
}

impl Observations {
    /// Reads; a missing or unreadable file is no observation.
    pub(super) fn read(stado_home: &Path) -> Self {
        let path = stado_home.join(FILE);
        let bytes = disk::read(&path, LARGEST).ok().flatten().unwrap_or_default();
        Self { rows: serde_json::from_slice(&bytes).unwrap_or_default(), path }
    }

    /// `just now`, `14m ago`, `stale (3h)`, `stale (undated)`, `never`.
    pub(super) fn text(&self, fact: &str, now: Timestamp) -> String {
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

    /// Records one row in place of the older one. What cannot be written is nobody's failure: it is told in the log.
    pub(super) fn record(stado_home: &Path, row: Observation) {
        let path = stado_home.join(FILE);
        let write = || -> Result<(), String> {
            let _lock = Lock::exclusive(&path.with_extension("lock")).map_err(|e| e.to_string())?;
            let mut all = Self::read(stado_home);
            all.rows.retain(|r| (&r.fact, &r.vantage) != (&row.fact, &row.vantage));
            all.rows.push(row);
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
        Observations::record(home.path(), row("observed", None));
        assert_eq!(text(), "stale (undated)");
        Observations::record(home.path(), row("observed", Some("2026-10-20T06:30:00Z")));
        assert_eq!(text(), "stale (3h)");
        Observations::record(home.path(), row("observed", Some("2026-10-20T09:46:00Z")));
        assert_eq!(text(), "14m ago");
        assert_eq!(Observations::read(home.path()).rows.len(), 1);
        Observations::record(home.path(), row("unreachable", Some("2026-10-20T09:59:00Z")));
        assert_eq!(text(), "never", "what does not answer was not observed");
    }
}

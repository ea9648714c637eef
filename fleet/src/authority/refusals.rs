//! Reader refusal records: that an authority did not answer leaves more than a line in a log (fleet contract §3.2).
use crate::disk::{self, DiskError};
use crate::name::TargetName;
use jiff::{SignedDuration, Timestamp};
use serde::{Deserialize, Serialize};
use std::path::{Path, PathBuf};

/// Records kept for one authority.
const KEPT: usize = 100;
/// One record for each (host, reader, reason) in this time.
const THROTTLE: SignedDuration = SignedDuration::from_secs(60);

/// File names sort as their times.
const NAME: &str = "%Y%m%dT%H%M%S%.6fZ.json";

/// `state/reader_refusals/<authority>/<time>.json`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RefusalRecord {
    /// The authority that did not answer.
    pub host: String,
    /// When.
    pub at: String,
    /// `resolver`, `cli` or `dashboard`.
    pub reader: String,
    /// `authority_unreachable`, `directory_cache_stale` or `beacon_stale`.
    pub reason: String,
    /// The sentence, verbatim.
    pub detail: String,
}

/// The records below one local store.
#[derive(Debug, Clone)]
pub struct Refusals {
    dir: PathBuf,
}

impl Refusals {
    /// Below the root of a local store.
    pub fn new(store_root: &Path) -> Self {
        Self { dir: store_root.join("state/reader_refusals") }
    }

    /// Records a refusal unless the same was recorded within a minute, and drops the oldest past a hundred. `false` when
    /// it was not needed. Blocks for a file write.
    pub fn record(
        &self,
        host: &TargetName,
        reader: &str,
        reason: &str,
        detail: &str,
        now: Timestamp,
    ) -> Result<bool, DiskError> {
        let dir = self.dir.join(host.as_str());
        let names = names(&dir);
        let recent = (now - THROTTLE).strftime(NAME).to_string();
        let same = |name: &String| read(&dir.join(name)).is_some_and(|r| r.reader == reader && r.reason == reason);
        if names.iter().rev().take_while(|name| name.as_str() > recent.as_str()).any(same) {
            return Ok(false);
        }
        let record = RefusalRecord {
            host: host.to_string(),
            at: now.strftime("%Y-%m-%dT%H:%M:%SZ").to_string(),
            reader: reader.to_owned(),
            reason: reason.to_owned(),
            detail: detail.to_owned(),
        };
        let path = dir.join(now.strftime(NAME).to_string());
        disk::publish(&path, &serde_json::to_vec(&record).unwrap_or_default())?;
        for old in names.iter().rev().skip(KEPT - 1) {
            // One too many does no harm; the next record tries again.
            let _ = std::fs::remove_file(dir.join(old));
        }
        Ok(true)
    }
}

/// File names, oldest first: they are times.
fn names(dir: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(dir).into_iter().flatten().flatten();
    let mut names: Vec<_> = entries.filter_map(|e| e.file_name().into_string().ok()).collect();
    names.retain(|name| name.ends_with(".json") && !name.starts_with('.'));
    names.sort();
    names
}

fn read(path: &Path) -> Option<RefusalRecord> {
    serde_json::from_slice(&disk::read_unlinked(path, 64 << 10).ok()??).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_refusal_is_recorded_once_a_minute_and_a_hundred_are_kept() {
        let home = tempfile::tempdir().unwrap();
        let refusals = Refusals::new(home.path());
        let host: TargetName = "control-host".parse().unwrap();
        let dir = home.path().join("state/reader_refusals/control-host");
        let start: Timestamp = "2026-08-19T18:31:00Z".parse().unwrap();
        let at = |seconds: i64, reader: &str| {
            let now = start + SignedDuration::from_secs(seconds);
            refusals.record(&host, reader, "authority_unreachable", "why", now).unwrap()
        };
        assert!(at(0, "resolver"));
        assert!(!at(59, "resolver"));
        assert!(at(59, "cli"));
        assert!(at(60, "resolver"));
        assert_eq!(names(&dir)[0], "20260819T183100.000000Z.json");
        assert_eq!(
            std::fs::read_to_string(dir.join(&names(&dir)[0])).unwrap(),
            r#"{"host":"control-host","at":"2026-08-19T18:31:00Z","reader":"resolver","reason":"authority_unreachable","detail":"why"}"#
        );
        for minute in 2..130 {
            assert!(at(minute * 60, "resolver"));
        }
        assert_eq!(names(&dir).len(), KEPT);
    }
}

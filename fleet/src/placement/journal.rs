//! How far a transaction has come, on the authority's disk: written before each step, so that a cut-off one can be told.
use crate::disk::{self, DiskError};
use crate::edit::Claim;
use serde::{Deserialize, Serialize};
use std::path::{Path, PathBuf};

/// More than any entry has.
const LARGEST: u64 = 1 << 20;

/// The steps of the contract, in order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Step {
    /// The registry names the transaction; its services are refused from here on.
    Claim,
    /// Both hosts are looked at.
    Preflight,
    /// The services stop where they run, and would not come up with their host.
    StopSource,
    /// Their state is copied beside its place on the destination, and checked.
    CopyState,
    /// Units of other hosts follow.
    Routing,
    /// The state is put in place, the services start and answer.
    StartDestination,
    /// The source is seen to run none of them, and the destination's come up with their host from here on.
    RetireSource,
    /// The registry names the destination, and the transaction no more.
    Commit,
}

impl Step {
    /// All, in order.
    pub const ALL: [Self; 8] = [
        Self::Claim,
        Self::Preflight,
        Self::StopSource,
        Self::CopyState,
        Self::Routing,
        Self::StartDestination,
        Self::RetireSource,
        Self::Commit,
    ];

    /// Its word in the journal and in `placement status`.
    pub fn word(self) -> &'static str {
        match self {
            Self::Claim => "claim",
            Self::Preflight => "preflight",
            Self::StopSource => "stop-source",
            Self::CopyState => "copy-state",
            Self::Routing => "routing",
            Self::StartDestination => "start-destination",
            Self::RetireSource => "retire-source",
            Self::Commit => "commit",
        }
    }
}

/// One transaction as the journal has it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Entry {
    /// What the registry says of it.
    #[serde(flatten)]
    pub claim: Claim,
    /// The furthest step that was begun.
    pub step: Step,
    /// Whether it is on its way back.
    pub back: bool,
    /// Why it is on its way back.
    #[serde(default)]
    pub error: Option<String>,
    /// Nobody here has a record of its steps, and `step` is only the furthest that may have been begun.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub unrecorded: bool,
}

impl Entry {
    /// Nothing of it was done yet.
    pub fn new(claim: Claim) -> Self {
        Self { claim, step: Step::Claim, back: false, error: None, unrecorded: false }
    }

    /// A transaction that the registry names and nobody here has a record of: whatever may have been done is undone.
    pub fn unrecorded(claim: Claim) -> Self {
        Self { claim, step: Step::RetireSource, back: true, error: None, unrecorded: true }
    }
}

/// The directory of entries and of the lock that one mover at a time holds.
#[derive(Debug, Clone)]
pub struct Journal {
    dir: PathBuf,
}

impl Journal {
    /// Below `~/.stado`.
    pub fn below(stado_home: &Path) -> Self {
        Self { dir: stado_home.join("placement") }
    }

    /// The lock of whoever moves, evicts or recovers on this host.
    pub fn lock(&self) -> PathBuf {
        self.dir.join("mover.lock")
    }

    fn file(&self, id: &str) -> PathBuf {
        self.dir.join(format!("{id}.json"))
    }

    /// Writes an entry, whole and durable.
    ///
    /// # Errors
    /// The file system's.
    pub fn write(&self, entry: &Entry) -> Result<(), DiskError> {
        let text = serde_json::to_vec_pretty(entry).unwrap_or_default();
        disk::replace(&self.file(&entry.claim.id), &text)
    }

    /// Removes an entry; one that is not there is no error.
    ///
    /// # Errors
    /// The file system's.
    pub fn remove(&self, id: &str) -> Result<(), DiskError> {
        let file = self.file(id);
        match std::fs::remove_file(&file) {
            Err(e) if e.kind() != std::io::ErrorKind::NotFound => {
                Err(DiskError { step: "remove", path: file, source: e })
            }
            _ => Ok(()),
        }
    }

    /// One entry.
    ///
    /// # Errors
    /// A file that cannot be read, or is none of ours.
    pub fn read(&self, id: &str) -> Result<Option<Entry>, DiskError> {
        let file = self.file(id);
        let Some(bytes) = disk::read(&file, LARGEST)? else { return Ok(None) };
        let entry = serde_json::from_slice(&bytes);
        entry.map(Some).map_err(|e| DiskError { step: "read", path: file, source: std::io::Error::other(e) })
    }

    /// All that can be read, by their ids.
    pub fn entries(&self) -> Vec<Entry> {
        let names = std::fs::read_dir(&self.dir).into_iter().flatten().flatten();
        let ids = names.filter_map(|name| {
            let name = name.file_name().to_string_lossy().into_owned();
            name.strip_suffix(".json").filter(|id| !id.starts_with('.')).map(str::to_owned)
        });
        let mut all: Vec<Entry> = ids.filter_map(|id| self.read(&id).ok().flatten()).collect();
        all.sort_by(|a, b| a.claim.id.cmp(&b.claim.id));
        all
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(id: &str) -> Entry {
        let text = str::to_owned;
        Entry::new(Claim {
            id: text(id),
            profile: text("gateway"),
            from_host: text("a"),
            to_host: text("b"),
            started_at: text("2026-08-20T10:00:00Z"),
        })
    }

    #[test]
    fn entries_come_back_and_go_and_a_broken_one_hides_no_other() {
        let home = tempfile::tempdir().unwrap();
        let journal = Journal::below(home.path());
        assert_eq!(journal.entries(), []);
        let mut one = entry("1");
        journal.write(&one).unwrap();
        one.step = Step::CopyState;
        one.back = true;
        one.error = Some("no".into());
        journal.write(&one).unwrap();
        journal.write(&entry("2")).unwrap();
        std::fs::write(journal.file("0"), "{").unwrap();
        assert_eq!(journal.entries(), [one.clone(), entry("2")]);
        assert_eq!(journal.read("1").unwrap(), Some(one));
        assert!(journal.read("0").is_err());
        journal.remove("1").unwrap();
        journal.remove("1").unwrap();
        assert_eq!(journal.read("1").unwrap(), None);
        let text = std::fs::read_to_string(journal.file("2")).unwrap();
        assert!(text.contains("\"from_host\": \"a\"") && text.contains("\"step\": \"claim\""), "{text}");
        assert!(Step::ALL.windows(2).all(|two| two[0] < two[1]));
    }
}

//! The history of a local store: one file a version, its facts on the first line and its bytes after it, below
//! `.history/<hash of the key>/`. Written under the store's lock, after the swap: what is told there has happened.
use crate::disk::{self, DiskError};
use crate::name::StoreVersion;
use crate::store::Stored;
use crate::store::history::{Version, Writer};
use jiff::Timestamp;
use std::io::{BufRead, Read};
use std::path::{Path, PathBuf};

/// Versions that are kept.
const KEPT: usize = 200;
/// Bytes that are kept, but never fewer than [`LEAST`] versions.
const ROOM: u64 = 256 << 20;
const LEAST: usize = 10;
/// The largest file: a registry and its facts.
const LARGEST: u64 = super::LARGEST + FACTS;
const FACTS: u64 = 64 << 10;
/// The version's beginning in a file name; the whole is inside.
const SHOWN: usize = 16;

pub(super) struct Past {
    dir: PathBuf,
}

/// One file of the history.
struct Entry {
    number: u64,
    path: PathBuf,
    size: u64,
}

impl Past {
    pub(super) fn new(dir: PathBuf) -> Self {
        Self { dir }
    }

    /// Remembers what is there before it is replaced, where another build or a crash left it unremembered.
    pub(super) fn adopt(&self, held: &Stored, path: &Path) {
        let newest = self.entries().last().and_then(|entry| first_line(&entry.path));
        if newest.is_some_and(|newest| newest.version == held.version) {
            return;
        }
        let modified = std::fs::metadata(path).and_then(|m| m.modified()).ok();
        let at = modified.and_then(|at| Timestamp::try_from(at).ok()).unwrap_or_else(Timestamp::now);
        self.write(&held.version, None, None, at, &held.bytes);
    }

    /// Remembers what was just written.
    pub(super) fn remember(
        &self,
        version: &StoreVersion,
        replaced: Option<StoreVersion>,
        writer: Option<&Writer>,
        bytes: &[u8],
    ) {
        self.write(version, replaced, writer, Timestamp::now(), bytes);
    }

    /// A history that cannot be written costs a warning, not the write that it is about.
    fn write(
        &self,
        version: &StoreVersion,
        replaced: Option<StoreVersion>,
        writer: Option<&Writer>,
        at: Timestamp,
        bytes: &[u8],
    ) {
        let facts = Version {
            version: version.clone(),
            replaced,
            at: at.strftime("%Y-%m-%dT%H:%M:%SZ").to_string(),
            writer: writer.cloned(),
            directory_generation: generation(bytes),
        };
        if let Err(e) = self.keep(&facts, bytes) {
            tracing::warn!(target: "stado::fleet", "the registry's history is not kept: {e}");
        }
    }

    /// Remembers a version with what is known of it.
    pub(super) fn keep(&self, facts: &Version, bytes: &[u8]) -> Result<(), DiskError> {
        let entries = self.entries();
        let number = entries.last().map_or(1, |entry| entry.number.saturating_add(1));
        let mut file = serde_json::to_vec(facts).unwrap_or_default();
        file.push(b'\n');
        file.extend_from_slice(bytes);
        let shown: String = facts.version.as_str().chars().filter(char::is_ascii_alphanumeric).take(SHOWN).collect();
        let path = self.dir.join(format!("{number:010}-{shown}"));
        disk::replace(&path, &file)?;
        prune(&entries, u64::try_from(file.len()).unwrap_or(u64::MAX));
        Ok(())
    }

    /// One that is pruned meanwhile, or cannot be read as one, is no longer remembered.
    pub(super) fn versions(&self) -> Vec<Version> {
        self.entries().iter().rev().filter_map(|entry| first_line(&entry.path)).collect()
    }

    pub(super) fn content(&self, version: &StoreVersion) -> Result<Option<Vec<u8>>, DiskError> {
        let entries = self.entries();
        let said = |entry: &&Entry| first_line(&entry.path).is_some_and(|facts| facts.version == *version);
        let Some(entry) = entries.iter().rev().find(said) else { return Ok(None) };
        let Some(mut bytes) = disk::read_unlinked(&entry.path, LARGEST)? else { return Ok(None) };
        let end = bytes.iter().position(|b| *b == b'\n').map_or(bytes.len(), |end| end + 1);
        Ok(Some(bytes.split_off(end)))
    }

    /// Oldest first.
    fn entries(&self) -> Vec<Entry> {
        let files = std::fs::read_dir(&self.dir).into_iter().flatten().flatten();
        let mut entries: Vec<Entry> = files
            .filter_map(|file| {
                let number = file.file_name().to_str()?.split_once('-')?.0.parse().ok()?;
                Some(Entry { number, path: file.path(), size: file.metadata().ok()?.len() })
            })
            .collect();
        entries.sort_by_key(|entry| entry.number);
        entries
    }
}

/// The facts alone: a history may be long and its documents large.
fn first_line(path: &Path) -> Option<Version> {
    let mut line = String::new();
    let file = std::fs::File::open(path).ok()?;
    std::io::BufReader::new(file.take(FACTS)).read_line(&mut line).ok()?;
    serde_json::from_str(&line).ok()
}

fn generation(bytes: &[u8]) -> Option<u64> {
    let document = crate::document::Document::parse(bytes).ok()?;
    document.generation().map(|g| g.0)
}

/// Drops the oldest past the limits; `written` bytes have just been added.
fn prune(entries: &[Entry], written: u64) {
    let mut room = ROOM.saturating_sub(written);
    for (newer, entry) in entries.iter().rev().enumerate() {
        let fits = newer + 1 < KEPT && (newer + 1 < LEAST || entry.size <= room);
        room = room.saturating_sub(entry.size);
        if !fits {
            // One too many does no harm; the next write tries again.
            let _ = std::fs::remove_file(&entry.path);
        }
    }
}

//! Recording a copy: what may replace it, and in which order the two files are written.
use super::{LARGEST, LastGood, NotRecorded, Sidecar, whole_seconds};
use crate::admit::{self, Snapshot};
use crate::czekam;
use crate::disk::{self, DiskError, LockAttempt};
use crate::document::Document;
use crate::name::StoreVersion;
use crate::validate::validate;
use jiff::Timestamp;
use std::sync::Arc;
use std::time::Duration;

/// For another writer of the copy.
const PATIENCE: Duration = Duration::from_secs(2);

impl LastGood {
    /// Records a snapshot: document first, then the sidecar. One that names no hosts never replaces one that names some,
    /// nor does an older directory generation replace a newer one.
    pub fn record(&self, snapshot: &Snapshot, now: Timestamp) -> Result<(), NotRecorded> {
        self.write(snapshot, now, true)
    }

    /// As [`LastGood::record`], replacing whatever fleet was recorded here: a person named the authority (`registry
    /// pull --from`). Still never by a document that names no hosts.
    pub fn seed(&self, snapshot: &Snapshot, now: Timestamp) -> Result<(), NotRecorded> {
        self.write(snapshot, now, false)
    }

    /// Records bytes as a store served them, after the whole validation.
    pub fn record_bytes(&self, bytes: &[u8], version: &StoreVersion, now: Timestamp) -> Result<(), NotRecorded> {
        let refused = |kind, e: &dyn std::fmt::Display| self.refused(kind, e);
        let document = Document::parse(bytes).map_err(|e| refused("unparseable-document", &e))?;
        let valid = validate(document).map_err(|e| refused("rejected-by-this-build", &e))?;
        self.record(&Snapshot { valid: Arc::new(valid), store_version: version.clone() }, now)
    }

    fn write(&self, snapshot: &Snapshot, now: Timestamp, admitted_only: bool) -> Result<(), NotRecorded> {
        if !self.dir.is_absolute() {
            return Err(self.refused("no-cache-location", &"this host has no absolute place for it"));
        }
        let failed = |e: DiskError| self.refused("not-written", &e);
        // Two writers at once would pair one's document with the other's sidecar.
        let (what, path) = ("record of the last-known-good registry copy", self.lock_path());
        let _lock = match admitted_only {
            // A person asked for it.
            false => czekam::lock(what, &path).map_err(failed)?,
            // Who only reads does without: a writer that is stopped must not hold up every command of its host.
            true => match czekam::lock_within(what, &path, PATIENCE).map_err(failed)? {
                LockAttempt::Held(lock) => lock,
                LockAttempt::Busy { pid } => {
                    let holder = pid.map_or_else(|| "another process".to_owned(), |pid| format!("pid {pid}"));
                    let why = format!("{holder} has held {} for more than {}s", path.display(), PATIENCE.as_secs());
                    return Err(self.refused("not-written", &why));
                }
            },
        };
        let held = disk::read_unlinked(&self.path(), LARGEST).map_err(failed)?;
        let bytes = snapshot.valid.document.bytes();
        // An unchanged registry only moves its time.
        if held.as_deref() != Some(bytes) {
            self.keeps_hosts(held.as_deref(), snapshot)?;
            if admitted_only {
                self.admits(snapshot)?;
            }
            disk::replace(&self.path(), bytes).map_err(failed)?;
        }
        let sidecar = Sidecar { read_at: whole_seconds(now), generation: snapshot.store_version.clone() };
        let meta = serde_json::to_vec(&sidecar).map_err(|e| self.refused("not-written", &e))?;
        disk::replace(&self.sidecar_path(), &meta).map_err(failed)
    }

    /// An empty fleet is what an outage looks like from here. Read without validation: a copy that this build rejects
    /// still names hosts.
    fn keeps_hosts(&self, held: Option<&[u8]>, next: &Snapshot) -> Result<(), NotRecorded> {
        let recorded = held.and_then(|bytes| Document::parse(bytes).ok()).map_or(0, |d| d.target_count());
        if recorded == 0 || next.valid.document.target_count() > 0 {
            return Ok(());
        }
        Err(NotRecorded {
            kind: "would-lose-recorded-hosts",
            sentence: format!(
                "the authority served a registry naming no hosts and the recorded copy names {recorded}; keeping the \
                 recorded copy, because an empty fleet is what an outage looks like from here and the fallback exists for \
                 outages"
            ),
        })
    }

    fn admits(&self, next: &Snapshot) -> Result<(), NotRecorded> {
        // A copy that cannot be read is replaced; its reader has set it aside.
        let Ok(Some(copy)) = self.read() else { return Ok(()) };
        match admit::admit(Some(&copy.snapshot), next) {
            Ok(_) => Ok(()),
            Err(e) => Err(self.refused("rejected-by-this-build", &e)),
        }
    }

    fn refused(&self, kind: &'static str, why: &dyn std::fmt::Display) -> NotRecorded {
        let place = self.path();
        let sentence =
            format!("[registry-cache] not recording the last-known-good registry in {}: {why}", place.display());
        NotRecorded { kind, sentence }
    }
}

//! Who may come in: the authorized_keys file as it is now. It is read again when it changes, and sessions whose key is
//! gone are told.
use super::authorized::{self, Authorized};
use russh::keys::ssh_key::public::KeyData;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, SystemTime};
use tokio::sync::watch;

/// Between two looks at the file; a revoked key's sessions end within this and the time to read the file.
const LOOK: Duration = Duration::from_millis(300);
/// A larger file is not read.
const LIMIT: u64 = 4 << 20;

/// The keys of the file.
#[derive(Debug)]
pub(super) struct Keys {
    file: PathBuf,
    current: watch::Sender<Arc<KeySet>>,
}

/// One reading of the file.
#[derive(Debug, Default)]
pub(super) struct KeySet {
    stamp: Option<Stamp>,
    keys: Vec<Authorized>,
}

/// Changes with every edit, also one within the same second and of the same length.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Stamp {
    length: u64,
    modified: Option<SystemTime>,
    changed: (i64, i64, u64),
}

impl KeySet {
    /// The line of `key`, unless it has expired at `now` (seconds since 1970).
    pub(super) fn find(&self, key: &KeyData, now: i64) -> Option<&Authorized> {
        self.keys.iter().find(|a| a.key == *key && a.limits.expires.is_none_or(|at| now < at))
    }
}

impl Keys {
    /// Reads the file a first time. An unreadable file lets nobody in and is said.
    pub(super) async fn open(file: PathBuf) -> Arc<Self> {
        let keys = Arc::new(Self { file, current: watch::Sender::new(Arc::default()) });
        if !keys.refresh().await {
            tracing::warn!(target: "stado::fleet", "stado gate: {} does not exist: nobody may come in", keys.file.display());
        }
        keys
    }

    /// The reading in force; changes are seen on the receiver.
    pub(super) fn current(&self) -> watch::Receiver<Arc<KeySet>> {
        self.current.subscribe()
    }

    /// Reads the file again if it changed; `false` when there is none.
    pub(super) async fn refresh(&self) -> bool {
        let stamp = tokio::fs::metadata(&self.file).await.ok().map(|m| stamp(&m));
        if stamp != self.current.borrow().stamp {
            let keys = if stamp.is_some() { self.read().await } else { Vec::new() };
            self.current.send_replace(Arc::new(KeySet { stamp: stamp.clone(), keys }));
        }
        stamp.is_some()
    }

    /// Looks at the file until dropped.
    pub(super) async fn follow(&self) {
        loop {
            tokio::time::sleep(LOOK).await;
            self.refresh().await;
        }
    }

    async fn read(&self) -> Vec<Authorized> {
        let text = match self.text().await {
            Ok(text) => text,
            Err(why) => {
                let file = self.file.display();
                tracing::warn!(target: "stado::fleet", "stado gate: {file} {why}: nobody may come in");
                return Vec::new();
            }
        };
        let mut keys = Vec::new();
        for (index, line) in text.lines().enumerate() {
            match authorized::parse(line) {
                Ok(key) => keys.extend(key),
                Err(why) => {
                    let file = self.file.display();
                    tracing::warn!(target: "stado::fleet", "stado gate: {file}:{} {why}: the key may not come in", index + 1);
                }
            }
        }
        keys
    }

    async fn text(&self) -> Result<String, String> {
        let metadata = tokio::fs::metadata(&self.file).await.map_err(|error| format!("cannot be read: {error}"))?;
        if let Some(why) = writable_by_others(&metadata) {
            return Err(why);
        }
        if metadata.len() > LIMIT {
            return Err(format!("is larger than {LIMIT} bytes"));
        }
        let bytes = tokio::fs::read(&self.file).await.map_err(|error| format!("cannot be read: {error}"))?;
        Ok(String::from_utf8_lossy(&bytes).into_owned())
    }
}

#[cfg(unix)]
fn stamp(metadata: &std::fs::Metadata) -> Stamp {
    use std::os::unix::fs::MetadataExt;
    let changed = (metadata.ctime(), metadata.ctime_nsec(), metadata.ino());
    Stamp { length: metadata.len(), modified: metadata.modified().ok(), changed }
}
#[cfg(not(unix))]
fn stamp(metadata: &std::fs::Metadata) -> Stamp {
    Stamp { length: metadata.len(), modified: metadata.modified().ok(), changed: (0, 0, 0) }
}

#[cfg(unix)]
fn writable_by_others(metadata: &std::fs::Metadata) -> Option<String> {
    use std::os::unix::fs::MetadataExt;
    let mode = metadata.mode() & 0o777;
    if mode & 0o022 != 0 {
        return Some(format!("can be written by others (mode {mode:04o}); chmod 600"));
    }
    let owner = metadata.uid();
    (owner != 0 && owner != rustix::process::getuid().as_raw()).then(|| format!("belongs to another user ({owner})"))
}
#[cfg(not(unix))]
fn writable_by_others(_: &std::fs::Metadata) -> Option<String> {
    None
}

//! The local directory store (fleet contract §2.2, §2.3).
mod past;

use super::history::{History, Version, Writer};
use super::{Expected, RegistryStore, StoreError, StoreFuture, Stored, Swap};
use crate::disk::{self, DiskError, Lock};
use crate::fault::Class;
use crate::name::StoreVersion;
use past::Past;
use sha2::{Digest, Sha256};
use std::os::unix::fs::MetadataExt;
use std::path::{Component, Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

/// Largest registry that is read (design: we read up to 64 MiB).
pub const LARGEST: u64 = 64 << 20;
/// The registry's path in a store of its own.
pub const REGISTRY: &str = "registry.json";

/// The registry's path in a store that an object API serves: below its namespace (fleet contract §2.2).
pub const SERVED: &str = "ecosystem/probierz/registry.json";

/// Where a directory keeps the registry: at its root, or below the namespace once an object API has served it. Who serves it
/// and the commands of its host go by the same rule.
pub fn registry_key(root: &Path) -> &'static str {
    let there = |path: Option<&Path>| path.is_some_and(|path| root.join(path).symlink_metadata().is_ok());
    if !there(Some(Path::new(REGISTRY))) && there(Path::new(SERVED).parent()) { SERVED } else { REGISTRY }
}

/// Between two looks of a watcher at the file's own facts, which cost microseconds.
const LOOK: Duration = Duration::from_millis(100);
const LAYOUT: &str = "system/storage-layout.json";
const PRODUCT: &str = "stado";

/// One object of a directory on this host. Cheap to clone; holds no file open.
#[derive(Debug, Clone)]
pub struct LocalStore {
    root: PathBuf,
    key: String,
    writer: Option<Writer>,
}

impl LocalStore {
    /// Opens (and creates, 0700) the directory and checks its layout marker.
    pub fn open(root: impl Into<PathBuf>) -> Result<Self, StoreError> {
        Self::open_at(root, REGISTRY)
    }

    /// As [`LocalStore::open`], with the registry at another path below the root: a store that an object API serves
    /// keeps it at `ecosystem/probierz/registry.json`.
    pub fn open_at(root: impl Into<PathBuf>, key: &str) -> Result<Self, StoreError> {
        let store = Self { root: root.into(), key: key.to_owned(), writer: None };
        store.path()?;
        match disk::private_dir(&store.root) {
            // Nothing is there, and nothing can be put there: an empty store. A write will say why.
            Err(e) if cannot_be_written(&e) && !store.root.exists() => return Ok(store),
            made => made.map_err(|e| store.unreachable(&e))?,
        }
        store.check_layout()?;
        disk::sweep(&store.path()?);
        Ok(store)
    }

    /// Who writes through this value, for the history.
    pub fn written_by(mut self, writer: Writer) -> Self {
        self.writer = Some(writer);
        self
    }

    /// The directory.
    pub fn root(&self) -> &Path {
        &self.root
    }

    fn check_layout(&self) -> Result<(), StoreError> {
        let marker = self.root.join(LAYOUT);
        let read = || disk::read_unlinked(&marker, 64 << 10).map_err(|e| self.unreachable(&e));
        let bytes = match read()? {
            Some(bytes) => bytes,
            None => {
                let fresh = serde_json::json!({"product": PRODUCT, "schema_version": 1}).to_string();
                match disk::create_new(&marker, fresh.as_bytes()) {
                    Ok(false) => {}
                    Ok(true) => return Ok(()),
                    // Reading needs no marker.
                    Err(e) if cannot_be_written(&e) => return Ok(()),
                    Err(e) => return Err(self.unreachable(&e)),
                }
                read()?.unwrap_or_default()
            }
        };
        let layout: serde_json::Value = serde_json::from_slice(&bytes)
            .map_err(|e| config(format!("storage layout marker {} is not JSON: {e}", marker.display())))?;
        if layout.get("product").and_then(|p| p.as_str()) != Some(PRODUCT) {
            return Err(config("storage layout marker belongs to another product".into()));
        }
        match layout.get("schema_version") {
            Some(v) if v.as_u64() == Some(1) => Ok(()),
            v => {
                let v = v.map_or_else(|| "null".to_owned(), ToString::to_string);
                Err(config(format!("unsupported storage layout schema_version {v}; expected 1")))
            }
        }
    }

    /// The object's file. Neither the key nor a link on the way may lead out of the root.
    fn path(&self) -> Result<PathBuf, StoreError> {
        let escapes = || config(format!("storage path escapes deployment root: {}", self.key));
        let relative = Path::new(&self.key);
        if self.key.is_empty() || !relative.components().all(|c| matches!(c, Component::Normal(_))) {
            return Err(escapes());
        }
        let path = self.root.join(relative);
        let real = path.parent().and_then(|dir| dir.canonicalize().ok()).zip(self.root.canonicalize().ok());
        match real {
            Some((dir, root)) if !dir.starts_with(&root) => Err(escapes()),
            // A directory that is not there yet cannot be a link; it is made below the root.
            _ => Ok(path),
        }
    }

    fn lock_path(&self) -> PathBuf {
        self.root.join(".locks").join(self.hash())
    }

    /// Without the lock: a rename is atomic, so a reader finds one version or another, also on a read-only disk.
    fn read_now(&self) -> Result<Option<Stored>, StoreError> {
        let bytes = disk::read_unlinked(&self.path()?, LARGEST).map_err(|e| self.unreachable(&e))?;
        bytes.map(|bytes| Ok(Stored { version: version_of(&bytes)?, bytes: bytes.into() })).transpose()
    }

    fn swap_now(&self, expected: &Expected, bytes: &[u8]) -> Result<Swap, StoreError> {
        let path = self.path()?;
        let _lock = self.lock()?;
        let held = self.read_now()?;
        let found = held.as_ref().map(|stored| stored.version.clone());
        match (expected, &found) {
            (Expected::Version(_), None) => return Ok(Swap::Absent),
            (Expected::Version(version), Some(found)) if version == found => {}
            (_, Some(_)) => return Ok(Swap::Conflict { found }),
            (Expected::Absent, None) => {}
        }
        if let Some(held) = &held {
            self.past().adopt(held, &path);
        }
        let written = match &found {
            Some(_) => disk::replace(&path, bytes),
            None => match disk::create_new(&path, bytes) {
                // Someone without our lock was faster.
                Ok(false) => return Ok(Swap::Conflict { found: self.read_now()?.map(|stored| stored.version) }),
                created => created.map(|_| ()),
            },
        };
        match written {
            Ok(()) => {
                let version = version_of(bytes)?;
                self.past().remember(&version, found, self.writer.as_ref(), bytes);
                Ok(Swap::Applied(version))
            }
            Err(e) if e.in_place() => Ok(Swap::Unknown(self.unreachable(&e))),
            Err(e) => Err(self.unreachable(&e)),
        }
    }

    fn past(&self) -> Past {
        Past::new(self.root.join(".history").join(self.hash()))
    }

    fn hash(&self) -> String {
        hex::encode(Sha256::digest(self.key.as_bytes()))
    }

    fn look(&self) -> Result<Look, StoreError> {
        let meta = std::fs::symlink_metadata(self.path()?).ok();
        Ok(meta.map(|m| (m.ino(), m.ctime(), m.ctime_nsec(), m.size())))
    }

    fn lock(&self) -> Result<Lock, StoreError> {
        crate::czekam::lock("exclusive lock of the registry", &self.lock_path()).map_err(|e| self.unreachable(&e))
    }

    fn unreachable(&self, e: &DiskError) -> StoreError {
        use crate::fault::Faulty;
        StoreError { sentence: format!("registry store unreachable ({}): {e}", self.location()), class: e.class() }
    }
}

impl RegistryStore for LocalStore {
    fn location(&self) -> String {
        format!("local:{}", self.key)
    }

    fn shared(&self) -> bool {
        false
    }

    fn read(&self) -> StoreFuture<'_, Result<Option<Stored>, StoreError>> {
        let store = self.clone();
        Box::pin(off_thread(move || store.read_now()))
    }

    fn swap(&self, expected: Expected, bytes: Vec<u8>) -> StoreFuture<'_, Result<Swap, StoreError>> {
        let store = self.clone();
        Box::pin(off_thread(move || store.swap_now(&expected, &bytes)))
    }

    fn history(&self) -> Option<&dyn History> {
        Some(self)
    }

    fn watch<'a>(
        &'a self,
        held: Option<&'a StoreVersion>,
    ) -> StoreFuture<'a, Result<Option<StoreVersion>, StoreError>> {
        Box::pin(async move {
            loop {
                // Looked at before the read, so that no change falls between.
                let seen = self.look()?;
                let now = self.read().await?.map(|stored| stored.version);
                if now.as_ref() != held {
                    return Ok(now);
                }
                while self.look()? == seen {
                    tokio::time::sleep(LOOK).await;
                }
            }
        })
    }
}

impl History for LocalStore {
    fn versions(&self) -> StoreFuture<'_, Result<Vec<Version>, StoreError>> {
        let store = self.clone();
        Box::pin(off_thread(move || Ok(store.past().versions())))
    }

    fn keep<'a>(&'a self, facts: &'a Version, bytes: Arc<[u8]>) -> StoreFuture<'a, Result<(), StoreError>> {
        let (store, facts) = (self.clone(), facts.clone());
        Box::pin(off_thread(move || {
            let _lock = store.lock()?;
            store.past().keep(&facts, &bytes).map_err(|e| store.unreachable(&e))
        }))
    }

    fn content<'a>(&'a self, version: &'a StoreVersion) -> StoreFuture<'a, Result<Option<Arc<[u8]>>, StoreError>> {
        let (store, version) = (self.clone(), version.clone());
        Box::pin(off_thread(move || {
            let kept = store.past().content(&version).map_err(|e| store.unreachable(&e))?;
            match kept {
                Some(bytes) => Ok(Some(bytes.into())),
                // A registry that nobody wrote through this build is not in its history yet.
                None => Ok(store.read_now()?.filter(|stored| stored.version == version).map(|stored| stored.bytes)),
            }
        }))
    }
}

/// What tells one write of a file from the next: inode, change time with nanoseconds, size.
type Look = Option<(u64, i64, i64, u64)>;

/// File work runs where it may block.
async fn off_thread<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, StoreError> + Send + 'static,
) -> Result<T, StoreError> {
    tokio::task::spawn_blocking(work).await.unwrap_or_else(|e| {
        Err(StoreError { sentence: format!("the registry store's work ended early: {e}"), class: Class::Unknown })
    })
}

/// The version of bytes in this store: their SHA-256 in lowercase hex. An A→B→A sequence is invisible to it.
pub fn version_of(bytes: &[u8]) -> Result<StoreVersion, StoreError> {
    hex::encode(Sha256::digest(bytes)).parse().map_err(|e: crate::name::NameError| config(e.to_string()))
}

/// A home on a read-only file system, or one that belongs to somebody else.
fn cannot_be_written(error: &DiskError) -> bool {
    matches!(error.source.kind(), std::io::ErrorKind::ReadOnlyFilesystem | std::io::ErrorKind::PermissionDenied)
}

fn config(sentence: String) -> StoreError {
    StoreError { sentence, class: Class::Config }
}

#[cfg(test)]
mod tests;

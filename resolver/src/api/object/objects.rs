//! The directory behind the API (§2.2): objects as plain files, their metadata beside them. Everything here blocks.
use super::name::Name;
use sha2::{Digest, Sha256};
use stado_fleet::czekam;
use stado_fleet::disk::{self, DiskError, Lock, Staged};
use stado_fleet::fault::Faulty;
use stado_fleet::name::StoreVersion;
use stado_fleet::store::StoreError;
use stado_fleet::store::local::{LocalStore, SERVED, registry_key};
use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, Read};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Component, Path, PathBuf};
use std::time::SystemTime;

/// Largest sidecar.
const METADATA_LIMIT: u64 = 64 << 10;

/// What is known of an object beside its bytes; `content_type`, and `stado-*`.
pub(super) type Metadata = BTreeMap<String, String>;

/// The objects below one directory. Cheap to clone.
#[derive(Debug, Clone)]
pub struct Objects {
    root: PathBuf,
    registry: LocalStore,
    /// Where the registry is; its swaps are those of the local store, with its lock and history.
    key: &'static str,
}

/// An object that is there.
#[derive(Debug)]
pub(super) struct Found {
    pub(super) file: File,
    pub(super) size: u64,
    pub(super) modified: SystemTime,
}

/// What a write is conditional on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Condition {
    None,
    Absent,
    Version(String),
}

/// How a write ended.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Put {
    Stored(String),
    Exists,
    Moved,
    Absent,
}

impl Objects {
    /// Opens (and creates, 0700) the directory; the same that this host's own commands use as their local store.
    ///
    /// # Errors
    /// As [`LocalStore::open_at`].
    pub fn open(root: impl Into<PathBuf>) -> Result<Self, StoreError> {
        let root = root.into();
        if let Some(namespace) = root.join(SERVED).parent() {
            // From now on this store is a served one, for this host's own commands too.
            let sentence = |e: DiskError| format!("registry store unreachable (local:{SERVED}): {e}");
            disk::private_dir(namespace).map_err(|e| StoreError { class: e.class(), sentence: sentence(e) })?;
        }
        let key = registry_key(&root);
        let registry = LocalStore::open_at(&root, key)?;
        Ok(Self { root, registry, key })
    }

    /// Who writes the registry through this API, for its history.
    pub fn written_by(mut self, writer: stado_fleet::store::history::Writer) -> Self {
        self.registry = self.registry.written_by(writer);
        self
    }

    /// Whether a name is the registry's.
    pub(super) fn is_registry(name: &Name) -> bool {
        name.path() == SERVED
    }

    pub(super) fn registry(&self) -> &LocalStore {
        &self.registry
    }

    pub(super) fn root(&self) -> &Path {
        &self.root
    }

    /// An object's file. No link on the way may lead out of the root.
    pub(super) fn path(&self, name: &Name) -> io::Result<PathBuf> {
        if Self::is_registry(name) {
            return Ok(self.root.join(self.key));
        }
        let mut path = self.root.clone();
        for part in Path::new(&name.path()).components() {
            let Component::Normal(part) = part else { return Err(io::Error::other("it leads out of the store")) };
            if path.symlink_metadata().is_ok_and(|m| m.is_symlink()) && path != self.root {
                return Err(io::Error::other(format!("{} is a symbolic link", path.display())));
            }
            path.push(part);
        }
        Ok(path)
    }

    pub(super) fn find(&self, name: &Name) -> io::Result<Option<Found>> {
        let flags = rustix::fs::OFlags::NOFOLLOW | rustix::fs::OFlags::NONBLOCK;
        let flags = i32::try_from(flags.bits()).unwrap_or_default();
        let file = match File::options().read(true).custom_flags(flags).open(self.path(name)?) {
            Ok(file) => file,
            Err(e) if matches!(e.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory) => return Ok(None),
            Err(e) => return Err(e),
        };
        let meta = file.metadata()?;
        if !meta.is_file() {
            return Ok(None);
        }
        Ok(Some(Found { size: meta.len(), modified: meta.modified()?, file }))
    }

    /// A missing or unreadable sidecar is no metadata.
    pub(super) fn metadata(&self, name: &Name) -> Metadata {
        let path = self.root.join(".metadata").join(name.path());
        [with_json(&path), path]
            .iter()
            .find_map(|path| disk::read_unlinked(path, METADATA_LIMIT).ok()?)
            .and_then(|bytes| serde_json::from_slice(&bytes).ok())
            .unwrap_or_default()
    }

    /// Writes the sidecar of an object that is there; `false` when it is not.
    pub(super) fn put_metadata(&self, name: &Name, metadata: &Metadata) -> io::Result<bool> {
        let _lock = self.lock(name)?;
        if self.find(name)?.is_none() {
            return Ok(false);
        }
        self.write_metadata(name, metadata).map(|()| true)
    }

    fn write_metadata(&self, name: &Name, metadata: &Metadata) -> io::Result<()> {
        let path = with_json(&self.root.join(".metadata").join(name.path()));
        let text = serde_json::to_vec(metadata)?;
        disk::replace(&path, &text).map_err(io::Error::other)
    }

    /// Gives what was uploaded its name, when the condition holds.
    pub(super) fn put(
        &self,
        name: &Name,
        staged: Staged,
        version: String,
        condition: &Condition,
        metadata: &Metadata,
    ) -> io::Result<Put> {
        let _lock = self.lock(name)?;
        let held = match condition {
            Condition::Version(_) => self.find(name)?.map(|found| hash(found.file)).transpose()?,
            _ => None,
        };
        match (condition, held) {
            (Condition::Version(_), None) => return Ok(Put::Absent),
            (Condition::Version(wanted), Some(held)) if *wanted != held => return Ok(Put::Moved),
            _ => {}
        }
        let written =
            if *condition == Condition::Absent { staged.create_new() } else { staged.replace().map(|()| true) };
        match written.map_err(io::Error::other)? {
            false => Ok(Put::Exists),
            true => {
                self.write_metadata(name, metadata)?;
                Ok(Put::Stored(version))
            }
        }
    }

    pub(super) fn delete(&self, name: &Name) -> io::Result<()> {
        let _lock = self.lock(name)?;
        if self.find(name)?.is_some() {
            std::fs::remove_file(self.path(name)?)?;
        }
        let path = self.root.join(".metadata").join(name.path());
        for sidecar in [with_json(&path), path] {
            // What is left of an object that is gone says nothing of the next one.
            let _ = std::fs::remove_file(sidecar);
        }
        Ok(())
    }

    fn lock(&self, name: &Name) -> io::Result<Lock> {
        let hash = hex::encode(Sha256::digest(name.path()));
        let what = format!("exclusive lock of {name}");
        let path = self.root.join(".locks").join(hash);
        czekam::lock(&what, &path).map_err(|e: DiskError| io::Error::other(e.to_string()))
    }
}

fn with_json(path: &Path) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(".json");
    name.into()
}

/// The version of a file's bytes, as the local store counts them.
pub(super) fn hash(mut file: impl Read) -> io::Result<String> {
    let mut hash = Sha256::new();
    let mut buffer = vec![0; 64 << 10];
    loop {
        match file.read(&mut buffer)? {
            0 => return Ok(hex::encode(hash.finalize())),
            n => hash.update(buffer.get(..n).unwrap_or_default()),
        }
    }
}

/// A version as a condition of the local store.
pub(super) fn store_version(text: &str) -> Option<StoreVersion> {
    text.parse().ok()
}

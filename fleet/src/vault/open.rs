//! A vault on this host's disk. Everything here blocks.
use super::contents::Contents;
use super::keyring::{self, Key, KeyPlace, Wanted};
use super::sealed::{self, Head};
use super::{Event, VaultError, audit};
use crate::czekam;
use crate::disk::{self, Lock};
use crate::fault::Class;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

/// Largest file.
const LARGEST: u64 = 64 << 20;

/// An opened vault: its key is in memory. Cheap to clone.
#[derive(Debug, Clone)]
pub struct Vault {
    path: PathBuf,
    head: Head,
    key: Key,
    read: Arc<Mutex<Option<Seen>>>,
}

/// Tells a file that was replaced from the one that was read.
type Stamp = (u64, i64, i64, u64);
/// What was read last, and of which file.
type Seen = (Stamp, Arc<Contents>);

impl Vault {
    /// Makes a new one in `dir`. `place`: where the key goes; `None` is the keyring where there is one, else a file.
    ///
    /// # Errors
    /// A vault that is there already; a key or file that cannot be written.
    pub fn create(dir: &Path, place: Option<KeyPlace>) -> Result<Self, VaultError> {
        Self::create_while(dir, place, &|| true)
    }

    /// As [`Vault::create`], for as long as it is wanted.
    ///
    /// # Errors
    /// As [`Vault::create`].
    pub fn create_while(dir: &Path, place: Option<KeyPlace>, wanted: Wanted<'_>) -> Result<Self, VaultError> {
        let path = file(dir);
        disk::private_dir(dir)?;
        let _lock = lock(dir)?;
        if path.exists() {
            let sentence = format!("there is a vault already: {}", path.display());
            return Err(VaultError::new(Class::Refused, sentence));
        }
        let id = uuid::Uuid::new_v4().simple().to_string();
        let works = || keyring::keyring_works(&id, wanted);
        let place = match place {
            Some(KeyPlace::File) => KeyPlace::File,
            Some(KeyPlace::Keyring) => works().map(|()| KeyPlace::Keyring)?,
            None => match works() {
                Ok(()) => KeyPlace::Keyring,
                Err(error) if !wanted() => return Err(error),
                Err(_) => KeyPlace::File,
            },
        };
        let (head, key) = (Head::new(id, place), Key::random()?);
        keyring::store(place, &path, &head.id, &key, wanted)?;
        let bytes = sealed::seal(&head, &Contents::default(), &key)?;
        disk::replace(&path, &bytes)?;
        Ok(Self { path, head, key, read: Arc::default() })
    }

    /// Opens the one in `dir`.
    ///
    /// # Errors
    /// No vault, no key, or a key that is not this vault's.
    pub fn open(dir: &Path) -> Result<Self, VaultError> {
        Self::open_while(dir, &|| true)
    }

    /// As [`Vault::open`], for as long as it is wanted.
    ///
    /// # Errors
    /// As [`Vault::open`].
    pub fn open_while(dir: &Path, wanted: Wanted<'_>) -> Result<Self, VaultError> {
        let path = file(dir);
        let bytes = bytes(&path)?;
        let head = sealed::head(&path, &bytes)?;
        let key = keyring::load(head.key, &path, &head.id, wanted)?;
        sealed::open(&path, &bytes, &key)?;
        Ok(Self { path, head, key, read: Arc::default() })
    }

    /// Its file.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Where its key is.
    pub fn key_place(&self) -> KeyPlace {
        self.head.key
    }

    /// What is in it now: another process may have changed it.
    ///
    /// # Errors
    /// A file that cannot be read any more.
    pub fn contents(&self) -> Result<Arc<Contents>, VaultError> {
        let meta = std::fs::metadata(&self.path);
        let stamp = meta.ok().map(|m| (m.ino(), m.mtime(), m.mtime_nsec(), m.len()));
        let mut read = self.read.lock().unwrap_or_else(PoisonError::into_inner);
        if let (Some(stamp), Some((held, contents))) = (stamp, &*read)
            && stamp == *held
        {
            return Ok(contents.clone());
        }
        let contents = Arc::new(sealed::open(&self.path, &bytes(&self.path)?, &self.key)?);
        *read = stamp.map(|stamp| (stamp, contents.clone()));
        Ok(contents)
    }

    /// Changes it, and records that; nobody else's change is lost. What `change` refuses leaves it as it was.
    ///
    /// # Errors
    /// What `change` says, or a file that cannot be written.
    pub fn change<T>(
        &self,
        event: &Event<'_>,
        change: impl FnOnce(&mut Contents) -> Result<T, VaultError>,
    ) -> Result<T, VaultError> {
        let _lock = lock(self.dir())?;
        let mut contents = sealed::open(&self.path, &bytes(&self.path)?, &self.key)?;
        let answer = change(&mut contents)?;
        let bytes = sealed::seal(&self.head, &contents, &self.key)?;
        self.record(event)?;
        disk::replace(&self.path, &bytes)?;
        Ok(answer)
    }

    /// Appends a line to the audit log. Whoever gives a value away does this first: a read that cannot be recorded is none.
    ///
    /// # Errors
    /// A log that cannot be written.
    pub fn record(&self, event: &Event<'_>) -> Result<(), VaultError> {
        audit::append(&self.audit_log(), event)
    }

    /// Where the reads are recorded.
    pub fn audit_log(&self) -> PathBuf {
        self.path.with_file_name("audit.log")
    }

    fn dir(&self) -> &Path {
        self.path.parent().unwrap_or(Path::new("."))
    }
}

fn file(dir: &Path) -> PathBuf {
    dir.join("vault.json")
}

fn lock(dir: &Path) -> Result<Lock, VaultError> {
    Ok(czekam::lock("exclusive lock of the vault", &dir.join("vault.lock"))?)
}

fn bytes(path: &Path) -> Result<Vec<u8>, VaultError> {
    disk::read_unlinked(path, LARGEST)?.ok_or_else(|| {
        VaultError::new(
            Class::NotFound,
            format!("there is no vault at {}: `stado vault init` makes one", path.display()),
        )
    })
}

/// Writes a secret to a new file that only its owner can read.
///
/// # Errors
/// A file that is there already, or cannot be written.
pub fn given(path: &Path, secret: &super::Secret) -> Result<(), VaultError> {
    let line = format!("{}\n", secret.reveal());
    if disk::create_new(path, line.as_bytes())? {
        return Ok(());
    }
    let sentence = format!("{} is there already; name a file that is not, or remove it", path.display());
    Err(VaultError::new(Class::Refused, sentence))
}

//! Whole-file writes: a reader, a crash or a full disk finds the old content or the new, never less.
use super::{DiskError, parent};
use std::fs::{DirBuilder, File, Metadata};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::Path;
use std::time::Duration;
use tempfile::NamedTempFile;

/// Step name of a [`DiskError`] raised after the rename: see [`DiskError::in_place`].
pub const SYNC_DIRECTORY: &str = "sync the directory of";

/// Random characters at the end of a temporary file's name.
const RANDOM: usize = 6;

/// The moments of one write, in order. After each the file holds its old or its new content.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WriteStep {
    /// The temporary file exists, empty.
    Created,
    /// It holds the bytes.
    Written,
    /// They are on the medium. [`publish`] leaves this out.
    Synced,
    /// It carries the name.
    Renamed,
    /// The name is on the medium. [`publish`] leaves this out.
    DirectorySynced,
}

/// Told each step as it is done: fault points for tests. Its error ends the write there.
pub type Observer<'a> = &'a mut dyn FnMut(WriteStep) -> io::Result<()>;

/// Replaces `path` whole: same-directory temporary file, fsync, rename, fsync of the directory; 0600, missing
/// directories made 0700. A symbolic link at `path` is replaced, not followed.
pub fn replace(path: &Path, bytes: &[u8]) -> Result<(), DiskError> {
    replace_observed(path, bytes, &mut |_| Ok(()))
}

/// [`replace`], telling each step as it is done.
pub fn replace_observed(path: &Path, bytes: &[u8], observe: Observer<'_>) -> Result<(), DiskError> {
    let fail = |e: io::Error| DiskError::new("write", path, e);
    let temporary = synced(path, bytes, observe)?;
    temporary.persist(path).map_err(|e| fail(e.error))?;
    named(path, observe)
}

/// As [`replace`], under the mode that the file has; a new one is 0600. For files that are a person's own.
pub fn rewrite(path: &Path, bytes: &[u8]) -> Result<(), DiskError> {
    let fail = |e: io::Error| DiskError::new("write", path, e);
    let temporary = written(path, bytes, &mut |_| Ok(()))?;
    if let Ok(held) = std::fs::symlink_metadata(path)
        && held.is_file()
    {
        temporary.as_file().set_permissions(held.permissions()).map_err(fail)?;
    }
    temporary.as_file().sync_all().map_err(fail)?;
    temporary.persist(path).map_err(|e| fail(e.error))?;
    sync_directory(path)
}

/// As [`replace`] without fsync: only for the three published files.
pub fn publish(path: &Path, bytes: &[u8]) -> Result<(), DiskError> {
    publish_observed(path, bytes, &mut |_| Ok(()))
}

/// [`publish`], telling each step as it is done.
pub fn publish_observed(path: &Path, bytes: &[u8], observe: Observer<'_>) -> Result<(), DiskError> {
    let fail = |e: io::Error| DiskError::new("write", path, e);
    let temporary = written(path, bytes, observe)?;
    temporary.persist(path).map_err(|e| fail(e.error))?;
    observe(WriteStep::Renamed).map_err(|e| DiskError::new(SYNC_DIRECTORY, path, e))
}

/// Creates `path` with `bytes` unless it exists (no-clobber link); `false` when it existed.
pub fn create_new(path: &Path, bytes: &[u8]) -> Result<bool, DiskError> {
    create_new_observed(path, bytes, &mut |_| Ok(()))
}

/// [`create_new`], telling each step as it is done.
pub fn create_new_observed(path: &Path, bytes: &[u8], observe: Observer<'_>) -> Result<bool, DiskError> {
    let temporary = synced(path, bytes, observe)?;
    clobbering_nothing(temporary, path, observe)
}

/// A file that is written piece by piece, beside the one it will be. Dropped before its end it leaves nothing.
#[derive(Debug)]
pub struct Staged {
    temporary: NamedTempFile,
    path: std::path::PathBuf,
}

impl Staged {
    /// An empty one for `path`; missing directories are made 0700.
    pub fn begin(path: &Path) -> Result<Self, DiskError> {
        Ok(Self { temporary: stage(path)?, path: path.to_owned() })
    }

    /// Adds to it.
    pub fn write(&mut self, bytes: &[u8]) -> Result<(), DiskError> {
        self.temporary.write_all(bytes).map_err(|e| DiskError::new("write", &self.path, e))
    }

    /// As [`replace`], with what was written.
    pub fn replace(self) -> Result<(), DiskError> {
        let Self { temporary, path } = self;
        let fail = |e: io::Error| DiskError::new("write", &path, e);
        temporary.as_file().sync_all().map_err(fail)?;
        temporary.persist(&path).map_err(|e| fail(e.error))?;
        sync_directory(&path)
    }

    /// As [`create_new`], with what was written.
    pub fn create_new(self) -> Result<bool, DiskError> {
        let Self { temporary, path } = self;
        temporary.as_file().sync_all().map_err(|e| DiskError::new("write", &path, e))?;
        clobbering_nothing(temporary, &path, &mut |_| Ok(()))
    }
}

/// Gives a file its name unless that is taken.
fn clobbering_nothing(temporary: NamedTempFile, path: &Path, observe: Observer<'_>) -> Result<bool, DiskError> {
    match temporary.persist_noclobber(path) {
        Ok(_) => named(path, observe).map(|()| true),
        Err(e) if e.error.kind() == io::ErrorKind::AlreadyExists => Ok(false),
        Err(e) => Err(DiskError::new("create", path, e.error)),
    }
}

/// A temporary file that holds the bytes.
fn written(path: &Path, bytes: &[u8], observe: Observer<'_>) -> Result<NamedTempFile, DiskError> {
    let fail = |e: io::Error| DiskError::new("write", path, e);
    let mut temporary = stage(path)?;
    observe(WriteStep::Created).map_err(fail)?;
    temporary.write_all(bytes).map_err(fail)?;
    observe(WriteStep::Written).map_err(fail)?;
    Ok(temporary)
}

/// One whose bytes are on the medium.
fn synced(path: &Path, bytes: &[u8], observe: Observer<'_>) -> Result<NamedTempFile, DiskError> {
    let fail = |e: io::Error| DiskError::new("write", path, e);
    let temporary = written(path, bytes, observe)?;
    temporary.as_file().sync_all().map_err(fail)?;
    observe(WriteStep::Synced).map_err(fail)?;
    Ok(temporary)
}

/// The end of a write whose file carries its name.
fn named(path: &Path, observe: Observer<'_>) -> Result<(), DiskError> {
    let late = |e: io::Error| DiskError::new(SYNC_DIRECTORY, path, e);
    observe(WriteStep::Renamed).map_err(late)?;
    sync_directory(path)?;
    observe(WriteStep::DirectorySynced).map_err(late)
}

/// Creates a directory (and parents) with mode 0700 when missing.
pub fn private_dir(path: &Path) -> Result<(), DiskError> {
    DirBuilder::new().recursive(true).mode(0o700).create(path).map_err(|e| DiskError::new("create directory", path, e))
}

/// An empty 0600 file `.<name>.XXXXXX` beside `path`.
fn stage(path: &Path) -> Result<NamedTempFile, DiskError> {
    let name = path.file_name().ok_or_else(|| DiskError::refused("write", path, "it has no file name"))?;
    private_dir(parent(path))?;
    let mut prefix = std::ffi::OsString::from(".");
    prefix.push(name);
    prefix.push(".");
    tempfile::Builder::new()
        .prefix(&prefix)
        .rand_bytes(RANDOM)
        .tempfile_in(parent(path))
        .map_err(|e| DiskError::new("write", path, e))
}

/// Removes temporary files of `path` that a killed writer left more than an hour ago.
pub fn sweep(path: &Path) {
    if let Some(name) = path.file_name() {
        sweep_named(parent(path), LEFT, &|of| of == name.to_string_lossy());
    }
}

/// As [`sweep`], whatever their age: for a file whose only writer is the caller, who holds its lock.
pub fn sweep_locked(path: &Path) {
    if let Some(name) = path.file_name() {
        sweep_named(parent(path), Duration::ZERO, &|of| of == name.to_string_lossy());
    }
}

/// As [`sweep`], for all files of `dir` whose name `is_ours`.
pub fn sweep_dir(dir: &Path, is_ours: &dyn Fn(&str) -> bool) {
    sweep_named(dir, LEFT, is_ours);
}

/// A writer that is not done by then is not at work any more.
const LEFT: Duration = Duration::from_secs(3600);

/// Only regular files of this user, named as [`stage`] names them.
fn sweep_named(dir: &Path, older_than: Duration, is_ours: &dyn Fn(&str) -> bool) {
    let me = rustix::process::geteuid().as_raw();
    let old = |m: &Metadata| {
        let age = m.modified().ok().and_then(|modified| modified.elapsed().ok());
        older_than.is_zero() || age.is_some_and(|age| age > older_than)
    };
    for entry in std::fs::read_dir(dir).into_iter().flatten().flatten() {
        let left = staged_for(&entry.file_name().to_string_lossy()).is_some_and(is_ours);
        if left && entry.metadata().is_ok_and(|m| m.is_file() && m.uid() == me && old(&m)) {
            // Garbage that cannot be removed does no harm.
            let _ = std::fs::remove_file(entry.path());
        }
    }
}

/// The name of the file that a temporary file was made for.
fn staged_for(temporary: &str) -> Option<&str> {
    let (name, random) = temporary.strip_prefix('.')?.rsplit_once('.')?;
    let made = random.len() == RANDOM && random.bytes().all(|b| b.is_ascii_alphanumeric());
    Some(name).filter(|name| made && !name.is_empty())
}

fn sync_directory(path: &Path) -> Result<(), DiskError> {
    match File::open(parent(path)).and_then(|dir| dir.sync_all()) {
        // Some file systems have no fsync for directories; their rename is as durable as it gets.
        Err(e) if e.kind() == io::ErrorKind::InvalidInput => Ok(()),
        Err(e) => Err(DiskError::new(SYNC_DIRECTORY, path, e)),
        Ok(()) => Ok(()),
    }
}

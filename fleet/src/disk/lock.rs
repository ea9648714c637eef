//! `flock(2)` locks. They end with the process, travel with the descriptor, and are probed without being taken.
use super::{DiskError, parent, private_dir};
use rustix::fs::OFlags;
use std::fs::{File, TryLockError};
use std::io;
use std::os::unix::fs::{FileExt, MetadataExt, OpenOptionsExt};
use std::path::Path;
use std::time::{Duration, Instant};

/// Between two attempts at a lock that somebody holds.
const AGAIN: Duration = Duration::from_millis(5);

/// An exclusive `flock(2)` held until dropped; the file names the holder's pid when asked. The file is never removed:
/// a lock on a removed file would hold nobody back.
#[derive(Debug)]
pub struct Lock {
    file: File,
}

/// What a non-blocking attempt found.
#[derive(Debug)]
pub enum LockAttempt {
    /// Ours now.
    Held(Lock),
    /// Someone else's, with the pid written inside when readable.
    Busy {
        /// Pid in the file.
        pid: Option<u32>,
    },
}

impl Lock {
    /// Tries once, exclusive, non-blocking. `write_pid` records ours inside. A reader's probe can look like a holder
    /// for an instant: a starting daemon tries again for a while.
    pub fn try_exclusive(path: &Path, write_pid: bool) -> Result<LockAttempt, DiskError> {
        let fail = |e: io::Error| DiskError::new("lock", path, e);
        loop {
            let file = open_or_create(path)?;
            match file.try_lock() {
                Ok(()) if !is_at(&file, path) => continue,
                Ok(()) => {
                    let lock = Lock { file };
                    if write_pid {
                        lock.record_pid().map_err(fail)?;
                    }
                    return Ok(LockAttempt::Held(lock));
                }
                Err(TryLockError::WouldBlock) => return Ok(LockAttempt::Busy { pid: pid_inside(&file) }),
                Err(TryLockError::Error(e)) => return Err(fail(e)),
            }
        }
    }

    /// As [`Lock::try_exclusive`], tried again for as long as `within`. Blocks.
    pub fn within(path: &Path, within: Duration) -> Result<LockAttempt, DiskError> {
        let until = Instant::now() + within;
        loop {
            match Self::try_exclusive(path, false)? {
                LockAttempt::Busy { .. } if Instant::now() < until => std::thread::sleep(AGAIN),
                attempt => return Ok(attempt),
            }
        }
    }

    /// Waits (blocking thread) for the exclusive lock, without a word: see [`crate::czekam::lock`].
    pub fn exclusive(path: &Path) -> Result<Lock, DiskError> {
        loop {
            let file = open_or_create(path)?;
            file.lock().map_err(|e| DiskError::new("lock", path, e))?;
            if is_at(&file, path) {
                return Ok(Lock { file });
            }
        }
    }

    /// Probe for readers: shared, non-blocking, given back at once. `None` = nobody holds it; else the pid inside.
    pub fn holder(path: &Path) -> Result<Option<Option<u32>>, DiskError> {
        let fail = |e: io::Error| DiskError::new("probe the lock", path, e);
        let file = match File::options().read(true).custom_flags(flags()).open(path) {
            Ok(file) => file,
            Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(e) => return Err(fail(e)),
        };
        match file.try_lock_shared() {
            Ok(()) => Ok(None),
            Err(TryLockError::WouldBlock) => Ok(Some(pid_inside(&file))),
            Err(TryLockError::Error(e)) => Err(fail(e)),
        }
    }

    /// Takes over a lock whose descriptor came from another process (hand-over) and keeps it.
    pub fn adopt(file: File) -> Self {
        Self { file }
    }

    /// As [`Lock::adopt`], if the descriptor is of the file at `path` and holds its lock.
    pub fn adopt_at(file: File, path: &Path) -> Result<Self, DiskError> {
        if !is_at(&file, path) {
            return Err(DiskError::refused("take over the lock", path, "the descriptor is of another file"));
        }
        match file.try_lock() {
            Ok(()) => Ok(Self { file }),
            Err(TryLockError::WouldBlock) => {
                Err(DiskError::refused("take over the lock", path, "another process holds it"))
            }
            Err(TryLockError::Error(e)) => Err(DiskError::new("take over the lock", path, e)),
        }
    }

    /// The descriptor, to hand over. Closing the last copy of it gives the lock back.
    pub fn file(&self) -> &File {
        &self.file
    }

    /// The pid inside.
    pub fn recorded_pid(&self) -> Option<u32> {
        pid_inside(&self.file)
    }

    /// Writes this process's pid inside. The old pid is overwritten before the rest is cut off, so that a reader never
    /// finds the file of a held lock empty.
    pub fn record_pid(&self) -> io::Result<()> {
        let line = format!("{}\n", std::process::id());
        self.file.write_all_at(line.as_bytes(), 0)?;
        self.file.set_len(line.len() as u64)
    }
}

fn flags() -> i32 {
    (OFlags::NOFOLLOW | OFlags::NONBLOCK).bits() as i32
}

fn open_or_create(path: &Path) -> Result<File, DiskError> {
    private_dir(parent(path))?;
    let mut options = File::options();
    options.read(true).write(true).create(true).truncate(false).mode(0o600).custom_flags(flags());
    options.open(path).map_err(|e| DiskError::new("lock", path, e))
}

/// Whether the locked file still carries the name: someone may have removed it between the open and the lock.
fn is_at(file: &File, path: &Path) -> bool {
    match (file.metadata(), std::fs::symlink_metadata(path)) {
        (Ok(held), Ok(named)) => held.dev() == named.dev() && held.ino() == named.ino(),
        _ => false,
    }
}

fn pid_inside(file: &File) -> Option<u32> {
    let mut bytes = [0u8; 32];
    let n = file.read_at(&mut bytes, 0).ok()?;
    std::str::from_utf8(bytes.get(..n)?).ok()?.lines().next()?.trim().parse().ok()
}

//! `flock(2)` locks. They end with the process, travel with the descriptor, and are probed without being taken.
use super::{DiskError, parent, private_dir};
use rustix::fs::OFlags;
use rustix::process::{Pid, test_kill_process};
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
    /// Someone else's, with the holder's pid when it is known.
    Busy {
        /// As [`Lock::holder`] names it.
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
                Err(TryLockError::WouldBlock) => return Ok(LockAttempt::Busy { pid: holder_of(&file) }),
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

    /// Probe for readers: shared, non-blocking, given back at once. `None` = nobody holds it; else the holder's pid: the one
    /// inside, unless that process is gone and the system names another.
    pub fn holder(path: &Path) -> Result<Option<Option<u32>>, DiskError> {
        let fail = |e: io::Error| DiskError::new("probe the lock", path, e);
        let file = match File::options().read(true).custom_flags(flags()).open(path) {
            Ok(file) => file,
            Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(e) => return Err(fail(e)),
        };
        match file.try_lock_shared() {
            Ok(()) => Ok(None),
            Err(TryLockError::WouldBlock) => Ok(Some(holder_of(&file))),
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

    /// Whether the file at `path` names this process: a holder that it does not name took the lock without a word, and is none
    /// of ours.
    pub fn names(path: &Path, pid: u32) -> bool {
        let file = File::options().read(true).custom_flags(flags()).open(path);
        file.is_ok_and(|file| pid_inside(&file) == Some(pid))
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

/// Who holds the lock of a file that could not be locked. A pid of a process that is gone was left by an earlier holder; whether
/// another one holds it now, the system knows, where it keeps such a table.
fn holder_of(file: &File) -> Option<u32> {
    let inside = pid_inside(file);
    if inside.is_some_and(runs) {
        return inside;
    }
    // One whose taker is gone too was handed over, and its new holder has not written its pid yet.
    file.metadata().ok().and_then(|metadata| locked_by(metadata.ino())).filter(|pid| runs(*pid)).or(inside)
}

/// Whether there is such a process.
fn runs(pid: u32) -> bool {
    let pid = i32::try_from(pid).ok().and_then(Pid::from_raw);
    // Another account's process may not be signalled, and is there.
    pid.is_some_and(|pid| !matches!(test_kill_process(pid), Err(rustix::io::Errno::SRCH)))
}

/// The process that took an exclusive `flock(2)` on an inode. Its device is not compared: some file systems give each file
/// another one than the table does.
fn locked_by(inode: u64) -> Option<u32> {
    let table = std::fs::read_to_string("/proc/locks").ok()?;
    table.lines().find_map(|line| {
        // `1: FLOCK  ADVISORY  WRITE 4242 fe:00:5382355 0 EOF`; who waits for it has an arrow before the kind.
        let mut words = line.split_ascii_whitespace().skip(1);
        let taken = [words.next()?, words.next()?, words.next()?] == ["FLOCK", "ADVISORY", "WRITE"];
        let (pid, place) = (words.next()?, words.next()?);
        let here = place.rsplit(':').next()?.parse::<u64>().ok()? == inode;
        (taken && here).then(|| pid.parse().ok())?
    })
}

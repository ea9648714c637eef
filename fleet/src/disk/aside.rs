//! Corrupt files are copied aside under a dated name, and a bounded number of copies is kept.
use super::{DiskError, create_new, parent, read};
use std::ffi::OsString;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

/// How many copies of one file are kept.
pub const KEPT_ASIDE: usize = 8;

/// Largest file that is copied aside.
const LARGEST: u64 = 64 << 20;

/// Copies a corrupt file aside as `<path>.corrupt.<unix seconds>` (0600), keeping at most [`KEPT_ASIDE`]; returns the
/// copy's path. A copy with the same bytes is returned instead of made again, so that a file read every second does not
/// push out what was set aside before it.
pub fn set_aside(path: &Path) -> Result<PathBuf, DiskError> {
    let bytes = read(path, LARGEST)?
        .ok_or_else(|| DiskError::new("set aside", path, std::io::Error::from(std::io::ErrorKind::NotFound)))?;
    let copies = copies(path)?;
    if let Some((_, newest)) = copies.last()
        && read(newest, LARGEST).is_ok_and(|old| old.as_deref() == Some(&bytes))
    {
        return Ok(newest.clone());
    }
    let copy = write_copy(path, &bytes)?;
    drop_surplus(&copies);
    Ok(copy)
}

/// Renames what cannot be read at `path`, whatever it is, as [`set_aside`] names copies; returns its new path. Nothing of it is
/// lost, and the place is free.
pub fn move_aside(path: &Path) -> Result<PathBuf, DiskError> {
    let copies = copies(path)?;
    for name in names(path) {
        // Only this user's programs write here, and the caller holds their lock.
        if name.symlink_metadata().is_err() {
            std::fs::rename(path, &name).map_err(|e| DiskError::new("set aside", path, e))?;
            drop_surplus(&copies);
            return Ok(name);
        }
    }
    Err(none_free(path))
}

/// What is no plain file is left alone: it may hold more than a copy.
fn drop_surplus(copies: &[(u64, PathBuf)]) {
    let surplus = (copies.len() + 1).saturating_sub(KEPT_ASIDE);
    for (_, old) in copies.iter().take(surplus) {
        // A copy too many does no harm, and the next call tries again.
        let _ = std::fs::remove_file(old);
    }
}

/// The first free name from now on: two different corrupt files in one second get two names.
fn write_copy(path: &Path, bytes: &[u8]) -> Result<PathBuf, DiskError> {
    for copy in names(path) {
        if create_new(&copy, bytes)? {
            return Ok(copy);
        }
    }
    Err(none_free(path))
}

fn names(path: &Path) -> impl Iterator<Item = PathBuf> {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |d| d.as_secs());
    let path = OsString::from(path);
    (now..now.saturating_add(KEPT_ASIDE as u64 + 1)).map(move |seconds| {
        let mut name = path.clone();
        name.push(format!(".corrupt.{seconds}"));
        PathBuf::from(name)
    })
}

fn none_free(path: &Path) -> DiskError {
    DiskError::refused("set aside", path, "every name for a copy is taken")
}

/// Existing copies with the second in their names, oldest first.
fn copies(path: &Path) -> Result<Vec<(u64, PathBuf)>, DiskError> {
    let fail = |e| DiskError::new("set aside", path, e);
    let mut prefix = path.file_name().unwrap_or_default().to_owned();
    prefix.push(".corrupt.");
    let mut found = Vec::new();
    for entry in std::fs::read_dir(parent(path)).map_err(fail)? {
        let entry = entry.map_err(fail)?;
        let name = entry.file_name();
        let seconds = name.as_bytes().strip_prefix(prefix.as_bytes()).and_then(|s| std::str::from_utf8(s).ok());
        if let Some(seconds) = seconds.and_then(|s| s.parse::<u64>().ok()) {
            found.push((seconds, entry.path()));
        }
    }
    found.sort();
    Ok(found)
}

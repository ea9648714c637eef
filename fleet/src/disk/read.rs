//! Bounded reads of regular files that this user (or root) owns.
use super::DiskError;
use rustix::fs::OFlags;
use std::fs::{File, Metadata};
use std::io::{self, Read};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::Path;

/// Reads a file, `None` when absent; refuses more than `limit` bytes, foreign owners and anything but a regular file.
/// A symbolic link is followed (people link their configuration); the owner of what it names is checked.
pub fn read(path: &Path, limit: u64) -> Result<Option<Vec<u8>>, DiskError> {
    read_with(path, limit, OFlags::empty())
}

/// As [`read`], refusing a symbolic link: for files that only Stado writes.
pub fn read_unlinked(path: &Path, limit: u64) -> Result<Option<Vec<u8>>, DiskError> {
    read_with(path, limit, OFlags::NOFOLLOW)
}

fn read_with(path: &Path, limit: u64, flags: OFlags) -> Result<Option<Vec<u8>>, DiskError> {
    let fail = |e: io::Error| DiskError::new("read", path, e);
    // Non-blocking: a FIFO at this place must not hold the reader before its type is seen.
    let file = match File::options().read(true).custom_flags((OFlags::NONBLOCK | flags).bits() as i32).open(path) {
        Ok(file) => file,
        Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(e) if e.raw_os_error() == Some(rustix::io::Errno::LOOP.raw_os_error()) => {
            return Err(DiskError::refused("read", path, "it is a symbolic link"));
        }
        Err(e) => return Err(fail(e)),
    };
    let metadata = file.metadata().map_err(fail)?;
    check(path, &metadata, limit)?;
    let mut bytes = Vec::with_capacity(usize::try_from(metadata.len()).unwrap_or(0));
    file.take(limit.saturating_add(1)).read_to_end(&mut bytes).map_err(fail)?;
    if bytes.len() as u64 > limit {
        return Err(too_large(path, limit));
    }
    Ok(Some(bytes))
}

fn check(path: &Path, metadata: &Metadata, limit: u64) -> Result<(), DiskError> {
    if !metadata.is_file() {
        return Err(DiskError::refused("read", path, "it is not a regular file"));
    }
    if !trusted_owner(metadata.uid(), rustix::process::geteuid().as_raw()) {
        let why = format!("it belongs to user {}, not to this user", metadata.uid());
        return Err(DiskError::refused("read", path, why));
    }
    if metadata.len() > limit {
        return Err(too_large(path, limit));
    }
    Ok(())
}

/// Our own files, and those of the system.
pub(super) fn trusted_owner(owner: u32, me: u32) -> bool {
    owner == me || owner == 0
}

fn too_large(path: &Path, limit: u64) -> DiskError {
    DiskError::refused("read", path, format!("it is larger than {limit} bytes"))
}

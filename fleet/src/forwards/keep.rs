//! The keeper rule: a marker is written only when it is missing or says something else; nothing is ever deleted here.
use super::{Declared, Forwards, LONGEST};
use crate::disk::{self, DiskError};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

impl Forwards {
    /// Keeper rule: writes only what is missing or different; returns what was written. One failing marker does not stop another.
    pub fn keep(&self, declared: &[Declared]) -> (Vec<Declared>, Vec<(String, DiskError)>) {
        let (mut written, mut failed) = (Vec::new(), Vec::new());
        for marker in declared {
            match self.keep_one(marker) {
                Ok(true) => written.push(marker.clone()),
                Ok(false) => {}
                Err(e) => failed.push((marker.service.clone(), e)),
            }
        }
        (written, failed)
    }

    fn keep_one(&self, marker: &Declared) -> Result<bool, DiskError> {
        self.own_directory()?;
        let path = self.marker(&marker.service);
        if says(&path, &marker.url)? {
            return Ok(false);
        }
        disk::replace(&path, format!("{}\n", marker.url).as_bytes())?;
        Ok(true)
    }

    /// A link in place of the directory would put markers where nobody declared them.
    fn own_directory(&self) -> Result<(), DiskError> {
        match std::fs::symlink_metadata(&self.dir) {
            Ok(found) if !found.is_dir() => Err(DiskError::refused("write into", &self.dir, "it is not a directory")),
            Ok(_) => Ok(()),
            Err(_) => disk::private_dir(&self.dir),
        }
    }
}

/// Whether the marker is there, says `url`, and nobody else may write it. A link or a foreign file is an error: it is
/// left alone. A file that is only too long or not text is ours to correct.
fn says(path: &Path, url: &str) -> Result<bool, DiskError> {
    let found = match std::fs::symlink_metadata(path) {
        Ok(found) => found,
        Err(e) if e.kind() == std::io::ErrorKind::NotFound => return Ok(false),
        Err(e) => return Err(DiskError::new("read", path, e)),
    };
    if found.is_file() && found.len() > LONGEST {
        return Ok(false);
    }
    let bytes = disk::read_unlinked(path, LONGEST)?.unwrap_or_default();
    let writable_by_others = found.permissions().mode() & 0o022 != 0;
    Ok(bytes.trim_ascii() == url.as_bytes() && !writable_by_others)
}

//! Markers that the directory does not declare: listed, and removed only when asked by name.
use super::{Declared, Forwards, Fossil, LONGEST, Marker};
use crate::disk::{self, DiskError};
use std::collections::HashSet;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

/// What became of one fossil.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
pub struct Pruned {
    /// Service.
    pub service: String,
    /// Its line.
    pub url: String,
    /// File.
    pub marker: PathBuf,
    /// `removed` or `failed`.
    pub status: &'static str,
    /// The file system's own words.
    pub error: Option<String>,
}

/// A file that looks like a marker.
struct Found {
    stem: String,
    local: bool,
    path: PathBuf,
    written: SystemTime,
}

impl Forwards {
    /// Markers that are not declared, oldest first: every other `.local`, and every `.url` of the older family.
    pub fn fossils(&self, declared: &[Declared], now: SystemTime) -> Result<Vec<Fossil>, DiskError> {
        let declared: HashSet<&str> = declared.iter().map(|d| d.service.as_str()).collect();
        let mut found = self.files()?;
        found.retain(|f| !f.local || !declared.contains(f.stem.as_str()));
        found.sort_by(|a, b| (a.written, &a.path).cmp(&(b.written, &b.path)));
        let fossil = |f: Found| Fossil {
            url: line(&f.path),
            age_seconds: now.duration_since(f.written).map_or(0, |age| age.as_secs()),
            service: f.stem,
            marker: f.path,
        };
        Ok(found.into_iter().map(fossil).collect())
    }

    /// The marker of one service, if it is there.
    pub fn read(&self, service: &str) -> Option<Marker> {
        let marker = self.marker(service);
        written(&marker)?;
        Some(Marker { url: line(&marker), marker })
    }

    /// Removes the marker of one service; `false` when there was none.
    ///
    /// # Errors
    /// Something else than a regular file, which is left alone, and the file system's.
    pub fn remove(&self, service: &str) -> Result<bool, DiskError> {
        let marker = self.marker(service);
        if std::fs::symlink_metadata(&marker).is_err_and(|e| e.kind() == std::io::ErrorKind::NotFound) {
            return Ok(false);
        }
        remove(&marker).map(|()| true).map_err(|e| DiskError::new("remove", &marker, e))
    }

    /// Number of marker files present, of both families.
    pub fn present(&self) -> Result<usize, DiskError> {
        Ok(self.files()?.len())
    }

    /// Removes exactly these. One that is gone already counts as removed; one that has become something else than a
    /// regular file is left alone.
    pub fn prune(&self, fossils: &[Fossil]) -> Vec<Pruned> {
        let prune = |fossil: &Fossil| {
            let error = remove(&fossil.marker).err().map(|e| e.to_string());
            Pruned {
                service: fossil.service.clone(),
                url: fossil.url.clone(),
                marker: fossil.marker.clone(),
                status: if error.is_none() { "removed" } else { "failed" },
                error,
            }
        };
        fossils.iter().map(prune).collect()
    }

    /// Regular files with a marker's name. Links, dotfiles and `*.staging` are somebody else's or unfinished.
    fn files(&self) -> Result<Vec<Found>, DiskError> {
        let fail = |e| DiskError::new("list", &self.dir, e);
        let entries = match std::fs::read_dir(&self.dir) {
            Ok(entries) => entries,
            Err(e) if e.kind() == std::io::ErrorKind::NotFound => return Ok(Vec::new()),
            Err(e) => return Err(fail(e)),
        };
        let mut files = Vec::new();
        for entry in entries {
            let path = entry.map_err(fail)?.path();
            if let (Some((stem, local)), Some(written)) = (marker_name(&path), written(&path)) {
                files.push(Found { stem, local, path, written });
            }
        }
        Ok(files)
    }
}

fn marker_name(path: &Path) -> Option<(String, bool)> {
    let name = path.file_name()?.to_string_lossy();
    if name.starts_with('.') {
        return None;
    }
    let local = name.strip_suffix(".local").map(|stem| (stem.to_owned(), true));
    local.or_else(|| name.strip_suffix(".url").map(|stem| (stem.to_owned(), false)))
}

/// When a regular file was written; `None` for anything else, and for a file that went away meanwhile.
fn written(path: &Path) -> Option<SystemTime> {
    let found = std::fs::symlink_metadata(path).ok().filter(std::fs::Metadata::is_file)?;
    found.modified().ok()
}

fn line(path: &Path) -> String {
    match disk::read_unlinked(path, LONGEST) {
        Ok(bytes) => match String::from_utf8(bytes.unwrap_or_default()) {
            Ok(text) => text.trim().to_owned(),
            Err(_) => "(unreadable: it is not text)".to_owned(),
        },
        Err(e) => format!("(unreadable: {})", e.source),
    }
}

fn remove(path: &Path) -> std::io::Result<()> {
    match std::fs::symlink_metadata(path) {
        Ok(found) if !found.is_file() => Err(std::io::Error::other("it is no longer a regular file")),
        Ok(_) => std::fs::remove_file(path),
        Err(e) if e.kind() == std::io::ErrorKind::NotFound => Ok(()),
        Err(e) => Err(e),
    }
}

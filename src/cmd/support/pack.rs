//! Writes the bundle: a tar file of this account's own.
use super::redact::Bundle;
use jiff::Timestamp;
use std::fs::OpenOptions;
use std::io;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

/// Writes a new file that only its owner reads; one that exists is left alone.
pub(super) fn write(path: &Path, bundle: &Bundle, now: Timestamp) -> io::Result<()> {
    let file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(path)?;
    let written = fill(file, bundle, now);
    if written.is_err() {
        let _ = std::fs::remove_file(path);
    }
    written
}

fn fill(file: std::fs::File, bundle: &Bundle, now: Timestamp) -> io::Result<()> {
    let mut tar = tar::Builder::new(file);
    for (name, text) in &bundle.files {
        let mut header = tar::Header::new_gnu();
        header.set_size(text.len() as u64);
        header.set_mode(0o600);
        header.set_mtime(u64::try_from(now.as_second()).unwrap_or(0));
        tar.append_data(&mut header, format!("stado-support/{name}"), text.as_bytes())?;
    }
    tar.into_inner()?.sync_all()
}

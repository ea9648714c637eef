//! A directory of its own for every proxy.
use super::User;
use std::os::unix::fs::{PermissionsExt, chown};
use std::path::Path;

/// nobody, and the group of the same number, on Debian and most others.
pub const NOBODY: u32 = 65_534;

/// An empty directory that belongs to the user of the proxy.
pub fn home(user: User) -> tempfile::TempDir {
    let home = tempfile::Builder::new().prefix("dp").tempdir().unwrap();
    std::fs::set_permissions(home.path(), std::fs::Permissions::from_mode(0o700)).unwrap();
    if user == User::Nobody {
        chown(home.path(), Some(NOBODY), Some(NOBODY)).unwrap();
    }
    home
}

/// The end of what a proxy printed.
pub fn last_words(home: &Path) -> String {
    let log = std::fs::read_to_string(home.join("log")).unwrap_or_default();
    let lines: Vec<&str> = log.lines().collect();
    lines[lines.len().saturating_sub(5)..].join(" | ")
}

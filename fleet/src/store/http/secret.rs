//! Files that hold secrets: only their owner may read them.
use std::io::Read;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::Path;

/// Far above any token or key.
const LARGEST: u64 = 64 << 10;

/// Why a file of secrets cannot be used. Its text is never repeated.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Unusable {
    /// Others may read it.
    NotOwnerOnly,
    /// Anything else.
    Because(String),
}

/// Reads a file of secrets. The descriptor is judged, not the path, so that nothing can be swapped in between.
pub(crate) fn read(path: &Path) -> Result<String, Unusable> {
    let because = |why: &dyn std::fmt::Display| Unusable::Because(why.to_string());
    let flags = rustix::fs::OFlags::NOFOLLOW | rustix::fs::OFlags::NONBLOCK;
    let flags = i32::try_from(flags.bits()).unwrap_or_default();
    let file = std::fs::File::options().read(true).custom_flags(flags).open(path);
    let file = file.map_err(|e| match e.raw_os_error().map(rustix::io::Errno::from_raw_os_error) {
        Some(rustix::io::Errno::LOOP) => because(&"it is a symbolic link"),
        _ => because(&e),
    })?;
    let meta = file.metadata().map_err(|e| because(&e))?;
    if !meta.is_file() {
        return Err(because(&"it is not a regular file"));
    }
    if meta.mode() & 0o077 != 0 {
        return Err(Unusable::NotOwnerOnly);
    }
    let mut text = String::new();
    file.take(LARGEST).read_to_string(&mut text).map_err(|e| because(&e))?;
    Ok(text)
}

/// Reads a file of secrets that `setting` names.
///
/// # Errors
/// A sentence that names the setting and the file, never what it holds.
pub fn owner_only(setting: &str, path: &Path) -> Result<String, String> {
    read(path).map_err(|unusable| match unusable {
        Unusable::NotOwnerOnly => format!("{setting} must be owner-only (chmod 600): {}", path.display()),
        Unusable::Because(why) => format!("{setting} {} cannot be used: {why}", path.display()),
    })
}

/// A secret that was given in a variable. It shows itself to nobody.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(String);

impl Secret {
    /// Wraps a secret.
    pub fn new(text: impl Into<String>) -> Self {
        Self(text.into())
    }

    /// The secret itself.
    pub(crate) fn reveal(&self) -> &str {
        &self.0
    }
}

impl std::fmt::Debug for Secret {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("(secret)")
    }
}

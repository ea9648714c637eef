//! The bearer token: a file that only its owner can read.
use std::io::Read;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::Path;

/// Far above any token.
const LARGEST: u64 = 64 << 10;

/// Reads a token.
pub fn read(path: &Path) -> Result<String, String> {
    read_as("Stado storage token file", path, |place| {
        format!("Stado storage token file must be owner-only (chmod 600): {place}")
    })
}

/// Reads a file of one secret line, called `what`; `open` is the sentence for one that others can read. The descriptor is
/// judged, not the path, so that nothing can be swapped in between.
pub(crate) fn read_as(what: &str, path: &Path, open: fn(&std::path::Display<'_>) -> String) -> Result<String, String> {
    let place = path.display();
    let refused = |why: &dyn std::fmt::Display| format!("{what} {place} cannot be used: {why}");
    let flags = rustix::fs::OFlags::NOFOLLOW | rustix::fs::OFlags::NONBLOCK;
    let flags = i32::try_from(flags.bits()).unwrap_or_default();
    let file = std::fs::File::options().read(true).custom_flags(flags).open(path);
    let file = file.map_err(|e| match e.raw_os_error().map(rustix::io::Errno::from_raw_os_error) {
        Some(rustix::io::Errno::LOOP) => refused(&"it is a symbolic link"),
        _ => refused(&e),
    })?;
    let meta = file.metadata().map_err(|e| refused(&e))?;
    if !meta.is_file() {
        return Err(refused(&"it is not a regular file"));
    }
    if meta.mode() & 0o077 != 0 {
        return Err(open(&place));
    }
    let mut text = String::new();
    file.take(LARGEST).read_to_string(&mut text).map_err(|e| refused(&e))?;
    let token = text.trim();
    if token.is_empty() {
        return Err(refused(&"it is empty"));
    }
    // What a header cannot carry is no token; the text itself is never repeated.
    if token.lines().count() != 1 || !token.bytes().all(|b| b.is_ascii_graphic()) {
        return Err(refused(&"it must hold one line of printable ASCII without spaces"));
    }
    Ok(token.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::{PermissionsExt, symlink};

    fn file(mode: u32, text: &str) -> (tempfile::TempDir, std::path::PathBuf) {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("token");
        std::fs::write(&path, text).unwrap();
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(mode)).unwrap();
        (dir, path)
    }

    #[test]
    fn only_an_owner_only_regular_file_with_one_line_is_a_token() {
        let (dir, path) = file(0o600, "secret\n");
        assert_eq!(read(&path).unwrap(), "secret");
        let link = dir.path().join("link");
        symlink(&path, &link).unwrap();
        assert!(read(&link).unwrap_err().ends_with("it is a symbolic link"));
        assert!(read(dir.path()).unwrap_err().ends_with("it is not a regular file"));
        assert!(read(&dir.path().join("none")).unwrap_err().contains("No such file"));
        for mode in [0o640, 0o604, 0o660] {
            let (_dir, path) = file(mode, "secret");
            let sentence = format!("Stado storage token file must be owner-only (chmod 600): {}", path.display());
            assert_eq!(read(&path).unwrap_err(), sentence);
        }
        for text in ["", "\n", "one\ntwo", "sec ret", "sécret"] {
            let (_dir, path) = file(0o600, text);
            let sentence = read(&path).unwrap_err();
            assert!(sentence.contains("cannot be used") && !sentence.contains("ret"), "{sentence}");
        }
    }
}

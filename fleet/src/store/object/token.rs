//! The bearer token: a file that only its owner can read.
use crate::store::http::{Unusable, read_secret};
use std::path::Path;

/// Reads a token.
///
/// # Errors
/// The sentence of §2.4 for a file that others may read, and one for any other that cannot be used.
pub fn read(path: &Path) -> Result<String, String> {
    read_as("Stado storage token file", path, |place| {
        format!("Stado storage token file must be owner-only (chmod 600): {place}")
    })
}

/// Reads a file of one secret line, called `what`; `open` is the sentence for one that others can read.
///
/// # Errors
/// Those sentences; the text itself is in none.
pub(crate) fn read_as(what: &str, path: &Path, open: fn(&std::path::Display<'_>) -> String) -> Result<String, String> {
    let place = path.display();
    let refused = |why: &str| format!("{what} {place} cannot be used: {why}");
    let text = read_secret(path).map_err(|unusable| match unusable {
        Unusable::NotOwnerOnly => open(&place),
        Unusable::Because(why) => refused(&why),
    })?;
    let token = text.trim();
    if token.is_empty() {
        return Err(refused("it is empty"));
    }
    // What a header cannot carry is no token; the text itself is never repeated.
    if token.lines().count() != 1 || !token.bytes().all(|b| b.is_ascii_graphic()) {
        return Err(refused("it must hold one line of printable ASCII without spaces"));
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

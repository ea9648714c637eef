//! Logs that grow line by line.
use super::DiskError;
use std::fs::File;
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

/// Adds a line, its end included, to an owner-only log in one write, so that lines of two processes never mix. Past `largest`
/// bytes the log is put aside under `<name>.1`, whose predecessor goes.
pub fn append_line(path: &Path, line: &[u8], largest: u64) -> Result<(), DiskError> {
    let fail = |step: &'static str| move |e: io::Error| DiskError::new(step, path, e);
    let mut file = open(path).map_err(fail("open"))?;
    if file.metadata().map_err(fail("open"))?.len() >= largest {
        std::fs::rename(path, aside(path)).map_err(fail("put aside"))?;
        file = open(path).map_err(fail("open"))?;
    }
    file.write_all(line).map_err(fail("write"))
}

fn open(path: &Path) -> io::Result<File> {
    let nofollow = i32::try_from(rustix::fs::OFlags::NOFOLLOW.bits()).unwrap_or_default();
    File::options().append(true).create(true).mode(0o600).custom_flags(nofollow).open(path)
}

fn aside(path: &Path) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(".1");
    name.into()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    #[test]
    fn a_log_grows_owner_only_and_is_put_aside_when_it_is_large() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("audit.log");
        for line in ["one\n", "two\n", "three\n"] {
            append_line(&path, line.as_bytes(), 8).unwrap();
        }
        assert_eq!(std::fs::read_to_string(&path).unwrap(), "three\n");
        assert_eq!(std::fs::read_to_string(dir.path().join("audit.log.1")).unwrap(), "one\ntwo\n");
        assert_eq!(std::fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
        let link = dir.path().join("link");
        std::os::unix::fs::symlink(&path, &link).unwrap();
        assert!(append_line(&link, b"x\n", 8).is_err(), "a link is not followed");
    }
}

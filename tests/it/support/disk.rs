//! A file system of a chosen size, to fill.
use super::process::run;
use super::{is_root, program};
use std::fs::File;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Whether a file system can be mounted here.
pub fn usable() -> Result<(), String> {
    if !is_root() {
        return Err("not root".into());
    }
    if program("mount").is_none() {
        return Err("no mount".into());
    }
    let dir = tempfile::tempdir().unwrap();
    std::panic::catch_unwind(|| drop(Small::mount(dir.path(), 64))).map_err(|_| "the kernel refuses".to_owned())
}

/// A mounted file system; unmounted when dropped.
pub struct Small(PathBuf);

impl Small {
    /// `kib` at `dir`, which is made.
    pub fn mount(dir: &Path, kib: u32) -> Self {
        std::fs::create_dir_all(dir).unwrap();
        let size = format!("size={kib}k,mode=700");
        run(Command::new("mount").args(["-t", "tmpfs", "-o", &size, "tmpfs"]).arg(dir)).ok();
        Self(dir.to_owned())
    }

    /// Forbids every write from now on.
    pub fn read_only(&self) {
        run(Command::new("mount").args(["-o", "remount,ro"]).arg(&self.0)).ok();
    }

    /// Undoes [`Small::read_only`].
    pub fn writable(&self) {
        run(Command::new("mount").args(["-o", "remount,rw"]).arg(&self.0)).ok();
    }

    /// Fills it to the last byte; the file that has to go for room to come back.
    pub fn fill(&self) -> PathBuf {
        let path = self.0.join("filler");
        let mut file = File::create(&path).unwrap();
        let error = loop {
            if let Err(error) = file.write_all(&[7; 512]) {
                break error;
            }
        };
        assert_eq!(error.kind(), std::io::ErrorKind::StorageFull, "{error}");
        path
    }
}

impl Drop for Small {
    fn drop(&mut self) {
        run(Command::new("umount").arg("-l").arg(&self.0));
    }
}

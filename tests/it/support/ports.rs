//! Ports for daemons and servers that cannot be told to take port 0: a pool below the ephemeral range, shared by every
//! test process of this user through file locks. A port is handed out for as long as the value lives. It could be bound
//! a moment ago; nothing promises that it still can, and nothing outside the rig knows of the pool.
use fs4::fs_std::FileExt;
use std::fs::{DirBuilder, File};
use std::net::{Ipv4Addr, Ipv6Addr, TcpListener};
use std::os::unix::fs::DirBuilderExt;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU16, Ordering::Relaxed};

const FIRST: u16 = 20_000;
const LAST: u16 = 31_999;

/// Ports in a row, locked for this test.
pub struct Lease {
    first: u16,
    locks: Vec<File>,
}

impl Lease {
    /// The only or the first port.
    pub fn port(&self) -> u16 {
        self.first
    }

    /// The last port.
    pub fn last(&self) -> u16 {
        self.first + u16::try_from(self.locks.len()).unwrap() - 1
    }
}

/// One port.
pub fn one() -> Lease {
    block(1)
}

/// `count` ports in a row.
pub fn block(count: u16) -> Lease {
    // Starts differ between processes and calls, so that tests rarely try each other's locks.
    static CALLS: AtomicU16 = AtomicU16::new(0);
    let span = LAST - FIRST + 1 - count;
    let pid = u16::try_from(std::process::id() % 65_536).unwrap();
    let start = pid.wrapping_mul(157).wrapping_add(CALLS.fetch_add(1, Relaxed).wrapping_mul(37)) % span;
    let dir = directory();
    for step in 0..span {
        let first = FIRST + (start + step) % span;
        let locks: Vec<File> = (first..first + count).map_while(|port| lock(&dir, port)).collect();
        if locks.len() == usize::from(count) {
            return Lease { first, locks };
        }
    }
    panic!("no {count} ports in a row are free between {FIRST} and {LAST}");
}

fn directory() -> PathBuf {
    let uid = rustix::process::getuid().as_raw();
    let dir = std::env::temp_dir().join(format!("stado-test-ports-{uid}"));
    DirBuilder::new().recursive(true).mode(0o700).create(&dir).unwrap();
    dir
}

fn lock(dir: &std::path::Path, port: u16) -> Option<File> {
    let file = File::options().create(true).truncate(false).write(true).open(dir.join(port.to_string())).unwrap();
    if !file.try_lock_exclusive().unwrap() {
        return None;
    }
    let bindable = TcpListener::bind((Ipv4Addr::UNSPECIFIED, port)).is_ok()
        && TcpListener::bind((Ipv6Addr::LOCALHOST, port)).or_else(no_such_family).is_ok();
    bindable.then_some(file)
}

/// A machine without IPv6 has no port to be taken there.
fn no_such_family(error: std::io::Error) -> std::io::Result<TcpListener> {
    if error.kind() == std::io::ErrorKind::AddrInUse { Err(error) } else { TcpListener::bind((Ipv4Addr::LOCALHOST, 0)) }
}

//! The Unix socket: private from its first instant, never in the place of a live one, removed only while it is ours
//! (mesh contract §4, socket file).
use rand::RngCore;
use stado_fleet::czekam;
use stado_fleet::disk::{self, DiskError};
use stado_fleet::fault::{Blame, Class, Faulty};
use std::fs;
use std::io::{self, ErrorKind};
use std::os::fd::OwnedFd;
use std::os::unix::fs::{DirBuilderExt, FileTypeExt, MetadataExt, PermissionsExt};
use std::os::unix::net::UnixListener as StdListener;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Weak};
use std::time::Duration;
use tokio::net::UnixListener;

/// How long a socket file that is found may take to answer.
const PROBE: Duration = Duration::from_millis(500);
/// Bytes of a path that fit into a socket address, with its final NUL taken off.
const MAX_PATH: usize = if cfg!(any(target_os = "linux", target_os = "android")) { 107 } else { 103 };

/// A control socket that cannot be had.
#[derive(Debug, thiserror::Error)]
pub enum SocketError {
    /// Another daemon answers on it.
    #[error("another devmeshd is already listening on {}", .0.display())]
    Live(PathBuf),
    /// Something that is no socket has the name.
    #[error("refusing to replace {}: existing path is not a Unix socket", .0.display())]
    NotASocket(PathBuf),
    /// Unix sockets have short names.
    #[error("socket path {path} is too long: {length} bytes, at most {max} fit; choose a shorter one with --socket", path = path.display())]
    TooLong {
        /// The path.
        path: PathBuf,
        /// Its bytes, with what is needed beside it.
        length: usize,
        /// What fits.
        max: usize,
    },
    /// The file system said no.
    #[error(transparent)]
    Disk(#[from] DiskError),
}

impl Faulty for SocketError {
    fn blame(&self) -> Blame {
        Blame::ThisHost
    }
    fn class(&self) -> Class {
        match self {
            Self::Live(_) => Class::Refused,
            Self::NotASocket(_) | Self::TooLong { .. } => Class::Config,
            Self::Disk(_) => Class::Unknown,
        }
    }
}

/// A listening control socket. Dropping it removes the file, if it still is the one that was made here.
#[derive(Debug)]
pub struct ControlSocket {
    pub(super) listener: Arc<UnixListener>,
    path: PathBuf,
    identity: (u64, u64),
    /// Whether the file stays when this is dropped.
    kept: Kept,
}

/// Whether the file of a socket outlives its listener: while another process listens there too.
#[derive(Debug, Clone, Default)]
pub struct Kept(Arc<AtomicBool>);
impl Kept {
    /// Changes it.
    pub fn set(&self, kept: bool) {
        self.0.store(kept, Ordering::Relaxed);
    }
}

impl ControlSocket {
    /// Where it listens.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The listener, to hand it over to another process. It keeps nothing open.
    pub fn lendable(&self) -> Weak<UnixListener> {
        Arc::downgrade(&self.listener)
    }

    /// Whether the file stays.
    pub fn kept(&self) -> Kept {
        self.kept.clone()
    }

    /// The socket that another process listens on at `path` and handed over. Its file is kept until [`Kept::set`] says
    /// otherwise.
    pub fn received(path: &Path, socket: OwnedFd) -> Result<Self, SocketError> {
        let fail = |error| failed("take over the listener of", path, error);
        if !crate::conn::listens(&socket).map_err(fail)? {
            return Err(fail(io::Error::other("what was handed over is no listening socket")));
        }
        let listener = StdListener::from(socket);
        listener.local_addr().map_err(fail)?;
        listener.set_nonblocking(true).map_err(fail)?;
        let identity = identity(path).map_err(fail)?;
        let listener = Arc::new(UnixListener::from_std(listener).map_err(fail)?);
        let kept = Kept::default();
        kept.set(true);
        Ok(Self { listener, path: path.to_owned(), identity, kept })
    }
}

impl Drop for ControlSocket {
    fn drop(&mut self) {
        if !self.kept.0.load(Ordering::Relaxed) && identity(&self.path).is_ok_and(|now| now == self.identity) {
            let _ = fs::remove_file(&self.path);
        }
    }
}

/// Whether `path` can be taken: absent, or a socket that nobody answers on. A daemon asks this before it touches its
/// state, so that a second one is refused by the name of what it would disturb.
pub fn probe(path: &Path) -> Result<(), SocketError> {
    let length = path.as_os_str().len().max(staging(path, "").as_os_str().len());
    if length > MAX_PATH {
        return Err(SocketError::TooLong { path: path.to_owned(), length, max: MAX_PATH });
    }
    match fs::symlink_metadata(path) {
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(()),
        Err(error) => Err(failed("look at", path, error)),
        Ok(found) if !found.file_type().is_socket() => Err(SocketError::NotASocket(path.to_owned())),
        Ok(_) if is_live(path).map_err(|error| failed("probe", path, error))? => {
            Err(SocketError::Live(path.to_owned()))
        }
        Ok(_) => Ok(()),
    }
}

/// Takes `path`: its directory is made 0700 when missing, a stale socket is replaced in one step, and the new one is 0600
/// before anyone can find it. Call it inside a runtime; clients wait from now on until [`super::serve`] answers them.
pub fn bind_socket(path: &Path) -> Result<ControlSocket, SocketError> {
    probe(path)?;
    if let Some(dir) = path.parent().filter(|dir| !dir.as_os_str().is_empty()) {
        disk::private_dir(dir)?;
    }
    // Two daemons that start together would both pass the probe.
    let _turn = czekam::lock("turn to bind the control socket", &lock_path(path))?;
    probe(path)?;
    let listener = listen(path).map_err(|error| failed("listen on", path, error))?;
    let identity = identity(path).map_err(|error| failed("look at", path, error))?;
    let listener = UnixListener::from_std(listener).map_err(|error| failed("listen on", path, error))?;
    Ok(ControlSocket { listener: Arc::new(listener), path: path.to_owned(), identity, kept: Kept::default() })
}

/// Binds inside a fresh 0700 directory, narrows the mode there, and renames the socket to its place. The umask belongs to
/// the whole process and other threads create files meanwhile, so it is not touched; and the rename replaces a stale
/// socket without a moment in which the path is missing.
fn listen(path: &Path) -> io::Result<StdListener> {
    let mut random = [0u8; 3];
    rand::rng().fill_bytes(&mut random);
    let staged = staging(path, &hex::encode(random));
    let dir = staged.parent().ok_or(ErrorKind::InvalidInput)?;
    fs::DirBuilder::new().mode(0o700).create(dir)?;
    let made = make(&staged, path);
    let _ = fs::remove_file(&staged);
    let _ = fs::remove_dir(dir);
    made
}

fn make(staged: &Path, path: &Path) -> io::Result<StdListener> {
    let listener = StdListener::bind(staged)?;
    listener.set_nonblocking(true)?;
    fs::set_permissions(staged, fs::Permissions::from_mode(0o600))?;
    fs::rename(staged, path)?;
    Ok(listener)
}

/// `<directory of path>/.<tag>/s`; without a tag, the place of its length.
fn staging(path: &Path, tag: &str) -> PathBuf {
    let tag = if tag.is_empty() { "000000" } else { tag };
    path.with_file_name(format!(".{tag}")).join("s")
}

fn lock_path(path: &Path) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(".lock");
    PathBuf::from(name)
}

/// Connects. Refused means that nobody listens; a full queue or silence means that somebody does.
fn is_live(path: &Path) -> io::Result<bool> {
    let socket = socket2::Socket::new(socket2::Domain::UNIX, socket2::Type::STREAM, None)?;
    match socket.connect_timeout(&socket2::SockAddr::unix(path)?, PROBE) {
        Ok(()) => Ok(true),
        Err(error) => match error.kind() {
            ErrorKind::ConnectionRefused | ErrorKind::NotFound | ErrorKind::ConnectionReset => Ok(false),
            ErrorKind::WouldBlock | ErrorKind::TimedOut => Ok(true),
            _ => Err(error),
        },
    }
}

fn identity(path: &Path) -> io::Result<(u64, u64)> {
    fs::symlink_metadata(path).map(|found| (found.dev(), found.ino()))
}

fn failed(step: &'static str, path: &Path, source: io::Error) -> SocketError {
    SocketError::Disk(DiskError { step, path: path.to_owned(), source })
}

#[cfg(test)]
#[path = "tests/socket.rs"]
mod tests;

//! Standard input and output as one stream, without the threads that files need.
use rustix::fs::{FileType, fstat};
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::UnixStream as StdStream;
use tokio::io::{AsyncRead, AsyncWrite, Join, join};
use tokio::net::UnixStream;
use tokio::net::unix::pipe;

/// Pipes are made this large where the system allows it: fewer changes between sshd and us.
#[cfg(target_os = "linux")]
const PIPE: usize = 1 << 20;

/// Both pipes or sockets of this process.
pub(super) type Stdio = Join<Box<dyn AsyncRead + Send + Unpin>, Box<dyn AsyncWrite + Send + Unpin>>;

/// Takes them. They have to be pipes or sockets, as sshd gives them: terminals and files cannot be waited for.
pub(super) fn take(verb: &str) -> Result<Stdio, String> {
    let taken = || Ok(join(input(owned(&io::stdin())?)?, output(owned(&io::stdout())?)?));
    taken().map_err(|error: io::Error| {
        format!("`resolver {verb}` is run by other hosts over SSH, not by hand: standard input or output: {error}")
    })
}

fn owned(fd: &impl AsFd) -> io::Result<OwnedFd> {
    let fd = fd.as_fd().try_clone_to_owned()?;
    #[cfg(target_os = "linux")]
    let _ = rustix::pipe::fcntl_setpipe_size(&fd, PIPE);
    Ok(fd)
}

fn input(fd: OwnedFd) -> io::Result<Box<dyn AsyncRead + Send + Unpin>> {
    if is_socket(&fd)? { Ok(Box::new(socket(fd)?)) } else { Ok(Box::new(pipe::Receiver::from_owned_fd(fd)?)) }
}

fn output(fd: OwnedFd) -> io::Result<Box<dyn AsyncWrite + Send + Unpin>> {
    if is_socket(&fd)? { Ok(Box::new(socket(fd)?)) } else { Ok(Box::new(pipe::Sender::from_owned_fd(fd)?)) }
}

fn is_socket(fd: &OwnedFd) -> io::Result<bool> {
    Ok(FileType::from_raw_mode(fstat(fd)?.st_mode) == FileType::Socket)
}

fn socket(fd: OwnedFd) -> io::Result<UnixStream> {
    let stream = StdStream::from(fd);
    stream.set_nonblocking(true)?;
    UnixStream::from_std(stream)
}

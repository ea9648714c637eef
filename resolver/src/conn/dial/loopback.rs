//! A connect on loopback has ended when the call returns, whatever the call says: the handshake runs inside it, and its last
//! step waits for the socket's own lock. Asking once more tells, and saves a turn of the poll.
use rustix::io::Errno;
use rustix::net::{AddressFamily, SocketFlags, SocketType, socket_with};
use std::io;
use std::net::SocketAddr;
use std::os::fd::OwnedFd;
use tokio::net::TcpStream;

/// Connects to `addr`.
pub(super) async fn connect(addr: SocketAddr) -> io::Result<TcpStream> {
    let family = if addr.is_ipv6() { AddressFamily::INET6 } else { AddressFamily::INET };
    let socket = socket_with(family, SocketType::STREAM, SocketFlags::NONBLOCK | SocketFlags::CLOEXEC, None)?;
    let connected = is_connected(&socket, addr)? || is_connected(&socket, addr)?;
    let stream = TcpStream::from_std(socket.into())?;
    if !connected {
        stream.writable().await?;
        if let Some(error) = stream.take_error()? {
            return Err(error);
        }
    }
    Ok(stream)
}

/// Starts the connect, or asks how it went.
fn is_connected(socket: &OwnedFd, addr: SocketAddr) -> io::Result<bool> {
    match rustix::net::connect(socket, &addr) {
        Ok(()) | Err(Errno::ISCONN) => Ok(true),
        Err(Errno::INPROGRESS | Errno::ALREADY | Errno::INTR) => Ok(false),
        Err(error) => Err(error.into()),
    }
}

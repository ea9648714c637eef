//! One listening socket.
use socket2::{Domain, Protocol, Socket, Type};
use std::io;
use std::net::SocketAddr;
use tokio::net::TcpListener;

/// Connections the kernel holds for us while the accept loop pauses; it clamps to its own maximum.
const BACKLOG: i32 = 4096;

/// Whether accepted sockets have the listener's `TCP_NODELAY`.
pub(in crate::conn) const INHERITS_NODELAY: bool = cfg!(target_os = "linux");

pub(super) fn listen(addr: SocketAddr) -> io::Result<TcpListener> {
    let socket = Socket::new(Domain::for_address(addr), Type::STREAM, Some(Protocol::TCP))?;
    if addr.is_ipv6() {
        // [::1] must not also take 127.0.0.1: that half is a socket of its own.
        socket.set_only_v6(true)?;
    }
    // A restart must not fail on the TIME_WAIT of our own old connections. A port that somebody listens on stays refused.
    socket.set_reuse_address(true)?;
    if INHERITS_NODELAY {
        socket.set_tcp_nodelay(true)?;
    }
    socket.bind(&addr.into())?;
    socket.listen(BACKLOG)?;
    socket.set_nonblocking(true)?;
    TcpListener::from_std(socket.into())
}

//! Outside Linux a connect is waited for like any other.
use std::io;
use std::net::SocketAddr;
use tokio::net::TcpStream;

/// Connects to `addr`.
pub(super) async fn connect(addr: SocketAddr) -> io::Result<TcpStream> {
    TcpStream::connect(addr).await
}

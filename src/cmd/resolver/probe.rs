//! Does somebody listen there.
use std::net::SocketAddr;
use std::time::Duration;
use tokio::net::TcpStream;

/// A loopback bind answers at once or not at all.
const LIMIT: Duration = Duration::from_millis(250);

/// Connects, and closes again at once.
pub(super) async fn listens(addr: SocketAddr) -> bool {
    matches!(tokio::time::timeout(LIMIT, TcpStream::connect(addr)).await, Ok(Ok(_)))
}

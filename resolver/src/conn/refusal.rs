//! What a client is told when nothing was reached (fleet contract §4.5): HTTP clients of an adapter a 502, others a close.
use super::http_sniff;
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::timeout;

/// Exactly what the contract fixes; the body has 21 bytes.
const BAD_GATEWAY: &[u8] =
    b"HTTP/1.1 502 Bad Gateway\r\nContent-Type: text/plain\r\nContent-Length: 21\r\n\r\nupstream unavailable\n";
/// How long a client that has said nothing yet may take to show that it speaks HTTP.
const FIRST_BYTES: Duration = Duration::from_millis(250);
/// How long, and for how many bytes, an answered client is still read, so that its unread request does not reset the answer away.
const LINGER: (Duration, usize) = (Duration::from_secs(2), 1 << 20);

/// Closes a client that cannot be carried, in the way it understands. `http`: HTTP clients get the 502. `reset`: the backend
/// reset its connection, and so do we.
pub(super) async fn close(mut client: TcpStream, early: &[u8], http: bool, reset: bool) {
    if http && speaks_http(&mut client, early).await {
        // A client that has left needs no answer.
        let _ = timeout(LINGER.0, finish(&mut client)).await;
    } else if reset {
        let _ = socket2::SockRef::from(&client).set_linger(Some(Duration::ZERO));
    }
}

/// By its first bytes, which it gets a moment to send.
async fn speaks_http(client: &mut TcpStream, early: &[u8]) -> bool {
    if !early.is_empty() {
        return http_sniff::starts_request(early);
    }
    let mut first = [0u8; 512];
    match timeout(FIRST_BYTES, client.read(&mut first)).await {
        Ok(Ok(n)) => http_sniff::starts_request(first.get(..n).unwrap_or_default()),
        _ => false,
    }
}

async fn finish(client: &mut TcpStream) -> std::io::Result<()> {
    client.write_all(BAD_GATEWAY).await?;
    client.shutdown().await?;
    let mut rest = [0u8; 4096];
    let mut left = LINGER.1;
    while left > 0 {
        match client.read(&mut rest).await? {
            0 => break,
            n => left = left.saturating_sub(n),
        }
    }
    Ok(())
}

//! Does somebody answer there: an HTTP request for `http`, a connection for anything else (fleet contract §6.9).
use http_body_util::Empty;
use hyper_util::rt::TokioIo;
use stado_fleet::name::Scheme;
use std::net::SocketAddr;
use std::time::Duration;
use tokio::net::TcpStream;

/// How long a probe waits.
const LIMIT: Duration = Duration::from_secs(5);

/// How somebody answered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Answered {
    /// Any HTTP status counts.
    Http(u16),
    /// A connection was accepted.
    Accepted,
}

impl Answered {
    /// The HTTP status.
    pub(crate) fn status(self) -> Option<u16> {
        match self {
            Self::Http(status) => Some(status),
            Self::Accepted => None,
        }
    }
}

impl std::fmt::Display for Answered {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Http(status) => write!(f, "answered HTTP {status}"),
            Self::Accepted => f.write_str("accepted a connection"),
        }
    }
}

/// Tries; the error is the system's or the protocol's own words.
pub(crate) async fn answers(scheme: Scheme, addr: SocketAddr) -> Result<Answered, String> {
    let attempt = async {
        let stream = TcpStream::connect(addr).await.map_err(|e| e.to_string())?;
        match scheme {
            Scheme::Http => http(stream, addr).await.map(Answered::Http),
            Scheme::Tcp => Ok(Answered::Accepted),
        }
    };
    let none = format!("no answer within {}s", LIMIT.as_secs());
    tokio::time::timeout(LIMIT, attempt).await.unwrap_or(Err(none))
}

async fn http(stream: TcpStream, addr: SocketAddr) -> Result<u16, String> {
    let told = |e: &dyn std::fmt::Display| e.to_string();
    let (mut sender, connection) =
        hyper::client::conn::http1::handshake(TokioIo::new(stream)).await.map_err(|e| told(&e))?;
    let request = hyper::Request::get("/").header("host", addr.to_string()).header("connection", "close");
    let request = request.body(Empty::<bytes::Bytes>::new()).map_err(|e| told(&e))?;
    let driver = tokio::spawn(connection);
    let answer = sender.send_request(request).await.map_err(|e| told(&e));
    driver.abort();
    Ok(answer?.status().as_u16())
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::io::{AsyncReadExt, AsyncWriteExt};

    #[tokio::test]
    async fn any_status_counts_and_silence_does_not() {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let addr = listener.local_addr().unwrap();
        tokio::spawn(async move {
            let (mut stream, _) = listener.accept().await.unwrap();
            let mut head = [0; 512];
            let n = stream.read(&mut head).await.unwrap();
            assert!(head[..n].starts_with(b"GET / HTTP/1.1\r\n"));
            stream.write_all(b"HTTP/1.1 503 no\r\ncontent-length: 0\r\n\r\n").await.unwrap();
            let (closing, _) = listener.accept().await.unwrap();
            drop(closing);
        });
        assert_eq!(answers(Scheme::Http, addr).await, Ok(Answered::Http(503)));
        assert!(answers(Scheme::Http, addr).await.is_err());
    }

    #[tokio::test]
    async fn a_tcp_service_answers_by_accepting() {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let addr = listener.local_addr().unwrap();
        assert_eq!(answers(Scheme::Tcp, addr).await, Ok(Answered::Accepted));
        drop(listener);
        assert!(answers(Scheme::Tcp, addr).await.unwrap_err().contains("refused"));
    }
}

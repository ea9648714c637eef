//! Whether the resolver that runs also answers: the system goes on taking connections for a process that does not.
use std::net::SocketAddr;
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

/// A local answer takes microseconds; a machine that is out of breath may need this long.
pub(crate) const LIMIT: Duration = Duration::from_secs(3);

/// What its resolution API did.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Pulse {
    /// It answered.
    Answers,
    /// It took the connection, or the system did, and said nothing.
    Silent {
        /// A signal has stopped the process.
        stopped: bool,
    },
    /// Nobody took the connection.
    Refused,
}

/// Asks the resolution API of process `pid` for its health. Any byte is an answer.
pub(crate) async fn pulse(api: SocketAddr, pid: u32) -> Pulse {
    let asked = async {
        let mut stream = TcpStream::connect(api).await?;
        stream
            .write_all(format!("GET /health HTTP/1.1\r\nHost: {api}\r\nConnection: close\r\n\r\n").as_bytes())
            .await?;
        stream.read_u8().await
    };
    match tokio::time::timeout(LIMIT, asked).await {
        Ok(Ok(_)) => Pulse::Answers,
        // It ended a connection: whoever does that is awake.
        Ok(Err(error)) if error.kind() != std::io::ErrorKind::ConnectionRefused => Pulse::Answers,
        Ok(Err(_)) => Pulse::Refused,
        Err(_) => Pulse::Silent { stopped: is_stopped(pid) },
    }
}

/// Whether the system says that a signal has stopped the process.
pub(crate) fn is_stopped(pid: u32) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    // The name in parentheses may hold anything: the state stands behind the last one.
    stat.rsplit_once(") ").is_some_and(|(_, rest)| rest.starts_with(['T', 't']))
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::net::TcpListener;

    #[tokio::test]
    async fn who_answers_who_hangs_and_who_is_not_there_are_told_apart() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let at = listener.local_addr().unwrap();
        let answering = async {
            let (mut stream, _) = listener.accept().await.unwrap();
            let mut head = [0; 1024];
            let n = stream.read(&mut head).await.unwrap();
            assert!(head[..n].starts_with(b"GET /health HTTP/1.1\r\nHost: 127.0.0.1:"));
            stream.write_all(b"HTTP/1.1 503 x\r\n\r\n").await.unwrap();
        };
        let me = std::process::id();
        let (answered, ()) = tokio::join!(pulse(at, me), answering);
        assert_eq!(answered, Pulse::Answers);
        // Nobody accepts: the system takes the connection.
        assert_eq!(pulse(at, me).await, Pulse::Silent { stopped: false });
        drop(listener);
        assert_eq!(pulse(at, me).await, Pulse::Refused);
    }
}

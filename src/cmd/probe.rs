//! Does somebody answer there: an HTTP request for `http`, a connection for anything else (fleet contract §6.9).
use super::resolver::{Way, announce};
use http_body_util::{BodyExt, Empty};
use hyper::Response;
use hyper::body::Incoming;
use hyper_util::rt::TokioIo;
use stado_fleet::ledger::Wait;
use stado_fleet::name::Scheme;
use std::net::SocketAddr;
use std::time::Duration;
use tokio::net::TcpStream;
use tokio::time::Instant;

/// How long a probe waits.
const LIMIT: Duration = Duration::from_secs(5);
/// An adapter that has nothing to go on with closes a client that says nothing within this long.
const SETTLED: Duration = Duration::from_millis(400);
/// What was reached may be another host's frontend, which closes a moment later when nobody is behind it.
const BEHIND: Duration = Duration::from_millis(150);
/// How often the published files are looked at meanwhile.
const LOOK: Duration = Duration::from_millis(50);
/// What an adapter says in place of a service that it does not reach (§4.5).
const REFUSAL: &[u8] = b"upstream unavailable\n";

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
            Scheme::Http => Ok(Answered::Http(http(stream, addr).await?.status().as_u16())),
            Scheme::Tcp => Ok(Answered::Accepted),
        }
    };
    tokio::time::timeout(LIMIT, attempt).await.unwrap_or_else(|_| Err(none()))
}

/// Why nothing of a service came through an adapter.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Unanswered {
    /// Nobody took the connection.
    Refused(String),
    /// It was taken, and ended or answered by the adapter itself.
    Turned(String),
    /// It was taken, and nothing came back; the wait that the resolver lists for it.
    Silent(Option<Box<Wait>>),
}

/// What the resolver has published of the way through an adapter, at the moment of asking.
pub(crate) trait Published {
    /// The wait of a client.
    fn wait(&self, client: SocketAddr) -> Option<Wait>;
    /// Whether a connection has reached the service since the probe began; `None` for a resolver that does not say.
    fn reached(&self) -> Option<bool>;
    /// Its resolution API, which is told that the probe is no traffic.
    fn api(&self) -> Option<SocketAddr>;
}

/// As [`answers`], through an adapter, which takes every connection at once: what it says in place of the service is no
/// answer, and a connection that it took is none before it has reached the service.
pub(crate) async fn through(
    scheme: Scheme,
    addr: SocketAddr,
    published: &dyn Published,
) -> Result<Answered, Unanswered> {
    let began = Instant::now();
    let until = began + LIMIT;
    let way = Way::to(addr);
    announce(published.api(), way.from().into_iter(), false).await;
    let connecting = tokio::time::timeout_at(until, way.connect()).await;
    let stream = match connecting {
        Ok(Ok(stream)) => stream,
        Ok(Err(error)) => return Err(Unanswered::Refused(error.to_string())),
        Err(_) => return Err(Unanswered::Silent(None)),
    };
    let turned = |error: std::io::Error| Unanswered::Turned(error.to_string());
    let client = stream.local_addr().map_err(turned)?;
    let mut reached = None;
    let silent = || Unanswered::Silent(published.wait(client).map(Box::new));
    match scheme {
        Scheme::Http => {
            tokio::pin! { let asked = http_through(stream, addr); }
            match tokio::time::timeout_at(until, &mut asked).await {
                Ok(answer) => answer.map(Answered::Http).map_err(Unanswered::Turned),
                // The connection is still open here, so that it is still listed.
                Err(_) => Err(silent()),
            }
        }
        Scheme::Tcp => loop {
            match tokio::time::timeout_at(until.min(Instant::now() + LOOK), stream.peek(&mut [0])).await {
                Ok(Ok(0)) => return Err(Unanswered::Turned("the connection was closed without a byte".into())),
                Ok(Ok(_)) => return Ok(Answered::Accepted),
                Ok(Err(error)) => return Err(turned(error)),
                Err(_) => {}
            }
            let opening = || published.wait(client).is_some_and(|wait| wait.phase == "open");
            match published.reached() {
                Some(true)
                    if reached.get_or_insert_with(Instant::now).elapsed() >= BEHIND || Instant::now() >= until =>
                {
                    return Ok(Answered::Accepted);
                }
                None if began.elapsed() >= SETTLED && !opening() => return Ok(Answered::Accepted),
                _ if Instant::now() >= until => return Err(silent()),
                _ => {}
            }
        },
    }
}

/// `no answer within 5s`.
pub(crate) fn none() -> String {
    format!("no answer within {}s", LIMIT.as_secs())
}

async fn http_through(stream: TcpStream, addr: SocketAddr) -> Result<u16, String> {
    let answer = http(stream, addr).await?;
    let status = answer.status().as_u16();
    let length = answer.headers().get("content-length").and_then(|length| length.to_str().ok()?.parse().ok());
    if (status, length) == (502, Some(REFUSAL.len())) {
        let body = answer.into_body().collect().await.map_err(|e| e.to_string())?.to_bytes();
        if body == REFUSAL {
            return Err("the adapter answered 502 upstream unavailable".into());
        }
    }
    Ok(status)
}

async fn http(stream: TcpStream, addr: SocketAddr) -> Result<Response<Incoming>, String> {
    let told = |e: &dyn std::fmt::Display| e.to_string();
    let (mut sender, connection) =
        hyper::client::conn::http1::handshake(TokioIo::new(stream)).await.map_err(|e| told(&e))?;
    let request = hyper::Request::get("/").header("host", addr.to_string()).header("connection", "close");
    let request = request.body(Empty::<bytes::Bytes>::new()).map_err(|e| told(&e))?;
    // It ends with the exchange, or with this program.
    tokio::spawn(connection);
    sender.send_request(request).await.map_err(|e| told(&e))
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

    /// A server that answers each connection with the next of these; an empty one keeps it open.
    async fn serves<const N: usize>(answers: [&'static str; N]) -> SocketAddr {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let addr = listener.local_addr().unwrap();
        tokio::spawn(async move {
            let mut kept = Vec::new();
            for answer in answers {
                let (mut stream, _) = listener.accept().await.unwrap();
                stream.write_all(answer.as_bytes()).await.unwrap();
                if answer.is_empty() {
                    kept.push(stream);
                }
            }
            std::future::pending::<()>().await;
        });
        addr
    }

    /// A resolver that lists the open of every client some times, and says then that the service was reached, if it says that
    /// at all.
    struct Says {
        opens: std::cell::Cell<usize>,
        reaches: bool,
    }
    impl Says {
        fn new(opens: usize, reaches: bool) -> Self {
            Self { opens: std::cell::Cell::new(opens), reaches }
        }
    }
    impl Published for Says {
        fn wait(&self, client: SocketAddr) -> Option<Wait> {
            let left = self.opens.get();
            self.opens.set(left.saturating_sub(1));
            (left > 0).then(|| Wait { phase: "open".into(), client: Some(client.to_string()), ..Wait::default() })
        }
        fn api(&self) -> Option<SocketAddr> {
            None
        }
        fn reached(&self) -> Option<bool> {
            self.reaches.then_some(self.opens.get() == 0)
        }
    }

    #[tokio::test]
    async fn what_an_adapter_says_in_place_of_a_service_is_no_answer() {
        let own =
            "HTTP/1.1 502 Bad Gateway\r\nContent-Type: text/plain\r\nContent-Length: 21\r\n\r\nupstream unavailable\n";
        let theirs = "HTTP/1.1 502 Bad Gateway\r\nContent-Length: 21\r\n\r\nsomething of their own";
        let addr = serves([own, theirs]).await;
        let asked = through(Scheme::Http, addr, &Says::new(0, true)).await;
        assert_eq!(asked, Err(Unanswered::Turned("the adapter answered 502 upstream unavailable".into())));
        assert_eq!(
            through(Scheme::Http, addr, &Says::new(0, true)).await,
            Ok(Answered::Http(502)),
            "the service's own"
        );
    }

    #[tokio::test]
    async fn a_tcp_service_is_reached_when_its_channel_is_open() {
        let addr = serves(["hello", "", ""]).await;
        let never = Says::new(usize::MAX, true);
        assert_eq!(through(Scheme::Tcp, addr, &never).await, Ok(Answered::Accepted), "it speaks first");
        assert_eq!(
            through(Scheme::Tcp, addr, &Says::new(0, true)).await,
            Ok(Answered::Accepted),
            "the resolver says so"
        );
        // One that says nothing of it lists the open of this very client twice, and then no more.
        let older = Says::new(2, false);
        assert_eq!(through(Scheme::Tcp, addr, &older).await, Ok(Answered::Accepted));
        assert_eq!(older.opens.get(), 0);
        let closed = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let at = closed.local_addr().unwrap();
        drop(closed);
        let refused = through(Scheme::Tcp, at, &never).await;
        assert!(matches!(&refused, Err(Unanswered::Refused(why)) if why.contains("refused")), "{refused:?}");
    }

    #[tokio::test]
    async fn a_connection_that_is_ended_was_turned_away() {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let addr = listener.local_addr().unwrap();
        tokio::spawn(async move { drop(listener.accept().await) });
        let turned = through(Scheme::Tcp, addr, &Says::new(usize::MAX, true)).await;
        assert_eq!(turned, Err(Unanswered::Turned("the connection was closed without a byte".into())));
    }
}

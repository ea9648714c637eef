//! The far side: judges, dials and copies, one task per stream.
use super::copy;
use super::gather::{Gather, Packets};
use super::grant::Grant;
use super::pace::Pace;
use super::preamble;
use super::refusal::{Code, Refusal};
use super::rtt::{self, Meter};
use super::{CONNECTION_WINDOW, FRAME, RESETS, SEND_BUFFER, STREAM_WINDOW, STREAMS};
use bytes::Bytes;
use h2::RecvStream;
use h2::server::{Connection, SendResponse};
use http::{Method, Request, Response};
use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;
use tokio::net::TcpStream;
use tokio::task::JoinSet;
use tokio::time::timeout;

/// For the answer to the preamble.
const PREAMBLE: Duration = Duration::from_secs(30);
/// For a connection to a loopback endpoint.
const CONNECT: Duration = Duration::from_secs(10);

/// What [`Admit::admit`] returns.
pub type Admitting<'a> = Pin<Box<dyn Future<Output = Result<Grant, Refusal>> + Send + 'a>>;

/// What [`Admit::why_ended`] returns.
pub type Explaining<'a> = Pin<Box<dyn Future<Output = Option<String>> + Send + 'a>>;

/// Which endpoints of this host a relay may dial. Only loopback addresses are asked for.
pub trait Admit: Send + Sync + 'static {
    /// Whether `endpoint` may be dialled, and for how long; else why not.
    fn admit(&self, endpoint: SocketAddr) -> Admitting<'_>;
    /// Why whoever listens at `endpoint` ended the connection that came from `client` before its first byte, where this host
    /// knows: it may be a frontend whose service is not there.
    fn why_ended(&self, _endpoint: SocketAddr, _client: SocketAddr) -> Explaining<'_> {
        Box::pin(std::future::ready(None))
    }
    /// Something to hold for as long as a stream lives, for whoever counts them.
    fn counted(&self) -> Option<Box<dyn Send>> {
        None
    }

    /// Told the round trip to the other end as it is measured: what lies below may fit its windows to it.
    fn measured(&self, _: Duration) {}
}

/// Serves one multiplex over `io` until the other end closes it; its streams are then reset.
///
/// # Errors
/// The preamble was not answered, or what came is no multiplex.
pub async fn serve<S>(mut io: S, admit: Arc<dyn Admit>) -> io::Result<()>
where
    S: Packets,
{
    let late = |_| io::Error::new(io::ErrorKind::TimedOut, "the preamble was not answered");
    timeout(PREAMBLE, preamble::far(&mut io)).await.map_err(late)??;
    let mut builder = h2::server::Builder::new();
    builder
        .initial_window_size(STREAM_WINDOW)
        .initial_connection_window_size(CONNECTION_WINDOW)
        .max_frame_size(FRAME)
        .max_concurrent_streams(STREAMS)
        .max_concurrent_reset_streams(RESETS)
        .max_pending_accept_reset_streams(RESETS)
        .max_local_error_reset_streams(None)
        .max_send_buffer_size(SEND_BUFFER);
    let connection = builder.handshake(Gather::new(io)).await.map_err(io::Error::other)?;
    accept(connection, admit).await
}

async fn accept<S>(mut connection: Connection<Gather<S>, Bytes>, admit: Arc<dyn Admit>) -> io::Result<()>
where
    S: Packets,
{
    let mut meter = Meter::new(connection.ping_pong());
    let mut again = tokio::time::interval(rtt::BETWEEN);
    let mut streams = JoinSet::new();
    let pace = Arc::<Pace>::default();
    loop {
        let next = std::future::poll_fn(|cx| {
            if let Some(window) = meter.poll(cx, &pace) {
                let _ = connection.set_initial_window_size(window);
                admit.measured(meter.best.unwrap_or_default());
            }
            meter.poll_pace(cx, &pace);
            connection.poll_accept(cx)
        });
        tokio::select! {
            next = next => match next {
                Some(Ok((request, respond))) => {
                    let (admit, pace) = (admit.clone(), pace.clone());
                    streams.spawn(async move { stream(request, respond, admit.as_ref(), &pace).await });
                }
                Some(Err(error)) => return Err(io::Error::other(error)),
                None => return Ok(()),
            },
            Some(_) = streams.join_next(), if !streams.is_empty() => {}
            _ = again.tick() => {
                meter.ask();
            }
        }
    }
}

async fn stream(request: Request<RecvStream>, mut respond: SendResponse<Bytes>, admit: &dyn Admit, pace: &Pace) {
    let _counted = admit.counted();
    let dialled = {
        let gone = std::future::poll_fn(|cx| respond.poll_reset(cx));
        tokio::select! {
            biased;
            dialled = dial(&request, admit) => dialled,
            // The client left while its connection was made.
            _ = gone => return,
        }
    };
    match dialled {
        Ok((service, grant)) => match respond.send_response(Response::new(()), false) {
            Ok(send) => {
                let ends = service.peer_addr().ok().zip(service.local_addr().ok());
                let why = async {
                    let (endpoint, client) = ends?;
                    admit.why_ended(endpoint, client).await
                };
                // One that ends with its grant is reset at both ends.
                tokio::select! {
                    () = copy::both(service, request.into_body(), send, pace, why) => {}
                    () = grant => {}
                }
            }
            Err(_) => copy::reset(&service),
        },
        Err(refusal) => {
            // The request has no end of its own yet: h2 says that none is needed, once the answer is out.
            let _ = respond.send_response(refusal.response(), true);
        }
    }
}

async fn dial(request: &Request<RecvStream>, admit: &dyn Admit) -> Result<(TcpStream, Grant), Refusal> {
    let asked = request.uri().authority().map(http::uri::Authority::as_str).unwrap_or_default();
    let endpoint = asked.parse::<SocketAddr>().ok().filter(|_| request.method() == Method::CONNECT);
    let Some(endpoint) = endpoint else {
        return Err(Refusal::new(Code::Unknown, format!("{} {asked:?} is no request of a relay", request.method())));
    };
    if !endpoint.ip().is_loopback() {
        return Err(Refusal::new(Code::Forbidden, format!("{} is no loopback address", endpoint.ip())));
    }
    let grant = admit.admit(endpoint).await?;
    match timeout(CONNECT, TcpStream::connect(endpoint)).await {
        Ok(Ok(service)) => {
            let _ = service.set_nodelay(true);
            Ok((service, grant))
        }
        Ok(Err(error)) => Err(Refusal::connect(endpoint, &error)),
        Err(_) => {
            let why = format!("connect to {endpoint}: no answer within {}s", CONNECT.as_secs());
            Err(Refusal::new(Code::Unreachable, why))
        }
    }
}

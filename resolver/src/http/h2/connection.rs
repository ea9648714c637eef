//! One client connection: streams are taken from it as they come, within its limits and deadlines (proxy rules 18 and 19).
use super::super::HttpContext;
use super::budget::Budget;
use super::fields::Truth;
use super::screen::{Malformed, Screen};
use super::session::{CONNECTION_WINDOW, STREAM_WINDOW};
use super::wire::{Ended, Wire};
use super::{Ends, stream};
use bytes::Bytes;
use h2::server::{self, Connection};
use h2::{Ping, Reason};
use jiff::Timestamp;
use std::future::poll_fn;
use std::sync::{Arc, Mutex};
use std::task::Poll;
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::sync::Notify;
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep_until, timeout};

/// What all streams of a connection share.
pub(super) struct Shared {
    pub(super) ctx: Arc<HttpContext>,
    pub(super) ends: Ends,
    pub(super) truth: Truth,
    /// When the connection was accepted; taken by its first stream.
    pub(super) accepted: Mutex<Option<Timestamp>>,
    pub(super) budget: Budget,
    /// Streams that end in what no request ends in.
    pub(super) malformed: Malformed,
    /// The budget of resets is spent: the connection ends.
    pub(super) enough: Notify,
}

pub(super) async fn run<S>(inner: S, ends: Ends, ctx: Arc<HttpContext>, initial: Bytes)
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let accepted = Mutex::new(Some(Timestamp::now()));
    let ended = Arc::new(Ended::default());
    let malformed = Malformed::default();
    let wire = Wire { inner, initial, ended: ended.clone(), screen: Screen::new(malformed.clone()) };
    let handshake = builder(&ctx).handshake::<_, Bytes>(wire);
    let Ok(Ok(connection)) = timeout(ctx.limits.head_deadline, handshake).await else { return };
    let shared = Arc::new(Shared {
        truth: Truth::new(ends.peer, ends.local, ends.scheme.as_str(), ctx.hop.as_str()),
        budget: Budget::new(ctx.limits.h2_resets, std::time::Instant::now()),
        malformed,
        ends,
        accepted,
        ctx,
        enough: Notify::new(),
    });
    let mut open = JoinSet::new();
    streams(connection, &shared, &ended, &mut open).await;
    // The connection is gone: each stream notices, tells its backend, and is counted.
    while open.join_next().await.is_some() {}
}

fn builder(ctx: &HttpContext) -> server::Builder {
    let limits = &ctx.limits;
    let mut builder = server::Builder::new();
    builder
        .initial_window_size(STREAM_WINDOW)
        .initial_connection_window_size(CONNECTION_WINDOW)
        .max_send_buffer_size(STREAM_WINDOW as usize)
        .max_concurrent_streams(limits.h2_streams)
        .max_header_list_size(u32::try_from(limits.head_bytes).unwrap_or(u32::MAX))
        .max_pending_accept_reset_streams(limits.h2_resets)
        .enable_connect_protocol();
    builder
}

async fn streams<S>(
    mut connection: Connection<Wire<S>, Bytes>,
    shared: &Arc<Shared>,
    ended: &Ended,
    open: &mut JoinSet<()>,
) where
    S: AsyncRead + AsyncWrite + Unpin,
{
    let mut ping = connection.ping_pong();
    let mut clock = Clock::new(shared);
    let mut draining = Box::pin(shared.ctx.drained());
    let mut tick = Box::pin(sleep_until(clock.next()));
    let (mut drained, mut half_closed) = (false, false);
    loop {
        let resting = open.is_empty();
        if half_closed && resting {
            let _ = timeout(shared.ctx.limits.head_deadline, finish(&mut connection)).await;
            return;
        }
        tokio::select! {
            taken = connection.accept() => match taken {
                Some(Ok((request, respond))) => {
                    clock.begun();
                    open.spawn(stream::run(request, respond, Arc::clone(shared)));
                }
                Some(Err(error)) => {
                    tracing::debug!(target: "stado::mesh", peer = %shared.ends.peer, %error, "h2_connection_ended");
                    return;
                }
                None => return,
            },
            Some(_) = open.join_next() => clock.rested(),
            () = shared.enough.notified() => connection.abrupt_shutdown(Reason::ENHANCE_YOUR_CALM),
            () = ended.wait(), if !half_closed => {
                half_closed = true;
                clock.linger(shared.ctx.conn.limits.linger);
            }
            () = &mut draining, if !drained => {
                drained = true;
                connection.graceful_shutdown();
            }
            pong = pong(&mut ping), if clock.pinged() => match pong {
                Ok(()) => clock.ponged(),
                Err(()) => return,
            },
            () = &mut tick => {
                match clock.due(resting, half_closed) {
                    Due::Nothing => {}
                    Due::Ping => if ping.as_mut().is_some_and(|ping| ping.send_ping(Ping::opaque()).is_err()) {
                        return;
                    },
                    Due::Goodbye => connection.graceful_shutdown(),
                    Due::End => return,
                }
                tick.as_mut().reset(clock.next());
            }
        }
    }
}

/// Everything that was asked is answered, and nothing more can be asked: what is still to be written is written.
async fn finish<S>(connection: &mut Connection<Wire<S>, Bytes>)
where
    S: AsyncRead + AsyncWrite + Unpin,
{
    poll_fn(|cx| match connection.poll_accept(cx) {
        Poll::Ready(_) => Poll::Ready(()),
        Poll::Pending if connection.has_streams() => Poll::Pending,
        Poll::Pending => Poll::Ready(()),
    })
    .await;
    connection.abrupt_shutdown(Reason::NO_ERROR);
    let _ = poll_fn(|cx| connection.poll_closed(cx)).await;
}

async fn pong(ping: &mut Option<h2::PingPong>) -> Result<(), ()> {
    match ping {
        Some(ping) => poll_fn(|cx| ping.poll_pong(cx)).await.map(|_| ()).map_err(|_| ()),
        None => std::future::pending().await,
    }
}

/// What a clock asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Due {
    Nothing,
    Ping,
    Goodbye,
    End,
}

/// When a resting connection is asked whether it is there, and when it has rested long enough. One that is in the middle of a
/// head cannot answer a ping, so that a head has a deadline too. A connection with open streams is left alone.
#[derive(Debug)]
struct Clock {
    head: Duration,
    idle: Duration,
    since: Instant,
    looked: Instant,
    ping: Option<Instant>,
    said_goodbye: bool,
    linger: Option<Instant>,
}

impl Clock {
    fn new(shared: &Shared) -> Self {
        let limits = &shared.ctx.limits;
        let now = Instant::now();
        let (head, idle) = (limits.head_deadline, limits.idle);
        Self { head, idle, since: now, looked: now, ping: None, said_goodbye: false, linger: None }
    }
    fn begun(&mut self) {
        self.since = Instant::now();
    }
    fn rested(&mut self) {
        self.since = Instant::now();
    }
    fn linger(&mut self, limit: Duration) {
        self.linger = Some(Instant::now() + limit);
    }
    fn pinged(&self) -> bool {
        self.ping.is_some()
    }
    fn ponged(&mut self) {
        self.ping = None;
    }
    /// Half a deadline for a ping to be sent after a head has begun, half for it to be missed.
    fn next(&self) -> Instant {
        self.looked + (self.head / 2).min(self.idle)
    }
    fn due(&mut self, resting: bool, half_closed: bool) -> Due {
        let now = Instant::now();
        self.looked = now;
        if half_closed {
            return if self.linger.is_some_and(|end| end <= now) { Due::End } else { Due::Nothing };
        }
        if !resting {
            self.ping = None;
            return Due::Nothing;
        }
        if self.ping.is_some_and(|at| now - at >= self.head / 2) || self.said_goodbye {
            return Due::End;
        }
        if now - self.since >= self.idle {
            self.said_goodbye = true;
            return Due::Goodbye;
        }
        if self.ping.is_none() {
            self.ping = Some(now);
            return Due::Ping;
        }
        Due::Nothing
    }
}

//! One HTTP/1 connection of a client, from its first byte to its last (proxy rules 10 to 19).
//!
//! [`serve`] waits for requests, `hear` reads one and finds its site, `carry` leads it through the backend and back with an
//! [`exchange::Exchange`] of two [`pump::Pump`]s, `answer` writes what is our own, `closing` ends the connection so that the
//! last answer is read.

mod answer;
mod carry;
mod closing;
mod exchange;
mod facts;
mod hear;
mod prior;
mod pump;
mod rest;
mod unread;
mod upgrade;
mod watch;

pub(super) use answer::last;

use super::HttpContext;
use super::buffer::{self, Buffer};
use super::head::{Bounds, Refused, Scan, True};
use super::page::Problem;
use super::socket::Client;
use super::tls::CertNames;
use facts::Facts;
use rest::Rest;
use std::future::poll_fn;
use std::net::SocketAddr;
use std::ops::Range;
use std::sync::Arc;
use std::task::Poll;
use tokio::time::{Instant, timeout_at};
use watch::Watch;

/// How a listener is spoken to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scheme {
    /// In clear.
    Http,
    /// Over TLS.
    Https,
}
impl Scheme {
    /// `http`, `https`.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Http => "http",
            Self::Https => "https",
        }
    }
}

/// One client's connection.
struct Conn<S> {
    stream: S,
    input: Buffer,
    watch: Watch,
    rest: Option<Rest>,
    context: Arc<HttpContext>,
    peer: SocketAddr,
    truth: True,
    covered: Option<Arc<CertNames>>,
    /// Of the request that is answered now.
    host: String,
    accept: String,
    grpc: bool,
    texts: hear::Texts,
    started: Instant,
    /// Since when the client waits for it: the accept for the first one (design, "when a wait begins").
    since: Instant,
}

/// What follows a request.
enum Next {
    /// Another one.
    Request,
    /// The end of the connection; the client may still be sending.
    Close,
    /// The end, said as a reset or already said.
    Gone,
    /// Another protocol.
    Switch(Box<upgrade::Switch>),
}

/// Serves `stream` until it ends. `initial`: bytes that were read from it already. `covered`: which hosts a TLS
/// connection is for; others are answered 421.
pub async fn serve<S: Client>(
    stream: S,
    peer: SocketAddr,
    local: SocketAddr,
    scheme: Scheme,
    context: Arc<HttpContext>,
    initial: Vec<u8>,
    covered: Option<Arc<CertNames>>,
) {
    let mut conn = Conn {
        stream,
        input: Buffer::new(initial),
        watch: Watch::default(),
        rest: None,
        peer,
        truth: True::new(peer, local, scheme),
        covered,
        host: String::new(),
        accept: String::new(),
        grpc: false,
        texts: hear::Texts::default(),
        started: Instant::now(),
        since: Instant::now(),
        context,
    };
    let mut first = true;
    loop {
        if conn.input.is_empty() && !conn.wait(first).await {
            return;
        }
        if first && conn.speaks_http2().await {
            return Box::pin(conn.hand_over(local, scheme)).await;
        }
        // Boxed: while a connection waits for its next request it holds none of this.
        match Box::pin(conn.request(first)).await {
            Next::Request => conn.input.rest(),
            Next::Close => return Box::pin(closing::close(conn.stream, conn.watch.ended)).await,
            Next::Gone => return,
            Next::Switch(switch) => return Box::pin(switch.run(conn)).await,
        }
        first = false;
    }
}

impl<S: Client> Conn<S> {
    /// Waits for the first byte of a request; false when none comes. The memory for it is the thread's until then.
    async fn wait(&mut self, first: bool) -> bool {
        let limits = &self.context.limits;
        let longest = if first { limits.head_deadline } else { limits.idle };
        if self.watch.ended || (!first && self.context.has_parted()) {
            return false;
        }
        let end = Instant::now() + longest;
        let rest = self.rest.get_or_insert_with(|| Rest::new(&self.context, end));
        let (stream, input) = (&mut self.stream, &mut self.input);
        poll_fn(|cx| {
            if let Poll::Ready(read) = input.poll_fill(cx, stream, buffer::SIZE) {
                return Poll::Ready(matches!(read, Ok(1..)));
            }
            input.rest();
            rest.poll(cx, end, !first).map(|()| false)
        })
        .await
    }

    /// One request, of which some bytes are there.
    async fn request(&mut self, first: bool) -> Next {
        let began = std::mem::replace(&mut self.started, Instant::now());
        self.since = if first { began } else { self.started };
        let head = match self.head(self.since + self.context.limits.head_deadline).await {
            Ok(Some(head)) => head,
            Ok(None) => return Next::Gone,
            Err(problem) => return self.answer(&problem, Facts::unread()).await,
        };
        match self.hear(head) {
            hear::Heard::Problem(problem, facts) => self.answer(&problem, facts).await,
            hear::Heard::Own(own, request, facts) => self.answer_own(&*own, request, facts).await,
            hear::Heard::Carry(request) => self.carry_allowed(request).await,
        }
    }

    /// Where the head is in the input, once it is whole; `None` when the client has gone without one.
    async fn head(&mut self, deadline: Instant) -> Result<Option<Range<usize>>, Problem> {
        let limits = &self.context.limits;
        let bounds = Bounds { bytes: limits.head_bytes, fields: limits.header_count };
        let mut scan = Scan::default();
        if let Some(head) = scan.next(self.input.bytes(), bounds).map_err(problem)? {
            return Ok(Some(head));
        }
        let (stream, input) = (&mut self.stream, &mut self.input);
        let rest = async {
            loop {
                match poll_fn(|cx| input.poll_fill(cx, stream, buffer::SIZE)).await {
                    Ok(1..) => {}
                    Ok(0) if input.bytes().iter().all(|byte| b"\r\n".contains(byte)) => return Ok(None),
                    Ok(0) => return Err(Problem::Bad { why: "the stream ended inside the request's head" }),
                    Err(_) => return Ok(None),
                }
                if let Some(head) = scan.next(input.bytes(), bounds).map_err(problem)? {
                    return Ok(Some(head));
                }
            }
        };
        timeout_at(deadline, Box::pin(rest)).await.unwrap_or(Err(Problem::Timeout))
    }
}

fn problem(refused: Refused) -> Problem {
    match refused {
        Refused::Bad(why) => Problem::Bad { why },
        Refused::TooLarge => Problem::HeadTooLarge,
        Refused::Version => Problem::Version,
    }
}

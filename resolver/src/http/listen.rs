//! The accept loop of the router: one task owns the listeners of a port and survives every error (proxy rule 7).
use super::HttpContext;
use super::door::Door;
use super::h2::{self, Ends};
use super::plain;
use super::serve1::{self, Scheme};
use super::socket::Socket;
use super::tls::{Alpn, Tls, TlsProblem};
use crate::conn::{Bound, Claim, Hold, describe_missing, listen, other_half};
use std::future::poll_fn;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;
use tokio::net::{TcpListener, TcpStream};
use tokio::time::{Instant, sleep, sleep_until, timeout_at};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

/// Shortest and longest pause after an error that a retry at once would only repeat.
const PAUSE: (Duration, Duration) = (Duration::from_millis(50), Duration::from_secs(1));
/// How often a missing half is tried again: fast at first, a holder that stays is asked seldom.
const RETRY: (Duration, Duration) = (Duration::from_secs(1), Duration::from_secs(60));
/// Descriptors of one connection: the client's and the backend's.
const PER_CONNECTION: usize = 2;

/// What the listeners of a router and their connections share.
#[derive(Debug)]
pub(super) struct Shared {
    pub(super) context: Arc<HttpContext>,
    tls: Option<Arc<Tls>>,
    pub(super) connections: TaskTracker,
    pub(super) stop: CancellationToken,
    pub(super) cut: CancellationToken,
}
impl Shared {
    pub(super) fn new(context: Arc<HttpContext>, tls: Option<Arc<Tls>>) -> Self {
        Self {
            context,
            tls,
            connections: TaskTracker::new(),
            stop: CancellationToken::new(),
            cut: CancellationToken::new(),
        }
    }
}

/// Runs until the router stops accepting, and gives the listeners back: dropping them closes them.
pub(super) async fn run(mut bound: Bound, scheme: Scheme, shared: Arc<Shared>, door: Arc<Door>) -> Bound {
    let _counted = shared.context.conn.descriptors.count(2);
    let (mut turn, mut pause, mut retry) = (0usize, PAUSE.0, RETRY.0);
    let mut retry_at = Instant::now() + retry;
    let stop = shared.stop.clone();
    loop {
        let accepted = tokio::select! {
            biased;
            () = stop.cancelled() => return bound,
            accepted = next(&bound.listeners, &mut turn, &shared) => accepted,
            () = sleep_until(retry_at), if bound.missing_half.is_some() => {
                retry_half(&mut bound, &door).await;
                retry = (retry * 2).min(RETRY.1);
                retry_at = Instant::now() + retry;
                continue;
            }
        };
        match accepted {
            Ok((client, peer)) => {
                pause = PAUSE.0;
                let admitted = stop.run_until_cancelled(wait_for_descriptors(client, bound.addr, &shared)).await;
                let Some((client, claim)) = admitted else { return bound };
                take(client, peer, scheme, claim, &shared);
            }
            Err(error) if ends_one_connection(&error) => {}
            Err(error) => {
                shared.context.conn.descriptors.warn(&error.to_string(), bound.addr);
                if stop.run_until_cancelled(sleep(pause)).await.is_none() {
                    return bound;
                }
                pause = (pause * 2).min(PAUSE.1);
            }
        }
    }
}

/// The next connection of any listener, once no other loop waits for descriptors, and while nothing holds all of them. `turn`
/// says which one is asked first.
async fn next(listeners: &[TcpListener], turn: &mut usize, shared: &Shared) -> io::Result<(TcpStream, SocketAddr)> {
    let conn = &shared.context.conn;
    loop {
        while conn.descriptors.short() {
            sleep(PAUSE.0).await;
        }
        if let Some(accepted) = accept(listeners, turn, &conn.hold).await {
            return accepted;
        }
        conn.hold.released().await;
    }
}

/// The next one, or `None` when accepting is held: whoever takes over has the listeners too, and knows what is true by then.
async fn accept(
    listeners: &[TcpListener],
    turn: &mut usize,
    hold: &Hold,
) -> Option<io::Result<(TcpStream, SocketAddr)>> {
    *turn = turn.wrapping_add(1);
    let first = *turn;
    poll_fn(|cx| {
        if hold.is_held() {
            return Poll::Ready(None);
        }
        for at in 0..listeners.len() {
            let listener = listeners.get((first.wrapping_add(at)) % listeners.len());
            if let Some(Poll::Ready(accepted)) = listener.map(|listener| listener.poll_accept(cx)) {
                return Poll::Ready(Some(accepted));
            }
        }
        Poll::Pending
    })
    .await
}

/// Whether the error says something about one connection that is gone already, and nothing about this listener.
fn ends_one_connection(error: &io::Error) -> bool {
    use io::ErrorKind::{ConnectionAborted, ConnectionReset, Interrupted, PermissionDenied, TimedOut, WouldBlock};
    matches!(error.kind(), ConnectionAborted | ConnectionReset | Interrupted | PermissionDenied | TimedOut | WouldBlock)
}

/// Holds one accepted client back while only the reserve is left; the others wait in the kernel's backlog. Idle connections
/// to backends are given up for it.
async fn wait_for_descriptors(client: TcpStream, bind: SocketAddr, shared: &Shared) -> (TcpStream, Claim) {
    let descriptors = &shared.context.conn.descriptors;
    if let Some(claim) = descriptors.claim(PER_CONNECTION, &client) {
        return (client, claim);
    }
    shared.context.pool.clear();
    descriptors.warn("only the reserve of file descriptors is left", bind);
    let _shortage = descriptors.mark_short();
    let mut pause = PAUSE.0;
    loop {
        if let Some(claim) = descriptors.claim_later(PER_CONNECTION, &client) {
            return (client, claim);
        }
        sleep(pause).await;
        pause = (pause * 2).min(PAUSE.1);
    }
}

/// A task of its own for the connection; what is too many is closed at once.
fn take(client: TcpStream, peer: SocketAddr, scheme: Scheme, claim: Claim, shared: &Arc<Shared>) {
    if shared.connections.len() >= shared.context.limits.connections {
        return;
    }
    let Ok(local) = client.local_addr() else { return };
    let (shared, socket) = (Arc::clone(shared), Socket::new(client));
    let tracker = shared.connections.clone();
    tracker.spawn(async move {
        let _claim = claim;
        let reset = socket.clone();
        tokio::select! {
            biased;
            () = connection(socket, (peer, local), scheme, &shared) => {}
            () = shared.cut.cancelled() => reset.reset_on_close(),
        }
    });
}

/// One connection. What it needs to speak TLS is boxed: this future is what an idle one costs.
async fn connection(socket: Socket, ends: (SocketAddr, SocketAddr), scheme: Scheme, shared: &Shared) {
    match (scheme, &shared.tls) {
        (Scheme::Http, _) => {
            serve1::serve(socket, ends.0, ends.1, scheme, Arc::clone(&shared.context), Vec::new(), None).await;
        }
        (Scheme::Https, Some(tls)) => Box::pin(secured(socket, ends, tls, shared)).await,
        (Scheme::Https, None) => {}
    }
}

/// One connection from its handshake on.
async fn secured(socket: Socket, (peer, local): (SocketAddr, SocketAddr), tls: &Arc<Tls>, shared: &Shared) {
    let (scheme, context) = (Scheme::Https, Arc::clone(&shared.context));
    let until = Instant::now() + tls.hello;
    let conn = match Box::pin(tls.accept(socket.clone())).await {
        Ok(conn) => conn,
        Err(TlsProblem::PlainHttp) => {
            // One deadline for both: a client that has not asked by then is not answered.
            let _ = timeout_at(until, plain::answer(socket, local.port(), tls, &context)).await;
            return;
        }
        // Who is not served was told by the handshake.
        Err(_) => return,
    };
    let (stream, covered) = (conn.stream, Some(conn.covered));
    match conn.alpn {
        Alpn::H1 => Box::pin(serve1::serve(stream, peer, local, scheme, context, Vec::new(), covered)).await,
        Alpn::H2 => Box::pin(h2::serve(stream, Ends { peer, local, scheme, covered }, context, Vec::new())).await,
    }
}

async fn retry_half(bound: &mut Bound, door: &Door) {
    let Some(half) = other_half(bound.addr) else { return };
    match listen(half) {
        Ok(listener) => {
            door.add(&listener);
            bound.listeners.push(listener);
            bound.missing_half = None;
        }
        Err(error) => {
            // Naming the holder walks the process table: not on a thread that serves.
            let clause = tokio::task::spawn_blocking(move || describe_missing(&error)).await;
            bound.missing_half = clause.ok().or(bound.missing_half.take());
        }
    }
    door.misses(bound.missing_half.as_deref());
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::conn::ledger::Ledger;
    use crate::conn::{self, NoFleet};
    use crate::http::{Limits, Routes};

    #[tokio::test]
    async fn what_an_idle_connection_keeps_is_below_one_and_a_half_kib() {
        let conn = conn::Context::new(Arc::new(NoFleet), Ledger::new());
        let context = HttpContext::new(Arc::new(Routes::default()), conn, Arc::default(), None, Limits::default());
        let shared = Shared::new(Arc::new(context), None);
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let local = listener.local_addr().unwrap();
        let client = TcpStream::connect(local).await.unwrap();
        for scheme in [Scheme::Http, Scheme::Https] {
            let stream = Socket::new(TcpStream::connect(local).await.unwrap());
            let size = size_of_val(&connection(stream, (client.local_addr().unwrap(), local), scheme, &shared));
            assert!(size <= 1536, "{size} bytes of {scheme:?}");
        }
    }
}

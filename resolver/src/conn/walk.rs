//! One connection through the five steps.
use super::descriptors::Claim;
use super::dial::{self, DialError, Upstream};
use super::lanes::Place;
use super::ledger::{Entry, Outcome, Refusal};
use super::shared::Shared;
use super::{Backend, bind, copy, refusal};
use stado_fleet::directory::Route;
use stado_fleet::fault::Blame;
use std::future::poll_fn;
use std::net::SocketAddr;
use std::pin::pin;
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;
use tokio::io::Interest;
use tokio::net::TcpStream;
use tokio::time::{Instant, sleep};

/// A dial that takes longer is watched for the client's leaving; shorter ones are not worth a look.
const BLINK: Duration = Duration::from_millis(20);
/// For the news of a move to come here.
const NEWS: Duration = Duration::from_secs(1);
/// Bytes of a client that are taken while its backend is still being opened.
const EARLY: usize = 16 << 10;

/// Lets a connection in, or closes it at once: no backend, or the service is full.
pub(super) fn admit(
    client: &std::net::TcpStream,
    peer: SocketAddr,
    backend: &Backend,
    shared: &Shared,
) -> Option<Entry> {
    // An adapter's client learns why, in the way of any refusal; a mesh frontend just closes.
    if matches!(backend, Backend::None(_)) && shared.id.consumer.is_none() {
        shared.slot.refuse(Refusal::NoBackend);
        return None;
    }
    // A command that looks whether this adapter accepts has seen it, and its service is left alone.
    if shared.id.consumer.is_some() && shared.context.ledger.only_looks(peer) {
        return None;
    }
    if !bind::INHERITS_NODELAY {
        // A socket without NODELAY still works; the connection is worth more than the option.
        let _ = client.set_nodelay(true);
    }
    let limits = &shared.context.limits;
    Entry::open(&shared.context.ledger, &shared.slot, &shared.id, backend, peer, limits.connections)
}

/// Leads an admitted connection to its end, or to the daemon's. `place`: its place on a lane, for as long as it lives.
#[expect(
    clippy::manual_async_fn,
    reason = "an async fn would keep each argument twice for as long as the connection lives"
)]
pub(super) fn connection(
    client: std::net::TcpStream,
    backend: Arc<Backend>,
    mut entry: Entry,
    claim: Claim,
    place: Option<Place>,
    shared: Arc<Shared>,
) -> impl Future<Output = ()> + Send {
    async move {
        let _held = &place;
        // The runtime that carries the connection watches its sockets. One that cannot is out of memory: it is cut.
        let Ok(client) = TcpStream::from_std(client) else { return };
        let (mut watch, mut watched) = (pin!(shared.cut.watch()), false);
        let mut walk = pin!(walk(client, &backend, &mut entry, claim, &shared));
        poll_fn(|cx| match shared.cut.poll(watch.as_mut(), &mut watched, cx) {
            Poll::Ready(()) => Poll::Ready(()),
            Poll::Pending => walk.as_mut().poll(cx),
        })
        .await;
    }
}

async fn walk(client: TcpStream, backend: &Backend, entry: &mut Entry, mut claim: Claim, shared: &Shared) {
    let mut early = Vec::new();
    entry.opening();
    let mut reached = Box::pin(reach(&client, backend, entry, shared, &mut early)).await;
    let mut elsewhere = None;
    if let Err(Unreached::Refused(error)) = &reached
        && error.may_be_old_news()
    {
        elsewhere = Box::pin(moved(backend, shared)).await;
        if let Some(now) = &elsewhere {
            reached = Box::pin(reach(&client, now, entry, shared, &mut early)).await;
        }
    }
    let backend = elsewhere.as_deref().unwrap_or(backend);
    match reached {
        Ok(upstream) => {
            if matches!(upstream, Upstream::Remote(_)) {
                claim.keep(1);
            }
            entry.opened();
            log_opened(backend, shared);
            copy::relay(&client, upstream, early, entry, &shared.context).await;
            log_broken(backend, entry, shared);
        }
        Err(Unreached::ClientLeft) => entry.end(Outcome::ClientReset, Some(Blame::Caller)),
        // Boxed like everything rare: a future is as large as its largest part, for as long as the connection lives.
        Err(Unreached::Refused(error)) => Box::pin(refuse(client, &error, &early, backend, entry, shared)).await,
    }
}

enum Unreached {
    ClientLeft,
    Refused(DialError),
}

/// Where the service is now, if this host hears in a moment that it moved: the host that was left may hear of it first, and then
/// takes nobody in any more.
async fn moved(from: &Backend, shared: &Shared) -> Option<Arc<Backend>> {
    news(|| Some(shared.backend.load_full()).filter(|now| now.is_elsewhere(from))).await
}

/// What is `found` once it is, within the time that news of a move may take.
pub(crate) async fn news<T>(found: impl Fn() -> Option<T>) -> Option<T> {
    let until = Instant::now() + NEWS;
    loop {
        let now = found();
        if now.is_some() || Instant::now() >= until {
            return now;
        }
        sleep(BLINK).await;
    }
}

/// Dials, and meanwhile listens whether the client is still there.
async fn reach(
    client: &TcpStream,
    backend: &Backend,
    entry: &mut Entry,
    shared: &Shared,
    early: &mut Vec<u8>,
) -> Result<Upstream, Unreached> {
    let asker = shared.asker();
    let mut dial = std::pin::pin!(dial::dial(backend, &asker));
    tokio::select! {
        biased;
        reached = &mut dial => return reached.map_err(Unreached::Refused),
        () = sleep(BLINK) => {}
    }
    tokio::select! {
        biased;
        reached = dial => reached.map_err(Unreached::Refused),
        () = Box::pin(client_resets(client, entry, early)) => Err(Unreached::ClientLeft),
    }
}

/// Takes the first bytes, notes the end of the client's stream, and returns only when the connection is reset.
async fn client_resets(client: &TcpStream, entry: &mut Entry, early: &mut Vec<u8>) {
    let mut chunk = [0u8; 1024];
    while early.len() < EARLY {
        if client.readable().await.is_err() {
            return;
        }
        match client.try_read(&mut chunk) {
            Ok(0) => {
                entry.client_ended();
                break;
            }
            Ok(n) => {
                early.extend_from_slice(chunk.get(..n).unwrap_or_default());
                entry.sent_early();
            }
            Err(error) if error.kind() == std::io::ErrorKind::WouldBlock => {}
            Err(_) => return,
        }
    }
    // Nothing more is read until the backend is there: only an error can say more.
    let _ = client.ready(Interest::ERROR).await;
}

async fn refuse(
    client: TcpStream,
    error: &DialError,
    early: &[u8],
    backend: &Backend,
    entry: &mut Entry,
    shared: &Shared,
) {
    let cause = error.to_string();
    let why = match error {
        DialError::Loop(_) => Refusal::Loop,
        DialError::NoBackend(_) => Refusal::NoBackend,
        _ => Refusal::Unreachable,
    };
    let answered = !matches!(error, DialError::Silent(..) | DialError::Unanswered { .. });
    entry.refused(why, &cause, error.fault(), answered);
    log_refused(&cause, backend, shared);
    refusal::close(client, early, shared.id.consumer.is_some(), error.is_reset()).await;
}

/// The line of fleet contract §4.5 for every adapter connection.
fn log_opened(backend: &Backend, shared: &Shared) {
    if let (Backend::Fleet(route), Some(consumer)) = (backend, &shared.id.consumer) {
        let (service, generation, host) = (&shared.id.service, shared.context.generation.get(), &route.active_host);
        tracing::info!(target: "stado::fleet", "stado resolver service={service} consumer={consumer} generation={generation} destination={host}");
    }
}

/// A relay that the far end broke, in the words of fleet contract §4.5.
fn log_broken(backend: &Backend, entry: &Entry, shared: &Shared) {
    if let (Backend::Fleet(route), Some(consumer), Some((cause, ms, session_lost))) =
        (backend, &shared.id.consumer, entry.broken())
    {
        let (service, endpoint) = (&shared.id.service, route.endpoint.addr);
        let session = of_the_session(route, session_lost);
        tracing::info!(target: "stado::fleet", "stado resolver service={service} consumer={consumer} proxy to {endpoint} failed: {cause} after {ms} ms{session}");
    }
}

/// Whether one channel failed or all of them; nothing for a service of this host, which has no session.
fn of_the_session(route: &Route, lost: bool) -> String {
    if route.local {
        return String::new();
    }
    let how = match lost {
        false => "still open, so the service end closed this one channel",
        true => "closed, so every channel on it failed together",
    };
    format!("; the SSH session to \"{}\" is {how}", route.active_host)
}

fn log_refused(cause: &str, backend: &Backend, shared: &Shared) {
    let service = &shared.id.service;
    match (backend, &shared.id.consumer) {
        (Backend::Fleet(route), Some(consumer)) => {
            let endpoint = route.endpoint.addr;
            tracing::warn!(target: "stado::fleet", "stado resolver service={service} consumer={consumer} endpoint={endpoint} refused connection: {cause}");
        }
        (Backend::None(reason), Some(consumer)) => {
            tracing::warn!(target: "stado::fleet", "stado resolver service={service} consumer={consumer} endpoint=- refused connection: {reason}");
        }
        (Backend::Local(addr), _) => {
            tracing::warn!(target: "stado::mesh", service = %service, frontend = %shared.id.bind, backend = %addr, error = cause, "tcp_dial_failed");
        }
        _ => {
            tracing::debug!(target: "stado::mesh", service = %service, frontend = %shared.id.bind, cause, "connection_refused");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::support::{Rig, local};
    use super::*;

    #[test]
    fn a_failed_relay_says_whether_its_session_went_with_it() {
        let far = Route {
            service: "svc".parse().unwrap(),
            active_host: "gpu-box".parse().unwrap(),
            endpoint: stado_fleet::name::Endpoint {
                scheme: stado_fleet::name::Scheme::Tcp,
                addr: "127.0.0.1:8080".parse().unwrap(),
            },
            capabilities: Vec::new(),
            paths: [].into(),
            local: false,
            stado_command: None,
        };
        assert_eq!(
            of_the_session(&far, false),
            "; the SSH session to \"gpu-box\" is still open, so the service end closed this one channel"
        );
        assert_eq!(
            of_the_session(&far, true),
            "; the SSH session to \"gpu-box\" is closed, so every channel on it failed together"
        );
        assert_eq!(of_the_session(&Route { local: true, ..far }, true), "");
    }

    #[tokio::test]
    async fn a_connection_costs_less_than_two_kib_beside_its_sockets() {
        let rig = Rig::mesh(local("127.0.0.1:1".parse().unwrap()));
        let shared = rig.frontend().shared();
        let backend = shared.backend.load_full();
        let client = rig.connect().await.into_std().unwrap();
        let entry = admit(&client, rig.addr, &backend, shared).unwrap();
        let claim = shared.context.descriptors.count(2);
        let size = size_of_val(&connection(client, backend, entry, claim, None, Arc::clone(shared)));
        eprintln!("{size} bytes");
        assert!(size < 1536, "{size} bytes");
    }
}

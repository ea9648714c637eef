//! Sessions with backends that speak HTTP/2, kept for the next request.
use super::super::far::Far;
use super::super::upstream::reach_there;
use super::super::{HttpContext, Site};
use crate::conn::{Backend, DialError};
use bytes::Bytes;
use h2::Ping;
use h2::client::{self, SendRequest};
use std::collections::HashMap;
use std::pin::Pin;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::time::{Instant, sleep, timeout};

/// Sessions of one backend at a time; when all are full, requests wait for a stream.
const MOST: usize = 16;

/// What a side grants for one stream, and for all streams of a connection: one that is not read must not stop the others.
pub(super) const STREAM_WINDOW: u32 = 256 << 10;
pub(super) const CONNECTION_WINDOW: u32 = 32 << 20;

/// All sessions of the router.
#[derive(Debug, Default)]
pub(in crate::http) struct Sessions(Mutex<HashMap<Key, Arc<Place>>>);

/// Why there is no session.
pub(super) enum Unreached {
    Dial(DialError),
    /// Something listens there, and HTTP/2 is not what it speaks.
    Silent(String),
}

/// A service, and its consumer for an adapter of the fleet.
type Key = (Arc<str>, Option<Arc<str>>);

/// The sessions of one service. One dial at a time: who waited finds the session that was made meanwhile.
#[derive(Debug, Default)]
struct Place {
    open: Mutex<Vec<Session>>,
    dialling: tokio::sync::Mutex<()>,
    made: AtomicU64,
}

#[derive(Debug)]
struct Session {
    backend: Backend,
    send: SendRequest<Bytes>,
    streams: Arc<AtomicUsize>,
    used: Instant,
    id: u64,
}
impl Session {
    fn lease(&mut self) -> Lease {
        self.used = Instant::now();
        self.streams.fetch_add(1, Ordering::Relaxed);
        Lease { send: self.send.clone(), streams: Arc::clone(&self.streams) }
    }
    fn streams(&self) -> usize {
        self.streams.load(Ordering::Relaxed)
    }
}

/// A session for one stream; the stream is counted until it is dropped.
#[derive(Debug)]
pub(super) struct Lease {
    pub(super) send: SendRequest<Bytes>,
    streams: Arc<AtomicUsize>,
}
impl Drop for Lease {
    fn drop(&mut self) {
        self.streams.fetch_sub(1, Ordering::Relaxed);
    }
}

impl Sessions {
    /// A session that can take a stream now. `fresh`: a new one, for a repetition.
    pub(super) async fn take(&self, site: &Site, ctx: &HttpContext, fresh: bool) -> Result<Lease, Unreached> {
        let place = self.place(site);
        if !fresh && let Some(lease) = place.free(&site.backend) {
            return Ok(lease);
        }
        let _turn = place.dialling.lock().await;
        if !fresh && let Some(lease) = place.free(&site.backend) {
            return Ok(lease);
        }
        // What it reaches is kept for this very backend.
        let reached = reach_there(site, ctx).await.map_err(Unreached::Dial)?;
        place.start(site, reached.far, ctx.limits.backend_idle).await
    }

    /// Sessions that are open.
    #[cfg(test)]
    pub(super) fn open(&self) -> usize {
        let places = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        places.values().map(|place| place.open().len()).sum()
    }

    fn place(&self, site: &Site) -> Arc<Place> {
        let key = (site.service.clone(), site.consumer.clone());
        Arc::clone(self.0.lock().unwrap_or_else(PoisonError::into_inner).entry(key).or_default())
    }
}

impl Place {
    /// The session to this very backend that has most room; one that is full only when there may be no more.
    fn free(&self, backend: &Backend) -> Option<Lease> {
        let mut open = self.open();
        // A backend that moved keeps the streams that it has.
        open.retain(|session| same(&session.backend, backend));
        let most = open.len() >= MOST;
        let room = |session: &Session| session.send.current_max_send_streams().saturating_sub(session.streams());
        let session = open.iter_mut().max_by_key(|session| room(session))?;
        if room(session) == 0 && !most {
            return None;
        }
        Some(session.lease())
    }

    async fn start(self: &Arc<Self>, site: &Site, far: Far, idle: Duration) -> Result<Lease, Unreached> {
        let mut builder = client::Builder::new();
        builder
            .enable_push(false)
            .initial_window_size(STREAM_WINDOW)
            .initial_connection_window_size(CONNECTION_WINDOW)
            .max_send_buffer_size(STREAM_WINDOW as usize);
        let (send, connection) = match timeout(site.budget, begin(&builder, far)).await {
            Ok(Ok(pair)) => pair,
            Ok(Err(error)) => return Err(Unreached::Silent(format!("HTTP/2 could not be begun: {error}"))),
            Err(_) => return Err(Unreached::Silent("HTTP/2 could not be begun in time".to_owned())),
        };
        let id = self.made.fetch_add(1, Ordering::Relaxed);
        let streams = Arc::default();
        let mut session = Session { backend: site.backend.clone(), send, streams, used: Instant::now(), id };
        let lease = session.lease();
        self.open().push(session);
        let place = Arc::clone(self);
        let service = site.service.clone();
        tokio::spawn(async move {
            let mut connection = connection;
            let ended = loop {
                tokio::select! {
                    ended = &mut connection => break ended,
                    () = sleep(idle) => place.drop_idle(id, idle),
                }
            };
            place.open().retain(|session| session.id != id);
            if let Err(error) = ended {
                tracing::debug!(target: "stado::mesh", %service, %error, "h2_backend_session_ended");
            }
        });
        Ok(lease)
    }

    /// Lets a session go that no request has used for so long: its connection ends with it.
    fn drop_idle(&self, id: u64, idle: Duration) {
        let busy = |session: &Session| session.streams() > 0 || session.used.elapsed() < idle;
        self.open().retain(|session| session.id != id || busy(session));
    }

    fn open(&self) -> MutexGuard<'_, Vec<Session>> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

type Begun = (SendRequest<Bytes>, Pin<Box<client::Connection<Far, Bytes>>>);

/// The engine's handshake waits for no word of the backend. A ping comes back behind its settings: then it is known that HTTP/2
/// is spoken there, how many streams it takes, and whether it takes WebSockets.
async fn begin(builder: &client::Builder, far: Far) -> Result<Begun, String> {
    let words = |error: h2::Error| error.to_string();
    let (send, connection) = builder.handshake(far).await.map_err(words)?;
    let mut connection = Box::pin(connection);
    let Some(mut ping) = connection.ping_pong() else { return Ok((send, connection)) };
    let ended = tokio::select! {
        pong = ping.ping(Ping::opaque()) => return pong.map(|_| (send, connection)).map_err(words),
        ended = &mut connection => ended,
    };
    Err(ended.map_or_else(words, |()| "the backend closed the connection".to_owned()))
}

fn same(a: &Backend, b: &Backend) -> bool {
    match (a, b) {
        (Backend::Local(a), Backend::Local(b)) => a == b,
        (Backend::Fleet(a), Backend::Fleet(b)) => a == b,
        _ => false,
    }
}

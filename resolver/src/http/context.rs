//! What every connection of the router sees.
use super::access::Observer;
use super::config::Limits;
use super::h2::Sessions;
use super::head::Hop;
use super::hostname;
use super::own::Own;
use super::page::Problem;
use super::pool::Pool;
use super::serve1::Scheme;
use super::table::Routes;
use crate::conn;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use tokio_util::sync::{CancellationToken, WaitForCancellationFutureOwned};

/// After a hand-over: how long a client may still send one more request on a connection that was kept for it. Whoever is in
/// the middle of its work is answered, and told to open another connection, instead of finding this one closed under it.
const FAREWELL: Duration = Duration::from_secs(5);

/// Hostnames that an unknown one is answered with.
const KNOWN: usize = 20;

/// Shared by all listeners and connections of a router.
#[derive(Debug)]
pub struct HttpContext {
    /// Where requests go.
    pub routes: Arc<Routes>,
    /// Dialling, the ledger, descriptors.
    pub conn: conn::Context,
    /// Connections to backends that wait for a request.
    pub pool: Pool,
    /// What is told of every answer.
    pub observer: Arc<Observer>,
    /// Who answers for our own host; without one that host is unknown.
    pub own: Option<Arc<dyn Own>>,
    /// Bounds and deadlines.
    pub limits: Limits,
    /// Sessions with backends that speak HTTP/2.
    pub(super) sessions: Sessions,
    pub(super) hop: Hop,
    draining: AtomicBool,
    drain: CancellationToken,
    parted: CancellationToken,
}

impl HttpContext {
    /// A context with no connections yet.
    pub fn new(
        routes: Arc<Routes>,
        conn: conn::Context,
        observer: Arc<Observer>,
        own: Option<Arc<dyn Own>>,
        limits: Limits,
    ) -> Self {
        Self {
            routes,
            conn,
            pool: Pool::default(),
            observer,
            own,
            limits,
            sessions: Sessions::default(),
            hop: Hop::new(),
            draining: AtomicBool::new(false),
            drain: CancellationToken::new(),
            parted: CancellationToken::new(),
        }
    }

    /// What a client that reached us by `scheme` on `port` is told of a host that no service has.
    pub(super) fn unknown_host(&self, asked: &str, scheme: Scheme, port: u16) -> Problem {
        let index = hostname::url(scheme.as_str(), hostname::OWN, port);
        Problem::UnknownHost { asked: asked.to_owned(), known: self.routes.load().known(KNOWN), index }
    }

    /// From now on a connection ends with the answer that it is about, and one without a request at once.
    pub(super) fn drain(&self) {
        self.draining.store(true, Ordering::Relaxed);
        self.drain.cancel();
        self.parted.cancel();
    }
    /// The same, but a connection without a request may still bring one for a moment. Must run inside a runtime.
    pub(super) fn part(&self) {
        self.draining.store(true, Ordering::Relaxed);
        self.drain.cancel();
        let parted = self.parted.clone();
        tokio::spawn(async move {
            tokio::time::sleep(FAREWELL).await;
            parted.cancel();
        });
    }
    /// Whether connections end with their answer.
    pub(super) fn is_draining(&self) -> bool {
        self.draining.load(Ordering::Relaxed)
    }
    /// Whether connections without a request end.
    pub(super) fn has_parted(&self) -> bool {
        self.parted.is_cancelled()
    }
    /// Returns once they do.
    pub(super) fn parted(&self) -> WaitForCancellationFutureOwned {
        self.parted.clone().cancelled_owned()
    }
    /// Returns once connections end with their answer.
    pub(super) fn drained(&self) -> WaitForCancellationFutureOwned {
        self.drain.clone().cancelled_owned()
    }
}

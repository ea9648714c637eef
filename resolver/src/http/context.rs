//! What every connection of the router sees.
use super::access::Observer;
use super::config::Limits;
use super::h2::Sessions;
use super::head::Hop;
use super::own::Own;
use super::pool::Pool;
use super::table::Routes;
use crate::conn;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use tokio_util::sync::{CancellationToken, WaitForCancellationFutureOwned};

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
        }
    }

    /// From now on a connection ends with the answer that it is about.
    pub(super) fn drain(&self) {
        self.draining.store(true, Ordering::Relaxed);
        self.drain.cancel();
    }
    /// Whether connections end with their answer.
    pub(super) fn is_draining(&self) -> bool {
        self.draining.load(Ordering::Relaxed)
    }
    /// Returns once they do.
    pub(super) fn drained(&self) -> WaitForCancellationFutureOwned {
        self.drain.clone().cancelled_owned()
    }
}

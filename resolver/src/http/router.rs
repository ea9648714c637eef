//! The running router: its listeners, its connections, and how they end.
use super::HttpContext;
use super::door::Door;
use super::listen::{self, Shared};
use super::serve1::Scheme;
use super::tls::Tls;
use crate::conn::{Bound, Lent};
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::watch;
use tokio::task::JoinHandle;
use tokio::time::{MissedTickBehavior, interval, timeout};
use tokio_util::sync::{CancellationToken, DropGuard};

/// How often connections to backends are looked at that nobody uses.
const SWEEP: Duration = Duration::from_secs(1);

/// A bound port, and what is spoken there.
#[derive(Debug)]
pub struct Listener {
    /// The port.
    pub bound: Bound,
    /// In clear or over TLS.
    pub scheme: Scheme,
}

/// A running router. Dropping it closes its listeners and leaves open connections alone.
#[derive(Debug)]
pub struct Router {
    shared: Arc<Shared>,
    running: Vec<Running>,
    _sweeping: DropGuard,
}
struct Running {
    addr: SocketAddr,
    scheme: Scheme,
    accepting: JoinHandle<Bound>,
    door: Arc<Door>,
}

impl std::fmt::Debug for Running {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Running").field("addr", &self.addr).field("scheme", &self.scheme).finish_non_exhaustive()
    }
}

impl Router {
    /// Starts accepting on every listener; those over TLS need `tls`. Must run inside a tokio runtime.
    pub fn start(context: Arc<HttpContext>, listeners: Vec<Listener>, tls: Option<Arc<Tls>>) -> Self {
        let shared = Arc::new(Shared::new(context, tls));
        let running = listeners.into_iter().map(|Listener { bound, scheme }| {
            let addr = bound.addr;
            shared.context.conn.own.enter(addr, "the router".into());
            let door = Door::new(&bound);
            let accepting = tokio::spawn(listen::run(bound, scheme, Arc::clone(&shared), Arc::clone(&door)));
            Running { addr, scheme, accepting, door }
        });
        let running = running.collect();
        let sweeping = CancellationToken::new();
        tokio::spawn(sweep(Arc::clone(&shared.context), sweeping.clone()));
        Self { shared, running, _sweeping: sweeping.drop_guard() }
    }

    /// What connections see.
    pub fn context(&self) -> &Arc<HttpContext> {
        &self.shared.context
    }

    /// Where it listens, and what is spoken there.
    pub fn local_addrs(&self) -> impl Iterator<Item = (SocketAddr, Scheme)> {
        self.running.iter().map(|running| (running.addr, running.scheme))
    }

    /// The listeners of each address, to hand them over to another process.
    pub fn lend(&self) -> Vec<(SocketAddr, Vec<Lent>)> {
        self.running.iter().map(|running| (running.addr, running.door.lend())).collect()
    }

    /// What keeps the other loopback half of each address from us, as it changes; it is tried again and again.
    pub fn halves(&self) -> Vec<(SocketAddr, watch::Receiver<Option<String>>)> {
        self.running.iter().map(|running| (running.addr, running.door.half())).collect()
    }

    /// Connections of clients now.
    pub fn connections(&self) -> usize {
        self.shared.connections.len()
    }

    /// Stops accepting and gives the listeners back, still open: somebody else has them. Connections end with their next
    /// answer, or, when they are another protocol's, go on to their own end; see [`Self::close`].
    pub async fn release(&mut self) -> Vec<Listener> {
        let listeners = self.stop().await;
        self.shared.context.part();
        listeners
    }

    async fn stop(&mut self) -> Vec<Listener> {
        self.shared.stop.cancel();
        let mut listeners = Vec::new();
        for Running { addr, scheme, accepting, door } in self.running.drain(..) {
            self.shared.context.conn.own.leave(addr);
            door.close();
            // An error would mean that the loop panicked: its listeners are closed then as well.
            if let Ok(bound) = accepting.await {
                listeners.push(Listener { bound, scheme });
            }
        }
        listeners
    }

    /// Stops accepting at once, lets every connection finish its answer for up to `grace`, then resets the rest.
    pub async fn close(mut self, grace: Duration) {
        drop(self.stop().await);
        self.shared.context.drain();
        self.shared.connections.close();
        if timeout(grace, self.shared.connections.wait()).await.is_err() {
            self.shared.cut.cancel();
            self.shared.connections.wait().await;
        }
        self.shared.context.pool.clear();
    }
}
impl Drop for Router {
    fn drop(&mut self) {
        self.shared.stop.cancel();
        for running in &self.running {
            self.shared.context.conn.own.leave(running.addr);
        }
    }
}

async fn sweep(context: Arc<HttpContext>, stop: CancellationToken) {
    let mut ticks = interval(SWEEP);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    while stop.run_until_cancelled(ticks.tick()).await.is_some() {
        context.pool.sweep(context.limits.backend_idle);
    }
    context.pool.clear();
}

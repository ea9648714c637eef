//! What the accept loop and every connection of a frontend see.
use super::bind::Lendable;
use super::cut::Cut;
use super::dial::Asker;
use super::ledger::Slot;
use super::{Backend, Context, FrontendId};
use arc_swap::ArcSwap;
use std::sync::atomic::AtomicU8;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::runtime::Handle;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

/// One frontend, as its listeners and its connections know it. Each of them holds it, so it lives until the last stream ends.
#[derive(Debug)]
pub(super) struct Shared {
    pub(super) id: Arc<FrontendId>,
    pub(super) backend: ArcSwap<Backend>,
    pub(super) budget: Duration,
    pub(super) context: Context,
    pub(super) slot: Arc<Slot>,
    /// Which loopback family answered last for a backend named `localhost`.
    pub(super) answered_last: AtomicU8,
    pub(super) connections: TaskTracker,
    pub(super) stop: CancellationToken,
    pub(super) cut: Cut,
    /// Where the frontend was started: streams to other hosts are carried there, unless their sessions have threads of their
    /// own.
    pub(super) home: Handle,
    missing_half: Mutex<Option<String>>,
    /// The listeners, while they are open.
    pub(super) lendable: Lendable,
}
impl Shared {
    /// Must run inside a tokio runtime.
    pub(super) fn new(
        id: FrontendId,
        backend: Backend,
        budget: Duration,
        missing_half: Option<String>,
        context: Context,
    ) -> Self {
        Self {
            slot: context.ledger.slot(&id),
            id: Arc::new(id),
            backend: ArcSwap::from_pointee(backend),
            budget,
            answered_last: AtomicU8::new(0),
            connections: TaskTracker::new(),
            stop: CancellationToken::new(),
            cut: Cut::default(),
            home: Handle::current(),
            missing_half: Mutex::new(missing_half),
            lendable: Lendable::default(),
            context,
        }
    }
    pub(super) fn asker(&self) -> Asker<'_> {
        Asker {
            id: &self.id,
            budget: self.budget,
            answered_last: &self.answered_last,
            own: &self.context.own,
            dialer: &*self.context.dialer,
        }
    }
    /// The thread where the sessions to a backend on another host live, when they have one of their own.
    pub(super) fn beside(&self, backend: &Backend) -> Option<Handle> {
        match backend {
            Backend::Fleet(route) if !route.local => self.context.dialer.runtime(route),
            _ => None,
        }
    }
    pub(super) fn set_missing_half(&self, clause: Option<String>) {
        *self.missing_half.lock().unwrap_or_else(PoisonError::into_inner) = clause;
    }
    pub(super) fn missing_half(&self) -> Option<String> {
        self.missing_half.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
    pub(super) fn misses_a_half(&self) -> bool {
        self.missing_half.lock().unwrap_or_else(PoisonError::into_inner).is_some()
    }
    /// Waits up to `grace` for the connections to end, then resets the rest.
    pub(super) async fn end(&self, grace: Duration) {
        self.connections.close();
        if tokio::time::timeout(grace, self.connections.wait()).await.is_err() {
            self.cut.cut();
            self.connections.wait().await;
        }
    }
}

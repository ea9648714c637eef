//! A pause of all accept loops, for a hand-over: clients wait in the kernel's backlog, which is the successor's too.
//!
//! Without it the process that leaves could still take a connection after the other one has begun to serve, and lead it by
//! what was true before: to a backend that was replaced a moment ago, or to none.
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use tokio::sync::Notify;

/// Shared by the frontends of a daemon. Cheap to clone.
#[derive(Debug, Clone, Default)]
pub struct Hold(Arc<Inner>);

#[derive(Debug, Default)]
struct Inner {
    held: AtomicBool,
    released: Notify,
}

impl Hold {
    /// From now on nothing is accepted.
    pub(crate) fn hold(&self) {
        self.0.held.store(true, Ordering::SeqCst);
    }

    /// Goes on accepting.
    pub(crate) fn release(&self) {
        self.0.held.store(false, Ordering::SeqCst);
        self.0.released.notify_waiters();
    }

    /// Whether nothing is to be accepted. Asked before every accept.
    pub(crate) fn is_held(&self) -> bool {
        self.0.held.load(Ordering::SeqCst)
    }

    /// Waits until it is not held.
    pub(crate) async fn released(&self) {
        loop {
            // Made before the look, so that a release in between is not missed.
            let released = self.0.released.notified();
            if !self.is_held() {
                return;
            }
            released.await;
        }
    }
}

//! The handle of a running frontend.
use super::bind::{Bound, Lent};
use super::shared::Shared;
use super::{Backend, Context, FrontendId, accept, listener};
use std::sync::Arc;
use std::time::Duration;
use tokio::runtime::Handle;
use tokio::task::JoinHandle;

/// A running frontend: one task owns the listeners. Dropping it closes them and leaves open streams alone.
#[derive(Debug)]
pub struct Frontend {
    shared: Arc<Shared>,
    accepting: Option<JoinHandle<Bound>>,
}

impl Frontend {
    /// Starts accepting on `bound`. `budget` is the deadline of a dial or channel open (3 s for mesh services, 10 s or
    /// `connect_seconds` for adapters). A frontend with a consumer answers refused HTTP clients with the 502 of fleet
    /// contract §4.5; others are closed. Must run inside a tokio runtime.
    pub fn start(mut bound: Bound, id: FrontendId, backend: Backend, budget: Duration, context: Context) -> Self {
        let shared = Arc::new(Shared::new(id, backend, budget, bound.missing_half.clone(), context));
        shared.context.own.enter_frontend(&shared);
        // Here and not on the lane: a hand-over a moment later must find them.
        let listeners = bound.listeners.drain(..).filter_map(|bound| listener::unwatched(bound, &shared)).collect();
        // What is accepted where it is carried wakes no other thread.
        let (runtime, lane) = match shared.beside(&shared.backend.load()) {
            Some(beside) => (beside, None),
            None => {
                shared.context.lanes.next().map_or_else(|| (Handle::current(), None), |(runtime, n)| (runtime, Some(n)))
            }
        };
        let accepting = runtime.spawn(accept::run(bound, listeners, Arc::clone(&shared), lane));
        Self { shared, accepting: Some(accepting) }
    }

    /// Identity.
    pub fn id(&self) -> &FrontendId {
        &self.shared.id
    }

    /// Moves new connections only (an atomic store); open streams stay where they are.
    pub fn set_backend(&self, backend: Backend) {
        self.shared.backend.store(Arc::new(backend));
    }

    /// What new connections are given now.
    pub fn backend(&self) -> Arc<Backend> {
        self.shared.backend.load_full()
    }

    /// The missing half of a loopback pair, while it is missing (retried in the background).
    pub fn missing_half(&self) -> Option<String> {
        self.shared.missing_half()
    }

    /// The listeners, to hand them over to another process.
    pub fn lend(&self) -> Vec<Lent> {
        self.shared.lendable.lend()
    }

    /// Connections open now.
    pub fn active(&self) -> usize {
        self.shared.connections.len()
    }

    /// Stops accepting and returns when the port is free again; open streams go on to their own ends, which the returned
    /// handle can wait for or bring about. Dropping the handle leaves them alone.
    pub async fn retire(mut self) -> Ending {
        drop(self.stop_accepting().await);
        Ending { shared: Arc::clone(&self.shared) }
    }

    /// Stops accepting and gives the listeners back, still open: a frontend of another name can go on with them. Open
    /// streams go on to their own ends, as after [`Frontend::retire`].
    pub async fn release(mut self) -> (Option<Bound>, Ending) {
        let bound = self.stop_accepting().await;
        (bound, Ending { shared: Arc::clone(&self.shared) })
    }

    /// Stops accepting at once, waits up to `grace` for streams to end, then resets the rest.
    pub async fn close(mut self, grace: Duration) {
        drop(self.stop_accepting().await);
        self.shared.end(grace).await;
    }

    #[cfg(test)]
    pub(super) fn shared(&self) -> &Arc<Shared> {
        &self.shared
    }

    async fn stop_accepting(&mut self) -> Option<Bound> {
        self.shared.stop.cancel();
        self.shared.context.own.leave(self.shared.id.bind);
        // An error would mean that the loop panicked: its listeners are closed then as well.
        self.accepting.take()?.await.ok()
    }
}
/// The open streams of a frontend that no longer accepts.
#[derive(Debug)]
pub struct Ending {
    shared: Arc<Shared>,
}
impl Ending {
    /// Whose streams they are.
    pub fn id(&self) -> &FrontendId {
        &self.shared.id
    }
    /// Whether no stream is open any more.
    pub fn is_over(&self) -> bool {
        self.shared.connections.is_empty()
    }
    /// Ends the streams now.
    pub fn cut(&self) {
        self.shared.cut.cut();
    }
    /// Waits up to `grace` for the streams to end, then resets the rest.
    pub async fn close(self, grace: Duration) {
        self.shared.end(grace).await;
    }
}
impl Drop for Frontend {
    fn drop(&mut self) {
        self.shared.stop.cancel();
        if self.accepting.is_some() {
            self.shared.context.own.leave(self.shared.id.bind);
        }
    }
}

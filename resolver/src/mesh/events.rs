//! Changes as a stream: a snapshot first, then every change; a reader that falls behind gets a new snapshot.
use serde::Serialize;
use stado_fleet::name::ServiceName;
use stado_fleet::wire::Service;
use std::sync::{Arc, Mutex, PoisonError};
use tokio::sync::broadcast;

/// How many changes a reader may be behind before it gets a new snapshot instead.
const BACKLOG: usize = 1024;

/// One line of `GET /v1/events`.
#[derive(Debug, Clone, Serialize)]
#[serde(tag = "event", rename_all = "snake_case")]
pub enum Event {
    /// All services; the changes that follow apply to it.
    Snapshot {
        /// Sorted by name.
        services: Vec<Service>,
    },
    /// A service is new, or something about it changed.
    Changed {
        /// As in the list.
        service: Service,
    },
    /// A service is forgotten, or has another name now.
    Removed {
        /// Its name.
        name: ServiceName,
        /// Its new name, after a rename.
        #[serde(skip_serializing_if = "Option::is_none")]
        renamed_to: Option<ServiceName>,
    },
}

/// The sending side.
#[derive(Debug)]
pub(crate) struct Events {
    sender: broadcast::Sender<Arc<Event>>,
    turn: Mutex<()>,
}

impl Events {
    pub(crate) fn new() -> Self {
        Self { sender: broadcast::Sender::new(BACKLOG), turn: Mutex::new(()) }
    }

    /// Sends what `event` tells. Asking inside the turn makes the last event of a name tell its last state.
    pub(crate) fn send(&self, event: impl FnOnce() -> Option<Event>) {
        let _turn = self.turn.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(event) = event() {
            // Nobody listening is no error.
            let _ = self.sender.send(Arc::new(event));
        }
    }

    pub(crate) fn subscribe(&self) -> broadcast::Receiver<Arc<Event>> {
        self.sender.subscribe()
    }

    /// How many readers there are.
    pub(crate) fn readers(&self) -> usize {
        self.sender.receiver_count()
    }
}

/// The reading side: [`Changes::next`] begins with a snapshot.
#[derive(Debug)]
pub struct Changes {
    pub(crate) mesh: Arc<super::Mesh>,
    pub(crate) receiver: broadcast::Receiver<Arc<Event>>,
    pub(crate) whole: bool,
}

impl Changes {
    /// The next event; `None` when the mesh is gone.
    pub async fn next(&mut self) -> Option<Arc<Event>> {
        if std::mem::take(&mut self.whole) {
            return Some(Arc::new(Event::Snapshot { services: self.mesh.list() }));
        }
        match self.receiver.recv().await {
            Ok(event) => Some(event),
            Err(broadcast::error::RecvError::Closed) => None,
            Err(broadcast::error::RecvError::Lagged(_)) => {
                self.receiver = self.receiver.resubscribe();
                Some(Arc::new(Event::Snapshot { services: self.mesh.list() }))
            }
        }
    }
}

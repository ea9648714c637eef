//! What this host serves from now: one immutable value that the API, the gate and the loop read.
use crate::apply::plan::AdapterId;
use stado_fleet::admit::{Admission, Snapshot, admit};
use stado_fleet::directory::{Directory, NoRoute};
use stado_fleet::document::ResolverPolicy;
use stado_fleet::name::{ConsumerId, LogicalName, TargetName};
use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::watch;
use tokio::time::Instant;

/// An admitted snapshot, seen from this host.
#[derive(Debug, Clone)]
pub struct Held {
    /// The snapshot.
    pub snapshot: Snapshot,
    /// Its index for this host.
    pub directory: Arc<Directory>,
    /// This host.
    pub target: TargetName,
    /// This host's policy.
    pub policy: ResolverPolicy,
    /// When the authority last confirmed it (or when the copy was read from it).
    pub loaded_at: jiff::Timestamp,
    /// The same by the monotonic clock; `None` for a recovered copy, whose age only its wall clock knows.
    pub fresh_at: Option<Instant>,
    /// Adapters that are bound now.
    pub binds: Arc<BTreeMap<AdapterId, SocketAddr>>,
}

impl Held {
    /// Whether the snapshot is older than `max_stale_seconds`: still served, reported degraded (design, rule 2).
    pub fn stale(&self, now: jiff::Timestamp) -> bool {
        let window = Duration::from_secs(self.policy.max_stale_seconds);
        match self.fresh_at {
            Some(at) => at.elapsed() > window,
            None => now.duration_since(self.loaded_at).unsigned_abs() > window,
        }
    }

    /// Why the directory does not allow `consumer` the service. A service that cannot be reached now is allowed all the same.
    pub fn forbids(&self, service: &LogicalName, consumer: &ConsumerId) -> Option<String> {
        match self.directory.resolve(service.as_str(), consumer.as_str()) {
            Err(why @ (NoRoute::UnknownService(_) | NoRoute::NotAuthorized { .. })) => Some(why.to_string()),
            _ => None,
        }
    }

    /// Authority epoch, from 1 on.
    pub fn epoch(&self) -> Option<u64> {
        Some(self.snapshot.valid.registry.succession.epoch).filter(|epoch| *epoch > 0)
    }

    /// The bound adapter of (service, consumer), if this host has one.
    pub fn adapter(&self, service: &str, consumer: &str) -> Option<SocketAddr> {
        let same = |id: &&AdapterId| id.service.as_str() == service && id.consumer.as_str() == consumer;
        self.binds.keys().find(same).and_then(|id| self.binds.get(id)).copied()
    }
}

/// Reading side: `None` until a snapshot was admitted.
pub type HeldReader = watch::Receiver<Option<Arc<Held>>>;

/// How a snapshot came.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Arrival {
    /// Read from its source just now. `record`: it belongs into this host's copy.
    Read {
        /// Whether the copy is to follow.
        record: bool,
    },
    /// In force in a process that handed over.
    Handed {
        /// When the authority last confirmed it.
        loaded_at: jiff::Timestamp,
        /// How long ago that was, for one that was not recovered.
        age: Option<Duration>,
    },
    /// This host's copy, as old as it says.
    Recovered {
        /// When it was read from the authority.
        read_at: jiff::Timestamp,
    },
}

/// May `snapshot` replace what is held? The very same value was admitted before.
pub(super) fn admission(before: Option<&Held>, snapshot: &Snapshot) -> Result<Admission, String> {
    match before {
        Some(held) if Arc::ptr_eq(&held.snapshot.valid, &snapshot.valid) => Ok(Admission::Unchanged),
        before => admit(before.map(|held| &held.snapshot), snapshot).map_err(|refused| refused.to_string()),
    }
}

/// The value that follows `before`.
pub(super) fn next(
    before: Option<&Held>,
    snapshot: Snapshot,
    admission: Admission,
    target: TargetName,
    policy: ResolverPolicy,
    arrival: Arrival,
) -> Held {
    let unchanged = before.filter(|held| admission == Admission::Unchanged && held.target == target);
    let directory = match unchanged {
        Some(held) => held.directory.clone(),
        None => Arc::new(Directory::build(snapshot.valid.registry.clone(), target.clone())),
    };
    let (loaded_at, fresh_at) = match arrival {
        Arrival::Read { .. } => (jiff::Timestamp::now(), Some(Instant::now())),
        Arrival::Handed { loaded_at, age } => {
            (loaded_at, age.map(|age| Instant::now().checked_sub(age).unwrap_or_else(Instant::now)))
        }
        Arrival::Recovered { read_at } => (read_at, None),
    };
    let binds = before.map(|held| held.binds.clone()).unwrap_or_default();
    Held { snapshot, directory, target, policy, loaded_at, fresh_at, binds }
}

//! One change to a name at a time. A fixed number of locks serves all names: two names on one lock only wait for each other.
use std::hash::{DefaultHasher, Hash, Hasher};
use tokio::sync::{Mutex, MutexGuard};

/// Asynchronous locks by key; held across binds and disk, never on a path that serves.
#[derive(Debug)]
pub(crate) struct Stripes {
    locks: Vec<Mutex<()>>,
}

impl Stripes {
    pub(crate) fn new() -> Self {
        Self { locks: (0..64).map(|_| Mutex::new(())).collect() }
    }

    /// Waits until no one else changes `key`.
    pub(crate) async fn lock(&self, key: &str) -> Vec<MutexGuard<'_, ()>> {
        self.lock_all(&[key]).await
    }

    /// Waits for several keys, in an order that cannot deadlock.
    pub(crate) async fn lock_all(&self, keys: &[&str]) -> Vec<MutexGuard<'_, ()>> {
        let mut places: Vec<usize> = keys.iter().map(|key| self.place(key)).collect();
        places.sort_unstable();
        places.dedup();
        let mut guards = Vec::with_capacity(places.len());
        for lock in places.into_iter().filter_map(|place| self.locks.get(place)) {
            guards.push(lock.lock().await);
        }
        guards
    }

    /// The lock of `key`, if nobody holds it.
    pub(crate) fn try_lock(&self, key: &str) -> Option<MutexGuard<'_, ()>> {
        self.locks.get(self.place(key)).and_then(|lock| lock.try_lock().ok())
    }

    fn place(&self, key: &str) -> usize {
        let mut hasher = DefaultHasher::new();
        key.hash(&mut hasher);
        (hasher.finish() % self.locks.len() as u64) as usize
    }
}

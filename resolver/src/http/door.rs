//! A port of the router, as others see it while its accept loop owns the listeners.
use crate::conn::{Bound, Lent};
use std::os::fd::AsFd;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::net::TcpListener;
use tokio::sync::watch;

/// See the module.
pub(super) struct Door {
    /// Copies of the listeners, to hand them over.
    copies: Mutex<Vec<Lent>>,
    /// What keeps the other loopback half from us.
    half: watch::Sender<Option<String>>,
}

impl Door {
    pub(super) fn new(bound: &Bound) -> Arc<Self> {
        let half = watch::Sender::new(bound.missing_half.clone());
        let door = Arc::new(Self { copies: Mutex::default(), half });
        bound.listeners.iter().for_each(|listener| door.add(listener));
        door
    }

    /// A listener that was made now. A copy that cannot be made is a port that the next process binds by itself.
    pub(super) fn add(&self, listener: &TcpListener) {
        self.copies().extend(listener.as_fd().try_clone_to_owned().ok().map(|copy| Arc::new(copy) as Lent));
    }

    pub(super) fn lend(&self) -> Vec<Lent> {
        self.copies().clone()
    }

    /// Nothing is accepted any more: a port closes with its last copy.
    pub(super) fn close(&self) {
        self.copies().clear();
    }

    /// The other half is missing for this reason, or is there.
    pub(super) fn misses(&self, half: Option<&str>) {
        self.half.send_if_modified(|told| {
            let changed = told.as_deref() != half;
            *told = half.map(str::to_owned);
            changed
        });
    }

    pub(super) fn half(&self) -> watch::Receiver<Option<String>> {
        self.half.subscribe()
    }

    fn copies(&self) -> MutexGuard<'_, Vec<Lent>> {
        self.copies.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

//! A connection while it is open, as others may look at it. Only its entry writes it.
use jiff::Timestamp;
use std::net::SocketAddr;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};

/// One open connection.
#[derive(Debug)]
pub(super) struct Live {
    pub(super) client: SocketAddr,
    pub(super) accepted: Timestamp,
    /// It is one request of a client of the router, whose connection carries others as well.
    pub(super) is_request: bool,
    /// A command of this host tries the way: what it moves is no traffic.
    pub(super) is_probe: bool,
    opened: OnceLock<Timestamp>,
    up: Count,
    down: Count,
}
impl Live {
    pub(super) fn new(client: SocketAddr, accepted: Timestamp, is_request: bool, is_probe: bool) -> Self {
        let (up, down) = (Count::default(), Count::default());
        Self { client, accepted, is_request, is_probe, opened: OnceLock::new(), up, down }
    }
    /// The backend was reached.
    pub(super) fn open(&self, now: Timestamp) {
        // A second call changes nothing.
        let _ = self.opened.set(now);
    }
    pub(super) fn opened(&self) -> Option<Timestamp> {
        self.opened.get().copied()
    }
    pub(super) fn add_up(&self, bytes: u64) {
        self.up.add(bytes);
    }
    pub(super) fn add_down(&self, bytes: u64) {
        self.down.add(bytes);
    }
    /// Bytes up and down so far.
    pub(super) fn bytes(&self) -> (u64, u64) {
        (self.up.get(), self.down.get())
    }
}

/// A counter with one writer, which therefore needs no locked addition: every message is counted.
#[derive(Debug, Default)]
struct Count(AtomicU64);
impl Count {
    fn add(&self, more: u64) {
        self.0.store(self.get().wrapping_add(more), Ordering::Relaxed);
    }
    fn get(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

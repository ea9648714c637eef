//! One service and consumer: its counters (proxy rule 9), its open connections and the ring of ended ones.
use super::answers::Cell;
use super::live::Live;
use super::recent::{LastFailure, Outcome, Recent};
use super::withdrawal::Withdrawal;
use jiff::Timestamp;
use stado_fleet::directory::Route;
use std::collections::{HashMap, VecDeque};
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Ended connections kept for each service.
const RECENT: usize = 20;

/// Why a connection was not carried.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Refusal {
    /// The frontend has no backend now.
    NoBackend,
    /// The service has as many connections as it may have.
    Limit,
    /// The backend, or the way to it, refused or stayed silent.
    Unreachable,
    /// The backend is an address of this daemon.
    Loop,
}

/// What was counted since the service's first frontend.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Counters {
    /// Connections that reached a backend.
    pub opened: u64,
    /// Connections now, including those still being opened.
    pub active: u64,
    /// Refused for want of a backend.
    pub refused_no_backend: u64,
    /// Refused because the service had too many.
    pub refused_limit: u64,
    /// Refused because nothing was reached.
    pub refused_unreachable: u64,
    /// Refused because the backend was this daemon itself.
    pub refused_loop: u64,
    /// Ended because the directory no longer allows them.
    pub withdrawn: u64,
    /// Bytes from clients.
    pub bytes_up: u64,
    /// Bytes to clients.
    pub bytes_down: u64,
}
impl Counters {
    pub(super) fn plus(self, other: Self) -> Self {
        Self {
            opened: self.opened + other.opened,
            active: self.active + other.active,
            refused_no_backend: self.refused_no_backend + other.refused_no_backend,
            refused_limit: self.refused_limit + other.refused_limit,
            refused_unreachable: self.refused_unreachable + other.refused_unreachable,
            refused_loop: self.refused_loop + other.refused_loop,
            withdrawn: self.withdrawn + other.withdrawn,
            bytes_up: self.bytes_up + other.bytes_up,
            bytes_down: self.bytes_down + other.bytes_down,
        }
    }
}

/// One (service, consumer).
#[derive(Debug, Default)]
pub struct Slot {
    pub(super) opened: AtomicU64,
    pub(super) active: AtomicU64,
    no_backend: AtomicU64,
    limit: AtomicU64,
    unreachable: AtomicU64,
    looped: AtomicU64,
    withdrawn: AtomicU64,
    withdrawal: Mutex<Arc<Withdrawal>>,
    /// When a connection last reached its backend, in microseconds of the epoch; 0 before the first.
    reached: AtomicI64,
    /// The same of a probe of this host's own.
    probed_at: AtomicI64,
    book: Mutex<Book>,
    pub(super) answers: Option<Cell>,
}

/// Who is connected, who was, and what the ended ones have moved. One lock, so that bytes are never counted twice or missed
/// when a connection ends.
#[derive(Debug, Default)]
struct Book {
    open: HashMap<u64, Arc<Live>>,
    ended: VecDeque<Recent>,
    bytes_up: u64,
    bytes_down: u64,
    /// Where the latest connection of an adapter was led.
    towards: Option<Arc<Route>>,
    failure: Option<LastFailure>,
}

impl Slot {
    pub(super) fn new(answers: Option<Cell>) -> Self {
        Self { answers, ..Self::default() }
    }

    /// Takes a place for one connection unless `limit` are taken; the place is given back by the entry.
    pub(super) fn admit(&self, limit: usize) -> bool {
        let limit = u64::try_from(limit).unwrap_or(u64::MAX);
        let taken = self.active.fetch_add(1, Ordering::Relaxed);
        if taken >= limit {
            self.active.fetch_sub(1, Ordering::Relaxed);
        }
        taken < limit
    }

    pub(crate) fn refuse(&self, why: Refusal) {
        let counter = match why {
            Refusal::NoBackend => &self.no_backend,
            Refusal::Limit => &self.limit,
            Refusal::Unreachable => &self.unreachable,
            Refusal::Loop => &self.looped,
        };
        counter.fetch_add(1, Ordering::Relaxed);
    }

    /// What a connection that begins now runs under.
    pub(crate) fn withdrawal(&self) -> Arc<Withdrawal> {
        Arc::clone(&self.withdrawal.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Ends every connection that is open, for this reason. Whoever carries one watches its withdrawal, or is cut.
    pub(crate) fn withdraw(&self, why: &Arc<str>) {
        let before = std::mem::take(&mut *self.withdrawal.lock().unwrap_or_else(PoisonError::into_inner));
        before.withdraw(why);
    }

    /// Enters an open connection, and where it is led.
    pub(super) fn enter(&self, id: u64, live: Arc<Live>, towards: Option<&Arc<Route>>) {
        let mut book = self.book();
        book.open.insert(id, live);
        if let Some(route) = towards
            && !book.towards.as_ref().is_some_and(|known| Arc::ptr_eq(known, route))
        {
            book.towards = Some(Arc::clone(route));
        }
    }

    /// A connection has reached its backend; when the one before did, in microseconds.
    pub(super) fn reached(&self, now: Timestamp) -> i64 {
        self.opened.fetch_add(1, Ordering::Relaxed);
        self.reached.swap(now.as_microsecond(), Ordering::Relaxed)
    }

    /// The backend that a connection reached at `then` broke it off without a byte: that was no success. `before`: what
    /// [`Slot::reached`] gave.
    pub(super) fn was_no_success(&self, then: Timestamp, before: i64) {
        // A later one's success stays.
        let _ = self.reached.compare_exchange(then.as_microsecond(), before, Ordering::Relaxed, Ordering::Relaxed);
    }

    /// When one did last.
    pub(super) fn last_reached(&self) -> Option<Timestamp> {
        instant(&self.reached)
    }

    /// A probe of this host's own has reached the backend.
    pub(super) fn probe_reached(&self, now: Timestamp) {
        self.probed_at.store(now.as_microsecond(), Ordering::Relaxed);
    }

    /// When one did last.
    pub(super) fn last_probed(&self) -> Option<Timestamp> {
        instant(&self.probed_at)
    }

    /// Notes a failure that is no connection's end.
    pub(super) fn fail(&self, failure: LastFailure) {
        self.book().failure = Some(failure);
    }

    /// Where the latest connection was led, and the last failure.
    pub(super) fn fate(&self) -> (Option<Arc<Route>>, Option<LastFailure>) {
        let book = self.book();
        (book.towards.clone(), book.failure.clone())
    }

    /// The connection `id` has ended.
    pub(super) fn leave(&self, id: u64, recent: Recent) {
        if matches!(recent.outcome, Outcome::Withdrawn(_)) {
            self.withdrawn.fetch_add(1, Ordering::Relaxed);
        }
        let mut book = self.book();
        let counted = book.open.remove(&id).is_none_or(|live| !live.is_probe);
        if counted {
            book.bytes_up += recent.bytes_up;
            book.bytes_down += recent.bytes_down;
        }
        if let Some(failure) = recent.failure() {
            book.failure = Some(failure);
        }
        if book.ended.len() == RECENT {
            book.ended.pop_front();
        }
        book.ended.push_back(recent);
        // Last, and before the book is given back: who sees that none is active finds this one among those that ended.
        self.active.fetch_sub(1, Ordering::Release);
    }

    /// Open connections now.
    pub(super) fn open(&self) -> Vec<Arc<Live>> {
        self.book().open.values().cloned().collect()
    }

    /// How many of them are connections to a frontend.
    pub(super) fn streams(&self) -> usize {
        self.book().open.values().filter(|live| !live.is_request).count()
    }

    pub(super) fn recent(&self) -> Vec<Recent> {
        self.book().ended.iter().cloned().collect()
    }

    /// The last failure of the service, or of the way to it.
    pub(super) fn last_failure(&self) -> Option<LastFailure> {
        self.book().failure.clone()
    }

    pub(super) fn counters(&self) -> Counters {
        let read = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        // Before the book, so that the bytes of one that is no longer active are in it.
        let active = self.active.load(Ordering::Acquire);
        let book = self.book();
        let (bytes_up, bytes_down) = book.bytes();
        let probes = book.open.values().filter(|live| live.is_probe).count();
        drop(book);
        Counters {
            opened: read(&self.opened),
            active: active.saturating_sub(u64::try_from(probes).unwrap_or(0)),
            refused_no_backend: read(&self.no_backend),
            refused_limit: read(&self.limit),
            refused_unreachable: read(&self.unreachable),
            refused_loop: read(&self.looped),
            withdrawn: read(&self.withdrawn),
            bytes_up,
            bytes_down,
        }
    }

    fn book(&self) -> MutexGuard<'_, Book> {
        self.book.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Microseconds of the epoch; none for 0.
fn instant(micros: &AtomicI64) -> Option<Timestamp> {
    let micros = micros.load(Ordering::Relaxed);
    Timestamp::from_microsecond(micros).ok().filter(|_| micros != 0)
}

impl Book {
    fn bytes(&self) -> (u64, u64) {
        let start = (self.bytes_up, self.bytes_down);
        let counted = self.open.values().filter(|live| !live.is_probe);
        counted.map(|live| live.bytes()).fold(start, |sum, moved| (sum.0 + moved.0, sum.1 + moved.1))
    }
}

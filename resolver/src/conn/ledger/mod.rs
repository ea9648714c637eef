//! The ledger: what happens to every connection, in memory. The data path writes it and never waits for it; `publish` and
//! metrics read it.
//!
//! An [`Entry`] is opened at accept, travels with its connection and closes itself exactly once, when it is dropped.

mod answers;
mod changed;
mod entry;
mod life;
mod live;
mod probes;
mod recent;
mod slot;
#[cfg(test)]
pub(crate) mod testing;
#[cfg(test)]
mod tests;
mod traffic;
mod view;
mod waits;
mod withdrawal;

pub use answers::AnswerTimes;
pub(crate) use entry::{Entry, Seen};
pub use probes::Probe;
pub use recent::{LastFailure, Outcome, Recent};
pub use slot::{Counters, Refusal, Slot};

use super::FrontendId;
use stado_fleet::ledger::{AnswersFile, RouteState, Wait};
use stado_fleet::wire::ConnectionList;
use std::collections::{HashMap, VecDeque};
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::Instant;

/// Withdrawn services and consumers whose counters are still told.
const WITHDRAWN: usize = 256;

type SlotKey = (Arc<str>, Option<Arc<str>>);

/// What is known of the connections of one service and consumer.
#[derive(Debug, Clone)]
pub struct Overview {
    /// Service.
    pub service: Arc<str>,
    /// Consumer, for adapters.
    pub consumer: Option<Arc<str>>,
    /// What was counted.
    pub counters: Counters,
    /// When a connection, or a probe of this host's own commands, reached its backend last.
    pub last_reached: Option<jiff::Timestamp>,
    /// The last failure of the service, or of the way to it.
    pub last_failure: Option<LastFailure>,
}

/// Entries of all connections. Cheap to clone; all clones are one ledger.
#[derive(Clone, Debug, Default)]
pub struct Ledger {
    inner: Arc<Inner>,
}

#[derive(Debug, Default)]
struct Inner {
    slots: Mutex<HashMap<SlotKey, Weak<Slot>>>,
    answers: answers::Table,
    waits: waits::Table,
    changed: changed::Changed,
    /// Waits of processes that this one took over from.
    foreign: Mutex<Vec<Wait>>,
    /// Slots whose frontends went because the directory no longer allows them.
    withdrawn: Mutex<VecDeque<Arc<Slot>>>,
    next: std::sync::atomic::AtomicU64,
    /// Something went through an adapter.
    traffic: changed::Changed,
    /// Something failed there, and nobody has asked since.
    failed: AtomicBool,
    past: traffic::Past,
    probes: probes::Probes,
}

impl Ledger {
    /// An empty ledger.
    pub fn new() -> Self {
        Self::default()
    }

    /// The counters and recent connections of a frontend's service; shared by all frontends of the same name.
    pub fn slot(&self, id: &FrontendId) -> Arc<Slot> {
        let mut slots = self.slots();
        let key = (Arc::clone(&id.service), id.consumer.clone());
        if let Some(slot) = slots.get(&key).and_then(Weak::upgrade) {
            return slot;
        }
        if slots.len() == slots.capacity() {
            slots.retain(|_, slot| slot.strong_count() > 0);
        }
        let answers = id.consumer.is_some().then(|| self.inner.answers.cell(&id.service));
        let slot = Arc::new(Slot::new(answers));
        slots.insert(key, Arc::downgrade(&slot));
        slot
    }

    /// Ends every connection of a service and consumer, for this reason: the directory no longer allows it. Their number.
    /// What was counted of them stays to be asked for.
    pub fn withdraw(&self, service: &str, consumer: &str, why: &str) -> u64 {
        let mut slots = self.slots_with_consumer(service);
        slots.retain(|(of, _)| of.as_deref() == Some(consumer));
        let why: Arc<str> = why.into();
        let mut ended = 0;
        for (_, slot) in slots {
            ended += slot.counters().active;
            slot.withdraw(&why);
            self.keep(slot);
        }
        ended
    }

    /// Holds the slot of a frontend that is gone, instead of the one that has been held longest.
    fn keep(&self, slot: Arc<Slot>) {
        let mut kept = self.inner.withdrawn.lock().unwrap_or_else(PoisonError::into_inner);
        kept.retain(|held| !Arc::ptr_eq(held, &slot));
        if kept.len() == WITHDRAWN {
            kept.pop_front();
        }
        kept.push_back(slot);
    }

    /// The next connection of each of these clients to an adapter is a probe of this host's own, if it comes soon: no traffic.
    pub fn announce(&self, clients: impl IntoIterator<Item = SocketAddr>, probe: Probe) {
        self.inner.probes.announce(clients, probe, Instant::now());
    }

    /// Whether a client only looks whether an adapter accepts; each announcement is taken once.
    pub(crate) fn only_looks(&self, client: SocketAddr) -> bool {
        self.inner.probes.take(client, Probe::Accepts, Instant::now())
    }

    /// Whether a connection is a probe of its service; each announcement is taken once.
    fn is_probe(&self, client: SocketAddr) -> bool {
        self.inner.probes.take(client, Probe::Reaches, Instant::now())
    }

    /// Every wait of an adapter now, the oldest first (fleet contract §4.7).
    pub fn snapshot_waits(&self) -> Vec<Wait> {
        let mut waits = self.own_waits();
        let foreign = self.inner.foreign.lock().unwrap_or_else(PoisonError::into_inner);
        if !foreign.is_empty() {
            waits.extend(foreign.iter().cloned());
            waits.sort_by(|a, b| a.since.cmp(&b.since));
        }
        waits
    }

    /// As [`Ledger::snapshot_waits`], of this process alone.
    pub fn own_waits(&self) -> Vec<Wait> {
        self.inner.waits.snapshot()
    }

    /// Lists these beside the waits of this process, in place of those listed before: they are of processes that it took
    /// over from.
    pub fn set_foreign_waits(&self, waits: Vec<Wait>) {
        let mut foreign = self.inner.foreign.lock().unwrap_or_else(PoisonError::into_inner);
        if *foreign != waits {
            *foreign = waits;
            self.inner.changed.raise();
        }
    }

    /// Takes up what another process saw while this one saw the rest.
    pub fn merge_answers(&self, file: &AnswersFile) {
        self.inner.answers.merge(file);
        self.inner.changed.raise();
    }

    /// Since when each service of the directory has answered, or not (fleet contract §4.8).
    pub fn snapshot_answers(&self) -> AnswersFile {
        self.inner.answers.snapshot()
    }

    /// Takes up what an earlier process published. What this process saw itself is kept.
    pub fn restore_answers(&self, file: &AnswersFile) {
        self.inner.answers.restore(file);
    }

    /// Counters of a service, over all its frontends and consumers; `None` for a service without a frontend.
    pub fn counters(&self, service: &str) -> Option<Counters> {
        self.slots_of(service).iter().map(|slot| slot.counters()).reduce(Counters::plus)
    }

    /// Connections to frontends that are open now. Requests of the router are not among them: its clients' connections are
    /// counted there.
    pub fn streams(&self) -> usize {
        self.slots().values().filter_map(Weak::upgrade).map(|slot| slot.streams()).sum()
    }

    /// Counters of every service and consumer, for metrics.
    pub fn all_counters(&self) -> Vec<(Arc<str>, Option<Arc<str>>, Counters)> {
        let live = self.live_slots().into_iter();
        live.map(|((service, consumer), slot)| (service, consumer, slot.counters())).collect()
    }

    /// Counters of every service and consumer with its last connection that failed, for the index.
    pub fn overview(&self) -> Vec<Overview> {
        let seen = |((service, consumer), slot): (SlotKey, Arc<Slot>)| Overview {
            service,
            consumer,
            counters: slot.counters(),
            last_reached: slot.last_reached().max(slot.last_probed()),
            last_failure: slot.last_failure(),
        };
        self.live_slots().into_iter().map(seen).collect()
    }

    /// The latest ended connections of a service, the newest first; a bounded number.
    pub fn recent(&self, service: &str) -> Vec<Recent> {
        let mut all: Vec<Recent> = self.slots_of(service).iter().flat_map(|slot| slot.recent()).collect();
        all.sort_by_key(|recent| std::cmp::Reverse(recent.ended));
        all
    }

    /// Who is connected to a service, and who was, with its counters; `None` for a service without a frontend.
    pub fn connections(&self, service: &str) -> Option<ConnectionList> {
        let slots = self.slots_with_consumer(service);
        (!slots.is_empty()).then(|| view::connections(service, &slots, jiff::Timestamp::now()))
    }

    /// Returns when waits or answers changed since the last return. For one caller.
    pub async fn changed(&self) {
        self.inner.changed.wait().await;
    }

    /// What went through each adapter that was ever used, by service and consumer (an addition of Stado); without rates.
    pub fn snapshot_routes(&self) -> Vec<RouteState> {
        traffic::snapshot(&self.live_slots(), &self.inner.past)
    }

    /// Takes up when routes worked and failed before this process; what it sees itself counts more.
    pub fn restore_routes(&self, rows: Vec<RouteState>) {
        self.inner.past.restore(rows);
    }

    /// Returns when something went through an adapter since the last return. For one caller.
    pub async fn traffic(&self) {
        self.inner.traffic.wait().await;
    }

    /// Whether something failed on the way to a service since the last call. For one caller.
    pub fn take_failed(&self) -> bool {
        self.inner.failed.swap(false, Ordering::AcqRel)
    }

    fn failed(&self) {
        self.inner.failed.store(true, Ordering::Release);
        self.inner.changed.raise();
    }

    fn live_slots(&self) -> Vec<(SlotKey, Arc<Slot>)> {
        self.slots().iter().filter_map(|(key, slot)| Some((key.clone(), slot.upgrade()?))).collect()
    }

    fn slots_of(&self, service: &str) -> Vec<Arc<Slot>> {
        self.slots_with_consumer(service).into_iter().map(|(_, slot)| slot).collect()
    }

    fn slots_with_consumer(&self, service: &str) -> Vec<(Option<Arc<str>>, Arc<Slot>)> {
        let slots = self.slots();
        let of_service = slots.iter().filter(|((name, _), _)| &**name == service);
        of_service.filter_map(|((_, consumer), slot)| Some((consumer.clone(), slot.upgrade()?))).collect()
    }

    fn slots(&self) -> std::sync::MutexGuard<'_, HashMap<SlotKey, Weak<Slot>>> {
        self.inner.slots.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

//! The entry that travels with a connection.
use super::super::{Backend, FrontendId};
use super::life::{Life, Note, Phase};
use super::live::Live;
use super::recent::{LastFailure, Outcome, Recent};
use super::slot::{Refusal, Slot};
use super::waits::Row;
use super::withdrawal::Withdrawal;
use super::{Ledger, answers};
use jiff::Timestamp;
use stado_fleet::directory::Route;
use stado_fleet::fault::{Blame, Hop};
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// Bytes that were moved: themselves, or their number when they went past unseen.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Seen<'a> {
    /// The bytes.
    Bytes(&'a [u8]),
    /// How many.
    Count(usize),
}
impl<'a> Seen<'a> {
    fn len(self) -> u64 {
        let len = match self {
            Self::Bytes(bytes) => bytes.len(),
            Self::Count(len) => len,
        };
        u64::try_from(len).unwrap_or(u64::MAX)
    }
    fn bytes(self) -> Option<&'a [u8]> {
        match self {
            Self::Bytes(bytes) => Some(bytes),
            Self::Count(_) => None,
        }
    }
}

/// One connection. Dropping it closes it; it cannot be closed twice, and an ending that nobody named is [`Outcome::Cut`].
#[derive(Debug)]
pub(crate) struct Entry {
    ledger: Ledger,
    id: u64,
    frontend: Arc<FrontendId>,
    slot: Arc<Slot>,
    route: Option<Arc<Route>>,
    live: Arc<Live>,
    life: Life,
    outcome: Outcome,
    blame: Option<Blame>,
    withdrawal: Arc<Withdrawal>,
    hop: Option<Hop>,
    /// When another connection had reached the service before this one did.
    before: i64,
}

impl Entry {
    /// Enters a connection that was just accepted; `None` when the service has `limit` of them already (counted).
    pub(crate) fn open(
        ledger: &Ledger,
        slot: &Arc<Slot>,
        frontend: &Arc<FrontendId>,
        backend: &Backend,
        client: SocketAddr,
        limit: usize,
    ) -> Option<Self> {
        Self::open_since(ledger, slot, frontend, backend, (client, Timestamp::now()), limit)
    }

    /// The same for a connection that was accepted, or a request that began, before.
    pub(crate) fn open_since(
        ledger: &Ledger,
        slot: &Arc<Slot>,
        frontend: &Arc<FrontendId>,
        backend: &Backend,
        (client, accepted): (SocketAddr, Timestamp),
        limit: usize,
    ) -> Option<Self> {
        if !slot.admit(limit) {
            slot.refuse(Refusal::Limit);
            if frontend.consumer.is_some() {
                slot.fail(too_many(limit));
                ledger.failed();
            }
            return None;
        }
        let route = match backend {
            Backend::Fleet(route) if frontend.consumer.is_some() => Some(Arc::clone(route)),
            _ => None,
        };
        let id = ledger.inner.next.fetch_add(1, Ordering::Relaxed);
        let is_probe = frontend.consumer.is_some() && ledger.is_probe(client);
        let live = Arc::new(Live::new(client, accepted, frontend.is_hostname(), is_probe));
        slot.enter(id, Arc::clone(&live), route.as_ref());
        if frontend.consumer.is_some() {
            ledger.inner.traffic.raise();
        }
        Some(Self {
            ledger: ledger.clone(),
            id,
            frontend: Arc::clone(frontend),
            slot: Arc::clone(slot),
            route,
            live,
            life: Life::new(accepted),
            outcome: Outcome::Cut,
            blame: None,
            withdrawal: slot.withdrawal(),
            hop: None,
            before: 0,
        })
    }

    /// The dial or channel open starts.
    pub(crate) fn opening(&mut self) {
        let note = self.life.opening(Timestamp::now());
        self.note(note);
    }

    /// The backend was reached.
    pub(crate) fn opened(&mut self) {
        let now = Timestamp::now();
        self.live.open(now);
        if self.live.is_probe {
            self.slot.probe_reached(now);
            // Its command waits for this word, and nothing else will tell of it.
            self.ledger.inner.traffic.raise();
        } else {
            self.before = self.slot.reached(now);
        }
        let note = self.life.opened();
        self.note(note);
    }

    /// Nothing was reached, and where on the way it failed. `answered`: whoever was asked said no, rather than nothing.
    pub(crate) fn refused(&mut self, why: Refusal, cause: &str, (blame, hop): (Blame, Hop), answered: bool) {
        self.slot.refuse(why);
        self.end(Outcome::Refused(cause.into()), Some(blame));
        self.hop = Some(hop);
        let note = if answered { self.life.open_refused() } else { self.life.open_unanswered() };
        self.note(note);
    }

    /// Bytes of the client came while the backend is still being opened; [`Self::up`] is told when they go up.
    pub(crate) fn sent_early(&mut self) {
        self.life.sent_early();
    }

    /// Bytes of the client went up.
    pub(crate) fn up(&mut self, seen: Seen<'_>) {
        self.live.add_up(seen.len());
        if self.life.listens() {
            let note = self.life.asked(Timestamp::now(), seen.bytes());
            self.note(note);
        }
    }

    /// Bytes of the service came down.
    pub(crate) fn down(&mut self, seen: Seen<'_>) {
        self.live.add_down(seen.len());
        let note = self.life.told(seen.bytes());
        self.note(note);
    }

    /// The client ended its stream.
    pub(crate) fn client_ended(&mut self) {
        let note = self.life.client_ended();
        self.note(note);
    }

    /// Whether the next bytes of the service begin an answer that the ledger wants to see.
    pub(crate) fn awaits_answer(&self) -> bool {
        self.route.is_some() && self.life.awaits_answer()
    }

    /// Whether the client may begin another request that the ledger wants to see.
    pub(crate) fn expects_requests(&self) -> bool {
        self.route.is_some() && self.life.speaks_http()
    }

    /// How the service's end broke an open connection, after how many milliseconds, and whether its session went with it.
    pub(crate) fn broken(&self) -> Option<(&str, i128, bool)> {
        match (&self.outcome, self.live.opened()) {
            (Outcome::ServiceReset(cause), Some(opened)) => {
                let ms = Timestamp::now().duration_since(opened).as_millis();
                Some((cause, ms, self.blame == Some(Blame::Remote)))
            }
            _ => None,
        }
    }

    /// Names the ending; the entry closes when it is dropped.
    pub(crate) fn end(&mut self, outcome: Outcome, blame: Option<Blame>) {
        self.outcome = outcome;
        self.blame = blame;
    }

    /// What it runs under.
    pub(crate) fn withdrawal(&self) -> Arc<Withdrawal> {
        Arc::clone(&self.withdrawal)
    }

    /// An open connection broke because the way to the service did, and not the service.
    pub(crate) fn broke_on_the_way(&mut self, cause: &str) {
        self.end(Outcome::ServiceReset(cause.into()), Some(Blame::Remote));
        self.hop = Some(Hop::Session);
    }

    fn note(&self, note: Option<Note>) {
        let (Some(note), Some(route)) = (note, &self.route) else { return };
        let waits = &self.ledger.inner.waits;
        match note {
            Note::Begins(phase, since) => {
                let count = waits.enter(
                    self.id,
                    Row {
                        frontend: Arc::clone(&self.frontend),
                        route: Arc::clone(route),
                        phase,
                        since,
                        client: self.live.client,
                        request: self.life.request().filter(|_| phase == Phase::Asked).cloned(),
                    },
                );
                self.log_began(route, phase, count);
            }
            Note::Opened => self.wait_ended(route, "answered open"),
            Note::OpenRefused => self.wait_ended(route, "answered refused"),
            Note::Left => self.wait_ended(route, "ended before an answer"),
            Note::Answered => {
                self.wait_ended(route, "answered");
                self.answers(|times| times.answer(Timestamp::now()));
            }
            Note::Unanswered => {
                self.wait_ended(route, "ended before an answer");
                self.answers(|times| times.no_answer(Timestamp::now()));
            }
        }
        self.ledger.inner.changed.raise();
    }

    fn answers(&self, change: impl FnOnce(&mut answers::AnswerTimes)) {
        if let Some(cell) = &self.slot.answers {
            change(&mut answers::lock(cell));
        }
    }

    fn wait_ended(&self, route: &Route, how: &str) {
        if let Some((row, left)) = self.ledger.inner.waits.leave(self.id) {
            self.log_ended(route, &row, how, left);
        }
    }

    fn log_began(&self, route: &Route, phase: Phase, count: usize) {
        let (service, consumer) = self.names();
        let (endpoint, host) = (route.endpoint.addr, &route.active_host);
        if phase == Phase::Opening {
            tracing::info!(target: "stado::fleet", "stado resolver service={service} consumer={consumer} opening channel to {endpoint} on \"{host}\"; {count} open(s) now waiting for an answer");
        } else if self.live.bytes().1 == 0 {
            tracing::info!(target: "stado::fleet", "stado resolver service={service} consumer={consumer} request sent to {endpoint} on \"{host}\"; {count} open(s) now waiting for an answer");
        }
    }

    fn log_ended(&self, route: &Route, row: &Row, how: &str, left: usize) {
        let (service, consumer) = self.names();
        let (endpoint, host) = (route.endpoint.addr, &route.active_host);
        if row.phase == Phase::Opening {
            let ms = Timestamp::now().duration_since(row.since).as_millis();
            tracing::info!(target: "stado::fleet", "stado resolver service={service} consumer={consumer} channel to {endpoint} {how} after {ms} ms; {left} open(s) still waiting");
        } else if row.since == self.life.accepted() {
            tracing::info!(target: "stado::fleet", "stado resolver service={service} consumer={consumer} request to {endpoint} on \"{host}\" {how}; {left} open(s) still waiting");
        }
    }

    fn names(&self) -> (&str, &str) {
        (&self.frontend.service, self.frontend.consumer.as_deref().unwrap_or("-"))
    }
}

impl Drop for Entry {
    fn drop(&mut self) {
        if let (Outcome::Cut, Some(why)) = (&self.outcome, self.withdrawal.why()) {
            self.end(Outcome::Withdrawn(Arc::clone(why)), Some(Blame::Credentials));
        }
        let note = self.life.over();
        self.note(note);
        let (bytes_up, bytes_down) = self.live.bytes();
        let hop = self.hop.or(self.outcome.is_break().then_some(Hop::Service));
        if let (Some(Hop::Service), 0, Some(then), false) = (hop, bytes_down, self.live.opened(), self.live.is_probe) {
            self.slot.was_no_success(then, self.before);
        }
        let recent = Recent {
            client: self.live.client,
            accepted: self.live.accepted,
            opened: self.live.opened(),
            ended: Timestamp::now(),
            request: self.life.request().cloned(),
            bytes_up,
            bytes_down,
            outcome: std::mem::replace(&mut self.outcome, Outcome::Cut),
            blame: self.blame,
            hop,
        };
        self.slot.leave(self.id, recent);
        if self.frontend.consumer.is_some() {
            self.ledger.inner.traffic.raise();
            if hop.is_some() {
                self.ledger.failed();
            }
        }
    }
}

/// One more than a service may have.
fn too_many(limit: usize) -> LastFailure {
    let cause = format!("it has as many connections as it may have ({limit}), and closes the excess");
    LastFailure { at: Timestamp::now(), hop: Hop::Adapter, refused: true, cause: cause.into(), blame: Blame::Caller }
}

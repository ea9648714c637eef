//! When a wait begins and ends, and what counts as an answer. Pure: time is passed in.
//!
//! The first request of a connection has waited since the accept. Later ones are seen only on connections that began with an
//! HTTP request and were not upgraded, from their first byte; on other protocols only what is sent before the service's
//! first byte is a request (design, "when a wait begins").
use super::super::http_sniff;
use jiff::Timestamp;
use std::sync::Arc;

/// What a connection waits for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Phase {
    /// The open of a channel, or a dial.
    Opening,
    /// The first byte of an answer.
    Asked,
}

/// What the ledger has to note after an event.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Note {
    /// A wait begins, in place of any other of this connection.
    Begins(Phase, Timestamp),
    /// The open was answered: the wait ends, the service has neither answered nor failed to.
    Opened,
    /// The destination refused the open.
    OpenRefused,
    /// The service sent the first byte of an answer.
    Answered,
    /// The client left, or the connection ended, before an answer.
    Unanswered,
    /// The client left during the open and had asked nothing: the wait ends, and no request went unanswered.
    Left,
}

/// One connection's state.
#[derive(Debug)]
pub(super) struct Life {
    accepted: Timestamp,
    waiting: Option<Phase>,
    kind: Kind,
    /// Whether the client sent anything that has not gone up yet.
    sent: bool,
    answered: bool,
    gone: bool,
    request: Option<Arc<str>>,
}
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    /// Nothing sent yet.
    Unknown,
    /// Began with an HTTP request.
    Http,
    /// Anything else, or HTTP that was upgraded.
    Opaque,
}

impl Life {
    pub(super) fn new(accepted: Timestamp) -> Self {
        Self { accepted, waiting: None, kind: Kind::Unknown, sent: false, answered: false, gone: false, request: None }
    }

    pub(super) fn accepted(&self) -> Timestamp {
        self.accepted
    }

    /// The latest request line that was seen.
    pub(super) fn request(&self) -> Option<&Arc<str>> {
        self.request.as_ref()
    }

    pub(super) fn awaits_answer(&self) -> bool {
        self.waiting == Some(Phase::Asked)
    }

    /// Whether what the client sends can still mean anything here.
    pub(super) fn listens(&self) -> bool {
        self.kind != Kind::Opaque
    }

    pub(super) fn speaks_http(&self) -> bool {
        self.kind == Kind::Http
    }

    /// The dial or channel open starts.
    pub(super) fn opening(&mut self, now: Timestamp) -> Option<Note> {
        self.begin(Phase::Opening, now)
    }

    /// It was answered.
    pub(super) fn opened(&mut self) -> Option<Note> {
        self.end(Phase::Opening, Note::Opened)
    }

    /// It was refused by whoever was asked.
    pub(super) fn open_refused(&mut self) -> Option<Note> {
        self.end(Phase::Opening, Note::OpenRefused)
    }

    /// The deadline of the open passed without a word of whoever was asked: that is no answer, whatever the client sent.
    pub(super) fn open_unanswered(&mut self) -> Option<Note> {
        self.end(Phase::Opening, Note::Unanswered)
    }

    /// The client sent bytes while the open still waits: it has made a request.
    pub(super) fn sent_early(&mut self) {
        self.sent = true;
    }

    /// Bytes from the client went up; `None` when they were moved unseen.
    pub(super) fn asked(&mut self, now: Timestamp, bytes: Option<&[u8]>) -> Option<Note> {
        let starts = bytes.is_some_and(http_sniff::starts_request);
        let since = match self.kind {
            Kind::Unknown => {
                self.kind = if starts { Kind::Http } else { Kind::Opaque };
                if self.answered && !starts { None } else { Some(self.accepted) }
            }
            Kind::Http if starts && self.waiting.is_none() => Some(now),
            Kind::Http | Kind::Opaque => None,
        }?;
        self.request = bytes.and_then(http_sniff::request_line).map(Arc::from);
        self.begin(Phase::Asked, since)
    }

    /// Bytes from the service came down; `None` when they were moved unseen.
    pub(super) fn told(&mut self, bytes: Option<&[u8]>) -> Option<Note> {
        if self.kind == Kind::Http && bytes.is_some_and(http_sniff::switches_protocol) {
            self.kind = Kind::Opaque;
        }
        let first = !std::mem::replace(&mut self.answered, true);
        match self.waiting.take() {
            Some(_) => Some(Note::Answered),
            None => first.then_some(Note::Answered),
        }
    }

    /// The client ended its stream. It may still read, but it is no longer known to hold the connection: its wait leaves the
    /// list, and a request counts as unanswered until an answer comes after all.
    pub(super) fn client_ended(&mut self) -> Option<Note> {
        let note = self.over();
        if note == Some(Note::Unanswered) {
            self.answered = false;
        }
        note
    }

    /// The connection is over.
    pub(super) fn over(&mut self) -> Option<Note> {
        self.gone = true;
        match self.waiting.take()? {
            Phase::Opening if !self.sent => Some(Note::Left),
            Phase::Opening | Phase::Asked => Some(Note::Unanswered),
        }
    }

    fn begin(&mut self, phase: Phase, since: Timestamp) -> Option<Note> {
        self.waiting = Some(phase);
        // A client that has ended its stream is not known to hold anything: its request counts, but is not listed.
        (!self.gone).then_some(Note::Begins(phase, since))
    }

    fn end(&mut self, phase: Phase, note: Note) -> Option<Note> {
        (self.waiting == Some(phase)).then(|| {
            self.waiting = None;
            note
        })
    }
}

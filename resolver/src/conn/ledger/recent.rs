//! Connections that have ended.
use jiff::Timestamp;
use stado_fleet::fault::{Blame, Hop};
use std::fmt;
use std::net::SocketAddr;
use std::sync::Arc;

/// How a connection ended, and by whom.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Outcome {
    /// Both sides ended their streams.
    Done,
    /// Nothing was reached, or the connection was not let in; the reason in words.
    Refused(Arc<str>),
    /// The client reset it.
    ClientReset,
    /// The service reset it, or the way to it broke.
    ServiceReset(Arc<str>),
    /// One side ended, the other stayed silent past the linger deadline.
    Lingered,
    /// The directory no longer allows it; the reason in words.
    Withdrawn(Arc<str>),
    /// The daemon ended it: shutdown, or the connection's task was dropped.
    Cut,
}
impl Outcome {
    /// Whether the service, or the way to it, broke an open connection.
    pub(super) fn is_break(&self) -> bool {
        matches!(self, Self::ServiceReset(_))
    }
    /// One word, as the local API says it.
    pub fn code(&self) -> &'static str {
        match self {
            Self::Done => "done",
            Self::Refused(_) => "refused",
            Self::ClientReset => "client_reset",
            Self::ServiceReset(_) => "service_reset",
            Self::Lingered => "lingered",
            Self::Withdrawn(_) => "withdrawn",
            Self::Cut => "cut",
        }
    }
}
impl fmt::Display for Outcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Done => f.write_str("done"),
            Self::Refused(why) => write!(f, "refused: {why}"),
            Self::ClientReset => f.write_str("reset by the client"),
            Self::ServiceReset(why) => write!(f, "reset by the service: {why}"),
            Self::Lingered => f.write_str("half-closed and silent"),
            Self::Withdrawn(why) => write!(f, "no longer allowed: {why}"),
            Self::Cut => f.write_str("ended by this daemon"),
        }
    }
}

/// One ended connection.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Recent {
    /// Address the client connected from.
    pub client: SocketAddr,
    /// When it was accepted.
    pub accepted: Timestamp,
    /// When its backend was reached, if it was.
    pub opened: Option<Timestamp>,
    /// When it ended.
    pub ended: Timestamp,
    /// First line the client sent, when its first bytes carried a whole printable one.
    pub request: Option<Arc<str>>,
    /// Bytes from the client.
    pub bytes_up: u64,
    /// Bytes to the client.
    pub bytes_down: u64,
    /// How it ended.
    pub outcome: Outcome,
    /// Who has to act, when it did not end well.
    pub blame: Option<Blame>,
    /// Where on the way to the service, when it failed there.
    pub hop: Option<Hop>,
}

/// The last failure on the way to a service.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LastFailure {
    /// When.
    pub at: Timestamp,
    /// Where.
    pub hop: Hop,
    /// Nothing was reached at all.
    pub refused: bool,
    /// Why.
    pub cause: Arc<str>,
    /// Who has to act.
    pub blame: Blame,
}

impl Recent {
    /// What it says of the way to its service, if it failed there.
    pub(crate) fn failure(&self) -> Option<LastFailure> {
        let (Outcome::Refused(cause) | Outcome::ServiceReset(cause)) = &self.outcome else { return None };
        let blame = self.blame.unwrap_or(Blame::Service);
        let refused = matches!(self.outcome, Outcome::Refused(_));
        Some(LastFailure { at: self.ended, hop: self.hop?, refused, cause: Arc::clone(cause), blame })
    }
}

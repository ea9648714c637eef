//! Why nothing was reached.
use stado_fleet::fault::{Blame, Class, Faulty, Hop};
use stado_fleet::link::{LinkError, Stage};
use std::fmt;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

/// A dial that reached nothing. `Display` is the cause as fleet contract §4.5 words it.
#[derive(Debug)]
pub(crate) enum DialError {
    /// The frontend has no backend now.
    NoBackend(Arc<str>),
    /// The backend is an address of this daemon (proxy rule 4).
    Loop(String),
    /// Every address of the backend refused.
    Refused(Vec<(SocketAddr, io::Error)>),
    /// No address answered within the budget.
    Silent(Vec<SocketAddr>, Duration),
    /// The other host, or the way there.
    Link {
        /// Its target name.
        host: String,
        /// Why.
        error: LinkError,
    },
    /// It was reached and does not speak what its backend is said to speak.
    Unspoken(String),
    /// The other host did not answer the open within the budget.
    Unanswered {
        /// Its target name.
        host: String,
        /// The budget.
        budget: Duration,
    },
}

impl fmt::Display for DialError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoBackend(reason) => write!(f, "no backend: {reason}"),
            Self::Loop(sentence) | Self::Unspoken(sentence) => f.write_str(sentence),
            Self::Refused(attempts) => {
                f.write_str("local upstream connect failed: ")?;
                for (at, (addr, error)) in attempts.iter().enumerate() {
                    let gap = if at == 0 { "" } else { "; " };
                    write!(f, "{gap}{addr}: {error}")?;
                }
                Ok(())
            }
            Self::Silent(addrs, budget) => {
                let names: Vec<String> = addrs.iter().map(ToString::to_string).collect();
                write!(
                    f,
                    "local upstream connect failed: {} did not answer within {} ms",
                    names.join(" and "),
                    budget.as_millis()
                )
            }
            Self::Link { host, error } => write!(f, "active host \"{host}\": {error}"),
            Self::Unanswered { host, budget } => write!(
                f,
                "active host \"{host}\": the channel was not answered within the {}s connect budget",
                budget.as_secs_f32()
            ),
        }
    }
}
impl std::error::Error for DialError {}

impl DialError {
    /// Whether the other host lets nobody have this service there: it may know of a change that this host has not heard of.
    pub(crate) fn may_be_old_news(&self) -> bool {
        let Self::Link { error, .. } = self else { return false };
        error.stage == Stage::Open && error.class == Class::Refused
    }

    /// Who has to act, and where on the way to the service it is.
    pub(crate) fn fault(&self) -> (Blame, Hop) {
        let hop = match self {
            Self::NoBackend(_) | Self::Loop(_) => Hop::Adapter,
            Self::Refused(_) | Self::Silent(..) | Self::Unspoken(_) => Hop::Service,
            Self::Link { error, .. } => error.hop(),
            Self::Unanswered { .. } => Hop::Channel,
        };
        (self.blame(), hop)
    }

    /// Whether the backend took the connection and reset it before it was of any use.
    pub(crate) fn is_reset(&self) -> bool {
        let reset = |(_, error): &(SocketAddr, io::Error)| error.kind() == io::ErrorKind::ConnectionReset;
        matches!(self, Self::Refused(attempts) if attempts.iter().any(reset))
    }
}

impl Faulty for DialError {
    fn blame(&self) -> Blame {
        match self {
            Self::NoBackend(_) | Self::Refused(_) | Self::Silent(..) | Self::Unspoken(_) => Blame::Service,
            Self::Loop(_) => Blame::Caller,
            Self::Link { error, .. } => error.blame(),
            Self::Unanswered { .. } => Blame::Remote,
        }
    }
    fn class(&self) -> Class {
        match self {
            Self::NoBackend(_) => Class::InfraDown,
            Self::Loop(_) => Class::Config,
            Self::Refused(_) | Self::Unspoken(_) => Class::Refused,
            Self::Silent(..) | Self::Unanswered { .. } => Class::Timeout,
            Self::Link { error, .. } => error.class,
        }
    }
}

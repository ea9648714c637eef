//! What can go wrong between a program and its daemon.
use stado_fleet::fault::{Blame, Class, Faulty};
use std::path::PathBuf;

/// The next step when nobody is there at all; another cause has another remedy.
fn how_to_start(cause: &std::io::Error) -> &'static str {
    use std::io::ErrorKind::{ConnectionRefused, NotFound, TimedOut};
    match cause.kind() {
        NotFound | ConnectionRefused => {
            "; no daemon runs here, start one with `stado resolver serve` or `devmeshd serve`"
        }
        TimedOut => "; a daemon is there and says nothing: `stado status` tells whether it is stopped, and what to do",
        _ => "",
    }
}

/// Why a call of the client library failed. Branch on [`Error::code`], never on the text.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// No daemon answered at the socket within the deadline, or it broke off.
    #[error("devmesh daemon unreachable at {}: {cause}{}", socket.display(), how_to_start(cause))]
    Unreachable {
        /// The socket that was asked.
        socket: PathBuf,
        /// What the system said.
        cause: std::io::Error,
    },
    /// The daemon answered with an error.
    #[error("{code}: {message}")]
    Api {
        /// HTTP status.
        status: u16,
        /// Stable code of the contract (`name_conflict`, `registration_not_found`, …); `internal_error` for an answer
        /// that is not the daemon's error envelope.
        code: String,
        /// Sentence for people, or the raw body.
        message: String,
    },
    /// The options cannot be sent.
    #[error("devmesh: {0}")]
    Invalid(String),
    /// The program's own listener could not be bound or has failed.
    #[error("devmesh: own listener: {0}")]
    Listener(#[from] std::io::Error),
}

impl Error {
    /// The daemon's error code, when it answered one.
    pub fn code(&self) -> Option<&str> {
        match self {
            Self::Api { code, .. } => Some(code),
            _ => None,
        }
    }

    /// Whether another owner holds the name, its kind or its hostname.
    pub fn is_conflict(&self) -> bool {
        matches!(self, Self::Api { status: 409, .. })
    }

    /// Whether the same request may succeed later without the program changing it: the daemon is away or busy, or
    /// another owner still holds the name.
    pub fn may_pass(&self) -> bool {
        match self {
            Self::Unreachable { .. } => true,
            Self::Api { status, .. } => matches!(status, 404 | 409 | 429) || *status >= 500,
            Self::Invalid(_) | Self::Listener(_) => false,
        }
    }
}

impl Faulty for Error {
    fn blame(&self) -> Blame {
        match self {
            Self::Unreachable { .. } | Self::Listener(_) => Blame::ThisHost,
            Self::Api { status: 401 | 403, .. } => Blame::Credentials,
            Self::Api { status, .. } if *status >= 500 => Blame::ThisHost,
            Self::Api { .. } | Self::Invalid(_) => Blame::Caller,
        }
    }

    fn class(&self) -> Class {
        match self {
            Self::Unreachable { .. } => Class::InfraDown,
            Self::Listener(_) => Class::Config,
            Self::Invalid(_) => Class::Usage,
            Self::Api { status, .. } => match status {
                401 | 403 => Class::Auth,
                404 => Class::NotFound,
                409 => Class::Refused,
                429 => Class::RateLimit,
                503 => Class::InfraDown,
                400..=499 => Class::Config,
                _ => Class::Unknown,
            },
        }
    }

    fn retry_helps(&self) -> bool {
        self.may_pass()
    }
}

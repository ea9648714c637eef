//! Why a mesh cannot start, and why a request is refused. Sentences and codes of mesh contract §1.4 and §4.
use crate::conn::BindError;
use stado_fleet::disk::DiskError;
use stado_fleet::fault::{Blame, Class, Faulty};
use std::path::PathBuf;

/// A mesh that cannot start.
#[derive(Debug, thiserror::Error)]
pub enum MeshError {
    /// A value of the configuration.
    #[error("{0}")]
    Config(String),
    /// Another daemon works on the same state.
    #[error(
        "the state file {path} is in use by another daemon{holder}: stop it first, or give this one a state file of its own",
        path = path.display(),
        holder = pid.map(|pid| format!(" (pid {pid})")).unwrap_or_default()
    )]
    Locked {
        /// The state file.
        path: PathBuf,
        /// Who holds it, where that can be told.
        pid: Option<u32>,
    },
    /// A newer daemon wrote the file.
    #[error("state file {path} has unsupported version {found} (want <= 1); refusing to overwrite", path = path.display())]
    Version {
        /// The state file.
        path: PathBuf,
        /// Its version, as written.
        found: String,
    },
    /// The file system said no.
    #[error(transparent)]
    Disk(#[from] DiskError),
}

impl Faulty for MeshError {
    fn blame(&self) -> Blame {
        Blame::ThisHost
    }
    fn class(&self) -> Class {
        match self {
            Self::Config(_) | Self::Version { .. } => Class::Config,
            Self::Locked { .. } => Class::Refused,
            Self::Disk(_) => Class::Unknown,
        }
    }
}

/// The stable codes that clients branch on (mesh contract §1.4).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Code {
    /// `invalid_request`
    InvalidRequest,
    /// `invalid_name`
    InvalidName,
    /// `invalid_backend`
    InvalidBackend,
    /// `unsupported_kind`
    UnsupportedKind,
    /// `unauthorized`
    Unauthorized,
    /// `registration_not_found`
    RegistrationNotFound,
    /// `service_not_found`
    ServiceNotFound,
    /// `name_conflict`
    NameConflict,
    /// `port_exhausted`
    PortExhausted,
    /// `internal_error`
    Internal,
}

impl Code {
    /// The word on the wire.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::InvalidRequest => "invalid_request",
            Self::InvalidName => "invalid_name",
            Self::InvalidBackend => "invalid_backend",
            Self::UnsupportedKind => "unsupported_kind",
            Self::Unauthorized => "unauthorized",
            Self::RegistrationNotFound => "registration_not_found",
            Self::ServiceNotFound => "service_not_found",
            Self::NameConflict => "name_conflict",
            Self::PortExhausted => "port_exhausted",
            Self::Internal => "internal_error",
        }
    }
}

/// A request that is not carried out; `Display` is the message on the wire.
#[derive(Debug, thiserror::Error)]
pub enum Refusal {
    /// The body, or a value in it.
    #[error("{0}")]
    Request(String),
    /// An `Idempotency-Key` that was used for another request.
    #[error("Idempotency-Key {0} was used for another registration; use a new key for a different body")]
    KeyReused(String),
    /// The service name.
    #[error("{0}")]
    Name(String),
    /// The backend address.
    #[error("{0}")]
    Backend(String),
    /// The kind; the text is already quoted.
    #[error("kind {0} is not supported")]
    Kind(String),
    /// The lease token is missing or wrong.
    #[error("invalid lease token")]
    Token,
    /// No such registration, or its lease has run out.
    #[error("registration {0} is unknown")]
    NoRegistration(String),
    /// No such service.
    #[error("service {0} is unknown")]
    NoService(String),
    /// The name, the hostname or the port belongs to someone else now.
    #[error("{0}")]
    Conflict(String),
    /// Every port of the range is taken or remembered.
    #[error("no free frontend port in range {min}-{max}")]
    Exhausted {
        /// First port.
        min: u16,
        /// Last port.
        max: u16,
    },
    /// The change could not be made durable and was taken back; a new port is free again.
    #[error("{step}: {source}")]
    NotDurable {
        /// What was attempted.
        step: &'static str,
        /// Why it failed.
        source: DiskError,
    },
    /// The asked-for port could not be bound.
    #[error("{0}")]
    Busy(BindError),
    /// Another process has taken the mesh over.
    #[error("this daemon was taken over by another one; ask that one")]
    HandedOver,
    /// A defect of ours.
    #[error("internal error")]
    Internal,
}

impl Refusal {
    /// The stable code.
    pub fn code(&self) -> Code {
        match self {
            Self::Request(_) | Self::KeyReused(_) => Code::InvalidRequest,
            Self::Name(_) => Code::InvalidName,
            Self::Backend(_) => Code::InvalidBackend,
            Self::Kind(_) => Code::UnsupportedKind,
            Self::Token => Code::Unauthorized,
            Self::NoRegistration(_) => Code::RegistrationNotFound,
            Self::NoService(_) => Code::ServiceNotFound,
            Self::Conflict(_) | Self::Busy(_) => Code::NameConflict,
            Self::Exhausted { .. } => Code::PortExhausted,
            Self::NotDurable { .. } | Self::HandedOver | Self::Internal => Code::Internal,
        }
    }
}

impl Faulty for Refusal {
    fn blame(&self) -> Blame {
        match self.code() {
            Code::Unauthorized => Blame::Credentials,
            Code::PortExhausted => Blame::ThisHost,
            Code::Internal if matches!(self, Self::NotDurable { .. }) => Blame::ThisHost,
            Code::Internal => Blame::Stado,
            _ => Blame::Caller,
        }
    }
    fn class(&self) -> Class {
        match self.code() {
            Code::Unauthorized => Class::Auth,
            Code::RegistrationNotFound | Code::ServiceNotFound => Class::NotFound,
            Code::NameConflict => Class::Refused,
            Code::PortExhausted => Class::InfraDown,
            Code::Internal => Class::Unknown,
            _ => Class::Config,
        }
    }
}

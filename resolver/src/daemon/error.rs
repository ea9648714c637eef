//! Why a daemon does not start, or ends by itself.
use super::handover::TakeError;
use crate::api::control::SocketError;
use crate::apply::api_slot::ApiBindError;
use crate::http::tls::LoadError;
use crate::mesh::MeshError;
use crate::publish::PublishError;
use stado_fleet::fault::{Blame, Class, Faulty};

/// Why a daemon does not start, or ends by itself. Everything else is unserved or backed off from, and stops nothing.
#[derive(Debug, thiserror::Error)]
pub enum DaemonError {
    /// The control socket of a mesh alone.
    #[error(transparent)]
    Socket(#[from] SocketError),
    /// The state of a mesh alone.
    #[error(transparent)]
    Mesh(#[from] MeshError),
    /// The resolver lock is another process's.
    #[error(transparent)]
    Publish(#[from] PublishError),
    /// The declared resolution API, while starting.
    #[error(transparent)]
    Api(#[from] ApiBindError),
    /// The certificate pair of a mesh alone.
    #[error(transparent)]
    Certificate(#[from] LoadError),
    /// The hand-over from the running daemon, which goes on.
    #[error(transparent)]
    TakeOver(#[from] TakeError),
    /// A task of the daemon ended unexpectedly.
    #[error("the resolver's refresh loop ended unexpectedly: {0}; please report this with the log")]
    Lost(String),
}

impl Faulty for DaemonError {
    fn blame(&self) -> Blame {
        match self {
            Self::Socket(error) => error.blame(),
            Self::Mesh(error) => error.blame(),
            Self::Publish(error) => error.blame(),
            Self::TakeOver(error) => error.blame(),
            Self::Api(_) | Self::Certificate(_) => Blame::ThisHost,
            Self::Lost(_) => Blame::Stado,
        }
    }
    fn class(&self) -> Class {
        match self {
            Self::Socket(error) => error.class(),
            Self::Mesh(error) => error.class(),
            Self::Publish(error) => error.class(),
            Self::TakeOver(error) => error.class(),
            Self::Api(_) => Class::Refused,
            Self::Certificate(error) => error.class(),
            Self::Lost(_) => Class::Unknown,
        }
    }
}

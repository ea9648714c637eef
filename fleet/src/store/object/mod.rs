//! Another host's object API as a store (fleet contract §2.4): HTTPS, or HTTP on loopback; no redirects; one response a
//! connection.
mod answer;
mod api;
mod name;
mod origin;
mod registry;
#[cfg(test)]
mod tests;
pub(crate) mod token;

pub use super::http::Origin;
pub use api::{ObjectApi, Stat};
pub use name::ObjectName;
pub use origin::{Address, STORAGE_URL};
pub use registry::{ObjectStore, REGISTRY_OBJECT};
pub use token::read as read_token;

use std::net::SocketAddr;
use std::path::PathBuf;

/// Where an object API is, and how it is asked.
#[derive(Debug, Clone)]
pub struct ObjectConfig {
    /// `storage.stado.url`.
    pub address: Address,
    /// `storage.stado.token_file`: owner-only, one line; read at each request, so that a new token needs no restart.
    pub token_file: PathBuf,
    /// `storage.stado.ca_file`: PEM roots beside those of the system.
    pub ca_file: Option<PathBuf>,
}

/// What this host's resolver knows about the way to an address. Read before each request.
pub trait Routes: Send + Sync + std::fmt::Debug {
    /// The adapter that this host's resolver serves for a service and consumer.
    ///
    /// # Errors
    /// A sentence, when none is published.
    fn adapter(&self, service: &str, consumer: &str) -> Result<SocketAddr, String>;
    /// Why a request to this address would stand behind requests that nobody answers (§4.9).
    fn held(&self, addr: SocketAddr) -> Option<String>;
}

/// A host without a resolver.
#[derive(Debug, Clone, Copy, Default)]
pub struct NoRoutes;

impl Routes for NoRoutes {
    fn adapter(&self, service: &str, consumer: &str) -> Result<SocketAddr, String> {
        Err(format!("no resolver of this host serves {service} for consumer {consumer}; see `stado resolver status`"))
    }
    fn held(&self, _: SocketAddr) -> Option<String> {
        None
    }
}

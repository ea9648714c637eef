//! TLS for the router (proxy rule 20): which certificate a client is shown, until when it may be, and what the rest get.
//!
//! Read in this order: [`Tls::load`] reads what is configured, `accept` leads one connection from its first byte to a
//! [`TlsConn`], `choose` finds the certificate for a name, `shelf` keeps one pair of files current, [`authority`] makes
//! certificates for local names on demand.

mod accept;
mod alert;
pub mod authority;
pub mod backend;
mod choose;
mod identity;
mod names;
mod pair;
mod pem;
mod problem;
mod shelf;
mod stamp;
mod status;
#[cfg(test)]
pub(super) mod tests;
mod x509;

pub use accept::{Alpn, TlsConn, Wire};
pub use names::CertNames;
pub use pair::Pair;
pub use pem::LoadError;
pub use problem::TlsProblem;
pub use status::CertStatus;

use authority::AuthorityShelf;
use shelf::Shelf;
use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::Mutex;
use std::time::{Duration, Instant};

/// One certificate with its key: two PEM files.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct PairFiles {
    /// The certificate, followed by those between it and the root.
    pub cert: PathBuf,
    /// Its private key, not encrypted.
    pub key: PathBuf,
}

/// What the TLS side of the router is started with.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TlsSettings {
    /// The pair that must load, or the daemon does not start (mesh contract §4).
    pub pair: Option<PairFiles>,
    /// Further pairs. One that does not load is said and tried again when its files change.
    pub more: Vec<PairFiles>,
    /// Folder of the local authority; nothing is made where it holds none.
    pub authority: Option<PathBuf>,
    /// From the first byte to the end of the handshake (proxy rule 19).
    pub hello: Duration,
}
impl Default for TlsSettings {
    fn default() -> Self {
        Self { pair: None, more: Vec::new(), authority: None, hello: Duration::from_secs(30) }
    }
}

/// The certificates of the router. Shared by all its TLS listeners.
#[derive(Debug)]
pub struct Tls {
    shelves: Vec<Shelf>,
    authority: Option<AuthorityShelf>,
    pub(super) hello: Duration,
    looked: Mutex<Instant>,
    /// Lines of the log of the last minute.
    told: Mutex<HashMap<String, Instant>>,
}

impl Tls {
    /// Reads everything once. `None` when nothing is configured that could serve a name: then no TLS listener is opened.
    /// An error when the pair that must load does not, or when no certificate at all is left.
    pub fn load(settings: TlsSettings) -> Result<Option<Self>, LoadError> {
        let mut shelves = Vec::new();
        if let Some(pair) = settings.pair {
            shelves.push(Shelf::load(pair)?);
        }
        let mut refused = None;
        for pair in settings.more {
            let shelf = Shelf::open(pair);
            refused = refused.or_else(|| shelf.error());
            shelves.push(shelf);
        }
        let authority = match settings.authority.map(AuthorityShelf::open) {
            None | Some(Ok(None)) => None,
            Some(Ok(Some(authority))) => Some(authority),
            Some(Err(error)) => {
                tracing::warn!(target: "stado::mesh", %error, "tls_authority_not_loaded");
                refused = refused.or(Some(error));
                None
            }
        };
        let anything = authority.is_some() || shelves.iter().any(|shelf| shelf.identity().is_some());
        match refused {
            Some(error) if !anything => Err(error),
            _ if !anything => Ok(None),
            _ => Ok(Some(Self {
                shelves,
                authority,
                hello: settings.hello,
                looked: Mutex::new(Instant::now()),
                told: Mutex::default(),
            })),
        }
    }
}

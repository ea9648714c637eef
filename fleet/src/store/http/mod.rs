//! What the stores and the vaults that are reached over HTTP share: one request on a connection of its own, its deadlines, its TLS. Nothing is
//! retried here, no redirect is followed, and whoever asks is told whether the other side may have read the request.
mod exchange;
mod origin;
mod secret;
mod tls;

pub use origin::Origin;
pub use secret::{Secret, owner_only};
pub use tls::Tls;

pub(crate) use exchange::{Answer, Ask, Deadlines, Lost, Reply, exchange, open};
pub(crate) use origin::is_loopback;
pub(crate) use secret::{Unusable, read as read_secret};

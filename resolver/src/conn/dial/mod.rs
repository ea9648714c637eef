//! Reaching what stands behind a frontend, within one budget.
mod error;
mod local;
mod own;
mod remote;

pub(super) use error::DialError;
pub use own::OwnListeners;
pub use remote::{Dialer, NoFleet, Opening};

use super::Backend;
use super::shared::Shared;
use stado_fleet::link::RemoteStream;
use std::pin::Pin;
use tokio::net::TcpStream;

/// The far end of a connection.
pub(super) enum Upstream {
    /// A socket of this host.
    Local(TcpStream),
    /// A stream to another host.
    Remote(Pin<Box<dyn RemoteStream>>),
}

/// Dials or opens what `backend` names.
pub(super) async fn dial(backend: &Backend, shared: &Shared) -> Result<Upstream, DialError> {
    match backend {
        Backend::None(reason) => Err(DialError::NoBackend(reason.clone())),
        Backend::Local(addr) => local::connect(*addr, shared).await.map(Upstream::Local),
        Backend::Fleet(route) if route.local => local::connect(route.endpoint.addr, shared).await.map(Upstream::Local),
        Backend::Fleet(route) => remote::open(route, shared).await.map(Upstream::Remote),
    }
}

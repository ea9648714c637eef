//! Reaching what stands behind a frontend, within one budget.
mod error;
mod local;
#[cfg_attr(not(target_os = "linux"), path = "elsewhere.rs")]
mod loopback;
mod own;
mod remote;

pub(crate) use error::DialError;
pub use own::OwnListeners;
pub use remote::{Dialer, NoFleet, Opening};

use super::{Backend, FrontendId};
use stado_fleet::link::RemoteStream;
use std::pin::Pin;
use std::sync::atomic::AtomicU8;
use std::time::Duration;
use tokio::net::TcpStream;

/// The far end of a connection.
pub(crate) enum Upstream {
    /// A socket of this host.
    Local(TcpStream),
    /// A stream to another host.
    Remote(Pin<Box<dyn RemoteStream>>),
}

/// Who wants a backend reached, and for how long.
#[derive(Clone, Copy)]
pub(crate) struct Asker<'a> {
    /// The frontend that it is for.
    pub(crate) id: &'a FrontendId,
    /// Deadline of a dial or channel open.
    pub(crate) budget: Duration,
    /// Which loopback family answered last for a backend named `localhost`.
    pub(crate) answered_last: &'a AtomicU8,
    /// What is never a backend.
    pub(crate) own: &'a OwnListeners,
    /// Way to other hosts.
    pub(crate) dialer: &'a dyn Dialer,
}

/// What stands behind a mesh frontend of this daemon, and never behind another one behind that.
async fn step(behind: &Backend, asker: &Asker<'_>) -> Result<Upstream, DialError> {
    match behind {
        Backend::None(reason) => Err(DialError::NoBackend(reason.clone())),
        Backend::Local(addr) => local::connect(*addr, asker).await.map(Upstream::Local),
        Backend::Fleet(route) if route.local => local::connect(route.endpoint.addr, asker).await.map(Upstream::Local),
        Backend::Fleet(route) => remote::open(route, asker).await.map(Upstream::Remote),
    }
}

/// Dials or opens what `backend` names.
pub(crate) async fn dial(backend: &Backend, asker: &Asker<'_>) -> Result<Upstream, DialError> {
    match backend {
        Backend::None(reason) => Err(DialError::NoBackend(reason.clone())),
        Backend::Local(addr) => local::connect(*addr, asker).await.map(Upstream::Local),
        Backend::Fleet(route) if route.local => match asker.own.behind(route.endpoint.addr) {
            Some(behind) => step(&behind, asker).await,
            None => local::connect(route.endpoint.addr, asker).await.map(Upstream::Local),
        },
        Backend::Fleet(route) => remote::open(route, asker).await.map(Upstream::Remote),
    }
}

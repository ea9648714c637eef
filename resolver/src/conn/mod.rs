//! accept → route → dial → copy → ledger: the one runtime of mesh frontends and fleet adapters.
//!
//! Read in this order: [`bind`] makes a port ours, [`Frontend`] owns it, `accept` takes connections from it, `walk` leads
//! one connection through the five steps, `dial` reaches what stands behind, `copy` moves the bytes and [`ledger`] is told.

mod accept;
mod bind;
mod copy;
mod cut;
mod descriptors;
mod dial;
mod ended;
mod frontend;
mod hold;
mod http_sniff;
mod lanes;
pub mod ledger;
mod listener;
mod refusal;
mod shared;
#[cfg(test)]
mod tests;
mod walk;

pub use bind::{BindError, Bound, Families, Lendable, Lent, Reach, bind, holder_of, reach, refused};
pub(crate) use bind::{describe_missing, listen, listens, other_half};
pub(crate) use copy::{Bulk, End, relay_ends};
pub(crate) use descriptors::Claim;
pub use descriptors::Descriptors;
pub(crate) use dial::{Asker, DialError, Upstream, dial};
pub use dial::{Dialer, NoFleet, Opening, OwnListeners};
pub use ended::why_ended;
pub use frontend::{Ending, Frontend};
pub use hold::Hold;
pub use lanes::Lanes;
pub(crate) use walk::news;

use stado_fleet::directory::Route;
use stado_fleet::name::LoopbackAddr;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// What stands behind a frontend now.
#[derive(Debug, Clone)]
pub enum Backend {
    /// A loopback address of this host.
    Local(LoopbackAddr),
    /// A service of the directory, on this host or another.
    Fleet(Arc<Route>),
    /// Nothing, and why (shown in `list` and status).
    None(Arc<str>),
}

impl Backend {
    /// Whether it is not the host that `other` is on.
    pub(crate) fn is_elsewhere(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Fleet(now), Self::Fleet(before)) => now.active_host != before.active_host,
            _ => true,
        }
    }
}

/// What a frontend is for; fixed for its lifetime. Every ledger entry carries it.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct FrontendId {
    /// Service name.
    pub service: Arc<str>,
    /// Consumer, for adapters; `None` for mesh services.
    pub consumer: Option<Arc<str>>,
    /// Bound address; of a hostname of the router, which has no port of its own, port 0.
    pub bind: SocketAddr,
}
impl FrontendId {
    /// Whether it stands for a hostname of the router.
    pub(crate) fn is_hostname(&self) -> bool {
        self.bind.port() == 0
    }
}

/// The directory generation this host holds now; named in the line that every adapter connection logs (fleet contract §4.5).
#[derive(Debug, Clone, Default)]
pub struct HeldGeneration(Arc<AtomicU64>);
impl HeldGeneration {
    /// Records the generation whose routes are in force.
    pub fn set(&self, generation: u64) {
        self.0.store(generation, Ordering::Relaxed);
    }
    /// The generation in force, 0 before the first.
    pub fn get(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

/// Bounds that no single service may pass.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Connections of one service at a time; the excess is closed and counted.
    pub connections: usize,
    /// How long a half-closed pair lives without a byte (proxy rule 5).
    pub linger: Duration,
}
impl Default for Limits {
    fn default() -> Self {
        Self { connections: 4096, linger: Duration::from_secs(15 * 60) }
    }
}

/// Shared by all frontends of a daemon. Make it once, with [`Context::new`], after the descriptor limit was raised.
#[derive(Clone, Debug)]
pub struct Context {
    /// Way to other hosts.
    pub dialer: Arc<dyn Dialer>,
    /// Where connections are entered.
    pub ledger: ledger::Ledger,
    /// Directory generation in force.
    pub generation: HeldGeneration,
    /// Every address this daemon listens on: never a backend (proxy rule 4). Frontends enter themselves.
    pub own: OwnListeners,
    /// Bounds of each service.
    pub limits: Limits,
    /// The threads that carry connections.
    pub lanes: Lanes,
    /// The reserve of descriptors that accepting leaves alone.
    pub descriptors: Arc<Descriptors>,
    /// Pauses accepting.
    pub hold: Hold,
}
impl Context {
    /// A context with default limits and nothing entered yet.
    pub fn new(dialer: Arc<dyn Dialer>, ledger: ledger::Ledger) -> Self {
        Self {
            dialer,
            ledger,
            generation: HeldGeneration::default(),
            own: OwnListeners::default(),
            limits: Limits::default(),
            // Before the descriptors, which count what is open already.
            lanes: Lanes::default(),
            descriptors: Arc::default(),
            hold: Hold::default(),
        }
    }
}

//! Which port a name gets: remembered, preferred, scan, exhaustion; allocated by binding it
//! (`mesh.md`, bind-first allocation; mesh contract §4; proxy rule 2).
use crate::conn::{self, BindError, Bound, Families};
use std::collections::HashMap;
use std::net::{IpAddr, SocketAddr};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Which stage gave the port.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Stage {
    /// The port of an earlier run.
    Remembered,
    /// The port that the producer asked for.
    Preferred,
    /// The first free one from the name's place in the range.
    Scanned,
}

/// What is asked of the allocator.
#[derive(Debug, Clone, Copy)]
pub struct Wanted<'a> {
    /// Who the port is reserved for, as people are told: `service checkout.postgres`, `adapter db/web`.
    pub owner: &'a str,
    /// The name whose hash decides where the scan starts.
    pub name: &'a str,
    /// The port of an earlier run.
    pub remembered: Option<u16>,
    /// The port that was asked for; anything that is no port falls through.
    pub preferred: i64,
}

/// A port that is ours.
#[derive(Debug)]
pub struct Allocation<B = Bound> {
    /// Number.
    pub port: u16,
    /// The listeners.
    pub bound: B,
    /// How it was found.
    pub stage: Stage,
}

/// Why a port that was named cannot be had.
#[derive(Debug)]
pub enum ClaimError {
    /// It is kept for someone else.
    Kept(Arc<str>),
    /// It cannot be bound.
    Busy(BindError),
}

/// A range, and the ports in and outside it that belong to someone even while nobody binds them.
#[derive(Debug)]
pub struct Allocator {
    host: IpAddr,
    range: Mutex<(u16, u16)>,
    reserved: Mutex<HashMap<u16, Arc<str>>>,
}

impl Allocator {
    /// An allocator for the inclusive range on `host`.
    pub fn new(host: IpAddr, min: u16, max: u16) -> Self {
        Self { host, range: Mutex::new((min, max)), reserved: Mutex::default() }
    }

    /// The range.
    pub fn range(&self) -> (u16, u16) {
        *self.range.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Another range, for ports that are allocated from now on.
    pub fn set_range(&self, range: (u16, u16)) {
        *self.range.lock().unwrap_or_else(PoisonError::into_inner) = range;
    }

    /// `port` on this allocator's host.
    pub fn addr(&self, port: u16) -> SocketAddr {
        SocketAddr::new(self.host, port)
    }

    /// Keeps `port` for `owner`, unless it is kept for someone else already.
    pub fn reserve(&self, port: u16, owner: &str) -> bool {
        let mut reserved = self.reserved();
        let holder = reserved.entry(port).or_insert_with(|| owner.into());
        &**holder == owner
    }

    /// Who `port` is kept for.
    pub fn holder(&self, port: u16) -> Option<Arc<str>> {
        self.reserved().get(&port).cloned()
    }

    /// Gives `port` up, if it is kept for `owner`.
    pub fn release(&self, port: u16, owner: &str) {
        let mut reserved = self.reserved();
        if reserved.get(&port).is_some_and(|holder| &**holder == owner) {
            reserved.remove(&port);
        }
    }

    /// Gives up every port that is kept for `owner`.
    pub fn release_all(&self, owner: &str) {
        self.reserved().retain(|_, holder| &**holder != owner);
    }

    /// Ports kept for `from` are kept for `to`.
    pub fn transfer(&self, from: &str, to: &str) {
        let to: Arc<str> = to.into();
        for holder in self.reserved().values_mut().filter(|holder| &***holder == from) {
            *holder = to.clone();
        }
    }

    /// Binds exactly `port`, on both loopback families, and reserves it. Blocks as [`Allocator::allocate`] does.
    pub fn claim(&self, port: u16, owner: &str) -> Result<Bound, ClaimError> {
        let mut reserved = self.reserved();
        if let Some(holder) = reserved.get(&port).filter(|holder| &***holder != owner) {
            return Err(ClaimError::Kept(holder.clone()));
        }
        let bound = conn::bind(self.addr(port), Families::Both).map_err(ClaimError::Busy)?;
        reserved.insert(port, owner.into());
        Ok(bound)
    }

    /// Binds a port and reserves it. Blocks for as long as the binds take; call it off the serving threads.
    /// `avoid` names ports that no frontend may take although nobody listens there yet. `None`: the range is exhausted.
    pub fn allocate(&self, wanted: Wanted<'_>, avoid: impl Fn(u16) -> bool) -> Option<Allocation> {
        self.allocate_with(wanted, avoid, |port, families| conn::bind(self.addr(port), families).ok())
    }

    fn allocate_with<B>(
        &self,
        wanted: Wanted<'_>,
        avoid: impl Fn(u16) -> bool,
        mut bind: impl FnMut(u16, Families) -> Option<B>,
    ) -> Option<Allocation<B>> {
        let mut reserved = self.reserved();
        let ours = |port: u16| reserved.get(&port).is_none_or(|holder| &**holder == wanted.owner);
        let (min, max) = self.range();
        let found = candidates(wanted, min, max)
            .filter(|(port, _)| ours(*port) && !avoid(*port))
            .find_map(|(port, stage)| bind(port, stage.families()).map(|bound| Allocation { port, bound, stage }))?;
        reserved.insert(found.port, wanted.owner.into());
        Some(found)
    }

    fn reserved(&self) -> MutexGuard<'_, HashMap<u16, Arc<str>>> {
        self.reserved.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Stage {
    fn families(self) -> Families {
        match self {
            Self::Remembered => Families::AtLeastOne,
            Self::Preferred | Self::Scanned => Families::Both,
        }
    }

    /// For labels and logs.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Remembered => "remembered",
            Self::Preferred => "preferred",
            Self::Scanned => "scanned",
        }
    }
}

/// The ports to try, in order, each once. Pure.
pub fn candidates(wanted: Wanted<'_>, min: u16, max: u16) -> impl Iterator<Item = (u16, Stage)> {
    let remembered = wanted.remembered;
    let preferred = u16::try_from(wanted.preferred).ok().filter(|port| *port != 0 && Some(*port) != remembered);
    let size = u32::from(max.saturating_sub(min)) + 1;
    let start = fnv1a(wanted.name.as_bytes()) % size;
    let scan = (0..size)
        .filter_map(move |step| u16::try_from(u32::from(min) + (start + step) % size).ok())
        .filter(move |port| Some(*port) != remembered && Some(*port) != preferred)
        .map(|port| (port, Stage::Scanned));
    let first = remembered.map(|port| (port, Stage::Remembered));
    first.into_iter().chain(preferred.map(|port| (port, Stage::Preferred))).chain(scan)
}

/// FNV-1a, 32 bits.
fn fnv1a(bytes: &[u8]) -> u32 {
    bytes.iter().fold(0x811c_9dc5, |hash, byte| (hash ^ u32::from(*byte)).wrapping_mul(0x0100_0193))
}

#[cfg(test)]
#[path = "allocator_tests.rs"]
mod tests;

//! A port becomes ours by binding it; nothing asks whether it is free (proxy rules 1 and 2).
mod holder;
mod lend;
mod reach;
mod socket;

pub use holder::holder_of;
pub(crate) use lend::listens;
pub use lend::{Lendable, Lent};
pub use reach::{Reach, reach};
pub(super) use socket::INHERITS_NODELAY;

use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use tokio::net::TcpListener;

/// A port that is ours because it was bound, on one or both loopback families (proxy rule 2). Made by [`bind`], or
/// from listeners that another process bound ([`Bound::received`]).
#[derive(Debug)]
pub struct Bound {
    /// The address that people are given. Its own family is always ours.
    pub addr: SocketAddr,
    pub(crate) listeners: Vec<TcpListener>,
    /// Who holds the other family's half, when it is missing: `[::1]:15432 is held by pid 7 (nginx)`.
    pub missing_half: Option<String>,
}

impl Bound {
    /// The listeners, for an API that accepts by itself; the address's own family comes first.
    pub fn into_listeners(self) -> Vec<TcpListener> {
        self.listeners
    }

    /// Takes up sockets that were opened for this process and listen at `addr`, or at its other loopback family; `None`
    /// without one of `addr` itself. Must run inside a tokio runtime.
    pub(crate) fn inherited(addr: SocketAddr, sockets: Vec<std::net::TcpListener>) -> Option<Self> {
        let mut listeners = Vec::with_capacity(sockets.len());
        for socket in sockets {
            let own = socket.local_addr().ok()? == addr;
            socket.set_nonblocking(true).ok()?;
            let listener = TcpListener::from_std(socket).ok()?;
            if own { listeners.insert(0, listener) } else { listeners.push(listener) }
        }
        let first = listeners.first()?.local_addr().ok()?;
        (first == addr).then_some(Self { addr, listeners, missing_half: None })
    }

    /// With the other loopback half as well, or with what keeps it from us, where only one of them was opened for us.
    pub(crate) fn completed(mut self) -> Self {
        if self.listeners.len() < 2
            && self.missing_half.is_none()
            && let Err(error) = self.take_half()
        {
            self.missing_half = Some(describe_missing(&error));
        }
        self
    }

    /// Takes the other loopback half, where there is one.
    fn take_half(&mut self) -> Result<(), BindError> {
        let Some(half) = other_half(self.addr) else { return Ok(()) };
        match listen(half) {
            Ok(listener) => self.listeners.push(listener),
            Err(error) if no_such_family(&error.source) => {}
            Err(error) => return Err(error),
        }
        Ok(())
    }

    /// Whether a socket that listens at `at` is one of those that serve `addr`.
    pub(crate) fn serves(addr: SocketAddr, at: SocketAddr) -> bool {
        at == addr || other_half(addr) == Some(at)
    }
}

/// How much of both families a bind needs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Families {
    /// Half-taken ports are refused (preferred and scanned ports).
    Both,
    /// The family of the address is enough; the missing half is named in `missing_half` (remembered ports, adapter binds).
    AtLeastOne,
}

/// A port that could not be bound: the address and the cause. [`holder_of`] names the holder.
#[derive(Debug, thiserror::Error)]
#[error("could not bind {addr}: {source}")]
pub struct BindError {
    /// Address; the other half's, when that one failed.
    pub addr: SocketAddr,
    /// Cause.
    #[source]
    pub source: io::Error,
}
impl stado_fleet::fault::Faulty for BindError {
    fn blame(&self) -> stado_fleet::fault::Blame {
        stado_fleet::fault::Blame::ThisHost
    }
    fn class(&self) -> stado_fleet::fault::Class {
        match self.source.kind() {
            io::ErrorKind::AddrInUse => stado_fleet::fault::Class::Refused,
            io::ErrorKind::PermissionDenied => stado_fleet::fault::Class::Auth,
            _ => stado_fleet::fault::Class::InfraDown,
        }
    }
}

/// Binds `addr` with `SO_REUSEADDR`, never `SO_REUSEPORT`; `127.0.0.1` also takes `[::1]` of the same port and the other way
/// round, other addresses are bound alone. Must run inside a tokio runtime. Without IPv6 the other half is neither bound nor
/// missed.
pub fn bind(addr: SocketAddr, families: Families) -> Result<Bound, BindError> {
    if addr.port() == 0 {
        let source = io::Error::new(io::ErrorKind::InvalidInput, "a frontend needs a port of its own, not 0");
        return Err(BindError { addr, source });
    }
    let mut bound = Bound { addr, listeners: vec![listen(addr)?], missing_half: None };
    match bound.take_half() {
        Err(error) if families == Families::Both => return Err(error),
        Err(error) => bound.missing_half = Some(describe_missing(&error)),
        Ok(()) => {}
    }
    Ok(bound)
}

/// The same port on the other loopback family, for the two canonical loopback addresses.
pub(crate) fn other_half(addr: SocketAddr) -> Option<SocketAddr> {
    match addr.ip() {
        IpAddr::V4(Ipv4Addr::LOCALHOST) => Some(SocketAddr::new(Ipv6Addr::LOCALHOST.into(), addr.port())),
        IpAddr::V6(Ipv6Addr::LOCALHOST) => Some(SocketAddr::new(Ipv4Addr::LOCALHOST.into(), addr.port())),
        _ => None,
    }
}

pub(crate) fn listen(addr: SocketAddr) -> Result<TcpListener, BindError> {
    socket::listen(addr).map_err(|source| BindError { addr, source })
}

/// Whether this host lacks the address family altogether, which is no one's fault and worth no line.
pub(super) fn no_such_family(error: &io::Error) -> bool {
    use rustix::io::Errno;
    [Errno::ADDRNOTAVAIL, Errno::AFNOSUPPORT, Errno::PROTONOSUPPORT]
        .iter()
        .any(|errno| error.raw_os_error() == Some(errno.raw_os_error()))
}

/// Why an address could not be bound, with who holds it where that can be told.
pub fn refused(error: &BindError) -> String {
    match holder_of(error.addr) {
        Some(holder) => format!("{} is held by {holder}", error.addr),
        None => error.to_string(),
    }
}

/// One clause about a half that could not be bound, with its holder.
pub(crate) fn describe_missing(error: &BindError) -> String {
    if error.source.kind() == io::ErrorKind::AddrInUse {
        let holder = holder_of(error.addr).unwrap_or_else(|| "unknown".to_owned());
        format!("{} is held by {holder}", error.addr)
    } else {
        format!("{} cannot be bound: {}", error.addr, error.source)
    }
}

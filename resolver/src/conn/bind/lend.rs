//! Listeners that go to another process, and listeners that came from one (hand-over).
use super::{BindError, Bound, other_half};
use std::io;
use std::net::SocketAddr;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use tokio::net::TcpListener;

/// A listener on loan: holding it keeps the port taken.
pub type Lent = Arc<dyn AsFd + Send + Sync>;

/// The listeners of one address, for whoever wants to hand them over. It keeps none of them open.
#[derive(Debug, Default)]
pub struct Lendable(Mutex<Vec<Weak<dyn AsFd + Send + Sync>>>);

impl Lendable {
    /// Over listeners that somebody else owns.
    pub fn of<L: AsFd + Send + Sync + 'static>(listeners: &[Arc<L>]) -> Self {
        let lendable = Self::default();
        listeners.iter().for_each(|listener| lendable.add(listener));
        lendable
    }
    /// One more of the same address.
    pub fn add<L: AsFd + Send + Sync + 'static>(&self, listener: &Arc<L>) {
        let listener: Lent = listener.clone();
        self.lock().push(Arc::downgrade(&listener));
    }
    /// Those that are open now.
    pub fn lend(&self) -> Vec<Lent> {
        self.lock().iter().filter_map(Weak::upgrade).collect()
    }
    fn lock(&self) -> MutexGuard<'_, Vec<Weak<dyn AsFd + Send + Sync>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Bound {
    /// Takes up listeners that another process bound at `addr` and handed over. Each must listen, at `addr` or at the same
    /// port of the other loopback family; the address's own family must be among them. Must run inside a tokio runtime.
    pub fn received(addr: SocketAddr, sockets: Vec<OwnedFd>, missing_half: Option<String>) -> Result<Self, BindError> {
        let fail = |source| BindError { addr, source };
        let mut listeners = Vec::with_capacity(sockets.len());
        for socket in sockets {
            let (listener, at) = listening(socket).map_err(fail)?;
            if at == addr {
                listeners.insert(0, listener);
            } else if Some(at) == other_half(addr) {
                listeners.push(listener);
            } else {
                return Err(fail(io::Error::other(format!(
                    "the listener that was handed over for it listens at {at}"
                ))));
            }
        }
        match listeners.first().map(|first| first.local_addr()) {
            Some(Ok(at)) if at == addr => Ok(Self { addr, listeners, missing_half }),
            _ => Err(fail(io::Error::other("no listener at this address was handed over"))),
        }
    }
}

fn listening(socket: OwnedFd) -> io::Result<(TcpListener, SocketAddr)> {
    if !listens(&socket)? {
        return Err(io::Error::other("what was handed over for it is no listening socket"));
    }
    let socket = socket2::Socket::from(socket);
    socket.set_nonblocking(true)?;
    let listener = TcpListener::from_std(socket.into())?;
    let at = listener.local_addr()?;
    Ok((listener, at))
}

/// Whether a descriptor is a listening socket. Where the system does not tell, a wrong one fails at its first accept.
pub(crate) fn listens(socket: impl AsFd) -> io::Result<bool> {
    #[cfg(not(target_vendor = "apple"))]
    return match rustix::net::sockopt::socket_acceptconn(socket) {
        Err(rustix::io::Errno::NOTSOCK) => Ok(false),
        other => Ok(other?),
    };
    #[cfg(target_vendor = "apple")]
    return rustix::net::sockopt::socket_type(socket).map(|_| true).map_err(io::Error::from);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::conn::{Families, bind};

    fn copies(bound: &Bound) -> Vec<OwnedFd> {
        bound.listeners.iter().map(|listener| listener.as_fd().try_clone_to_owned().unwrap()).collect()
    }

    fn somewhere() -> Bound {
        let ports = (31_000..32_000).map(|port| SocketAddr::from(([127, 0, 0, 1], port)));
        ports.filter_map(|addr| bind(addr, Families::Both).ok()).next().unwrap()
    }

    #[tokio::test]
    async fn only_listeners_of_the_promised_address_are_taken_up() {
        let (bound, other) = (somewhere(), somewhere());
        let again = Bound::received(bound.addr, copies(&bound), None).unwrap();
        assert_eq!((again.addr, again.listeners.len()), (bound.addr, bound.listeners.len()));
        let refused = |sockets| Bound::received(bound.addr, sockets, None).unwrap_err().to_string();
        assert!(refused(copies(&other)).contains(&format!("listens at {}", other.addr)));
        assert!(refused(Vec::new()).contains("no listener"));
        let connected = std::net::TcpStream::connect(bound.addr).unwrap();
        assert!(refused(vec![connected.into()]).contains("no listening socket"));
        assert!(refused(vec![std::fs::File::open("/dev/null").unwrap().into()]).starts_with("could not bind"));
    }

    #[tokio::test]
    async fn lending_keeps_no_port_open() {
        let bound = somewhere();
        let addr = bound.addr;
        let listeners: Vec<_> = bound.into_listeners().into_iter().map(Arc::new).collect();
        let lendable = Lendable::of(&listeners);
        assert_eq!(lendable.lend().len(), listeners.len());
        drop(listeners);
        assert!(lendable.lend().is_empty() && std::net::TcpStream::connect(addr).is_err());
    }
}

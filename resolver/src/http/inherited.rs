//! Listening sockets that a service manager opened for this process, such as port 80 for an account that may not bind it.
use crate::conn::Bound;
use std::net::{SocketAddr, TcpListener};
use std::sync::{Arc, Mutex, PoisonError};

/// The sockets. Each is taken once, by whoever was asked to listen at its address.
#[derive(Debug, Clone, Default)]
pub struct Inherited(Arc<Mutex<Vec<TcpListener>>>);

impl Inherited {
    /// Over sockets that listen already.
    pub fn new(sockets: Vec<TcpListener>) -> Self {
        Self(Arc::new(Mutex::new(sockets)))
    }

    /// What listens at `asked`: one socket, or one for each loopback family. Must run inside a runtime.
    pub(crate) fn take(&self, asked: SocketAddr) -> Option<Bound> {
        let mut sockets = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let all = std::mem::take(&mut *sockets);
        let (fitting, rest): (Vec<TcpListener>, _) =
            all.into_iter().partition(|socket| socket.local_addr().is_ok_and(|at| Bound::serves(asked, at)));
        *sockets = rest;
        Bound::inherited(asked, fitting)
    }

    /// Where the sockets listen that nobody has taken.
    pub fn left(&self) -> Vec<SocketAddr> {
        let sockets = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        sockets.iter().filter_map(|socket| socket.local_addr().ok()).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_socket_is_taken_once_by_whoever_was_asked_to_listen_there() {
        let (here, other) = (TcpListener::bind("127.0.0.1:0").unwrap(), TcpListener::bind("127.0.0.1:0").unwrap());
        let (at, left) = (here.local_addr().unwrap(), other.local_addr().unwrap());
        let inherited = Inherited::new(vec![here, other]);
        let bound = inherited.take(at).unwrap();
        assert_eq!((bound.addr, bound.listeners.len()), (at, 1));
        assert!(inherited.take(at).is_none());
        assert_eq!(inherited.left(), [left]);
        assert!(std::net::TcpStream::connect(at).is_ok());
    }

    #[tokio::test]
    async fn a_socket_that_others_reach_does_not_stand_for_loopback() {
        let wide = TcpListener::bind("0.0.0.0:0").unwrap();
        let port = wide.local_addr().unwrap().port();
        assert!(Inherited::new(vec![wide]).take(SocketAddr::from(([127, 0, 0, 1], port))).is_none());
    }
}

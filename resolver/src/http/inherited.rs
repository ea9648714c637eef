//! Listening sockets that a service manager opened for this process, such as port 80 for an account that may not bind it.
use crate::conn::Bound;
use std::net::{SocketAddr, TcpListener};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// The sockets. Each is taken once, by whoever was asked to listen at its address; copies are kept, for the process that
/// this one becomes or hands over to, which could not open them either.
#[derive(Debug, Clone, Default)]
pub struct Inherited(Arc<Mutex<Sockets>>);

#[derive(Debug, Default)]
struct Sockets {
    /// Nobody has taken them.
    waiting: Vec<TcpListener>,
    kept: Vec<TcpListener>,
}

impl Inherited {
    /// Over sockets that listen already.
    pub fn new(sockets: Vec<TcpListener>) -> Self {
        let kept = sockets.iter().filter_map(|socket| socket.try_clone().ok()).collect();
        Self(Arc::new(Mutex::new(Sockets { waiting: sockets, kept })))
    }

    /// Takes up the router's listeners of another process; those at the addresses `passed` came from a service manager.
    pub(crate) fn receive(&self, listeners: Vec<TcpListener>, passed: &[SocketAddr]) {
        let mut sockets = self.lock();
        for listener in listeners {
            let Ok(at) = listener.local_addr() else { continue };
            // A manager may have passed the same socket to this process too.
            sockets.waiting.retain(|socket| socket.local_addr().is_ok_and(|other| other != at));
            let known = sockets.kept.iter().any(|socket| socket.local_addr().is_ok_and(|other| other == at));
            if passed.contains(&at) && !known {
                sockets.kept.extend(listener.try_clone());
            }
            sockets.waiting.push(listener);
        }
    }

    /// What listens at `asked`: one socket, or one for each loopback family. Must run inside a runtime.
    pub(crate) fn take(&self, asked: SocketAddr) -> Option<Bound> {
        let mut sockets = self.lock();
        let all = std::mem::take(&mut sockets.waiting);
        let (fitting, rest): (Vec<TcpListener>, _) =
            all.into_iter().partition(|socket| socket.local_addr().is_ok_and(|at| Bound::serves(asked, at)));
        sockets.waiting = rest;
        Bound::inherited(asked, fitting)
    }

    /// Where the sockets listen that nobody has taken.
    pub fn left(&self) -> Vec<SocketAddr> {
        addresses(&self.lock().waiting)
    }

    /// Where the sockets of a service manager listen.
    pub(crate) fn passed(&self) -> Vec<SocketAddr> {
        addresses(&self.lock().kept)
    }

    /// The copies. Without them a port closes with the last one that was taken.
    pub fn take_kept(&self) -> Vec<TcpListener> {
        std::mem::take(&mut self.lock().kept)
    }

    fn lock(&self) -> MutexGuard<'_, Sockets> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn addresses(sockets: &[TcpListener]) -> Vec<SocketAddr> {
    sockets.iter().filter_map(|socket| socket.local_addr().ok()).collect()
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

    #[tokio::test]
    async fn what_a_manager_passed_is_kept_through_a_hand_over_and_the_rest_is_not() {
        let (passed, bound) = (TcpListener::bind("127.0.0.1:0").unwrap(), TcpListener::bind("127.0.0.1:0").unwrap());
        let (at, other) = (passed.local_addr().unwrap(), bound.local_addr().unwrap());
        let before = Inherited::new(vec![passed.try_clone().unwrap()]);
        assert_eq!(before.passed(), [at]);
        let after = Inherited::new(vec![passed.try_clone().unwrap()]);
        after.receive(vec![passed, bound], &before.passed());
        assert_eq!(after.passed(), [at]);
        assert_eq!(after.take(at).unwrap().listeners.len(), 1, "the one socket, once");
        assert_eq!(after.left(), [other]);
        drop((before.take_kept(), before));
        assert_eq!(after.take_kept().len(), 1);
        assert!(after.passed().is_empty());
    }
}

//! A listener on the lane of its accept loop. What it accepts is not watched yet: the lane that gets it does that.
use super::shared::Shared;
use std::io;
use std::net::{SocketAddr, TcpStream};
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;
use tokio::net::TcpListener;

/// A bound listener, watched by the runtime that it was made in.
#[derive(Debug)]
pub(super) struct Listener(AsyncFd<Arc<std::net::TcpListener>>);

impl Listener {
    /// Watches it in the runtime that this is called in. One that cannot be watched here is closed, and said.
    #[expect(
        deprecated,
        reason = "what replaces it is unsafe, for descriptors that may close early; a std listener owns its own"
    )]
    pub(super) fn new(listener: Arc<std::net::TcpListener>, shared: &Shared) -> Option<Self> {
        let watched = AsyncFd::with_interest(listener, Interest::READABLE);
        watched.inspect_err(|error| lost(error, shared)).ok().map(Self)
    }

    /// Gives it back to the runtime that this is called in.
    pub(super) fn back(self) -> Option<TcpListener> {
        // One that is on loan at this moment is copied.
        let listener = Arc::try_unwrap(self.0.into_inner()).or_else(|lent| lent.try_clone());
        TcpListener::from_std(listener.ok()?).ok()
    }

    pub(super) fn poll_accept(&self, cx: &mut Context<'_>) -> Poll<io::Result<(TcpStream, SocketAddr)>> {
        loop {
            let mut ready = ready!(self.0.poll_read_ready(cx))?;
            if let Ok(accepted) = ready.try_io(|listener| accept(listener.get_ref())) {
                return Poll::Ready(accepted);
            }
        }
    }
}

/// Takes a listener over from the runtime that it was bound in. From here on it can be lent.
pub(super) fn unwatched(bound: TcpListener, shared: &Shared) -> Option<Arc<std::net::TcpListener>> {
    let listener = Arc::new(bound.into_std().inspect_err(|error| lost(error, shared)).ok()?);
    shared.lendable.add(&listener);
    Some(listener)
}

fn lost(error: &io::Error, shared: &Shared) {
    tracing::error!(target: "stado::mesh", frontend = %shared.id.bind, %error, "listener_lost");
}

/// One call does it all.
#[cfg(target_os = "linux")]
fn accept(listener: &std::net::TcpListener) -> io::Result<(TcpStream, SocketAddr)> {
    use rustix::net::{SocketFlags, acceptfrom_with};
    let (client, peer) = acceptfrom_with(listener, SocketFlags::NONBLOCK | SocketFlags::CLOEXEC)?;
    let peer = peer.and_then(|peer| SocketAddr::try_from(peer).ok());
    // A TCP peer has an address.
    Ok((client.into(), peer.ok_or(io::ErrorKind::ConnectionAborted)?))
}

#[cfg(not(target_os = "linux"))]
fn accept(listener: &std::net::TcpListener) -> io::Result<(TcpStream, SocketAddr)> {
    let (client, peer) = listener.accept()?;
    client.set_nonblocking(true)?;
    Ok((client, peer))
}

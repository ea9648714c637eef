//! A listener for requests of other programs and hosts: TLS with a pair of files, or plain HTTP on loopback alone. Accepting,
//! handing over, closing; what is said on a connection is its owner's.
use crate::http::tls::{LoadError, Pair, PairFiles};
use std::io;
use std::net::SocketAddr;
use std::sync::{Arc, Weak};
use std::time::Duration;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;
use tokio_rustls::server::TlsStream;
use tokio_util::either::Either;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

/// Connections at once.
const CONCURRENT: usize = 256;
/// From accept to the end of a handshake.
const HANDSHAKE: Duration = Duration::from_secs(10);
/// After an accept that failed: without descriptors it fails at once, again and again.
const PAUSE: Duration = Duration::from_millis(200);

/// A connection whose bytes are those of HTTP.
pub(crate) type Conn = Either<TcpStream, Box<TlsStream<TcpStream>>>;

/// What is spoken beneath HTTP.
#[derive(Debug, Clone, Default)]
pub struct Security(Option<Arc<Pair>>);

impl Security {
    /// Nothing: on loopback alone.
    pub fn plain() -> Self {
        Self(None)
    }

    /// TLS.
    ///
    /// # Errors
    /// A pair that does not load.
    pub fn tls(files: PairFiles) -> Result<Self, LoadError> {
        Ok(Self(Some(Arc::new(Pair::load(files)?))))
    }

    /// Whether it is TLS.
    pub fn is_tls(&self) -> bool {
        self.0.is_some()
    }

    /// `https` or `http`.
    pub fn scheme(&self) -> &'static str {
        if self.is_tls() { "https" } else { "http" }
    }

    /// Refuses an address at which others could read along.
    ///
    /// # Errors
    /// A sentence; `what` is who wants to listen.
    pub fn check(&self, what: &str, bind: SocketAddr) -> io::Result<()> {
        if self.is_tls() || bind.ip().is_loopback() {
            return Ok(());
        }
        Err(io::Error::other(format!(
            "{what} without TLS must bind a loopback address, and {bind} is none: give it a certificate and its key, or \
             listen on 127.0.0.1"
        )))
    }

    /// `None`: the client went, or does not speak TLS.
    async fn accept(&self, stream: TcpStream) -> Option<Conn> {
        let Some(pair) = &self.0 else { return Some(Either::Left(stream)) };
        let acceptor = pair.acceptor()?;
        let shaken = tokio::time::timeout(HANDSHAKE, acceptor.accept(stream)).await.ok()?.ok()?;
        Some(Either::Right(Box::new(shaken)))
    }
}

/// A running listener. Dropping it closes it; connections that are open are served to their end.
#[derive(Debug)]
pub(crate) struct Listening {
    bind: SocketAddr,
    stop: CancellationToken,
    tasks: TaskTracker,
    listener: Weak<TcpListener>,
}

impl Listening {
    /// Serves each connection with `serve`. `what` is said when something is wrong.
    ///
    /// # Errors
    /// When the listener's address cannot be told, or may not be used without TLS.
    pub(crate) fn start<F, Fut>(
        what: &'static str,
        listener: Arc<TcpListener>,
        security: Security,
        serve: F,
    ) -> io::Result<Self>
    where
        F: Fn(Conn, SocketAddr) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = ()> + Send + 'static,
    {
        let bind = listener.local_addr()?;
        security.check(what, bind)?;
        let (stop, tasks) = (CancellationToken::new(), TaskTracker::new());
        let weak = Arc::downgrade(&listener);
        // Beside the tasks that are counted and waited for: it ends when it is told to.
        tokio::spawn(accept(what, listener, security, Arc::new(serve), stop.clone(), tasks.clone()));
        Ok(Self { bind, stop, tasks, listener: weak })
    }

    /// Where it listens.
    pub(crate) fn bind(&self) -> SocketAddr {
        self.bind
    }

    /// The listener, to hand it over to another process.
    pub(crate) fn lend(&self) -> Option<Arc<TcpListener>> {
        self.listener.upgrade()
    }

    /// Connections that are open now.
    pub(crate) fn open(&self) -> usize {
        self.tasks.len()
    }

    /// Stops accepting.
    pub(crate) fn leave(&self) {
        self.stop.cancel();
    }

    /// Stops accepting and waits up to `grace` for what is open.
    pub(crate) async fn close(self, grace: Duration) {
        self.stop.cancel();
        self.tasks.close();
        let _ = tokio::time::timeout(grace, self.tasks.wait()).await;
    }
}

impl Drop for Listening {
    fn drop(&mut self) {
        self.stop.cancel();
    }
}

async fn accept<F, Fut>(
    what: &'static str,
    listener: Arc<TcpListener>,
    security: Security,
    serve: Arc<F>,
    stop: CancellationToken,
    tasks: TaskTracker,
) where
    F: Fn(Conn, SocketAddr) -> Fut + Send + Sync + 'static,
    Fut: Future<Output = ()> + Send + 'static,
{
    let slots = Arc::new(Semaphore::new(CONCURRENT));
    loop {
        let next = async {
            let slot = Arc::clone(&slots).acquire_owned().await;
            (slot, listener.accept().await)
        };
        let (slot, accepted) = tokio::select! {
            biased;
            () = stop.cancelled() => return,
            next = next => next,
        };
        match accepted {
            Ok((stream, peer)) => {
                let (security, serve) = (security.clone(), Arc::clone(&serve));
                tasks.spawn(async move {
                    let _slot = slot;
                    if let Some(conn) = security.accept(stream).await {
                        serve(conn, peer).await;
                    }
                });
            }
            Err(error) => {
                tracing::warn!(target: "stado::fleet", "{what} cannot accept: {error}");
                tokio::time::sleep(PAUSE).await;
            }
        }
    }
}

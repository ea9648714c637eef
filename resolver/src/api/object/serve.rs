//! Accepting, answering, closing.
use super::access::Access;
use super::answer::{Answer, Body};
use super::objects::Objects;
use super::request;
use super::routes::Api;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

/// Requests at once.
const CONCURRENT: usize = 256;
/// A client that takes nothing for so long has gone.
const IDLE: Duration = Duration::from_secs(60);
/// How long a client may take to close after its answer.
const GOODBYE: Duration = Duration::from_secs(2);
const PIECE: usize = 256 << 10;

/// A running object API. Dropping it closes the listener; requests under way are answered.
#[derive(Debug)]
pub struct ObjectServer {
    bind: SocketAddr,
    stop: CancellationToken,
    tasks: TaskTracker,
}

impl ObjectServer {
    /// Starts answering.
    ///
    /// # Errors
    /// When the listener's address cannot be told, or is not loopback.
    pub fn start(listener: TcpListener, objects: Objects, access: Access) -> std::io::Result<Self> {
        let bind = listener.local_addr()?;
        if !bind.ip().is_loopback() {
            return Err(std::io::Error::other(format!(
                "the object API must bind a loopback address, and {bind} is none"
            )));
        }
        let (stop, tasks) = (CancellationToken::new(), TaskTracker::new());
        let api = Arc::new(Api { objects, access: Arc::new(access) });
        tasks.spawn(accept(listener, api, stop.clone(), tasks.clone()));
        Ok(Self { bind, stop, tasks })
    }

    /// Where it listens.
    pub fn bind(&self) -> SocketAddr {
        self.bind
    }

    /// Stops accepting and waits up to `grace` for answers under way.
    pub async fn close(self, grace: Duration) {
        self.stop.cancel();
        self.tasks.close();
        let _ = tokio::time::timeout(grace, self.tasks.wait()).await;
    }
}

impl Drop for ObjectServer {
    fn drop(&mut self) {
        self.stop.cancel();
        self.tasks.close();
    }
}

async fn accept(listener: TcpListener, api: Arc<Api>, stop: CancellationToken, tasks: TaskTracker) {
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
            Ok((stream, _)) => {
                let api = Arc::clone(&api);
                tasks.spawn(async move {
                    let _slot = slot;
                    one(stream, &api).await;
                });
            }
            Err(error) => {
                tracing::warn!(target: "stado::fleet", "object API cannot accept: {error}");
                tokio::time::sleep(Duration::from_millis(200)).await;
            }
        }
    }
}

/// One request. A client that went, and a framing error, have no answer.
async fn one(mut stream: TcpStream, api: &Api) {
    let Some((request, early)) = request::read(&mut stream).await else { return };
    let Some(answer) = api.answer(&request, &mut stream, early).await else { return };
    if send(&mut stream, answer).await.is_ok() {
        let goodbye = async {
            stream.shutdown().await?;
            // Reading what the client still sends keeps a reset from overtaking the answer.
            let mut rest = [0_u8; 4096];
            while stream.read(&mut rest).await? > 0 {}
            Ok::<(), std::io::Error>(())
        };
        let _ = tokio::time::timeout(GOODBYE, goodbye).await;
    }
}

async fn send(stream: &mut TcpStream, answer: Answer) -> std::io::Result<()> {
    write(stream, answer.head().as_bytes()).await?;
    match answer.body {
        Body::Bytes(bytes) => write(stream, &bytes).await,
        Body::File(file, length) => {
            let mut file = tokio::fs::File::from_std(file).take(length);
            let mut piece = vec![0; PIECE];
            loop {
                let read = file.read(&mut piece).await?;
                if read == 0 {
                    return Ok(());
                }
                write(stream, piece.get(..read).unwrap_or_default()).await?;
            }
        }
    }
}

async fn write(stream: &mut TcpStream, bytes: &[u8]) -> std::io::Result<()> {
    // Piece by piece, so that a slow reader of a large answer is not one that takes nothing.
    for piece in bytes.chunks(PIECE) {
        let late = || std::io::Error::from(std::io::ErrorKind::TimedOut);
        tokio::time::timeout(IDLE, stream.write_all(piece)).await.map_err(|_| late())??;
    }
    Ok(())
}

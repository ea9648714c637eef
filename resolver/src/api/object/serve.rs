//! The server: a connection, its one request, its end.
use super::access::Access;
use super::answer::{Answer, Body};
use super::objects::Objects;
use super::request;
use super::routes::Api;
use crate::api::listening::{Conn, Listening, Security};
use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;
use tokio::sync::watch;

/// A client that takes nothing for so long has gone.
const IDLE: Duration = Duration::from_secs(60);
/// How long a client may take to close after its answer.
const GOODBYE: Duration = Duration::from_secs(2);
const PIECE: usize = 256 << 10;

/// What is served, and to whom.
#[derive(Debug)]
pub struct Served {
    /// The directory.
    pub objects: Objects,
    /// Who may do what there.
    pub access: Access,
    /// TLS, or nothing.
    pub security: Security,
    /// Whether a proxy in front speaks HTTPS and checks the name that is asked for (`dashboard.trust_https_proxy`).
    pub trust_proxy: bool,
}

/// Namespaces that are closed now, with the reason of each.
pub type Closed = BTreeMap<String, String>;

/// A running object API. Dropping it closes the listener; requests under way are answered.
#[derive(Debug)]
pub struct ObjectServer {
    listening: Listening,
    closed: Option<watch::Receiver<Closed>>,
}

impl ObjectServer {
    /// Starts answering.
    ///
    /// # Errors
    /// When the listener's address cannot be told, or is not loopback and there is no TLS.
    pub fn start(listener: Arc<TcpListener>, served: Served) -> std::io::Result<Self> {
        let Served { objects, access, security, trust_proxy } = served;
        let access = Arc::new(access);
        let any_host = trust_proxy || security.is_tls();
        let api = Arc::new(Api { objects, access: Arc::clone(&access), any_host });
        let serve = move |conn: Conn, _: SocketAddr| {
            let api = Arc::clone(&api);
            async move { one(conn, &api).await }
        };
        let listening = Listening::start("the object API", listener, security, serve)?;
        access.unusable().iter().for_each(|sentence| tracing::warn!(target: "stado::fleet", "{sentence}"));
        access.begin();
        Ok(Self { listening, closed: access.closed() })
    }

    /// Where it listens.
    pub fn bind(&self) -> SocketAddr {
        self.listening.bind()
    }

    /// The namespaces that the vault keeps closed, as they change; `None` when no token is in a vault.
    pub fn closed(&self) -> Option<watch::Receiver<Closed>> {
        self.closed.clone()
    }

    /// The listener, to hand it over to another process.
    pub fn lend(&self) -> Option<Arc<TcpListener>> {
        self.listening.lend()
    }

    /// Requests under way.
    pub fn open(&self) -> usize {
        self.listening.open()
    }

    /// Another process has the listener: stops accepting.
    pub fn leave(&self) {
        self.listening.leave();
    }

    /// Stops accepting and waits up to `grace` for answers under way.
    pub async fn close(self, grace: Duration) {
        self.listening.close(grace).await;
    }
}

/// One request. A client that went, and a framing error, have no answer.
async fn one(mut stream: Conn, api: &Api) {
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

async fn send(stream: &mut Conn, answer: Answer) -> std::io::Result<()> {
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

async fn write(stream: &mut Conn, bytes: &[u8]) -> std::io::Result<()> {
    // Piece by piece, so that a slow reader of a large answer is not one that takes nothing.
    for piece in bytes.chunks(PIECE) {
        let late = || std::io::Error::from(std::io::ErrorKind::TimedOut);
        tokio::time::timeout(IDLE, stream.write_all(piece)).await.map_err(|_| late())??;
    }
    Ok(())
}

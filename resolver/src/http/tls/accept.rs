//! One connection from its first byte to the end of its handshake.
use super::names::CertNames;
use super::problem::TlsProblem;
use super::{Tls, alert};
use jiff::Timestamp;
use stado_fleet::fault::{Blame, Faulty};
use std::sync::{Arc, PoisonError};
use std::time::{Duration, Instant};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio::time::timeout;
use tokio_rustls::LazyConfigAcceptor;
use tokio_rustls::rustls::server::Acceptor;
use tokio_rustls::server::TlsStream;

/// What the client and we agreed to speak.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Alpn {
    /// HTTP/1.1, also when the client named nothing.
    H1,
    /// HTTP/2.
    H2,
}

/// A connected socket as the listener hands it over.
pub trait Wire: AsyncRead + AsyncWrite + Unpin + Send {
    /// The socket underneath.
    fn tcp(&self) -> &TcpStream;
}
impl Wire for TcpStream {
    fn tcp(&self) -> &TcpStream {
        self
    }
}

/// A connection after its handshake.
#[derive(Debug)]
pub struct TlsConn<S> {
    /// The decrypted stream.
    pub stream: TlsStream<S>,
    /// The name that the client asked for.
    pub sni: Option<String>,
    /// The protocol of the requests on it.
    pub alpn: Alpn,
    /// What the certificate is for: a request for another authority is answered 421 (proxy rule 20).
    pub covered: Arc<CertNames>,
}

/// First byte of a TLS record that carries a handshake.
const HANDSHAKE: u8 = 22;
const MINUTE: Duration = Duration::from_secs(60);
/// Lines a minute at most, whatever clients ask for.
const LINES: usize = 64;

impl Tls {
    /// Leads a connection through its handshake, within one total deadline. Of one that speaks plain HTTP nothing is read.
    /// `local` of the stream decides what a client without a name is shown.
    pub async fn accept<S: Wire>(self: &Arc<Self>, stream: S) -> Result<TlsConn<S>, TlsProblem> {
        let done = timeout(self.hello, self.handshake(stream)).await;
        let done = done.unwrap_or(Err(TlsProblem::Slow(self.hello)));
        if let Err(problem) = &done {
            self.tell(problem);
        }
        done
    }

    /// Writes it to the log: what this host has to mend, a line a minute for each.
    fn tell(&self, problem: &TlsProblem) {
        if problem.blame() != Blame::ThisHost {
            tracing::debug!(target: "stado::mesh", %problem, "tls_refused");
            return;
        }
        let (line, now) = (problem.to_string(), Instant::now());
        let mut told = self.told.lock().unwrap_or_else(PoisonError::into_inner);
        told.retain(|_, at| now.duration_since(*at) < MINUTE);
        if told.len() < LINES && !told.contains_key(&line) {
            tracing::warn!(target: "stado::mesh", problem = %line, "tls_refused");
            told.insert(line, now);
        }
    }

    async fn handshake<S: Wire>(self: &Arc<Self>, stream: S) -> Result<TlsConn<S>, TlsProblem> {
        let mut first = [0];
        match stream.tcp().peek(&mut first).await? {
            0 => return Err(TlsProblem::Left),
            _ if first == [HANDSHAKE] => {}
            _ if first.iter().all(u8::is_ascii_alphabetic) => return Err(TlsProblem::PlainHttp),
            _ => return Err(TlsProblem::NotTls),
        }
        let local = stream.tcp().local_addr()?.ip();
        let mut start = LazyConfigAcceptor::new(Acceptor::default(), stream).await?;
        let sni = start.client_hello().server_name().map(str::to_ascii_lowercase);
        self.look().await;
        let identity = match self.choose(sni.as_deref(), local, Timestamp::now()) {
            Ok(identity) => identity,
            Err(problem) => {
                alert::send(&mut start.io, &problem).await;
                return Err(problem);
            }
        };
        let stream = start.into_stream(identity.config.clone()).await?;
        let h2 = stream.get_ref().1.alpn_protocol() == Some(b"h2");
        let alpn = if h2 { Alpn::H2 } else { Alpn::H1 };
        Ok(TlsConn { stream, sni, alpn, covered: identity.names.clone() })
    }
}

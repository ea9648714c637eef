//! HTTP/2: by ALPN over TLS and with prior knowledge in clear (proxy rule 18). The engine is `h2`, which hyper is built on: it
//! gives what a proxy needs and hyper's server keeps to itself, `1xx` answers and the reason of a reset.
//!
//! `connection` takes streams from a client, `stream` leads one of them: `asked` says for whom it is, `to_h1` and `to_h2`
//! bring it to its backend; `from_h1` brings requests of HTTP/1 to backends that speak HTTP/2. `session` keeps sessions with backends that speak HTTP/2.

mod answer;
mod asked;
mod body;
mod budget;
mod connection;
mod exchange;
mod fields;
mod from_h1;
mod head1;
mod screen;
mod session;
mod source;
mod stream;
mod taken;
#[cfg(test)]
mod tests;
mod to_h1;
mod to_h2;
mod upload;
mod wire;

pub(super) use from_h1::{fits, reach};
pub(super) use session::Sessions;

use super::HttpContext;
use super::serve1::Scheme;
use super::tls::CertNames;
use bytes::Bytes;
use h2::server::SendResponse;
use std::future::poll_fn;
use std::net::SocketAddr;
use std::sync::Arc;
use std::task::Poll;
use tokio::io::{AsyncRead, AsyncWrite};

/// Who is at the other end of a connection.
#[derive(Debug, Clone)]
pub(super) struct Ends {
    /// The client.
    pub(super) peer: SocketAddr,
    /// Where it came to.
    pub(super) local: SocketAddr,
    /// In clear or over TLS.
    pub(super) scheme: Scheme,
    /// What the certificate that it was shown is for.
    pub(super) covered: Option<Arc<CertNames>>,
}

/// Serves one connection to its end. `initial` is what has been read of it already, its preface included.
pub(super) async fn serve<S>(stream: S, ends: Ends, ctx: Arc<HttpContext>, initial: Vec<u8>)
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    connection::run(stream, ends, ctx, initial.into()).await;
}

/// `work`, unless the client resets the stream or leaves before it has an answer.
async fn until_reset<T>(respond: &mut SendResponse<Bytes>, work: impl Future<Output = T>) -> Option<T> {
    let mut work = std::pin::pin!(work);
    poll_fn(|cx| {
        if let Poll::Ready(done) = work.as_mut().poll(cx) {
            return Poll::Ready(Some(done));
        }
        respond.poll_reset(cx).map(|_| None)
    })
    .await
}

//! The end that an exchange holds of a bridge.
use std::io;
use std::pin::Pin;
use std::sync::{Arc, OnceLock};
use std::task::{Context, Poll, ready};
use tokio::io::{AsyncRead, AsyncWrite, DuplexStream, ReadBuf};

/// Why there is no more to read, where that is no end.
#[derive(Debug, Clone, Default)]
pub(super) struct Said(Arc<OnceLock<String>>);
impl Said {
    /// The first word stays.
    pub(super) fn say(&self, cause: String) {
        let _ = self.0.set(cause);
    }
}

/// Bytes of HTTP/1.1; an end that is none is an error with its cause.
pub(super) struct Near {
    pub(super) pipe: DuplexStream,
    pub(super) said: Said,
}

impl AsyncRead for Near {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let before = buf.filled().len();
        ready!(Pin::new(&mut self.pipe).poll_read(cx, buf))?;
        match self.said.0.get() {
            Some(cause) if buf.filled().len() == before => Poll::Ready(Err(io::Error::other(cause.clone()))),
            _ => Poll::Ready(Ok(())),
        }
    }
}
impl AsyncWrite for Near {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.pipe).poll_write(cx, buf)
    }
    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.pipe).poll_flush(cx)
    }
    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.pipe).poll_shutdown(cx)
    }
}

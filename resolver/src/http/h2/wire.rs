//! The bytes under a connection: what was read before comes first, and a bare end of the client's stream is not taken for its
//! leaving (proxy rule 15): the streams that it has opened are answered first. What comes in is [`Screen`]ed.
use super::screen::Screen;
use bytes::Bytes;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::sync::Notify;

/// Whether the client has ended its stream.
#[derive(Debug, Default)]
pub(super) struct Ended {
    seen: AtomicBool,
    news: Notify,
}
impl Ended {
    /// Returns once it has.
    pub(super) async fn wait(&self) {
        while !self.seen.load(Ordering::Acquire) {
            self.news.notified().await;
        }
    }
}

/// See the module.
pub(super) struct Wire<S> {
    pub(super) inner: S,
    pub(super) initial: Bytes,
    pub(super) ended: Arc<Ended>,
    pub(super) screen: Screen,
}

impl<S: AsyncRead + Unpin> AsyncRead for Wire<S> {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        if !self.initial.is_empty() {
            let length = self.initial.len().min(buf.remaining());
            let first = self.initial.split_to(length);
            self.screen.see(&first);
            buf.put_slice(&first);
            return Poll::Ready(Ok(()));
        }
        if self.ended.seen.load(Ordering::Acquire) {
            return Poll::Pending;
        }
        let before = buf.filled().len();
        match Pin::new(&mut self.inner).poll_read(cx, buf) {
            Poll::Ready(Ok(())) if buf.filled().len() == before && buf.remaining() > 0 => {
                self.ended.seen.store(true, Ordering::Release);
                self.ended.news.notify_one();
                Poll::Pending
            }
            other => {
                self.screen.see(buf.filled().get(before..).unwrap_or_default());
                other
            }
        }
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Wire<S> {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.inner).poll_write(cx, buf)
    }
    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bufs: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.inner).poll_write_vectored(cx, bufs)
    }
    fn is_write_vectored(&self) -> bool {
        self.inner.is_write_vectored()
    }
    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.inner).poll_flush(cx)
    }
    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.inner).poll_shutdown(cx)
    }
}

//! Gathers what h2 writes in pieces (the 9 bytes of a header, then the data) into whole packets.
use crate::link::stream::ChannelStream;
use bytes::{Buf, BytesMut};
use std::io::{self, IoSlice};
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Context, Poll, ready};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

/// One SSH packet.
const PACKET: usize = 32 * 1024;

/// What a multiplex runs over.
pub trait Packets: AsyncRead + AsyncWrite + Send + Unpin {
    /// Writes some of `waiting` and takes it out.
    fn poll_packet(mut self: Pin<&mut Self>, cx: &mut Context<'_>, waiting: &mut BytesMut) -> Poll<io::Result<()>> {
        let n = ready!(self.as_mut().poll_write(cx, waiting))?;
        if n == 0 {
            return Poll::Ready(Err(io::ErrorKind::WriteZero.into()));
        }
        waiting.advance(n);
        Poll::Ready(Ok(()))
    }
}

/// The standard input and output of a command.
impl<R: AsyncRead + Send + Unpin, W: AsyncWrite + Send + Unpin> Packets for tokio::io::Join<R, W> {}

impl Packets for ChannelStream {
    fn poll_packet(self: Pin<&mut Self>, cx: &mut Context<'_>, waiting: &mut BytesMut) -> Poll<io::Result<()>> {
        self.get_mut().poll_packet(cx, || waiting.split().freeze())
    }
}

/// A stream whose writes wait for a full packet or a flush.
#[derive(Debug)]
pub(super) struct Gather<S> {
    inner: S,
    waiting: BytesMut,
    received: Arc<AtomicU64>,
}

impl<S> Gather<S> {
    pub(super) fn new(inner: S) -> Self {
        Self { inner, waiting: BytesMut::new(), received: Arc::default() }
    }

    /// Bytes that came so far.
    pub(super) fn received(&self) -> Arc<AtomicU64> {
        self.received.clone()
    }
}

impl<S: Packets> Gather<S> {
    /// Writes until no more than `rest` bytes wait.
    fn poll_down_to(&mut self, cx: &mut Context<'_>, rest: usize) -> Poll<io::Result<()>> {
        while self.waiting.len() > rest {
            ready!(Pin::new(&mut self.inner).poll_packet(cx, &mut self.waiting))?;
        }
        Poll::Ready(Ok(()))
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Gather<S> {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let before = buf.filled().len();
        let read = Pin::new(&mut self.inner).poll_read(cx, buf);
        self.received.fetch_add((buf.filled().len() - before) as u64, Ordering::Relaxed);
        read
    }
}

impl<S: Packets> AsyncWrite for Gather<S> {
    fn poll_write(self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        self.poll_write_vectored(cx, &[IoSlice::new(buf)])
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bufs: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        if self.waiting.len() >= PACKET {
            ready!(self.poll_down_to(cx, 0))?;
        }
        let all = bufs.iter().map(|buf| buf.len()).sum::<usize>();
        let room = PACKET.saturating_sub(self.waiting.len());
        self.waiting.reserve(all.min(room));
        let mut taken = 0;
        for buf in bufs {
            let room = PACKET.saturating_sub(self.waiting.len());
            let part = buf.get(..room).unwrap_or(buf);
            self.waiting.extend_from_slice(part);
            taken += part.len();
        }
        Poll::Ready(Ok(taken))
    }

    fn is_write_vectored(&self) -> bool {
        true
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        ready!(self.poll_down_to(cx, 0))?;
        // What an idle multiplex needs not keep.
        if self.waiting.capacity() > PACKET {
            self.waiting = BytesMut::new();
        }
        Pin::new(&mut self.inner).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        ready!(self.poll_down_to(cx, 0))?;
        Pin::new(&mut self.inner).poll_shutdown(cx)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::io::AsyncWriteExt;

    /// Remembers each write.
    #[derive(Default)]
    struct Writes(Vec<Vec<u8>>);
    impl Packets for Writes {}
    impl AsyncRead for Writes {
        fn poll_read(self: Pin<&mut Self>, _: &mut Context<'_>, _: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
            Poll::Pending
        }
    }
    impl AsyncWrite for Writes {
        fn poll_write(mut self: Pin<&mut Self>, _: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
            self.0.push(buf.to_vec());
            Poll::Ready(Ok(buf.len()))
        }
        fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
            Poll::Ready(Ok(()))
        }
        fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
            Poll::Ready(Ok(()))
        }
    }

    #[tokio::test]
    async fn a_header_and_its_data_leave_as_one_packet_and_nothing_is_lost() {
        let mut gather = Gather::new(Writes::default());
        for n in 0..5u8 {
            gather.write_all(&[n; 9]).await.unwrap();
            gather.write_all(&[n; PACKET - 9]).await.unwrap();
        }
        gather.write_all(b"small").await.unwrap();
        gather.flush().await.unwrap();
        let sizes: Vec<usize> = gather.inner.0.iter().map(Vec::len).collect();
        assert_eq!(sizes, [PACKET, PACKET, PACKET, PACKET, PACKET, 5]);
        let all = gather.inner.0.concat();
        let wanted = (0..5u8).flat_map(|n| [n; PACKET]).chain(*b"small");
        assert!(all.into_iter().eq(wanted));
    }
}

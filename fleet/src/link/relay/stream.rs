//! One stream of the multiplex, as the client's end sees it.
use super::FRAME;
use super::facts::Guard;
use super::pace::Gait;
use super::refusal::{Refusal, as_io, reset};
use bytes::{Buf, Bytes};
use h2::{Reason, RecvStream, SendStream};
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Instant;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

/// The largest piece that is taken at once: two packets.
const PIECE: usize = 2 * FRAME as usize;

/// Dropped before both directions ended, it resets the stream.
pub(in crate::link) struct MuxStream {
    pub(super) send: SendStream<Bytes>,
    pub(super) recv: RecvStream,
    /// Received and not read; its credit is given back as it is read.
    piece: Bytes,
    eof: bool,
    sent_eof: bool,
    gait: Gait,
    guard: Guard,
}

impl MuxStream {
    pub(super) fn new(send: SendStream<Bytes>, recv: RecvStream, guard: Guard) -> Self {
        Self { send, recv, piece: Bytes::new(), eof: false, sent_eof: false, gait: Gait::default(), guard }
    }

    fn error(&self, error: &h2::Error) -> io::Error {
        as_io(error, || self.guard.lost())
    }

    /// Why nothing can be written any more.
    fn broken(&mut self, cx: &mut Context<'_>) -> io::Error {
        match self.send.poll_reset(cx) {
            Poll::Ready(Ok(reason)) => reset(reason),
            Poll::Ready(Err(error)) => self.error(&error),
            Poll::Pending => io::ErrorKind::BrokenPipe.into(),
        }
    }

    /// Gets the next piece; `false` at the end of the stream.
    fn poll_piece(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<bool>> {
        while self.piece.is_empty() && !self.eof {
            match ready!(self.recv.poll_data(cx)) {
                Some(Ok(piece)) => self.piece = piece,
                Some(Err(error)) => return Poll::Ready(Err(self.error(&error))),
                None => {
                    self.eof = true;
                    // Behind the end may stand why the service never said a word.
                    if let Poll::Ready(Ok(Some(behind))) = self.recv.poll_trailers(cx)
                        && let Some(refusal) = Refusal::of(&behind)
                    {
                        return Poll::Ready(Err(io::Error::new(io::ErrorKind::ConnectionReset, refusal.sentence)));
                    }
                }
            }
        }
        Poll::Ready(Ok(!self.eof))
    }
}

impl AsyncRead for MuxStream {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        if !ready!(self.poll_piece(cx))? {
            return Poll::Ready(Ok(()));
        }
        let before = buf.filled().len();
        loop {
            let n = self.piece.len().min(buf.remaining());
            buf.put_slice(self.piece.get(..n).unwrap_or_default());
            if n == self.piece.len() {
                // What is read to its end would hold on to the memory that came with it.
                self.piece = Bytes::new();
            } else {
                self.piece.advance(n);
            }
            // What else is there already fills the buffer; an error or the end is for the next read.
            if buf.remaining() == 0 || !matches!(self.poll_piece(cx), Poll::Ready(Ok(true))) {
                break;
            }
        }
        let read = buf.filled().len() - before;
        // Fails only on a stream that is over.
        let _ = self.recv.flow_control().release_capacity(read);
        Poll::Ready(Ok(()))
    }
}

impl AsyncWrite for MuxStream {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        if buf.is_empty() {
            return Poll::Ready(Ok(0));
        }
        loop {
            let room = self.send.capacity().min(PIECE);
            if room > 0 {
                let piece = buf.get(..room).unwrap_or(buf);
                let this = &mut *self;
                ready!(this.guard.pace().poll_enter(cx, &mut this.gait, piece.len(), Instant::now()));
                if self.send.send_data(Bytes::copy_from_slice(piece), false).is_err() {
                    return Poll::Ready(Err(self.broken(cx)));
                }
                return Poll::Ready(Ok(piece.len()));
            }
            self.send.reserve_capacity(buf.len().min(PIECE));
            match ready!(self.send.poll_capacity(cx)) {
                Some(Ok(_)) => {}
                Some(Err(error)) => return Poll::Ready(Err(self.error(&error))),
                None => return Poll::Ready(Err(self.broken(cx))),
            }
        }
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        if !self.sent_eof {
            self.sent_eof = true;
            // A stream that is over already takes no end, and needs none.
            let _ = self.send.send_data(Bytes::new(), true);
        }
        Poll::Ready(Ok(()))
    }
}

impl Drop for MuxStream {
    fn drop(&mut self) {
        let heard_all = self.eof || (self.piece.is_empty() && self.recv.is_end_stream());
        if !(self.sent_eof && heard_all) {
            self.send.send_reset(Reason::CANCEL);
        }
    }
}

//! The byte-bounded buffer between a channel that is always drained and the reader of its stream.
use super::handler::lock;
use bytes::{Buf, Bytes};
use std::collections::VecDeque;
use std::io;
use std::sync::Mutex;
use std::task::{Context, Poll, Waker};
use tokio::io::ReadBuf;
use tokio::sync::Notify;

/// Counted for each piece beside its bytes, so that a flood of tiny pieces is bounded too.
const PIECE: usize = 64;
/// Bytes of standard error that are kept.
const STDERR: usize = 256;

/// Buffer and ends of one stream; the draining task fills it, the stream empties it.
#[derive(Debug, Default)]
pub(super) struct Pipe {
    inner: Mutex<Inner>,
    /// Told whenever something was read.
    room: Notify,
    /// Told when the stream was dropped.
    left: tokio_util::sync::CancellationToken,
}

#[derive(Debug, Default)]
struct Inner {
    pieces: VecDeque<Bytes>,
    cost: usize,
    eof: bool,
    end: Option<End>,
    sent_eof: bool,
    /// The beginning of what a command said on standard error, and its exit status.
    stderr: Vec<u8>,
    status: Option<u32>,
    reader: Option<Waker>,
    writer: Option<Waker>,
}

/// How the channel ended.
#[derive(Debug, Clone)]
pub(super) enum End {
    /// The peer closed it.
    Closed,
    /// The session went, or we gave up the channel: why.
    Broken(String),
}

impl Pipe {
    /// Adds a piece; the bytes now waiting.
    pub(super) fn push(&self, piece: Bytes) -> usize {
        let mut inner = lock(&self.inner);
        inner.cost += piece.len() + PIECE;
        inner.pieces.push_back(piece);
        let cost = inner.cost;
        wake(inner.reader.take());
        cost
    }

    /// The peer writes no more.
    pub(super) fn eof(&self) {
        let mut inner = lock(&self.inner);
        inner.eof = true;
        wake(inner.reader.take());
    }

    /// Nothing goes either way any more.
    pub(super) fn end(&self, end: End) {
        let mut inner = lock(&self.inner);
        inner.end.get_or_insert(end);
        wake(inner.reader.take());
        wake(inner.writer.take());
        self.room.notify_one();
    }

    /// Waits until nothing goes either way any more.
    pub(super) async fn over(&self) {
        loop {
            let told = self.room.notified();
            if lock(&self.inner).end.is_some() {
                return;
            }
            told.await;
        }
    }

    /// Keeps the beginning of what comes on standard error.
    pub(super) fn complain(&self, said: &[u8]) {
        let mut inner = lock(&self.inner);
        let room = STDERR.saturating_sub(inner.stderr.len());
        inner.stderr.extend_from_slice(said.get(..room).unwrap_or(said));
    }

    /// The command ended.
    pub(super) fn exited(&self, status: u32) {
        lock(&self.inner).status = Some(status);
    }

    /// Standard error and status in brackets.
    pub(super) fn complaint(&self) -> String {
        let inner = lock(&self.inner);
        let stderr = String::from_utf8_lossy(inner.stderr.trim_ascii()).into_owned();
        match (inner.status, stderr.is_empty()) {
            (Some(status), true) => format!(" (exit status {status})"),
            (Some(status), false) => format!(" (exit status {status}: {stderr})"),
            (None, true) => String::new(),
            (None, false) => format!(" ({stderr})"),
        }
    }

    /// Waits until less than `low` waits to be read, or the stream was dropped.
    pub(super) async fn below(&self, low: usize) {
        loop {
            let room = self.room.notified();
            if lock(&self.inner).cost < low {
                return;
            }
            tokio::select! {
                () = room => {}
                () = self.left.cancelled() => return,
            }
        }
    }

    /// Waits until the stream was dropped.
    pub(super) async fn left(&self) {
        self.left.cancelled().await;
    }

    /// Whether both directions ended before the stream was dropped: the peer's close is all that is missing.
    pub(super) fn finished(&self) -> bool {
        let inner = lock(&self.inner);
        inner.eof && inner.sent_eof
    }

    /// Our side writes no more.
    pub(super) fn sent_eof(&self) {
        lock(&self.inner).sent_eof = true;
    }

    /// The stream is dropped.
    pub(super) fn leave(&self) {
        let mut inner = lock(&self.inner);
        inner.pieces = VecDeque::new();
        inner.cost = 0;
        drop(inner);
        self.left.cancel();
    }

    pub(super) fn poll_read(&self, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let mut inner = lock(&self.inner);
        if inner.take(buf) {
            drop(inner);
            self.room.notify_one();
            return Poll::Ready(Ok(()));
        }
        if inner.eof {
            return Poll::Ready(Ok(()));
        }
        match &inner.end {
            // A close without an end of stream is how SSH can say "reset".
            Some(End::Closed) => {
                Poll::Ready(Err(io::Error::new(io::ErrorKind::ConnectionReset, "the host reset the channel")))
            }
            Some(End::Broken(why)) => Poll::Ready(Err(io::Error::new(io::ErrorKind::ConnectionAborted, why.clone()))),
            None => {
                inner.reader = Some(cx.waker().clone());
                Poll::Pending
            }
        }
    }

    /// `Err` once nothing can be written; else the writer is told when that becomes so.
    pub(super) fn writable(&self, cx: &Context<'_>) -> io::Result<()> {
        let mut inner = lock(&self.inner);
        match &inner.end {
            Some(End::Closed) => Err(io::Error::new(io::ErrorKind::BrokenPipe, "the host closed the channel")),
            Some(End::Broken(why)) => Err(io::Error::new(io::ErrorKind::ConnectionAborted, why.clone())),
            None => {
                inner.writer = Some(cx.waker().clone());
                Ok(())
            }
        }
    }
}

impl Inner {
    /// Moves what is there into `buf`; `false` when nothing is.
    fn take(&mut self, buf: &mut ReadBuf<'_>) -> bool {
        let before = buf.filled().len();
        while buf.remaining() > 0
            && let Some(piece) = self.pieces.front_mut()
        {
            let n = piece.len().min(buf.remaining());
            if let Some(part) = piece.get(..n) {
                buf.put_slice(part);
            }
            piece.advance(n);
            self.cost = self.cost.saturating_sub(n);
            if piece.is_empty() {
                self.pieces.pop_front();
                self.cost = self.cost.saturating_sub(PIECE);
            }
        }
        buf.filled().len() > before
    }
}

fn wake(waker: Option<Waker>) {
    if let Some(waker) = waker {
        waker.wake();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        /// What is counted is what waits, to the byte: so the bound on it bounds memory, whatever comes and is read.
        #[test]
        fn what_is_counted_is_what_waits_and_nothing_is_lost(steps in prop::collection::vec((0..3_u8, 0..5000_usize), 0..60)) {
            let (pipe, mut cx) = (Pipe::default(), Context::from_waker(Waker::noop()));
            let (mut pushed, mut read) = (0_usize, 0_usize);
            let mut most = 0;
            for (kind, size) in steps {
                if kind == 0 {
                    let mut space = vec![0; size];
                    let mut buf = ReadBuf::new(&mut space);
                    if pipe.poll_read(&mut cx, &mut buf).is_ready() {
                        for byte in buf.filled() {
                            prop_assert_eq!(usize::from(*byte), read % 251);
                            read += 1;
                        }
                    }
                } else {
                    let piece: Vec<u8> = (pushed..pushed + size).map(|at| (at % 251) as u8).collect();
                    pushed += size;
                    most = pipe.push(piece.into());
                }
                let inner = lock(&pipe.inner);
                let bytes: usize = inner.pieces.iter().map(Bytes::len).sum();
                prop_assert_eq!(bytes, pushed - read);
                prop_assert_eq!(inner.cost, bytes + PIECE * inner.pieces.len());
                prop_assert!(most >= bytes || kind == 0);
            }
        }
    }
}

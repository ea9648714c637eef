//! What was heard from a host, seen at the socket: whether it said its name, and when it last said anything. russh's own
//! timers stand still while its task is stuck in a write; this one does not.
use super::handler::lock;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Context, Poll, ready};
use std::time::{Duration, Instant};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio_util::sync::CancellationToken;

/// What may stand before the identification line (RFC 4253 §4.2), and is quoted when none comes.
const GREETING: usize = 8 * 1024;
/// Bytes of it that are quoted.
const QUOTED: usize = 80;

/// Shared between the socket of a session and those who judge the session.
#[derive(Debug)]
pub(super) struct Heard {
    began: Instant,
    /// Milliseconds after `began` at which something came last.
    last: AtomicU64,
    bytes: AtomicU64,
    /// The first bytes, until the identification line is whole.
    greeting: Mutex<Vec<u8>>,
    named: CancellationToken,
}

impl Heard {
    pub(super) fn new() -> Arc<Self> {
        let zero = || AtomicU64::new(0);
        let (greeting, named) = (Mutex::default(), CancellationToken::new());
        Arc::new(Self { began: Instant::now(), last: zero(), bytes: zero(), greeting, named })
    }

    /// Waits for the identification line.
    pub(super) async fn named(&self) {
        self.named.cancelled().await;
    }

    /// Whether the identification line came.
    pub(super) fn has_name(&self) -> bool {
        self.named.is_cancelled()
    }

    /// Bytes that came so far.
    pub(super) fn bytes(&self) -> u64 {
        self.bytes.load(Ordering::Relaxed)
    }

    /// How long nothing has come.
    pub(super) fn silent_for(&self) -> Duration {
        let last = Duration::from_millis(self.last.load(Ordering::Relaxed));
        self.began.elapsed().saturating_sub(last)
    }

    /// What came in place of an identification, quoted; `None` when nothing did.
    pub(super) fn instead(&self) -> Option<String> {
        let greeting = lock(&self.greeting);
        let line = greeting.split(|b| *b == b'\n').find(|line| !line.trim_ascii().is_empty())?;
        let line = line.trim_ascii();
        Some(format!("{:?}", String::from_utf8_lossy(line.get(..QUOTED).unwrap_or(line))))
    }

    fn note(&self, new: &[u8]) {
        let at = u64::try_from(self.began.elapsed().as_millis()).unwrap_or(u64::MAX);
        self.last.store(at, Ordering::Relaxed);
        self.bytes.fetch_add(new.len() as u64, Ordering::Relaxed);
        if self.has_name() {
            return;
        }
        let mut greeting = lock(&self.greeting);
        let room = GREETING.saturating_sub(greeting.len());
        greeting.extend_from_slice(new.get(..room).unwrap_or(new));
        let mut lines = greeting.split_inclusive(|b| *b == b'\n');
        if lines.any(|line| line.starts_with(b"SSH-") && line.ends_with(b"\n")) {
            *greeting = Vec::new();
            self.named.cancel();
        }
    }
}

/// A socket whose reads are noted.
#[derive(Debug)]
pub(super) struct Watched<S> {
    inner: S,
    heard: Arc<Heard>,
}

impl<S> Watched<S> {
    pub(super) fn new(inner: S, heard: Arc<Heard>) -> Self {
        Self { inner, heard }
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Watched<S> {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let before = buf.filled().len();
        ready!(Pin::new(&mut self.inner).poll_read(cx, buf))?;
        if let Some(new) = buf.filled().get(before..).filter(|new| !new.is_empty()) {
            self.heard.note(new);
        }
        Poll::Ready(Ok(()))
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Watched<S> {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.inner).poll_write(cx, buf)
    }
    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.inner).poll_flush(cx)
    }
    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.inner).poll_shutdown(cx)
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
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_name_is_found_behind_a_greeting_and_in_pieces() {
        let heard = Heard::new();
        heard.note(b"welcome\r\nSSH");
        assert!(!heard.has_name());
        heard.note(b"-2.0-x\r");
        assert!(!heard.has_name());
        assert_eq!(heard.instead().unwrap(), "\"welcome\"");
        heard.note(b"\n");
        assert!(heard.has_name());
        assert_eq!(heard.bytes(), 20);
    }

    #[test]
    fn what_comes_in_its_place_is_quoted_and_bounded() {
        let heard = Heard::new();
        assert_eq!(heard.instead(), None);
        heard.note(b"\r\nExceeded MaxStartups\r\n");
        heard.note(&[b'x'; 3 * GREETING]);
        assert_eq!(heard.instead().unwrap(), "\"Exceeded MaxStartups\"");
        assert!(lock(&heard.greeting).len() <= GREETING);
    }
}

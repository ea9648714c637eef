//! A stream over an SSH channel of either side. The channel is always drained: an unread one stops its whole session
//! (`ssh-relay.md` §2 and §3.5).
use super::pipe::{End, Pipe};
use bytes::Bytes;
use russh::{Channel, ChannelId, ChannelMsg, ChannelReadHalf, ChannelWriteHalf};
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::timeout;
use tokio_util::sync::ReusableBoxFuture;

/// Past this much unread data the channel is left unread, if it is alone on its session.
const HIGH: usize = 4 << 20;
/// Below this much it is read again.
const LOW: usize = 1 << 20;
/// Past this much the stream is closed: others on the session must not wait for its reader.
const BOUND: usize = 8 << 20;
/// Larger writes that cross a rekey broke in russh (`ssh-relay.md` §3.6, issue 6).
const CHUNK: usize = 32 * 1024;
/// For the peer's close after both directions ended, and for a session's task to take ours.
const CLOSE: Duration = Duration::from_secs(10);
/// For what a command says after the end of its output.
const LAST_WORDS: Duration = Duration::from_millis(300);

/// The session that a channel travels in; lives as long as the channel does.
pub trait Carrier: Send + Sync + 'static {
    /// Asks to leave this channel unread for a while, which stops the whole session: granted only to its one channel.
    fn hold(&self) -> bool;
    /// Ends a [`Carrier::hold`].
    fn resume(&self);
    /// A channel was closed by this side before the other did: russh keeps 3.3 KiB of it as long as the session lives.
    fn closed_first(&self);
    /// Whether this side closes a channel whose both directions ended; else it waits for the other to do so.
    fn closes(&self) -> bool;
    /// The sentence for streams that a lost session takes with it.
    fn lost(&self) -> String;
}

/// Reads and writes the data of a channel. Dropped before both directions ended, it closes the channel at once without
/// an end of stream, which is how SSH can say "reset".
pub struct ChannelStream {
    pipe: Arc<Pipe>,
    outbox: Outbox,
    sent_eof: bool,
}

impl std::fmt::Debug for ChannelStream {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ChannelStream").field("sent_eof", &self.sent_eof).finish_non_exhaustive()
    }
}

impl ChannelStream {
    /// Takes over a channel that is open (client) or about to be accepted (server). Needs a runtime.
    pub fn new<S>(channel: Channel<S>, carrier: impl Carrier) -> Self
    where
        S: From<(ChannelId, ChannelMsg)> + Send + Sync + 'static,
    {
        Self::within(channel, carrier, BOUND)
    }

    /// As [`ChannelStream::new`], for what bounds itself what may arrive: such a channel is never left unread.
    pub fn drained<S>(channel: Channel<S>, carrier: impl Carrier) -> Self
    where
        S: From<(ChannelId, ChannelMsg)> + Send + Sync + 'static,
    {
        Self::within(channel, carrier, usize::MAX)
    }

    fn within<S>(channel: Channel<S>, carrier: impl Carrier, bound: usize) -> Self
    where
        S: From<(ChannelId, ChannelMsg)> + Send + Sync + 'static,
    {
        let (reader, writer) = channel.split();
        let pipe = Arc::new(Pipe::default());
        let writer = Arc::new(writer);
        let stream = Self { pipe: pipe.clone(), outbox: Outbox::new(writer.clone()), sent_eof: false };
        tokio::spawn(drain(reader, writer, pipe, carrier, bound));
        stream
    }

    /// As [`AsyncWrite::poll_write`], of bytes that need not be copied; taken as a whole or not at all. No more than [`CHUNK`].
    pub(super) fn poll_packet(&mut self, cx: &mut Context<'_>, take: impl FnOnce() -> Bytes) -> Poll<io::Result<()>> {
        self.pipe.writable(cx)?;
        ready!(self.poll_sent(cx))?;
        self.outbox.put(Letter::Data(take()));
        // On its way now, also if nobody flushes; what it comes to is told by the next call.
        match self.poll_sent(cx) {
            Poll::Ready(Err(error)) => Poll::Ready(Err(error)),
            _ => Poll::Ready(Ok(())),
        }
    }

    /// Waits until the session has what was written.
    fn poll_sent(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match ready!(self.outbox.poll_empty(cx)) {
            true => Poll::Ready(Ok(())),
            // The session's end may be seen here before the draining task has told its reason.
            false => Poll::Ready(Err(self
                .pipe
                .writable(cx)
                .err()
                .unwrap_or_else(|| io::Error::new(io::ErrorKind::ConnectionAborted, "the SSH session ended")))),
        }
    }

    /// What a command that ended said of it: standard error and exit status, in brackets; empty when it said nothing.
    pub(super) async fn complaint(&mut self) -> String {
        let _ = timeout(LAST_WORDS, self.pipe.over()).await;
        self.pipe.complaint()
    }
}

impl Drop for ChannelStream {
    fn drop(&mut self) {
        self.pipe.leave();
    }
}

impl AsyncRead for ChannelStream {
    fn poll_read(self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        self.pipe.poll_read(cx, buf)
    }
}

impl AsyncWrite for ChannelStream {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        if buf.is_empty() {
            return Poll::Ready(Ok(0));
        }
        let part = buf.get(..CHUNK).unwrap_or(buf);
        ready!(self.poll_packet(cx, || Bytes::copy_from_slice(part)))?;
        Poll::Ready(Ok(part.len()))
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.poll_sent(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        if self.sent_eof || self.pipe.writable(cx).is_err() {
            return Poll::Ready(Ok(()));
        }
        ready!(self.poll_sent(cx))?;
        if !self.outbox.closed {
            self.outbox.put(Letter::Eof);
            ready!(self.poll_sent(cx))?;
        }
        self.sent_eof = true;
        self.pipe.sent_eof();
        Poll::Ready(Ok(()))
    }
}

/// What is handed to the session's task.
enum Letter {
    Data(Bytes),
    Eof,
}

type Handing = ReusableBoxFuture<'static, bool>;
type Start = Box<dyn Fn(&mut Handing, Letter) + Send + Sync>;

/// Hands one letter after the other to the session's task, in memory that is used again.
struct Outbox {
    start: Start,
    handing: Handing,
    busy: bool,
    /// The end was put in.
    closed: bool,
}

impl Outbox {
    fn new<S>(writer: Arc<ChannelWriteHalf<S>>) -> Self
    where
        S: From<(ChannelId, ChannelMsg)> + Send + Sync + 'static,
    {
        let hand = move |letter| {
            let writer = writer.clone();
            async move {
                let handed = match letter {
                    Letter::Data(data) => writer.data_bytes(data).await,
                    Letter::Eof => writer.eof().await,
                };
                handed.is_ok()
            }
        };
        Self::of(hand)
    }

    fn of<F>(hand: impl Fn(Letter) -> F + Send + Sync + 'static) -> Self
    where
        F: Future<Output = bool> + Send + 'static,
    {
        let handing = ReusableBoxFuture::new(hand(Letter::Data(Bytes::new())));
        let start = move |handing: &mut Handing, letter| handing.set(hand(letter));
        Self { start: Box::new(start), handing, busy: false, closed: false }
    }

    /// Only when [`Outbox::poll_empty`] was ready.
    fn put(&mut self, letter: Letter) {
        self.closed |= matches!(letter, Letter::Eof);
        (self.start)(&mut self.handing, letter);
        self.busy = true;
    }

    /// Ready once the session's task has all; `false` when there is no session any more.
    fn poll_empty(&mut self, cx: &mut Context<'_>) -> Poll<bool> {
        if self.busy {
            let handed = ready!(self.handing.poll(cx));
            self.busy = false;
            return Poll::Ready(handed);
        }
        Poll::Ready(true)
    }
}

/// What ended the draining of a channel.
enum Drained {
    /// The peer closed it, or its session is gone: nothing to do.
    Over,
    /// This side closes it.
    Close,
}

async fn drain<S>(
    mut reader: ChannelReadHalf,
    writer: Arc<ChannelWriteHalf<S>>,
    pipe: Arc<Pipe>,
    carrier: impl Carrier,
    bound: usize,
) where
    S: From<(ChannelId, ChannelMsg)> + Send + Sync + 'static,
{
    let end = tokio::select! {
        end = pump(&mut reader, &pipe, &carrier, bound) => end,
        () = pipe.left() => last_words(&mut reader, &pipe, &carrier).await,
    };
    if let Drained::Close = end {
        // First, so that the session's task is not stuck on our full queue while we ask it to close.
        drop(reader);
        let _ = timeout(CLOSE, writer.close()).await;
        carrier.closed_first();
    }
}

async fn pump(reader: &mut ChannelReadHalf, pipe: &Pipe, carrier: &impl Carrier, bound: usize) -> Drained {
    loop {
        match reader.wait().await {
            Some(ChannelMsg::Data { data }) => {
                let waiting = pipe.push(data);
                if waiting > HIGH && bound < usize::MAX && carrier.hold() {
                    pipe.below(LOW).await;
                    carrier.resume();
                } else if waiting > bound {
                    pipe.end(End::Broken(too_far_behind()));
                    return Drained::Close;
                }
            }
            Some(ChannelMsg::Eof) => pipe.eof(),
            Some(ChannelMsg::ExtendedData { data, ext: 1 }) => pipe.complain(&data),
            Some(ChannelMsg::ExitStatus { exit_status }) => pipe.exited(exit_status),
            Some(ChannelMsg::Close) => {
                pipe.end(End::Closed);
                return Drained::Over;
            }
            Some(_) => {}
            None => {
                pipe.end(End::Broken(carrier.lost()));
                return Drained::Over;
            }
        }
    }
}

fn too_far_behind() -> String {
    let mib = BOUND >> 20;
    let why = format!("closed here: its reader was more than {mib} MiB behind while others shared its SSH session");
    tracing::warn!(target: "stado::fleet", "stado link stream {why}");
    why
}

/// After the stream was dropped. When both directions had ended, the side that does not close waits for the other to
/// do so (a close of ours would stay in russh's table); else the channel is closed at once.
async fn last_words(reader: &mut ChannelReadHalf, pipe: &Pipe, carrier: &impl Carrier) -> Drained {
    if !pipe.finished() || carrier.closes() {
        return Drained::Close;
    }
    let closed = async {
        loop {
            match reader.wait().await {
                Some(ChannelMsg::Close) | None => return,
                Some(_) => {}
            }
        }
    };
    match timeout(CLOSE, closed).await {
        Ok(()) => Drained::Over,
        Err(_) => Drained::Close,
    }
}

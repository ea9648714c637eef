//! One direction of a message: its head, then its body, from one end to the other as it comes (proxy rule 14).
use crate::conn::{Bulk, Context};
use crate::http::buffer::{self, Buffer};
use crate::http::framing::{Body, Form, Framing};
use crate::http::socket::Io;
use std::io::{self, IoSlice};
use std::pin::Pin;
use std::task::{self, Poll, ready};

/// Runs of a body up to this size are copied behind what goes out with them: one write instead of two.
const COPIED: usize = 16 << 10;
/// So much of a message is gathered before it is written, and held for a repetition (proxy rule 16).
const KEPT: usize = 32 << 10;
/// A counted body with so much left is worth a pipe.
const WORTH_A_PIPE: u64 = 512 << 10;

/// What broke a direction.
#[derive(Debug)]
pub(super) enum Broken {
    /// Where the bytes come from.
    Source(io::Error),
    /// It ended its stream inside the message.
    Ended,
    /// What came is not a body.
    Malformed(&'static str),
    /// Where the bytes go.
    Destination,
}

/// What a direction waits for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Waits {
    Source,
    Destination,
}

/// One message on its way.
#[derive(Debug)]
pub(super) struct Pump {
    /// Bytes that go out next, and how many of them are out.
    out: Vec<u8>,
    sent: usize,
    /// Bytes at the front of the source's buffer that go out behind them.
    ready: usize,
    body: Body,
    bulk: Option<Bulk>,
    may_bulk: bool,
    /// `out` still holds everything that was ever taken from the source.
    whole: bool,
    /// It goes on to, as long as that is little.
    keeps: bool,
    pub(super) waits: Waits,
    /// Bytes of the body that were passed on.
    pub(super) moved: u64,
    /// Bytes that the destination has taken, head and framing included.
    pub(super) given: u64,
}

impl Pump {
    /// Begins with `out`: a head that is to be sent first.
    pub(super) fn new(out: Vec<u8>, framing: Framing, form: Form) -> Self {
        Self {
            out,
            sent: 0,
            ready: 0,
            body: Body::new(framing, form),
            bulk: None,
            may_bulk: true,
            whole: true,
            keeps: false,
            waits: Waits::Source,
            moved: 0,
            given: 0,
        }
    }

    /// Bytes that go out before all others.
    pub(super) fn out(&mut self) -> &mut Vec<u8> {
        &mut self.out
    }
    /// The body that follows what is in [`Self::out`].
    pub(super) fn begin_body(&mut self, framing: Framing, form: Form) {
        self.body = Body::new(framing, form);
    }
    /// The same, but what went out stays held while it is no more than [`KEPT`], so that it can go out again.
    pub(super) fn keeping(self, keeps: bool) -> Self {
        Self { keeps, ..self }
    }
    /// Whether everything that went out can go out again; what of it has not come yet follows then.
    pub(super) fn can_repeat(&self) -> bool {
        self.whole
    }
    /// Begins anew on another connection. Only where [`Self::can_repeat`].
    pub(super) fn repeat(&mut self) {
        self.sent = 0;
    }
    /// Whether the whole body has been read from its source.
    pub(super) fn has_read_all(&self) -> bool {
        self.body.is_done() && self.ready == 0
    }
    /// Whether bytes wait for the destination.
    pub(super) fn holds(&self) -> bool {
        self.sent < self.out.len() || self.ready > 0 || self.bulk.as_ref().is_some_and(|bulk| bulk.held() > 0)
    }
    /// Takes the memory.
    pub(super) fn into_memory(self) -> Vec<u8> {
        self.out
    }

    /// Takes the body's bytes that are in `input`, as far as they go out with what is held; the rest stays. A malformed body
    /// is found here before any of it is sent.
    pub(super) fn gather(&mut self, input: &mut Buffer) -> Result<(), Broken> {
        let is_out = self.sent > 0 && self.sent == self.out.len();
        let stays = self.keeps && self.whole && self.out.len() < KEPT;
        if is_out && !stays && !(self.body.is_done() || input.is_empty()) {
            self.out.clear();
            self.sent = 0;
            self.whole = false;
        }
        while !self.body.is_done() && self.ready == 0 && !input.is_empty() && self.out.len() < KEPT {
            let run = self.body.read(input.bytes()).map_err(Broken::Malformed)?;
            if run.pass {
                self.moved += run.len as u64;
            }
            if run.pass && run.len > COPIED {
                self.ready = run.len;
                self.whole = false;
            } else {
                if run.pass {
                    self.out.extend_from_slice(input.bytes().get(..run.len).unwrap_or_default());
                }
                input.used(run.len);
            }
            if let Some(tail) = self.body.finish() {
                self.out.extend_from_slice(&tail);
            }
        }
        Ok(())
    }

    /// Moves what can be moved now. Ready when the message is out. `ended`: whether the source has ended its stream.
    pub(super) fn poll<A: Io, B: Io>(
        &mut self,
        cx: &mut task::Context<'_>,
        from: (&mut A, &mut Buffer, &mut bool),
        to: &mut B,
        context: &Context,
    ) -> Poll<Result<(), Broken>> {
        let (source, input, ended) = from;
        loop {
            self.gather(input)?;
            self.waits = Waits::Destination;
            ready!(self.poll_write(cx, input, to)).map_err(|_| Broken::Destination)?;
            if self.ready > 0 || self.sent < self.out.len() || (!self.body.is_done() && !input.is_empty()) {
                continue;
            }
            if self.body.is_done() {
                return Pin::new(to).poll_flush(cx).map_err(|_| Broken::Destination);
            }
            self.waits = Waits::Source;
            let read = match *ended {
                true => Poll::Ready(Ok(0)),
                false => self.poll_read(cx, source, input, to, context),
            };
            match read {
                Poll::Ready(Ok(0)) => {
                    *ended = true;
                    if !self.body.source_ended() {
                        return Poll::Ready(Err(Broken::Ended));
                    }
                }
                Poll::Ready(Ok(_)) => {}
                Poll::Ready(Err(error)) => return Poll::Ready(Err(Broken::Source(error))),
                Poll::Pending => {
                    // What was written must not stay in a buffer of TLS. If that has to wait, it is polled with this direction.
                    if let Poll::Ready(Err(_)) = Pin::new(to).poll_flush(cx) {
                        return Poll::Ready(Err(Broken::Destination));
                    }
                    return Poll::Pending;
                }
            }
        }
    }

    /// Reads into the buffer, or, in bulk, into a pipe.
    fn poll_read<A: Io, B: Io>(
        &mut self,
        cx: &mut task::Context<'_>,
        source: &mut A,
        input: &mut Buffer,
        to: &B,
        context: &Context,
    ) -> Poll<io::Result<usize>> {
        if let (Some(left), Some(tcp), Some(_)) = (self.body.left(), source.clear(), to.clear())
            && self.may_bulk
            && (self.bulk.is_some() || left >= WORTH_A_PIPE)
        {
            if self.bulk.is_none() {
                self.bulk = Bulk::new(context);
                self.may_bulk = self.bulk.is_some();
            }
            if let Some(bulk) = &mut self.bulk {
                let n = ready!(bulk.poll_fill(cx, tcp.tcp(), left))?;
                self.whole = false;
                self.moved += n as u64;
                self.body.counted(n);
                return Poll::Ready(Ok(n));
            }
        }
        let room = if self.moved > buffer::SIZE as u64 { buffer::STREAM } else { buffer::SIZE };
        input.poll_fill(cx, source, room)
    }

    /// Writes what is ready: the pipe, then `out`, then the run in the buffer.
    fn poll_write<B: Io>(
        &mut self,
        cx: &mut task::Context<'_>,
        input: &mut Buffer,
        to: &mut B,
    ) -> Poll<io::Result<()>> {
        if let (Some(bulk), Some(socket)) = (&mut self.bulk, to.clear())
            && bulk.held() > 0
        {
            let before = bulk.held();
            let drained = bulk.poll_drain(cx, socket.tcp());
            self.given += (before - bulk.held()) as u64;
            ready!(drained)?;
        }
        while self.sent < self.out.len() || self.ready > 0 {
            let held = self.out.get(self.sent..).unwrap_or_default();
            let run = input.bytes().get(..self.ready).unwrap_or_default();
            let mut to = Pin::new(&mut *to);
            let written = match (held, run) {
                (held, []) => ready!(to.as_mut().poll_write(cx, held))?,
                ([], run) => ready!(to.as_mut().poll_write(cx, run))?,
                (held, run) => ready!(to.as_mut().poll_write_vectored(cx, &[IoSlice::new(held), IoSlice::new(run)]))?,
            };
            if written == 0 {
                return Poll::Ready(Err(io::ErrorKind::WriteZero.into()));
            }
            self.given += written as u64;
            let of_held = written.min(held.len());
            self.sent += of_held;
            self.ready -= written - of_held;
            input.used(written - of_held);
        }
        Poll::Ready(Ok(()))
    }
}

//! One direction of a connection on its two ends: does what [`Flow`] decides.
use super::machine::{Flow, Mode, Step};
use super::pipe::{Pipe, Pipes};
use super::scratch;
use super::side::Side;
use crate::conn::ledger::Seen;
use std::io;
use std::task::{Context, Poll, ready};

/// What broke a direction: its source or its destination.
pub(super) enum Fault {
    Source(io::Error),
    Destination(io::Error),
}

/// One direction with what it could not write yet.
pub(super) struct Direction {
    flow: Flow,
    parked: Vec<u8>,
    written: usize,
    /// Boxed, since few directions have one.
    pipe: Option<Box<Pipe>>,
    pipes: Option<Pipes>,
    /// Bytes were given to the destination since the last question.
    gave: bool,
    /// Bulk moved since the last look at the pipe.
    busy: bool,
    look_when_idle: bool,
}

impl Direction {
    /// `early`: bytes of the source that were taken already. `pipes`: where pipes come from, if both ends can be spliced.
    pub(super) fn new(early: Vec<u8>, pipes: Option<&Pipes>) -> Self {
        let flow = Flow::new(early.len(), pipes.is_some());
        let pipes = pipes.cloned();
        Self { flow, parked: early, written: 0, pipe: None, pipes, gave: false, busy: false, look_when_idle: false }
    }

    pub(super) fn parked(&self) -> &[u8] {
        &self.parked
    }
    pub(super) fn is_done(&self) -> bool {
        self.flow.is_done()
    }
    pub(super) fn source_ended(&self) -> bool {
        self.flow.source_ended()
    }
    pub(super) fn looks_away(&self) -> bool {
        self.flow.looks_away()
    }
    /// Whether bytes were given to the destination since the last call.
    pub(super) fn gave(&mut self) -> bool {
        std::mem::take(&mut self.gave)
    }
    pub(super) fn has_pipe(&self) -> bool {
        self.pipe.is_some()
    }

    /// The next read goes through the shared buffer, where its bytes can be seen.
    pub(super) fn look_again(&mut self) {
        self.flow.small();
    }
    /// The same after every pause of the source, from now on.
    pub(super) fn look_again_when_idle(&mut self) {
        self.look_when_idle = true;
    }
    /// Gives the pipe back if it was not needed since the last call.
    pub(super) fn rest(&mut self) {
        if !std::mem::take(&mut self.busy) {
            self.flow.small();
            if !self.flow.holds() {
                self.pipe = None;
            }
        }
    }

    /// Moves what can be moved now. Ready when the direction is done. `last`: the other direction is done already.
    pub(super) fn poll<A: Side, B: Side>(
        &mut self,
        cx: &mut Context<'_>,
        source: &mut A,
        destination: &mut B,
        last: bool,
        mut note: impl FnMut(Seen<'_>),
    ) -> Poll<Result<(), Fault>> {
        loop {
            match self.flow.next() {
                Step::Read(Mode::Small) => ready!(self.poll_through(cx, source, destination, &mut note))?,
                Step::Read(Mode::Bulk) => ready!(self.poll_fill(cx, source, &mut note)).map_err(Fault::Source)?,
                Step::Write(Mode::Small) => ready!(self.poll_parked(cx, destination)).map_err(Fault::Destination)?,
                Step::Write(Mode::Bulk) => ready!(self.poll_drain(cx, destination)).map_err(Fault::Destination)?,
                Step::Shutdown => {
                    self.pipe = None;
                    ready!(destination.poll_shutdown(cx, last)).map_err(Fault::Destination)?;
                    self.flow.passed_on();
                }
                Step::Done => return Poll::Ready(Ok(())),
            }
        }
    }

    /// One read into the shared buffer, and from there to the destination; what it does not take is parked.
    fn poll_through<A: Side, B: Side>(
        &mut self,
        cx: &mut Context<'_>,
        source: &mut A,
        destination: &mut B,
        note: &mut impl FnMut(Seen<'_>),
    ) -> Poll<Result<(), Fault>> {
        self.pipe = None;
        scratch::with(|buffer| {
            let n = match source.poll_read(cx, buffer) {
                Poll::Ready(read) => read.map_err(Fault::Source)?,
                Poll::Pending => {
                    // Pending here only means that the destination flushes later: it is polled again with this direction.
                    if let Poll::Ready(Err(error)) = destination.poll_flush(cx) {
                        return Poll::Ready(Err(Fault::Destination(error)));
                    }
                    return Poll::Pending;
                }
            };
            if n == 0 {
                self.flow.ended();
                return Poll::Ready(Ok(()));
            }
            let bytes = buffer.get(..n).unwrap_or_default();
            self.flow.read(n, n == buffer.len());
            note(Seen::Bytes(bytes));
            let mut rest = bytes;
            while !rest.is_empty() {
                match destination.poll_write(cx, rest) {
                    Poll::Ready(written) => {
                        let written = nonzero(written).map_err(Fault::Destination)?;
                        self.gave = true;
                        self.flow.wrote(written);
                        rest = rest.get(written..).unwrap_or_default();
                    }
                    Poll::Pending => {
                        self.parked = rest.to_vec();
                        self.written = 0;
                        return Poll::Pending;
                    }
                }
            }
            Poll::Ready(Ok(()))
        })
    }

    /// Writes what was parked, and frees its memory when all is out.
    fn poll_parked<B: Side>(&mut self, cx: &mut Context<'_>, destination: &mut B) -> Poll<io::Result<()>> {
        while let Some(rest) = self.parked.get(self.written..).filter(|rest| !rest.is_empty()) {
            let written = nonzero(ready!(destination.poll_write(cx, rest)))?;
            self.written += written;
            self.gave = true;
            self.flow.wrote(written);
        }
        self.parked = Vec::new();
        self.written = 0;
        Poll::Ready(Ok(()))
    }

    /// Moves what the source has into the pipe, which is empty now. Without a pipe the direction stays small.
    fn poll_fill<A: Side>(
        &mut self,
        cx: &mut Context<'_>,
        source: &mut A,
        note: &mut impl FnMut(Seen<'_>),
    ) -> Poll<io::Result<()>> {
        if self.pipe.is_none() {
            self.pipe = self.pipes.as_ref().and_then(Pipes::make).map(Box::new);
        }
        let Some(pipe) = &self.pipe else {
            self.flow.no_bulk();
            return Poll::Ready(Ok(()));
        };
        match source.poll_fill(cx, pipe) {
            Poll::Pending => {
                if self.look_when_idle {
                    self.flow.small();
                }
                Poll::Pending
            }
            Poll::Ready(Ok(0)) => {
                self.flow.ended();
                Poll::Ready(Ok(()))
            }
            Poll::Ready(Ok(n)) => {
                self.busy = true;
                self.flow.read(n, false);
                note(Seen::Count(n));
                Poll::Ready(Ok(()))
            }
            Poll::Ready(Err(error)) => Poll::Ready(Err(error)),
        }
    }

    /// Moves what is in the pipe to the destination.
    fn poll_drain<B: Side>(&mut self, cx: &mut Context<'_>, destination: &mut B) -> Poll<io::Result<()>> {
        let Some(pipe) = &self.pipe else { return Poll::Ready(Err(io::ErrorKind::BrokenPipe.into())) };
        let moved = nonzero(ready!(destination.poll_drain(cx, pipe, self.flow.held())))?;
        self.gave = true;
        self.flow.wrote(moved);
        Poll::Ready(Ok(()))
    }
}

fn nonzero(written: io::Result<usize>) -> io::Result<usize> {
    match written {
        Ok(0) => Err(io::ErrorKind::WriteZero.into()),
        other => other,
    }
}

//! A socket of this host.
use super::pipe::Pipe;
use super::side::Side;
use rustix::net::{RecvFlags, SendFlags, Shutdown};
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;
use tokio::io::{Interest, Ready};
use tokio::net::TcpStream;

/// A peer that is gone is an error of the write, not a signal. Elsewhere the runtime ignores the signal.
#[cfg(target_os = "linux")]
const NO_SIGNAL: SendFlags = SendFlags::NOSIGNAL;
#[cfg(not(target_os = "linux"))]
const NO_SIGNAL: SendFlags = SendFlags::empty();

type Watching<'a> = Pin<Box<dyn Future<Output = io::Result<Ready>> + Send + 'a>>;

/// One end that is a TCP socket.
pub(super) struct TcpSide<'a> {
    stream: &'a TcpStream,
    /// Made only when the driver looks away from a socket that may break meanwhile.
    broken: Option<Watching<'a>>,
    settled: bool,
}
impl<'a> TcpSide<'a> {
    pub(super) fn new(stream: &'a TcpStream) -> Self {
        Self { stream, broken: None, settled: false }
    }

    /// Tries `work` once the socket is ready for `interest`. A result short of `room` also means that the socket has no more
    /// for now: the readiness is taken back with it, which saves the call that would only say so.
    fn attempt(
        &self,
        interest: Interest,
        room: usize,
        mut work: impl FnMut() -> rustix::io::Result<usize>,
    ) -> io::Result<usize> {
        let mut short = None;
        let result = self.stream.try_io(interest, || {
            let n = work()?;
            if cfg!(target_os = "linux") && n > 0 && n < room {
                short = Some(n);
                return Err(io::ErrorKind::WouldBlock.into());
            }
            Ok(n)
        });
        short.map_or(result, Ok)
    }
}

impl Side for TcpSide<'_> {
    fn poll_read(&mut self, cx: &mut Context<'_>, buf: &mut [u8]) -> Poll<io::Result<usize>> {
        loop {
            ready!(self.stream.poll_read_ready(cx))?;
            let room = buf.len();
            let work = || rustix::net::recv(self.stream, &mut *buf, RecvFlags::empty()).map(|(n, _)| n);
            match self.attempt(Interest::READABLE, room, work) {
                Err(error) if again(&error) => {}
                result => return Poll::Ready(result),
            }
        }
    }

    fn poll_write(&mut self, cx: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        loop {
            ready!(self.stream.poll_write_ready(cx))?;
            let work = || rustix::net::send(self.stream, buf, NO_SIGNAL);
            match self.attempt(Interest::WRITABLE, buf.len(), work) {
                Err(error) if again(&error) => {}
                result => return Poll::Ready(result),
            }
        }
    }

    fn poll_flush(&mut self, _cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(&mut self, _cx: &mut Context<'_>, last: bool) -> Poll<io::Result<()>> {
        if last {
            // Everything was read, so closing says the same as a shutdown before it.
            return Poll::Ready(Ok(()));
        }
        Poll::Ready(rustix::net::shutdown(self.stream, Shutdown::Write).map_err(io::Error::from))
    }

    fn poll_broken(&mut self, cx: &mut Context<'_>) -> Poll<io::Error> {
        let stream = self.stream;
        let watching = self.broken.get_or_insert_with(|| Box::pin(stream.ready(Interest::ERROR)));
        let woken = ready!(watching.as_mut().poll(cx));
        self.broken = None;
        let cause = woken.err().or_else(|| self.stream.take_error().ok().flatten());
        Poll::Ready(cause.unwrap_or_else(|| io::ErrorKind::ConnectionReset.into()))
    }

    fn settle(&mut self) {
        self.settled = true;
    }

    fn splices(&self) -> bool {
        cfg!(target_os = "linux")
    }

    fn poll_fill(&mut self, cx: &mut Context<'_>, pipe: &Pipe) -> Poll<io::Result<usize>> {
        loop {
            ready!(self.stream.poll_read_ready(cx))?;
            // The pipe is empty: only the socket can have nothing. A short move says nothing, since a pipe has few slots.
            match self.stream.try_io(Interest::READABLE, || pipe.fill_from(self.stream)) {
                Err(error) if again(&error) => {}
                result => return Poll::Ready(result),
            }
        }
    }

    fn poll_drain(&mut self, cx: &mut Context<'_>, pipe: &Pipe, held: usize) -> Poll<io::Result<usize>> {
        loop {
            ready!(self.stream.poll_write_ready(cx))?;
            match self.stream.try_io(Interest::WRITABLE, || pipe.drain_to(self.stream, held)) {
                Err(error) if again(&error) => {}
                result => return Poll::Ready(result),
            }
        }
    }
}

impl Drop for TcpSide<'_> {
    fn drop(&mut self) {
        if !self.settled {
            // With a zero linger time closing sends a reset. A socket that refuses the option is gone already.
            let _ = socket2::SockRef::from(self.stream).set_linger(Some(Duration::ZERO));
        }
    }
}

pub(super) fn again(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted)
}

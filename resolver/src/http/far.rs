//! The end that a backend holds.
use super::socket::{Io, Socket};
use crate::conn::{Claim, End, Upstream};
use stado_fleet::link::RemoteStream;
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, Waker};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

/// A connection to a backend: a socket of this host, or a stream over a link or under TLS, with the socket under that one.
pub(super) enum Far {
    Socket(Socket),
    Stream(Pin<Box<dyn RemoteStream>>, Option<Socket>),
}

impl From<Upstream> for Far {
    fn from(upstream: Upstream) -> Self {
        match upstream {
            Upstream::Local(stream) => Self::Socket(Socket::new(stream)),
            Upstream::Remote(stream) => Self::Stream(stream, None),
        }
    }
}

impl Far {
    /// Whether nothing has come since the last answer: an end of stream or stray bytes make it useless. `surely` asks the
    /// kernel; else what the runtime knows already is enough.
    pub(super) fn is_silent(&mut self, surely: bool) -> bool {
        let mut byte = [0u8; 1];
        match self {
            Self::Socket(socket) if surely => socket.is_silent(),
            Self::Socket(socket) => {
                let mut cx = Context::from_waker(Waker::noop());
                // Nobody is woken by this: whoever uses the connection next asks again.
                socket.tcp().poll_read_ready(&mut cx).is_pending() || socket.is_silent()
            }
            Self::Stream(stream, socket) => {
                let mut cx = Context::from_waker(Waker::noop());
                let silent = stream.as_mut().poll_read(&mut cx, &mut ReadBuf::new(&mut byte)).is_pending();
                silent && (!surely || socket.as_ref().is_none_or(Socket::is_silent))
            }
        }
    }

    /// Closes it with a reset, where the transport can.
    pub(super) fn reset(self) {
        if let Self::Socket(socket) | Self::Stream(_, Some(socket)) = &self {
            socket.reset_on_close();
        }
    }

    /// Counts an idle connection among the descriptors, if one is left for it.
    pub(super) fn claim(&self, context: &crate::conn::Context) -> Option<Option<Claim>> {
        match self {
            Self::Socket(socket) | Self::Stream(_, Some(socket)) => {
                context.descriptors.claim(1, socket.tcp()).map(Some)
            }
            Self::Stream(_, None) => Some(None),
        }
    }

    /// The end for a relay. `keep` is the socket that it stands on, to be reset where the relay breaks.
    pub(super) fn into_end(self, keep: &mut Option<Socket>) -> End<'_> {
        match self {
            Self::Socket(socket) => End::Socket(keep.insert(socket).tcp()),
            Self::Stream(stream, socket) => {
                *keep = socket;
                End::Stream(stream)
            }
        }
    }
}

impl AsyncRead for Far {
    fn poll_read(self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Self::Socket(socket) => Pin::new(socket).poll_read(cx, buf),
            Self::Stream(stream, _) => stream.as_mut().poll_read(cx, buf),
        }
    }
}
impl AsyncWrite for Far {
    fn poll_write(self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        match self.get_mut() {
            Self::Socket(socket) => Pin::new(socket).poll_write(cx, buf),
            Self::Stream(stream, _) => stream.as_mut().poll_write(cx, buf),
        }
    }
    fn poll_write_vectored(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bufs: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        match self.get_mut() {
            Self::Socket(socket) => Pin::new(socket).poll_write_vectored(cx, bufs),
            Self::Stream(stream, _) => stream.as_mut().poll_write_vectored(cx, bufs),
        }
    }
    fn is_write_vectored(&self) -> bool {
        match self {
            Self::Socket(socket) => socket.is_write_vectored(),
            Self::Stream(stream, _) => stream.is_write_vectored(),
        }
    }
    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Self::Socket(socket) => Pin::new(socket).poll_flush(cx),
            Self::Stream(stream, _) => stream.as_mut().poll_flush(cx),
        }
    }
    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Self::Socket(socket) => Pin::new(socket).poll_shutdown(cx),
            Self::Stream(stream, _) => stream.as_mut().poll_shutdown(cx),
        }
    }
}
impl Io for Far {
    fn clear(&self) -> Option<&Socket> {
        match self {
            Self::Socket(socket) => Some(socket),
            Self::Stream(..) => None,
        }
    }
    fn poll_fill(&mut self, cx: &mut Context<'_>, buf: &mut Vec<u8>) -> Poll<io::Result<usize>> {
        match self {
            Self::Socket(socket) => socket.poll_fill(cx, buf),
            Self::Stream(stream, _) => tokio_util::io::poll_read_buf(stream.as_mut(), cx, buf),
        }
    }
}

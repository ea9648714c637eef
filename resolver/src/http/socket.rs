//! A TCP socket that a connection and whoever watches over it hold together.
use rustix::buffer::spare_capacity;
use rustix::net::{RecvFlags, Shutdown};
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite, Interest, ReadBuf};
use tokio::net::TcpStream;

/// Cheap to clone; all clones are one socket, which closes with the last of them.
#[derive(Debug, Clone)]
pub struct Socket(Arc<TcpStream>);

impl Socket {
    /// Takes over a connected socket. Small writes are sent at once.
    pub fn new(stream: TcpStream) -> Self {
        // A socket without NODELAY still works; the connection is worth more than the option.
        let _ = stream.set_nodelay(true);
        Self(Arc::new(stream))
    }

    /// The socket itself.
    pub fn tcp(&self) -> &TcpStream {
        &self.0
    }

    /// From now on closing it sends a reset instead of an end of stream.
    pub fn reset_on_close(&self) {
        // A socket that refuses the option is gone already.
        let _ = socket2::SockRef::from(&*self.0).set_linger(Some(Duration::ZERO));
    }

    /// Returns when the connection is broken; neither data nor an end of stream counts.
    pub(super) fn broken(&self) -> Pin<Box<dyn Future<Output = ()> + Send>> {
        let socket = Arc::clone(&self.0);
        Box::pin(async move {
            // An error of the wait means that the runtime ends.
            let _ = socket.ready(Interest::ERROR).await;
        })
    }

    /// Asks the kernel whether the peer has ended the stream, or sent what nobody asked for.
    pub(super) fn is_silent(&self) -> bool {
        let mut byte = [0u8; 1];
        let peeked = rustix::net::recv(&*self.0, &mut byte, RecvFlags::PEEK | RecvFlags::DONTWAIT);
        matches!(peeked, Err(rustix::io::Errno::AGAIN))
    }

    /// Reads once the socket is ready. A read short of `room` also means that there is no more for now: the readiness is
    /// taken back with it, which saves the call that would only say so.
    fn poll_recv(
        &self,
        cx: &mut Context<'_>,
        room: usize,
        mut recv: impl FnMut(&TcpStream) -> rustix::io::Result<usize>,
    ) -> Poll<io::Result<usize>> {
        loop {
            ready!(self.0.poll_read_ready(cx))?;
            let mut short = None;
            let result = self.0.try_io(Interest::READABLE, || {
                let n = recv(&self.0)?;
                if cfg!(target_os = "linux") && n > 0 && n < room {
                    short = Some(n);
                    return Err(io::ErrorKind::WouldBlock.into());
                }
                Ok(n)
            });
            match short.map_or(result, Ok) {
                Err(error) if again(&error) => {}
                result => return Poll::Ready(result),
            }
        }
    }
}

impl AsyncRead for Socket {
    fn poll_read(self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let room = buf.remaining();
        let into = buf.initialize_unfilled();
        let n = ready!(self.poll_recv(cx, room, |tcp| Ok(rustix::net::recv(tcp, &mut *into, RecvFlags::empty())?.0)))?;
        buf.advance(n);
        Poll::Ready(Ok(()))
    }
}

impl AsyncWrite for Socket {
    fn poll_write(self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        loop {
            ready!(self.0.poll_write_ready(cx))?;
            match self.0.try_write(buf) {
                Err(error) if again(&error) => {}
                result => return Poll::Ready(result),
            }
        }
    }
    fn poll_write_vectored(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bufs: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        loop {
            ready!(self.0.poll_write_ready(cx))?;
            match self.0.try_write_vectored(bufs) {
                Err(error) if again(&error) => {}
                result => return Poll::Ready(result),
            }
        }
    }
    fn is_write_vectored(&self) -> bool {
        true
    }
    fn poll_flush(self: Pin<&mut Self>, _cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }
    fn poll_shutdown(self: Pin<&mut Self>, _cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(rustix::net::shutdown(&*self.0, Shutdown::Write).map_err(io::Error::from))
    }
}

fn again(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted)
}

/// One end that HTTP/1 is spoken on.
pub trait Io: AsyncRead + AsyncWrite + Unpin + Send {
    /// The socket, where its bytes are the stream's own, so that the kernel may move them.
    fn clear(&self) -> Option<&Socket>;

    /// Reads behind what `buf` holds, into the room that it has; 0 is the end of the stream.
    fn poll_fill(&mut self, cx: &mut Context<'_>, buf: &mut Vec<u8>) -> Poll<io::Result<usize>> {
        tokio_util::io::poll_read_buf(Pin::new(self), cx, buf)
    }
}

/// The end that a client holds: a socket, or TLS over one.
pub trait Client: Io + 'static {
    /// The socket underneath.
    fn socket(&self) -> &Socket;
}

impl Io for Socket {
    fn clear(&self) -> Option<&Socket> {
        Some(self)
    }
    fn poll_fill(&mut self, cx: &mut Context<'_>, buf: &mut Vec<u8>) -> Poll<io::Result<usize>> {
        let room = buf.capacity() - buf.len();
        self.poll_recv(cx, room, |tcp| Ok(rustix::net::recv(tcp, spare_capacity(buf), RecvFlags::empty())?.0))
    }
}
impl Client for Socket {
    fn socket(&self) -> &Socket {
        self
    }
}

impl super::tls::Wire for Socket {
    fn tcp(&self) -> &TcpStream {
        &self.0
    }
}

impl Io for tokio_rustls::server::TlsStream<Socket> {
    fn clear(&self) -> Option<&Socket> {
        None
    }
}
impl Client for tokio_rustls::server::TlsStream<Socket> {
    fn socket(&self) -> &Socket {
        self.get_ref().0
    }
}

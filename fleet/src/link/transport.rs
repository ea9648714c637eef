//! What an SSH session runs over: a TCP connection, or a channel of another session (ProxyJump).
use super::connect;
use super::error::LinkError;
use super::jump;
use super::pool::Pool;
use super::ssh_config::Route;
use super::stream::ChannelStream;
use crate::fault::Class;
use crate::link::Stage;
use crate::name::SshDestination;
use std::io;
use std::net::Shutdown;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use tokio_util::sync::{CancellationToken, WaitForCancellationFutureOwned};

/// The bytes of a session.
pub(super) enum Transport {
    Tcp(TcpStream),
    Jump { channel: ChannelStream, cut: CancellationToken, told: Pin<Box<WaitForCancellationFutureOwned>> },
}

/// Ends a transport from outside, whatever the task that uses it is doing.
pub(super) enum Cord {
    Socket(socket2::Socket),
    Jump(CancellationToken),
}

impl Cord {
    pub(super) fn cut(&self) {
        match self {
            Self::Socket(socket) => {
                let _ = socket.shutdown(Shutdown::Both);
            }
            Self::Jump(cut) => cut.cancel(),
        }
    }
}

/// Opens the way to a route's host through `jumps`; how long its connect took, where that says how far it is.
pub(super) async fn open(
    route: &Route,
    jumps: &[SshDestination],
    destination: &SshDestination,
    pool: &Arc<Pool>,
) -> Result<(Transport, Cord, Duration), LinkError> {
    if jumps.is_empty() {
        let (stream, took) = connect::tcp(&route.host, route.port, route.connect).await?;
        let socket = socket2::SockRef::from(&stream).try_clone().map_err(|error| {
            LinkError::new(Stage::Connect, Class::InfraDown, format!("no descriptor for {destination}: {error}"))
        })?;
        return Ok((Transport::Tcp(stream), Cord::Socket(socket), took));
    }
    let (channel, took) = jump::through(jumps, &route.host, route.port, pool).await?;
    let cut = CancellationToken::new();
    let told = Box::pin(cut.clone().cancelled_owned());
    Ok((Transport::Jump { channel, cut: cut.clone(), told }, Cord::Jump(cut), took))
}

fn was_cut() -> io::Error {
    io::ErrorKind::ConnectionAborted.into()
}

impl AsyncRead for Transport {
    fn poll_read(self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Self::Tcp(stream) => Pin::new(stream).poll_read(cx, buf),
            Self::Jump { channel, cut, told } => {
                if cut.is_cancelled() || told.as_mut().poll(cx).is_ready() {
                    return Poll::Ready(Err(was_cut()));
                }
                Pin::new(channel).poll_read(cx, buf)
            }
        }
    }
}

impl AsyncWrite for Transport {
    fn poll_write(self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        match self.get_mut() {
            Self::Tcp(stream) => Pin::new(stream).poll_write(cx, buf),
            Self::Jump { channel, cut, told } => {
                if cut.is_cancelled() || told.as_mut().poll(cx).is_ready() {
                    return Poll::Ready(Err(was_cut()));
                }
                Pin::new(channel).poll_write(cx, buf)
            }
        }
    }
    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Self::Tcp(stream) => Pin::new(stream).poll_flush(cx),
            Self::Jump { channel, .. } => Pin::new(channel).poll_flush(cx),
        }
    }
    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Self::Tcp(stream) => Pin::new(stream).poll_shutdown(cx),
            Self::Jump { channel, .. } => Pin::new(channel).poll_shutdown(cx),
        }
    }
    fn poll_write_vectored(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bufs: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let this = self.get_mut();
        if let Self::Tcp(stream) = this {
            return Pin::new(stream).poll_write_vectored(cx, bufs);
        }
        // A channel takes one piece at a time.
        let first = bufs.iter().find(|buf| !buf.is_empty()).map_or(&[][..], |buf| buf);
        Pin::new(this).poll_write(cx, first)
    }
    fn is_write_vectored(&self) -> bool {
        matches!(self, Self::Tcp(_))
    }
}

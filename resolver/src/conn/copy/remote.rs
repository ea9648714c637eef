//! A stream to another host.
use super::side::Side;
use stado_fleet::link::RemoteStream;
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

/// One end that is a stream of the link. The link carries a reset where its transport can, when the stream is dropped
/// before its end, and reports one as an error of a read or write.
pub(super) struct RemoteSide {
    stream: Pin<Box<dyn RemoteStream>>,
}
impl RemoteSide {
    pub(super) fn new(stream: Pin<Box<dyn RemoteStream>>) -> Self {
        Self { stream }
    }
}

impl Side for RemoteSide {
    fn poll_read(&mut self, cx: &mut Context<'_>, buf: &mut [u8]) -> Poll<io::Result<usize>> {
        let mut read = ReadBuf::new(buf);
        ready!(AsyncRead::poll_read(self.stream.as_mut(), cx, &mut read))?;
        Poll::Ready(Ok(read.filled().len()))
    }
    fn poll_write(&mut self, cx: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        AsyncWrite::poll_write(self.stream.as_mut(), cx, buf)
    }
    fn poll_flush(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        AsyncWrite::poll_flush(self.stream.as_mut(), cx)
    }
    fn poll_shutdown(&mut self, cx: &mut Context<'_>, _last: bool) -> Poll<io::Result<()>> {
        AsyncWrite::poll_shutdown(self.stream.as_mut(), cx)
    }
    fn poll_broken(&mut self, _cx: &mut Context<'_>) -> Poll<io::Error> {
        // A stream of the link says so at the next read or write, and wakes whoever waits for one.
        Poll::Pending
    }
    fn settle(&mut self) {}
}

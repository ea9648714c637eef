//! What the driver needs of one end of a connection.
use super::pipe::Pipe;
use std::io;
use std::task::{Context, Poll};

/// One end. Dropping it before [`Side::settle`] ends the connection as a reset, never as a clean end of stream.
pub(super) trait Side {
    /// Reads; 0 is the end of the stream.
    fn poll_read(&mut self, cx: &mut Context<'_>, buf: &mut [u8]) -> Poll<io::Result<usize>>;
    /// Writes some of `buf`.
    fn poll_write(&mut self, cx: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>>;
    /// Sends on what was written, where the stream keeps it back.
    fn poll_flush(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>>;
    /// Ends our direction. `last`: the other has ended before, and the end is about to be closed.
    fn poll_shutdown(&mut self, cx: &mut Context<'_>, last: bool) -> Poll<io::Result<()>>;
    /// Ready when the connection broke, found without reading or writing.
    fn poll_broken(&mut self, cx: &mut Context<'_>) -> Poll<io::Error>;
    /// Both directions ended in order: dropping it now is a plain close.
    fn settle(&mut self);

    /// Whether this end is a socket that the kernel can move bytes of by itself.
    fn splices(&self) -> bool {
        false
    }
    /// Moves bytes into an empty pipe; 0 is the end of the stream. Only where [`Side::splices`].
    fn poll_fill(&mut self, _cx: &mut Context<'_>, _pipe: &Pipe) -> Poll<io::Result<usize>> {
        Poll::Ready(Err(io::ErrorKind::Unsupported.into()))
    }
    /// Moves up to `held` bytes out of a pipe. Only where [`Side::splices`].
    fn poll_drain(&mut self, _cx: &mut Context<'_>, _pipe: &Pipe, _held: usize) -> Poll<io::Result<usize>> {
        Poll::Ready(Err(io::ErrorKind::Unsupported.into()))
    }
}

//! So many bytes from one socket to another through a pipe: the bulk of a body whose length is known.
use super::pipe::{Pipe, Pipes};
use super::tcp::again;
use crate::conn::Context;
use std::io;
use std::task::{self, Poll, ready};
use tokio::net::TcpStream;

/// A pipe, and what is in it.
#[derive(Debug)]
pub(crate) struct Bulk {
    pipe: Pipe,
    held: usize,
}

impl Bulk {
    /// A pipe, if this system splices and has one left.
    pub(crate) fn new(context: &Context) -> Option<Self> {
        if !cfg!(target_os = "linux") {
            return None;
        }
        Some(Self { pipe: Pipes::new(&context.descriptors).make()?, held: 0 })
    }

    /// Bytes that were taken from the source and that the destination does not have yet.
    pub(crate) fn held(&self) -> usize {
        self.held
    }

    /// Takes up to `left` bytes of the source, none while it holds any.
    pub(crate) fn poll_fill(
        &mut self,
        cx: &mut task::Context<'_>,
        source: &TcpStream,
        left: u64,
    ) -> Poll<io::Result<usize>> {
        let most = usize::try_from(left).unwrap_or(usize::MAX);
        loop {
            ready!(source.poll_read_ready(cx))?;
            let filled = source.try_io(tokio::io::Interest::READABLE, || self.pipe.fill_at_most(source, most));
            match filled {
                Err(error) if again(&error) => {}
                Ok(n) => {
                    self.held = n;
                    return Poll::Ready(Ok(n));
                }
                Err(error) => return Poll::Ready(Err(error)),
            }
        }
    }

    /// Gives what it holds to the destination.
    pub(crate) fn poll_drain(&mut self, cx: &mut task::Context<'_>, destination: &TcpStream) -> Poll<io::Result<()>> {
        while self.held > 0 {
            loop {
                ready!(destination.poll_write_ready(cx))?;
                let drained =
                    destination.try_io(tokio::io::Interest::WRITABLE, || self.pipe.drain_to(destination, self.held));
                match drained {
                    Err(error) if again(&error) => {}
                    Ok(0) => return Poll::Ready(Err(io::ErrorKind::WriteZero.into())),
                    Ok(n) => {
                        self.held -= n;
                        break;
                    }
                    Err(error) => return Poll::Ready(Err(error)),
                }
            }
        }
        Poll::Ready(Ok(()))
    }
}

//! Whether the client is still there while nothing is read from it (proxy rule 15).
use crate::http::buffer::{self, Buffer};
use crate::http::socket::Client;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

/// Bytes of a client that are taken before they are needed.
const AHEAD: usize = 64 << 10;

/// What is known about a client's end.
#[derive(Default)]
pub(super) struct Watch {
    /// It has ended its stream: it may still read, and is not gone.
    pub(super) ended: bool,
    broken: Option<Pin<Box<dyn Future<Output = ()> + Send>>>,
}

impl Watch {
    /// Ready when the connection is broken. Meanwhile a bounded number of bytes is taken, for what comes next.
    pub(super) fn poll_gone<S: Client>(
        &mut self,
        cx: &mut Context<'_>,
        client: &mut S,
        input: &mut Buffer,
    ) -> Poll<()> {
        while !self.ended && input.len() < AHEAD {
            match ready!(input.poll_fill(cx, client, buffer::SIZE)) {
                Ok(0) => self.ended = true,
                Ok(_) => {}
                Err(_) => return Poll::Ready(()),
            }
        }
        self.broken.get_or_insert_with(|| client.socket().broken()).as_mut().poll(cx)
    }
}

//! The end of a connection after an answer: the client gets to read it (RFC 9112 §9.6).
use crate::http::buffer::{self, Buffer};
use crate::http::socket::Client;
use std::future::poll_fn;
use std::time::Duration;
use tokio::io::AsyncWriteExt;
use tokio::time::timeout;

/// How long, and for how many bytes, a client is still read, so that what it is still sending does not reset the answer away.
const LINGER: (Duration, usize) = (Duration::from_secs(2), 16 << 20);

/// Ends our stream, and waits a moment for the client to end its own.
pub(super) async fn close<S: Client>(mut stream: S, ended: bool) {
    let finish = async {
        stream.shutdown().await?;
        let (mut rest, mut left) = (Buffer::default(), LINGER.1);
        while !ended && left > 0 {
            match poll_fn(|cx| rest.poll_fill(cx, &mut stream, buffer::SIZE)).await? {
                0 => break,
                n => left = left.saturating_sub(n),
            }
            rest.used(rest.len());
        }
        rest.rest();
        std::io::Result::Ok(())
    };
    // A client that has left needs no answer.
    let _ = timeout(LINGER.0, finish).await;
}

//! Clients that speak HTTP/2 with prior knowledge on a connection that began as any other (proxy rule 18).
use super::{Conn, Scheme};
use crate::http::buffer;
use crate::http::h2::{self, Ends};
use crate::http::socket::Client;
use std::future::poll_fn;
use std::net::SocketAddr;
use tokio::time::timeout_at;

/// What no request in HTTP/1 begins with.
const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n";

impl<S: Client> Conn<S> {
    /// Whether the connection begins as HTTP/2 does. More is read only as long as that is open.
    pub(super) async fn speaks_http2(&mut self) -> bool {
        loop {
            let bytes = self.input.bytes();
            match PREFACE.get(..bytes.len()) {
                None => return bytes.starts_with(PREFACE),
                Some(begun) if begun != bytes => return false,
                Some(begun) if begun.len() == PREFACE.len() => return true,
                Some(_) => {}
            }
            let deadline = self.started + self.context.limits.head_deadline;
            let (stream, input) = (&mut self.stream, &mut self.input);
            let more = poll_fn(|cx| input.poll_fill(cx, stream, buffer::SIZE));
            if !matches!(timeout_at(deadline, Box::pin(more)).await, Ok(Ok(1..))) {
                return false;
            }
        }
    }

    /// Serves the rest of it as HTTP/2.
    pub(super) async fn hand_over(mut self, local: SocketAddr, scheme: Scheme) {
        let ends = Ends { peer: self.peer, local, scheme, covered: self.covered.take() };
        h2::serve(self.stream, ends, self.context, self.input.take()).await;
    }
}

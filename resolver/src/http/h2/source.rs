//! An answer in HTTP/1.1 on its way to a stream.
use super::super::HttpContext;
use super::super::far::Far;
use super::super::framing::{Body, Form, Framing};
use super::super::head::{self, Bounds, Scan};
use super::exchange::Failed;
use super::to_h1::words;
use super::{body, head1, until_reset};
use crate::conn::ledger::{Entry, Seen};
use bytes::{Bytes, BytesMut};
use h2::server::SendResponse;
use h2::{Reason, SendStream};
use http::{Method, Response, StatusCode, header};
use std::cell::RefCell;
use std::future::poll_fn;
use std::io;
use std::pin::Pin;
use std::task::{Poll, ready};
use std::time::Duration;
use tokio::io::{AsyncRead, ReadBuf, ReadHalf};
use tokio::sync::oneshot;

thread_local! {
    /// Room for one read, of whoever reads. An answer then holds what has come of it, and no room is made and cleared for each.
    static ROOM: RefCell<Box<[u8]>> = RefCell::new(vec![0; 32 << 10].into());
}

/// What a backend sends, and what was read of it and not used yet.
pub(super) struct Source {
    read: ReadHalf<Far>,
    held: BytesMut,
    bounds: Bounds,
}

impl Source {
    pub(super) fn new(read: ReadHalf<Far>, ctx: &HttpContext) -> Self {
        let bounds = Bounds { bytes: ctx.limits.head_bytes, fields: ctx.limits.header_count };
        Self { read, held: BytesMut::new(), bounds }
    }

    /// The end that it reads from, and whether bytes are left that nobody asked for.
    pub(super) fn into_parts(self) -> (ReadHalf<Far>, bool) {
        (self.read, !self.held.is_empty())
    }

    /// Reads what there is; 0 is the end of the stream.
    async fn fill(&mut self) -> io::Result<usize> {
        let Self { read, held, .. } = self;
        poll_fn(|cx| {
            ROOM.with_borrow_mut(|room| {
                let mut room = ReadBuf::new(room);
                ready!(Pin::new(&mut *read).poll_read(cx, &mut room))?;
                held.extend_from_slice(room.filled());
                Poll::Ready(Ok(room.filled().len()))
            })
        })
        .await
    }

    /// Adds to `pieces` what has come of a body; what follows it stays. The error says what is wrong with the chunks.
    fn pieces(&mut self, body: &mut Body, pieces: &mut Vec<Bytes>) -> Result<(), &'static str> {
        while !self.held.is_empty() {
            let run = body.read(&self.held)?;
            if run.len == 0 {
                break;
            }
            let piece = self.held.split_to(run.len).freeze();
            if run.pass {
                pieces.push(piece);
            }
        }
        Ok(())
    }

    /// The next head, with how its body is framed and whether the connection goes on behind it.
    async fn head(&mut self, to_head: bool) -> Result<(Response<()>, Framing, bool), Failed> {
        let mut scan = Scan::default();
        loop {
            match scan.next(&self.held, self.bounds) {
                Ok(Some(range)) => {
                    let head = self.held.split_to(range.end);
                    let mut room = [httparse::EMPTY_HEADER; head::FIELDS];
                    let head = head.get(range).unwrap_or_default();
                    let read = head::Response::read(head, to_head, &mut room).map_err(Failed::malformed)?;
                    return Ok((head1::answer(&read).map_err(Failed::malformed)?, read.framing, read.persists));
                }
                Ok(None) if !head::begins_http(&self.held) => {
                    return Err(Failed::malformed("it does not begin with HTTP/"));
                }
                Ok(None) => {}
                Err(_) => return Err(Failed::malformed("its head is too long, or is not one")),
            }
            let silent = self.held.is_empty();
            match self.fill().await {
                Ok(0) if silent => return Err(Failed::Silent(words(&io::ErrorKind::UnexpectedEof.into()))),
                Ok(0) => return Err(Failed::odd("the backend closed the connection inside its answer's head")),
                Ok(_) => {}
                Err(error) if silent => return Err(Failed::Silent(words(&error))),
                Err(error) => return Err(Failed::Odd(words(&error))),
            }
        }
    }
}

/// One answer.
pub(super) struct Answer<'a> {
    pub(super) source: &'a mut Source,
    pub(super) respond: &'a mut SendResponse<Bytes>,
    pub(super) method: &'a Method,
    /// The client asked for another protocol on the stream (RFC 8441): told when the backend agrees.
    pub(super) tunnel: Option<oneshot::Sender<()>>,
    pub(super) entry: &'a mut Entry,
    pub(super) bytes_out: u64,
    pub(super) status: u16,
    /// How long the client may leave it unread.
    pub(super) patience: Duration,
}

impl Answer<'_> {
    /// Passes it on, each piece when it comes; whether the backend's connection can be used again.
    pub(super) async fn run(&mut self) -> Result<bool, Failed> {
        let (mut response, framing, persists) = loop {
            let head = self.source.head(self.method == Method::HEAD);
            let (response, framing, persists) = until_reset(self.respond, head).await.ok_or(Failed::ClientLeft)??;
            self.entry.down(Seen::Count(0));
            match response.status() {
                StatusCode::SWITCHING_PROTOCOLS if self.tunnel.is_some() => return self.switch(response).await,
                StatusCode::SWITCHING_PROTOCOLS => {
                    return Err(Failed::odd("it switched to a protocol that nobody asked for"));
                }
                // Towards the client a success would open the stream, and its page would be taken for messages.
                status if status.is_success() && self.tunnel.is_some() => {
                    return Err(Failed::odd("it answered a WebSocket's handshake with a page instead of 101"));
                }
                status if status.is_informational() => {
                    self.respond.send_informational(response).map_err(|_| Failed::ClientLeft)?;
                }
                _ => break (response, framing, persists),
            }
        };
        if matches!(framing, Framing::Chunked | Framing::Close) {
            response.headers_mut().remove(header::CONTENT_LENGTH);
        }
        self.status = response.status().as_u16();
        self.tunnel = None;
        let mut body = Body::new(framing, Form::Parts);
        let nothing = body.is_done();
        // While nothing of it is out, a body that is none is a page's matter.
        let mut pieces = Vec::new();
        self.source.pieces(&mut body, &mut pieces).map_err(Failed::malformed)?;
        let sent = self.respond.send_response(response, nothing).map_err(|_| Failed::ClientLeft)?;
        if !nothing {
            self.body(&mut body, pieces, sent).await?;
        }
        Ok(persists)
    }

    async fn body(&mut self, body: &mut Body, first: Vec<Bytes>, mut to: SendStream<Bytes>) -> Result<(), Failed> {
        let result = self.pieces(body, first, &mut to).await;
        self.entry.down(Seen::Count(usize::try_from(self.bytes_out).unwrap_or(usize::MAX)));
        if let Err(Failed::Broken(_)) = result {
            // Never a clean end of what is not whole (proxy rule 14).
            body::reset_behind(&mut to, Reason::INTERNAL_ERROR, self.patience).await;
        }
        result
    }

    async fn pieces(
        &mut self,
        body: &mut Body,
        mut pieces: Vec<Bytes>,
        to: &mut SendStream<Bytes>,
    ) -> Result<(), Failed> {
        let left = |_| Failed::ClientLeft;
        let mut well = Ok(());
        loop {
            for piece in pieces.drain(..) {
                // Of a body that is over without more words there is one piece at most.
                self.bytes_out += piece.len() as u64;
                body::send(to, piece, body.is_done(), self.patience).await.map_err(left)?;
            }
            well.map_err(|why: &str| Failed::Broken(why.to_owned()))?;
            if body.is_done() {
                return Ok(());
            }
            if let Some(section) = body.finish() {
                return body::end(to, head1::trailers(&section)).map_err(left);
            }
            self.more(body, to).await?;
            if body.is_done() {
                return body::send(to, Bytes::new(), true, self.patience).await.map_err(left);
            }
            well = self.source.pieces(body, &mut pieces);
        }
    }

    /// Reads more of the body; the end of the connection ends it where that is how it is framed.
    async fn more(&mut self, body: &mut Body, to: &mut SendStream<Bytes>) -> Result<(), Failed> {
        match body::unless_left(to, self.source.fill()).await.map_err(|_| Failed::ClientLeft)? {
            Ok(0) if body.source_ended() => Ok(()),
            Ok(0) => Err(Failed::Broken("the backend closed the connection inside its answer".to_owned())),
            Ok(_) => Ok(()),
            Err(error) => Err(Failed::Broken(words(&error))),
        }
    }

    /// The stream becomes the other protocol's. What came with the handshake is its first piece (proxy rule 17).
    async fn switch(&mut self, mut response: Response<()>) -> Result<bool, Failed> {
        *response.status_mut() = StatusCode::OK;
        self.status = 200;
        for name in [header::SEC_WEBSOCKET_ACCEPT, header::CONTENT_LENGTH] {
            response.headers_mut().remove(name);
        }
        let mut to = self.respond.send_response(response, false).map_err(|_| Failed::ClientLeft)?;
        self.tunnel.take().map(|opened| opened.send(()));
        loop {
            if self.source.held.is_empty() {
                let more = body::unless_left(&mut to, self.source.fill()).await.map_err(|_| Failed::ClientLeft)?;
                match more {
                    Ok(0) => {
                        let _ = body::send(&mut to, Bytes::new(), true, Duration::MAX).await;
                        return Ok(false);
                    }
                    Ok(_) => {}
                    Err(error) => {
                        body::reset_behind(&mut to, Reason::CONNECT_ERROR, self.patience).await;
                        return Err(Failed::Broken(words(&error)));
                    }
                }
            }
            let piece = self.source.held.split().freeze();
            self.bytes_out += piece.len() as u64;
            body::send(&mut to, piece, false, Duration::MAX).await.map_err(|_| Failed::ClientLeft)?;
        }
    }
}

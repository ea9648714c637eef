//! One request and its answer, both ways at once (proxy rules 14 and 15).
use super::facts::Facts;
use super::pump::{Broken, Pump, Waits};
use super::unread::Unread;
use super::watch::Watch;
use crate::conn::ledger::{Entry, Seen};
use crate::http::HttpContext;
use crate::http::buffer::{self, Buffer};
use crate::http::far::Far;
use crate::http::framing::{Form, Framing};
use crate::http::head::{self, Bounds, FIELDS, Response, Scan, Toward, write_response};
use crate::http::socket::Client;
use httparse::EMPTY_HEADER;
use std::task::{Context, Poll, ready};

/// How an exchange ended.
#[derive(Debug)]
pub(super) enum Ended {
    /// The answer is out.
    Whole,
    /// The answer is out, and the connection is another protocol's now.
    Switched,
    /// The client is gone: the backend's connection is reset.
    ClientGone,
    /// The client has taken nothing of its answer for too long.
    Unread,
    /// The client's body is malformed or ended inside; the sentence for it.
    BadRequest(&'static str),
    /// The backend broke; the sentence for it.
    Failed(Failure),
}

/// How a backend failed.
#[derive(Debug)]
pub(super) struct Failure {
    pub(super) cause: String,
    /// The head of the answer went out already: no page can say what happened.
    pub(super) begun: bool,
    /// Some byte of an answer came.
    pub(super) answered: bool,
    /// It has to be passed on as a reset: an end of stream would look like the end of the body.
    pub(super) reset: bool,
}

/// How far the request is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Up {
    Going,
    Sent,
    /// The backend takes no more of it.
    Refused,
}

/// One request and its answer.
pub(super) struct Exchange<'a, S> {
    pub(super) client: &'a mut S,
    pub(super) input: &'a mut Buffer,
    pub(super) watch: &'a mut Watch,
    pub(super) far: &'a mut Far,
    pub(super) context: &'a HttpContext,
    pub(super) entry: &'a mut Entry,
    pub(super) facts: Facts,
    pub(super) request: &'a mut Pump,
    pub(super) answer: Pump,
    pub(super) progress: Progress,
    pub(super) unread: Unread,
}

/// What is known of the answer.
pub(super) struct Progress {
    up: Up,
    arrived: Buffer,
    scan: Scan,
    far_ended: bool,
    any: bool,
    continued: bool,
    head_out: bool,
    framing: Framing,
    switched: bool,
    pub(super) status: u16,
    far_persists: bool,
    client_stays: bool,
}
impl Progress {
    pub(super) fn new() -> Self {
        Self {
            up: Up::Going,
            arrived: Buffer::default(),
            scan: Scan::default(),
            far_ended: false,
            any: false,
            continued: false,
            head_out: false,
            framing: Framing::None,
            switched: false,
            status: 0,
            far_persists: false,
            client_stays: false,
        }
    }
    /// Whether the client's connection can carry another request.
    pub(super) fn client_stays(&self) -> bool {
        self.client_stays && self.up == Up::Sent
    }
    /// Whether the backend's connection can carry another request.
    pub(super) fn far_stays(&self) -> bool {
        self.far_persists && self.up == Up::Sent && self.arrived.is_empty() && !self.far_ended
    }
    /// Whether the client still sends a body that the backend still takes, though its answer is out.
    pub(super) fn is_still_sending(&self) -> bool {
        self.up == Up::Going && self.client_stays && self.far_persists
    }
}

impl<S: Client> Exchange<'_, S> {
    /// Ready when the answer is out, or cannot come any more.
    pub(super) fn poll(&mut self, cx: &mut Context<'_>) -> Poll<Ended> {
        if let Poll::Ready(Err(ended)) = self.poll_up(cx) {
            return Poll::Ready(ended);
        }
        match self.poll_down(cx) {
            Poll::Ready(Ok(())) if self.progress.switched => return Poll::Ready(Ended::Switched),
            Poll::Ready(Ok(())) => return Poll::Ready(Ended::Whole),
            Poll::Ready(Err(ended)) => return Poll::Ready(ended),
            Poll::Pending => {}
        }
        if self.poll_unread(cx).is_ready() {
            return Poll::Ready(Ended::Unread);
        }
        let reads = self.progress.up == Up::Going && self.request.waits == Waits::Source;
        if !reads {
            ready!(self.watch.poll_gone(cx, self.client, self.input));
            return Poll::Ready(Ended::ClientGone);
        }
        Poll::Pending
    }

    /// Ready when the client has taken nothing of an answer that waits for it for too long.
    fn poll_unread(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        // Behind the head what waits may be in a buffer of TLS; before it, a 1xx that is out waits for nobody.
        let waits = self.answer.holds() || (self.progress.head_out && self.answer.waits == Waits::Destination);
        if !waits {
            self.unread.read();
            return Poll::Pending;
        }
        self.unread.poll(cx, self.answer.given, self.context.limits.unread)
    }

    /// Sends the request on. Ready when there is nothing left to send.
    pub(super) fn poll_up(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), Ended>> {
        if self.progress.up != Up::Going {
            return Poll::Ready(Ok(()));
        }
        let from = (&mut *self.client, &mut *self.input, &mut self.watch.ended);
        let before = self.request.moved;
        let sent = self.request.poll(cx, from, self.far, &self.context.conn);
        let moved = usize::try_from(self.request.moved - before).unwrap_or(usize::MAX);
        if moved > 0 {
            self.entry.up(Seen::Count(moved));
        }
        match ready!(sent) {
            Ok(()) => self.progress.up = Up::Sent,
            // What the backend said before it closed is still to be read.
            Err(Broken::Destination) => self.progress.up = Up::Refused,
            Err(Broken::Source(_)) => return Poll::Ready(Err(Ended::ClientGone)),
            Err(Broken::Ended) => {
                return Poll::Ready(Err(Ended::BadRequest("the stream ended inside the request's body")));
            }
            Err(Broken::Malformed(why)) => return Poll::Ready(Err(Ended::BadRequest(why))),
        }
        Poll::Ready(Ok(()))
    }

    fn poll_down(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), Ended>> {
        while !self.progress.head_out {
            ready!(self.poll_head(cx))?;
        }
        let from = (&mut *self.far, &mut self.progress.arrived, &mut self.progress.far_ended);
        let before = self.answer.moved;
        let sent = self.answer.poll(cx, from, self.client, &self.context.conn);
        let moved = usize::try_from(self.answer.moved - before).unwrap_or(usize::MAX);
        if moved > 0 {
            self.entry.down(Seen::Count(moved));
        }
        Poll::Ready(ready!(sent).map_err(|broken| match broken {
            Broken::Destination => Ended::ClientGone,
            Broken::Source(error) => self.failure(error.to_string(), true),
            Broken::Ended => self.failure("it closed the connection inside its answer".into(), false),
            Broken::Malformed(why) => self.failure(format!("its answer is malformed: {why}"), false),
        }))
    }

    /// One step towards the answer's head: 1xx go out on their way.
    fn poll_head(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), Ended>> {
        let limits = &self.context.limits;
        let bounds = Bounds { bytes: limits.head_bytes, fields: limits.header_count };
        match self.progress.scan.next(self.progress.arrived.bytes(), bounds) {
            Ok(Some(head)) => return Poll::Ready(self.head(head)),
            // Who speaks first and goes on to wait, as SSH does, would never end its head.
            Ok(None) if !head::begins_http(self.progress.arrived.bytes()) => {
                return Poll::Ready(Err(self.malformed("it does not begin with HTTP/")));
            }
            Ok(None) => {}
            Err(_) => return Poll::Ready(Err(self.malformed("its head is too long, or is not one"))),
        }
        if !self.answer.out().is_empty() {
            let (mut nothing, mut ended) = (Buffer::default(), false);
            let from = (&mut *self.far, &mut nothing, &mut ended);
            if let Poll::Ready(Err(_)) = self.answer.poll(cx, from, self.client, &self.context.conn) {
                return Poll::Ready(Err(Ended::ClientGone));
            }
        }
        let had = self.progress.arrived.len();
        match ready!(self.progress.arrived.poll_fill(cx, self.far, buffer::SIZE)) {
            Ok(0) => {
                let cause = if self.progress.any {
                    "it closed the connection inside the head of its answer"
                } else {
                    "it closed the connection without an answer"
                };
                Poll::Ready(Err(self.failure(cause.into(), false)))
            }
            Ok(_) => {
                let bytes = self.progress.arrived.bytes().get(had..).unwrap_or_default();
                self.entry.down(Seen::Bytes(bytes));
                self.progress.any = true;
                Poll::Ready(Ok(()))
            }
            Err(error) => Poll::Ready(Err(self.failure(error.to_string(), true))),
        }
    }

    /// A whole head is there.
    fn head(&mut self, at: std::ops::Range<usize>) -> Result<(), Ended> {
        let end = at.end;
        let mut room = [EMPTY_HEADER; FIELDS];
        let mut more = vec![
            EMPTY_HEADER;
            if self.context.limits.header_count > FIELDS { self.context.limits.header_count } else { 0 }
        ];
        let room = if more.is_empty() { &mut room[..] } else { &mut more[..] };
        let bytes = self.progress.arrived.bytes().get(at).unwrap_or_default();
        let response = match Response::read(bytes, self.facts.is_head, room) {
            Ok(response) => response,
            Err(why) => return Err(self.malformed(why)),
        };
        match response.status {
            101 if self.facts.upgrade => {
                let toward = Toward { http11: true, stays: true, switches: true };
                write_response(&response, toward, self.answer.out());
                self.progress.status = 101;
                self.progress.switched = true;
                self.progress.head_out = true;
                self.progress.arrived.used(end);
                // What came behind it is the new protocol's already.
                let rest = self.progress.arrived.take();
                self.answer.out().extend_from_slice(&rest);
                return Ok(());
            }
            101 => return Err(self.malformed("it switches protocols though nobody asked")),
            status @ 100..=199 => {
                self.progress.continued |= status == 100;
                if self.facts.http11 {
                    let toward = Toward { http11: true, stays: true, switches: false };
                    write_response(&response, toward, self.answer.out());
                }
            }
            status => {
                let toward = self.toward(&response);
                write_response(&response, toward, self.answer.out());
                let form = if self.facts.http11 { Form::Framed } else { Form::Data };
                self.answer.begin_body(response.framing, form);
                let (framing, persists) = (response.framing, response.persists);
                self.progress.arrived.used(end);
                // While nothing of it is out, a body that is none is a page's matter.
                if let Err(Broken::Malformed(why)) = self.answer.gather(&mut self.progress.arrived) {
                    return Err(self.malformed(why));
                }
                self.progress.status = status;
                self.progress.framing = framing;
                self.progress.far_persists = persists;
                self.progress.client_stays = toward.stays;
                self.progress.head_out = true;
                return Ok(());
            }
        }
        self.progress.arrived.used(end);
        self.progress.scan = Scan::default();
        Ok(())
    }

    fn toward(&self, response: &Response<'_, '_>) -> Toward {
        let framed = match response.framing {
            Framing::Close => false,
            Framing::Chunked => self.facts.http11,
            Framing::None | Framing::Length(_) => true,
        };
        // Whoever waited for a 100 that did not come may send its body or not: nobody can tell where the next request begins.
        let unclear = self.facts.expects && !self.progress.continued && !self.request.has_read_all();
        let stays = self.facts.persists && framed && !unclear && !self.context.is_draining();
        Toward { http11: self.facts.http11, stays: stays && self.progress.up != Up::Refused, switches: false }
    }

    fn malformed(&self, why: &str) -> Ended {
        self.failure(format!("its answer is malformed: {why}"), false)
    }

    fn failure(&self, cause: String, was_reset: bool) -> Ended {
        let (begun, answered) = (self.progress.head_out, self.progress.any);
        // Toward such a client the body ends with the connection, also one that came in chunks to an HTTP/1.0 client.
        let unframed = match self.progress.framing {
            Framing::Close => true,
            Framing::Chunked => !self.facts.http11,
            Framing::None | Framing::Length(_) => false,
        };
        let reset = was_reset || unframed;
        Ended::Failed(Failure { cause, begun, answered, reset })
    }
}

//! Answers of our own.
use super::facts::Facts;
use super::{Conn, Next};
use crate::http::access::Done;
use crate::http::buffer;
use crate::http::framing::{Body, Form};
use crate::http::own::{Own, OwnBody, OwnRequest};
use crate::http::page::{Page, Problem, grpc, reason_phrase, render};
use crate::http::site::Site;
use crate::http::socket::Client;
use std::io::Write;
use tokio::io::AsyncWriteExt;
use tokio::time::timeout;

/// What an answer of ours says about its body.
enum Length {
    Known(usize),
    /// Chunks to whoever knows them, else until the connection closes.
    Open,
}

impl<S: Client> Conn<S> {
    /// A page about `problem`.
    pub(super) async fn answer(&mut self, problem: &Problem, facts: Facts) -> Next {
        self.answer_for(None, problem, facts).await
    }

    /// The same, about a request to `site`.
    pub(super) async fn answer_for(&mut self, site: Option<&Site>, problem: &Problem, facts: Facts) -> Next {
        let mut page = render(problem, Some(self.accept.as_str()).filter(|accept| !accept.is_empty()));
        if self.grpc {
            page.headers.extend(grpc(problem));
        }
        let next = self.send(&page, facts).await;
        self.report(site, page.status, 0, page.body.len() as u64);
        next
    }

    async fn send(&mut self, page: &Page, facts: Facts) -> Next {
        let stays = self.has_whole_body(facts) && facts.persists && !self.context.is_draining();
        self.put(bytes(page, facts, stays), stays).await
    }

    /// The index and what it loads.
    pub(super) async fn answer_own(&mut self, own: &dyn Own, request: OwnRequest, facts: Facts) -> Next {
        let answer = own.answer(request).await;
        let stays = self.has_whole_body(facts) && facts.persists && !self.context.is_draining();
        let headers = || answer.headers.iter().map(|(name, value)| (*name, value.as_str()));
        match answer.body {
            OwnBody::Full(body) => {
                let mut out = head(answer.status, headers(), &Length::Known(body.len()), facts, stays);
                if !facts.is_head {
                    out.extend_from_slice(&body);
                }
                self.report(None, answer.status, 0, body.len() as u64);
                self.put(out, stays).await
            }
            OwnBody::Stream(mut pieces) => {
                let stays = stays && facts.http11;
                let out = head(answer.status, headers(), &Length::Open, facts, stays);
                self.report(None, answer.status, 0, 0);
                if let next @ (Next::Gone | Next::Close) = self.put(out, true).await {
                    return next;
                }
                if facts.is_head {
                    return if stays { Next::Request } else { Next::Close };
                }
                self.stream(&mut pieces, facts, stays).await
            }
        }
    }

    async fn stream(
        &mut self,
        pieces: &mut tokio::sync::mpsc::Receiver<bytes::Bytes>,
        facts: Facts,
        stays: bool,
    ) -> Next {
        let mut drained = Box::pin(self.context.drained());
        loop {
            let piece = tokio::select! {
                biased;
                piece = pieces.recv() => piece,
                () = std::future::poll_fn(|cx| self.watch.poll_gone(cx, &mut self.stream, &mut self.input)) => return Next::Gone,
                () = &mut drained => None,
            };
            let mut out = buffer::take();
            match (&piece, facts.http11) {
                (Some(piece), true) => {
                    // Writing to memory does not fail.
                    let _ = write!(out, "{:x}\r\n", piece.len());
                    out.extend_from_slice(piece);
                    out.extend_from_slice(b"\r\n");
                }
                (Some(piece), false) => out.extend_from_slice(piece),
                (None, true) => out.extend_from_slice(b"0\r\n\r\n"),
                (None, false) => {}
            }
            match self.put(out, true).await {
                Next::Request if piece.is_some() => {}
                Next::Request if stays && !self.context.is_draining() => return Next::Request,
                Next::Request => return Next::Close,
                next => return next,
            }
        }
    }

    /// Writes `out`. A client that does not read is not waited for longer than for a head.
    async fn put(&mut self, out: Vec<u8>, stays: bool) -> Next {
        let written = timeout(self.context.limits.head_deadline, async {
            self.stream.write_all(&out).await?;
            self.stream.flush().await
        })
        .await;
        buffer::give(out);
        match written {
            Ok(Ok(())) if stays => Next::Request,
            Ok(Ok(())) => Next::Close,
            _ => Next::Gone,
        }
    }

    /// Whether the request's body is in the input already; it is used up then. Else the connection ends with the answer: the
    /// body is not worth reading.
    fn has_whole_body(&mut self, facts: Facts) -> bool {
        let mut body = Body::new(facts.framing, Form::Data);
        while !body.is_done() && !self.input.is_empty() {
            let Ok(run) = body.read(self.input.bytes()) else { return false };
            self.input.used(run.len);
            body.finish();
        }
        body.is_done()
    }

    /// Counts an answered request and writes it down.
    pub(super) fn report(&self, site: Option<&Site>, status: u16, bytes_in: u64, bytes_out: u64) {
        let done = Done {
            method: &self.texts.method,
            host: &self.texts.host,
            path: &self.texts.path,
            protocol: "HTTP/1.1",
            status,
            bytes_in,
            bytes_out,
            started: self.started.into_std(),
            peer: self.peer,
            referer: &self.texts.referer,
            agent: &self.texts.agent,
        };
        self.context.observer.request(site, &done);
    }
}

/// A page as the last answer of a connection.
pub(in crate::http) fn last(page: &Page, is_head: bool) -> Vec<u8> {
    bytes(page, Facts { is_head, ..Facts::unread() }, false)
}

fn bytes(page: &Page, facts: Facts, stays: bool) -> Vec<u8> {
    let headers = page.headers.iter().map(|(name, value)| (*name, value.as_str()));
    let headers = std::iter::once(("Content-Type", page.content_type)).chain(headers);
    let mut out = head(page.status, headers, &Length::Known(page.body.len()), facts, stays);
    if !facts.is_head {
        out.extend_from_slice(&page.body);
    }
    out
}

fn head<'a>(
    status: u16,
    headers: impl Iterator<Item = (&'a str, &'a str)>,
    length: &Length,
    facts: Facts,
    stays: bool,
) -> Vec<u8> {
    let mut out = buffer::take();
    // Writing to memory does not fail.
    let _ = write!(out, "HTTP/1.1 {status} {}\r\n", reason_phrase(status));
    for (name, value) in headers {
        let _ = write!(out, "{name}: {value}\r\n");
    }
    let _ = match length {
        Length::Known(length) => write!(out, "Content-Length: {length}\r\n"),
        Length::Open if facts.http11 => write!(out, "Transfer-Encoding: chunked\r\n"),
        Length::Open => Ok(()),
    };
    out.extend_from_slice(match (stays, facts.http11) {
        (false, _) => b"Connection: close\r\n\r\n",
        (true, false) => b"Connection: keep-alive\r\n\r\n",
        (true, true) => b"\r\n",
    });
    out
}

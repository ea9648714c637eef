//! From the bytes of a head to what has to be done (proxy rules 10, 13 and 21).
use super::facts::Facts;
use super::pump::{Broken, Pump};
use super::{Conn, problem};
use crate::http::buffer;
use crate::http::framing::Form;
use crate::http::h2;
use crate::http::head::{FIELDS, Request, Target, normalise, write_request};
use crate::http::hostname;
use crate::http::own::{Own, OwnRequest};
use crate::http::page::Problem;
use crate::http::site::{Protocol, Site};
use crate::http::socket::Client;
use httparse::{EMPTY_HEADER, Header};
use std::ops::Range;
use std::sync::Arc;

/// What a request wants.
pub(super) enum Heard {
    /// An answer of ours.
    Problem(Problem, Facts),
    /// The index.
    Own(Arc<dyn Own>, OwnRequest, Facts),
    /// A backend.
    Carry(Carried),
}

/// A request for a backend: its head as it is sent on, with what there is of its body.
pub(super) struct Carried {
    pub(super) site: Arc<Site>,
    pub(super) facts: Facts,
    pub(super) pump: Pump,
}

/// What the access log says of a request; empty while there is none.
#[derive(Debug, Default)]
pub(super) struct Texts {
    pub(super) method: String,
    pub(super) path: String,
    pub(super) host: String,
    pub(super) referer: String,
    pub(super) agent: String,
}

impl<S: Client> Conn<S> {
    /// Reads the head at `at` of the input, and uses it up.
    pub(super) fn hear(&mut self, at: Range<usize>) -> Heard {
        let end = at.end;
        let heard = self.read(at);
        self.input.used(end);
        match heard {
            Ok(Heard::Carry(mut request)) => match request.pump.gather(&mut self.input) {
                Err(Broken::Malformed(why)) => Heard::Problem(Problem::Bad { why }, Facts::unread()),
                _ => Heard::Carry(request),
            },
            Ok(heard) => heard,
            Err(problem) => Heard::Problem(problem, Facts::unread()),
        }
    }

    fn read(&mut self, at: Range<usize>) -> Result<Heard, Problem> {
        let count = self.context.limits.header_count;
        let mut room = [EMPTY_HEADER; FIELDS];
        let mut more = vec![EMPTY_HEADER; if count > FIELDS { count } else { 0 }];
        let room = if more.is_empty() { &mut room[..] } else { &mut more[..] };
        let head = self.input.bytes().get(at).unwrap_or_default();
        self.accept.clear();
        self.grpc = false;
        self.texts.clear();
        let request = Request::read(head, room, &self.context.hop).map_err(problem)?;
        self.accept.push_str(request.accept.unwrap_or_default());
        self.grpc = request.grpc;
        if self.context.observer.logs() {
            self.texts.note(&request);
        }
        let facts = Facts::of(&request);
        if request.target == Target::Authority {
            return Err(Problem::ConnectRefused);
        }
        if request.authority.is_empty() {
            return Ok(Heard::Problem(self.unknown(""), facts));
        }
        normalise(request.authority, &mut self.host).map_err(|why| Problem::Bad { why })?;
        let host = self.host.as_str();
        if self.covered.as_ref().is_some_and(|covered| !covered.covers(host)) {
            return Ok(Heard::Problem(Problem::Misdirected { host: host.to_owned() }, facts));
        }
        if request.looped {
            return Ok(Heard::Problem(Problem::Loop { host: host.to_owned() }, facts));
        }
        if hostname::is_reserved(host) {
            return Ok(match &self.context.own {
                Some(own) if host == hostname::OWN => Heard::Own(Arc::clone(own), own_request(&request, host), facts),
                _ => Heard::Problem(self.unknown(host), facts),
            });
        }
        let Some(site) = self.context.routes.find(host) else {
            return Ok(Heard::Problem(self.unknown(host), facts));
        };
        if site.protocol == Protocol::H2c {
            h2::fits(request.method, request.target, request.authority).map_err(|why| Problem::Bad { why })?;
        }
        let mut out = buffer::take();
        write_request(&request, &self.truth, &self.context.hop, &mut out);
        let pump = Pump::new(out, request.framing, Form::Framed).keeping(facts.is_idempotent);
        Ok(Heard::Carry(Carried { site, facts, pump }))
    }

    fn unknown(&self, asked: &str) -> Problem {
        self.context.unknown_host(asked, self.truth.scheme(), self.truth.port())
    }
}

fn own_request(request: &Request<'_, '_>, host: &str) -> OwnRequest {
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let (before, path) = request.target.pieces(request.method);
    let whole = text(&[before, path].concat());
    let (path, query) = whole.split_once('?').unwrap_or((&whole, ""));
    OwnRequest {
        method: text(request.method),
        path: path.to_owned(),
        query: query.to_owned(),
        host: host.to_owned(),
        authority: text(request.authority),
        headers: request.fields().iter().map(|field| (field.name.to_owned(), text(field.value))).collect(),
    }
}

impl Texts {
    fn note(&mut self, request: &Request<'_, '_>) {
        let set = |into: &mut String, bytes: &[u8]| {
            into.clear();
            into.push_str(&String::from_utf8_lossy(bytes));
        };
        let (before, path) = request.target.pieces(request.method);
        set(&mut self.method, request.method);
        set(&mut self.host, request.authority);
        set(&mut self.path, &[before, path].concat());
        let field = |name: &str| {
            let found = request.fields().iter().find(|field: &&Header<'_>| field.name.eq_ignore_ascii_case(name));
            found.map_or(&b""[..], |field| field.value)
        };
        set(&mut self.referer, field("referer"));
        set(&mut self.agent, field("user-agent"));
    }
    pub(super) fn clear(&mut self) {
        for text in [&mut self.method, &mut self.host, &mut self.path, &mut self.referer, &mut self.agent] {
            text.clear();
        }
    }
}

//! One request with its answer, while it is between a client's stream and a backend.
use super::super::framing::Framing;
use super::super::page::Problem;
use super::super::{HttpContext, Site};
use super::asked::Asked;
use super::head1;
use super::screen::Malformed;
use crate::conn::ledger::{Entry, Outcome, Refusal};
use crate::conn::{Backend, DialError};
use base64::Engine;
use bytes::Bytes;
use h2::server::SendResponse;
use h2::{Reason, RecvStream};
use http::{HeaderValue, Method, Request, header};
use stado_fleet::fault::{Blame, Hop};

/// See the module.
pub(super) struct Exchange<'a> {
    pub(super) site: &'a Site,
    pub(super) ctx: &'a HttpContext,
    /// With the fields that the backend gets.
    pub(super) request: Request<()>,
    /// For whom it is.
    pub(super) asked: &'a Asked,
    pub(super) body: RecvStream,
    /// It has no body.
    pub(super) ended: bool,
    pub(super) respond: SendResponse<Bytes>,
    pub(super) count: Count,
    /// The protocol that the stream shall become (RFC 8441).
    pub(super) upgrade: Option<String>,
    pub(super) entry: Entry,
    pub(super) malformed: &'a Malformed,
}

/// What is counted of an exchange.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Count {
    pub(super) status: u16,
    pub(super) bytes_in: u64,
    pub(super) bytes_out: u64,
}

/// Why an exchange did not come to its good end.
#[derive(Debug)]
pub(super) enum Failed {
    /// The client is answered by us.
    Ours(Problem),
    /// The client reset its stream or is gone: nobody is to be told.
    ClientLeft,
    /// No byte of an answer came.
    Silent(String),
    /// What came is no answer.
    Odd(String),
    /// The backend reset its stream before an answer: so is the client's.
    Reset(Reason),
    /// The answer broke off; the client's stream has been reset.
    Broken(String),
    /// The request turned out to be none: its stream is reset, and nothing more goes to the backend.
    Malformed,
}

impl Count {
    /// Of an answer of ours: its status, and the length of its body.
    pub(super) fn of((status, bytes_out): (u16, u64)) -> Self {
        Self { status, bytes_in: 0, bytes_out }
    }
}

impl Failed {
    pub(super) fn malformed(why: &str) -> Self {
        Self::Odd(format!("its answer is malformed: {why}"))
    }
    pub(super) fn odd(why: &str) -> Self {
        Self::Odd(why.to_owned())
    }
}

impl Exchange<'_> {
    /// The head for a backend that speaks HTTP/1.1.
    pub(super) fn head(&self, framing: Framing) -> Vec<u8> {
        let request = &self.request;
        let path = request.uri().path_and_query().map_or("/", http::uri::PathAndQuery::as_str);
        let upgrade = self.upgrade.as_deref();
        let method = if upgrade.is_some() { &Method::GET } else { request.method() };
        head1::write(method, path, &self.asked.authority, request.headers(), framing, upgrade)
    }

    /// A WebSocket's handshake in HTTP/1.1 has a key, in HTTP/2 it has none.
    pub(super) fn add_key(&mut self) {
        let key = base64::engine::general_purpose::STANDARD.encode(rand::random::<[u8; 16]>());
        if let Ok(key) = HeaderValue::try_from(key) {
            self.request.headers_mut().insert(header::SEC_WEBSOCKET_KEY, key);
        }
    }

    /// The problem of a backend that was not reached; it is entered in the ledger.
    pub(super) fn unreached(&mut self, error: &DialError) -> Failed {
        let (cause, looped) = (error.to_string(), matches!(error, DialError::Loop(_)));
        let answered = !matches!(error, DialError::Silent(..) | DialError::Unanswered { .. });
        let why = if looped { Refusal::Loop } else { Refusal::Unreachable };
        self.entry.refused(why, &cause, error.fault(), answered);
        self.site.stats.failed(&cause);
        Failed::Ours(match error {
            DialError::Loop(_) => Problem::Loop { host: self.asked.host.clone() },
            _ => bad_gateway(self.site, &cause, error.fault().1),
        })
    }

    pub(super) fn bad_gateway(&self, cause: &str) -> Problem {
        bad_gateway(self.site, cause, Hop::Service)
    }

    /// Enters how it ended.
    pub(super) fn close(&mut self, result: &Result<(), Failed>) {
        let service = |cause: &str| (Outcome::ServiceReset(cause.into()), Some(Blame::Service));
        let (outcome, blame) = match result {
            Ok(()) => (Outcome::Done, None),
            // A refusal has been entered where it was found.
            Err(Failed::Ours(_)) => return,
            Err(Failed::ClientLeft) => (Outcome::ClientReset, Some(Blame::Caller)),
            Err(Failed::Malformed) => {
                (Outcome::Refused("the request's trailers are malformed".into()), Some(Blame::Caller))
            }
            Err(Failed::Silent(cause) | Failed::Odd(cause) | Failed::Broken(cause)) => {
                self.site.stats.failed(cause);
                service(cause)
            }
            Err(Failed::Reset(reason)) => {
                self.site.stats.failed(&format!("the backend reset the stream ({reason})"));
                service(&reason.to_string())
            }
        };
        self.entry.end(outcome, blame);
    }
}

fn bad_gateway(site: &Site, cause: &str, hop: Hop) -> Problem {
    let address = match &site.backend {
        Backend::Local(addr) => addr.to_string(),
        Backend::Fleet(route) => format!("{} on {}", route.endpoint.addr, route.active_host),
        Backend::None(_) => String::new(),
    };
    Problem::BadGateway { service: site.service.to_string(), address, cause: cause.to_owned(), hop }
}

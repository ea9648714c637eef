//! Answers of our own: what went wrong, readable in a terminal, in a browser and as JSON (proxy rules 10 and 21).
//!
//! [`words`] says it, [`accept`] chooses the form, [`html`] draws it, `grpc` puts it into fields. What a client sent is shown
//! only as [`shown`] leaves it.
mod accept;
mod grpc;
mod html;
mod shown;
#[cfg(test)]
mod tests;
mod words;

pub(super) use accept::{Form, choose};
pub(super) use grpc::grpc;
pub(super) use html::escape;
pub use shown::shown;
pub(super) use words::reason_phrase;

use bytes::Bytes;
use stado_fleet::fault::Hop;
use words::Words;

/// Why a request is answered by us.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Problem {
    /// No service has this hostname.
    UnknownHost {
        /// As the client asked.
        asked: String,
        /// Hostnames that are known, in order; some of them.
        known: Vec<String>,
        /// Where all of them are listed: scheme, host and port as this client reaches them.
        index: String,
    },
    /// The service is known and nothing provides it now.
    Unavailable {
        /// Which.
        service: String,
        /// Why.
        reason: String,
        /// Since when.
        since: jiff::Timestamp,
        /// Where on the way to it.
        hop: Hop,
    },
    /// The service's backend, or the way to it, failed.
    BadGateway {
        /// Which.
        service: String,
        /// What was dialled.
        address: String,
        /// What happened there.
        cause: String,
        /// Where on the way to it.
        hop: Hop,
    },
    /// The request came back to where it left from.
    Loop {
        /// Hostname.
        host: String,
    },
    /// The request is malformed.
    Bad {
        /// What about it.
        why: &'static str,
    },
    /// Its head is larger than the limit.
    HeadTooLarge,
    /// Its head did not come in time.
    Timeout,
    /// This connection's certificate does not cover the host.
    Misdirected {
        /// Hostname.
        host: String,
    },
    /// It came without TLS, and no certificate here is for the host.
    NoCertificate {
        /// Hostname.
        host: String,
    },
    /// The service has as many requests as it may have.
    TooMany {
        /// Which.
        service: String,
    },
    /// It is in a version of HTTP that is not spoken here.
    Version,
    /// CONNECT.
    ConnectRefused,
    /// Our own host has nothing at this path.
    NoPage {
        /// As the client asked.
        path: String,
    },
    /// Our own host changes nothing.
    ReadOnly,
    /// Our own host was asked by another site's page.
    Foreign,
    /// Our own host tells as many readers of changes as it can.
    TooManyReaders,
}

/// A whole answer. It is never stored by a cache and never guessed to be of another type.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Page {
    /// Status code.
    pub status: u16,
    /// Content type.
    pub content_type: &'static str,
    /// Further header fields, besides content type and length.
    pub headers: Vec<(&'static str, String)>,
    /// Body.
    pub body: Bytes,
}

/// The answer for `problem`, in the form that `accept` (the request's `Accept`, if it had one) prefers.
pub fn render(problem: &Problem, accept: Option<&str>) -> Page {
    let words = Words::of(problem);
    let form = choose(accept);
    let mut headers = common();
    headers.extend(words.headers.iter().cloned());
    let body = match form {
        Form::Text => words.text(),
        Form::Json => words.json(),
        Form::Html => {
            let nonce = hex::encode(rand::random::<[u8; 16]>());
            headers.push(("Content-Security-Policy", html::policy(&nonce)));
            html::draw(&words, &nonce)
        }
    };
    Page { status: words.status, content_type: form.content_type(), headers, body: body.into() }
}

/// Fields of every page of ours.
pub(super) fn common() -> Vec<(&'static str, String)> {
    [
        ("X-Content-Type-Options", "nosniff"),
        ("Cache-Control", "no-store"),
        ("Referrer-Policy", "no-referrer"),
        ("Vary", "Accept"),
    ]
    .map(|(name, value)| (name, value.to_owned()))
    .into()
}

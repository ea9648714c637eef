//! HTTP/1 heads: found, read strictly, and rewritten for the other side. Pure: bytes in, bytes out.
//!
//! [`Scan`] finds where a head ends while its bytes come in. [`Request`] and [`Response`] are what a whole head says;
//! `httparse` reads the fields, the checks that keep two readers from disagreeing about a message are ours (proxy rule 13).
//! What is passed on is written anew by [`write_request`] and [`write_response`], never copied with its line ends.

mod field;
mod forward;
mod host;
mod length;
mod request;
mod response;
mod scan;
mod target;
#[cfg(test)]
mod tests;
mod write;

pub(super) use field::{is_kept_in_trailers, is_twin};
pub(super) use forward::{Hop, True};
pub(super) use host::normalise;
pub(super) use request::{Request, is_grpc};
pub(super) use response::{Response, begins_http};
pub(super) use scan::{Bounds, Scan};
pub(super) use target::Target;
pub(super) use write::{Toward, write_request, write_response};

/// The two versions that are spoken here.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Version {
    /// HTTP/1.0
    Http10,
    /// HTTP/1.1
    Http11,
}

/// A head that is not passed on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Refused {
    /// Malformed, or readable in two ways: 400, and why.
    Bad(&'static str),
    /// Longer, or with more fields, than is allowed: 431.
    TooLarge,
    /// Another major version, or none: 505.
    Version,
}

/// Fields that a head is read into without memory of its own; more are read into memory.
pub(super) const FIELDS: usize = 128;

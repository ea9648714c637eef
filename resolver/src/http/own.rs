//! What is asked of our own host, and what it answers. Whoever knows the services implements [`Own`].
use bytes::Bytes;
use std::pin::Pin;
use tokio::sync::mpsc;

/// A request for our own host.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OwnRequest {
    /// Method.
    pub method: String,
    /// Path, as written.
    pub path: String,
    /// What follows `?`, as written; empty without one.
    pub query: String,
    /// Host, normalised.
    pub host: String,
    /// Host and port as the client wrote them.
    pub authority: String,
    /// All header fields.
    pub headers: Vec<(String, String)>,
}
impl OwnRequest {
    /// The first field of that name.
    pub fn header(&self, name: &str) -> Option<&str> {
        let found = self.headers.iter().find(|(known, _)| known.eq_ignore_ascii_case(name));
        found.map(|(_, value)| value.as_str())
    }
}

/// An answer of our own host.
#[derive(Debug)]
pub struct OwnResponse {
    /// Status code.
    pub status: u16,
    /// Header fields, but for those that frame the body.
    pub headers: Vec<(&'static str, String)>,
    /// Body.
    pub body: OwnBody,
}

/// A body that is there, or comes as it is made.
#[derive(Debug)]
pub enum OwnBody {
    /// All of it.
    Full(Bytes),
    /// Pieces, until the sender is dropped.
    Stream(mpsc::Receiver<Bytes>),
}

/// What [`Own::answer`] returns.
pub type OwnAnswer<'a> = Pin<Box<dyn Future<Output = OwnResponse> + Send + 'a>>;

/// Answers for our own host.
pub trait Own: Send + Sync + std::fmt::Debug {
    /// The answer to `request`, whatever it asks for.
    fn answer(&self, request: OwnRequest) -> OwnAnswer<'_>;
}

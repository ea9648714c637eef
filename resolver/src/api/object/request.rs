//! One request head. A framing error has no answer: the connection is closed (§2.4).
use crate::api::resolution::is_loopback_authority;
use std::collections::HashMap;
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncReadExt};

/// Bytes of a head, its last empty line included.
const HEAD_LIMIT: usize = 64 << 10;
/// Largest object.
pub(super) const BODY_LIMIT: u64 = 536_870_912;
/// From accept to the end of the head.
const HEAD_DEADLINE: Duration = Duration::from_secs(30);
const MAX_HEADERS: usize = 128;

/// What the API needs to know of a request.
#[derive(Debug, Clone, Default)]
pub(super) struct Request {
    pub(super) method: String,
    pub(super) path: String,
    /// The first of each name counts.
    pub(super) query: HashMap<String, String>,
    pub(super) bearer: Option<String>,
    pub(super) range: Option<String>,
    pub(super) content_type: Option<String>,
    /// `x-stado-object-metadata`, as sent.
    pub(super) metadata: Option<String>,
    /// Bytes of the body.
    pub(super) length: Option<u64>,
    /// For a name that is not this host's loopback, or for none.
    pub(super) foreign: bool,
    /// From a page in a browser.
    pub(super) browser: bool,
}

impl Request {
    pub(super) fn asks(&self, key: &str) -> bool {
        self.query.get(key).is_some_and(|value| value == "true")
    }
}

/// Reads one head; what of the body came with it is the second. `None`: nothing that can be answered.
pub(super) async fn read<R: AsyncRead + Unpin>(stream: &mut R) -> Option<(Request, Vec<u8>)> {
    tokio::time::timeout(HEAD_DEADLINE, read_head(stream)).await.ok()?
}

async fn read_head<R: AsyncRead + Unpin>(stream: &mut R) -> Option<(Request, Vec<u8>)> {
    let mut bytes = Vec::with_capacity(1024);
    loop {
        if stream.read_buf(&mut bytes).await.ok()? == 0 {
            return None;
        }
        if let Some((request, head)) = parse(&bytes)? {
            return Some((request, bytes.split_off(head)));
        }
    }
}

/// `None`: cannot become a request. `Some(None)`: more bytes are needed.
#[allow(clippy::option_option, reason = "a refusal and a wait are two things")]
fn parse(bytes: &[u8]) -> Option<Option<(Request, usize)>> {
    let within = bytes.get(..bytes.len().min(HEAD_LIMIT))?;
    let mut headers = [httparse::EMPTY_HEADER; MAX_HEADERS];
    let mut parsed = httparse::Request::new(&mut headers);
    match parsed.parse(within).ok()? {
        httparse::Status::Complete(head) => Some(Some((request(&parsed)?, head))),
        httparse::Status::Partial => (bytes.len() < HEAD_LIMIT).then_some(None),
    }
}

fn request(parsed: &httparse::Request<'_, '_>) -> Option<Request> {
    let (method, target) = parsed.method.zip(parsed.path)?;
    let values = |name: &'static str| {
        let named = parsed.headers.iter().filter(move |h| h.name.eq_ignore_ascii_case(name));
        named.map(|h| std::str::from_utf8(h.value).ok().map(str::trim))
    };
    // Said twice it means two things at once; a coded body has no length that could be trusted.
    for name in ["host", "content-length", "authorization", "range"] {
        if values(name).count() > 1 || values(name).any(|value| value.is_none()) {
            return None;
        }
    }
    if values("transfer-encoding").next().is_some() {
        return None;
    }
    let one = |name| values(name).next().flatten().map(str::to_owned);
    let length = match one("content-length") {
        None => None,
        Some(text) if text.bytes().all(|b| b.is_ascii_digit()) => Some(text.parse().ok()?),
        Some(_) => return None,
    };
    if length.is_some_and(|length| length > BODY_LIMIT) {
        return None;
    }
    let (path, query) = target.split_once('?').unwrap_or((target, ""));
    let mut first = HashMap::new();
    for (key, value) in url::form_urlencoded::parse(query.as_bytes()) {
        first.entry(key.into_owned()).or_insert_with(|| value.into_owned());
    }
    let foreign = !values("host").flatten().any(is_loopback_authority);
    Some(Request {
        method: method.to_owned(),
        path: path.to_owned(),
        query: first,
        bearer: one("authorization").and_then(|value| value.strip_prefix("Bearer ").map(str::to_owned)),
        range: one("range"),
        content_type: one("content-type"),
        metadata: one("x-stado-object-metadata"),
        length,
        foreign,
        browser: values("origin").next().is_some(),
    })
}

//! One request head: read to its end within the limit, parsed, and checked against browsers.
use std::net::IpAddr;
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncReadExt};

/// Bytes of a head, its last empty line included.
pub(super) const HEAD_LIMIT: usize = 16 * 1024;
/// From accept to the end of the head (proxy rule 19).
pub(super) const HEAD_DEADLINE: Duration = Duration::from_secs(30);
const MAX_HEADERS: usize = 128;

/// What the API needs to know of a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Request {
    pub(super) method: String,
    /// Path and query as sent.
    pub(super) target: String,
    pub(super) consumer: Option<String>,
    /// From a browser, or for a name that is not this host's loopback.
    pub(super) foreign: bool,
}

/// Why there is no request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum BadHead {
    /// Larger than [`HEAD_LIMIT`].
    TooLarge,
    /// Not an HTTP/1 head.
    Invalid,
    /// The client went, or sent no whole head in time: there is nobody to answer.
    Gone,
}

/// Reads and parses one head.
pub(super) async fn read<R: AsyncRead + Unpin>(stream: &mut R) -> Result<Request, BadHead> {
    tokio::time::timeout(HEAD_DEADLINE, read_head(stream)).await.unwrap_or(Err(BadHead::Gone))
}

async fn read_head<R: AsyncRead + Unpin>(stream: &mut R) -> Result<Request, BadHead> {
    let mut head = Vec::with_capacity(1024);
    loop {
        let mut chunk = [0_u8; 2048];
        let read = stream.read(&mut chunk).await.map_err(|_| BadHead::Gone)?;
        if read == 0 {
            return Err(if head.is_empty() { BadHead::Gone } else { BadHead::Invalid });
        }
        head.extend_from_slice(chunk.get(..read).unwrap_or_default());
        if let Some(request) = parse(&head)? {
            return Ok(request);
        }
    }
}

/// `Ok(None)`: more bytes are needed.
pub(super) fn parse(bytes: &[u8]) -> Result<Option<Request>, BadHead> {
    let within = bytes.get(..bytes.len().min(HEAD_LIMIT)).unwrap_or(bytes);
    let mut headers = [httparse::EMPTY_HEADER; MAX_HEADERS];
    let mut parsed = httparse::Request::new(&mut headers);
    match parsed.parse(within) {
        Ok(httparse::Status::Complete(_)) => Ok(Some(request(&parsed)?)),
        Ok(httparse::Status::Partial) if bytes.len() >= HEAD_LIMIT => Err(BadHead::TooLarge),
        Ok(httparse::Status::Partial) => Ok(None),
        Err(httparse::Error::TooManyHeaders) => Err(BadHead::TooLarge),
        Err(_) => Err(BadHead::Invalid),
    }
}

fn request(parsed: &httparse::Request<'_, '_>) -> Result<Request, BadHead> {
    let (method, target) = parsed.method.zip(parsed.path).ok_or(BadHead::Invalid)?;
    let values = |name: &'static str| {
        parsed
            .headers
            .iter()
            .filter(move |h| h.name.eq_ignore_ascii_case(name))
            .map(|h| std::str::from_utf8(h.value).ok())
    };
    if values("host").count() > 1 || values("x-stado-consumer").count() > 1 {
        return Err(BadHead::Invalid);
    }
    let consumer = match values("x-stado-consumer").next() {
        None => None,
        Some(value) => Some(value.ok_or(BadHead::Invalid)?.trim().to_owned()).filter(|c| !c.is_empty()),
    };
    // An absolute target carries an authority of its own, which outranks Host; both must be this host.
    let authority = target.split_once("://").map(|(_, rest)| rest.split(['/', '?']).next().unwrap_or(rest));
    let path = match target.split_once("://") {
        Some((_, rest)) => rest.find('/').and_then(|at| rest.get(at..)).unwrap_or("/"),
        None => target,
    };
    // No Host at all comes from scripts, never from a browser.
    let host_is_foreign = values("host").any(|host| !host.is_some_and(is_loopback_authority));
    // What a page loads without reading it carries no Origin, but browsers say that a page asked for it.
    let by_a_page =
        values("sec-fetch-site").any(|site| site.is_none_or(|site| !site.trim().eq_ignore_ascii_case("none")));
    let foreign = host_is_foreign
        || by_a_page
        || authority.is_some_and(|a| !is_loopback_authority(a))
        || parsed.headers.iter().any(|h| h.name.eq_ignore_ascii_case("origin"));
    Ok(Request { method: method.to_owned(), target: path.to_owned(), consumer, foreign })
}

/// Whether an authority (`host`, `host:port`) is `localhost` or a loopback literal.
pub(crate) fn is_loopback_authority(authority: &str) -> bool {
    let authority = authority.trim();
    let (host, port) = match authority.strip_prefix('[') {
        Some(inner) => match inner.split_once(']') {
            Some((host, "")) => (host, None),
            Some((host, tail)) => (host, tail.strip_prefix(':').or(Some("bad"))),
            None => return false,
        },
        None => match authority.split_once(':') {
            Some((host, port)) => (host, Some(port)),
            None => (authority, None),
        },
    };
    let host_ok = host.strip_suffix('.').unwrap_or(host).eq_ignore_ascii_case("localhost")
        || host.parse::<IpAddr>().is_ok_and(|ip| ip.to_canonical().is_loopback());
    host_ok && port.is_none_or(|p| p.is_empty() || p.parse::<u16>().is_ok())
}

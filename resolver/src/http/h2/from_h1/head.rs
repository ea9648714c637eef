//! Heads between the two versions. Pure.
use super::super::super::framing::Framing;
use super::super::super::head::{FIELDS, Hop, Request as Read, Target, is_grpc};
use super::super::fields;
use http::header::{self, HeaderMap, HeaderName};
use http::uri::{Authority, PathAndQuery};
use http::{HeaderValue, Method, Request, Response, StatusCode, Uri};

/// A request as the backend gets it.
pub(super) struct Onward {
    pub(super) request: Request<()>,
    pub(super) framing: Framing,
}

/// Whether HTTP/2 can say what is asked for, byte for byte; the error says what not. A stream's path is a URI's there.
pub(in crate::http) fn fits(method: &[u8], target: Target<'_>, authority: &[u8]) -> Result<(), &'static str> {
    let (before, path) = target.pieces(method);
    let path = [before, path].concat();
    let same = PathAndQuery::try_from(path.as_slice()).is_ok_and(|read| read.as_str().as_bytes() == path);
    if !same || Authority::try_from(authority).is_err() || Method::from_bytes(method).is_err() {
        return Err(
            "the backend speaks HTTP/2, and its path, host or method cannot be said there unless it is escaped",
        );
    }
    Ok(())
}

impl Onward {
    /// Reads a head that this router wrote.
    pub(super) fn read(head: &[u8], hop: &Hop) -> Result<Self, String> {
        let mut room = vec![httparse::EMPTY_HEADER; FIELDS.max(head.len() / 4)];
        let read = Read::read(head, &mut room, hop).map_err(|refused| format!("{refused:?}"))?;
        let text = |error: http::Error| error.to_string();
        let (before, path) = read.target.pieces(read.method);
        let path = [before, path].concat();
        let uri = Uri::builder().scheme("http").authority(read.authority).path_and_query(path.as_slice());
        let request = Request::builder().method(read.method).uri(uri.build().map_err(text)?);
        let mut request = request.version(http::Version::HTTP_2).body(()).map_err(text)?;
        *request.headers_mut() = onward(&read);
        Ok(Self { request, framing: read.framing })
    }

    fn is_head(&self) -> bool {
        self.request.method() == Method::HEAD
    }
}

/// The fields, but for those that HTTP/2 says otherwise.
fn onward(read: &Read<'_, '_>) -> HeaderMap {
    let mut all = HeaderMap::with_capacity(read.fields().len());
    for field in read.fields() {
        let name = HeaderName::from_bytes(field.name.as_bytes());
        if let (Ok(name), Ok(value)) = (name, HeaderValue::from_bytes(field.value)) {
            all.append(name, value);
        }
    }
    let trailers = all.contains_key(header::TE);
    fields::meant_for_one_hop(&mut all);
    [header::HOST, header::TE].into_iter().for_each(|name| drop(all.remove(name)));
    if trailers {
        all.insert(header::TE, HeaderValue::from_static("trailers"));
    }
    all
}

/// A 1xx.
pub(super) fn early(response: &Response<()>) -> Vec<u8> {
    let mut out = status_line(response.status());
    put(response.headers(), &mut out);
    out.extend_from_slice(b"\r\n");
    out
}

/// How the body of an answer is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum BodyAs {
    Nothing,
    /// As it is: its length is known.
    Bytes,
    Chunks,
}

/// The head of the answer. `ended`: nothing follows it.
pub(super) fn last(mut parts: http::response::Parts, onward: &Onward, ended: bool) -> (Vec<u8>, BodyAs) {
    fields::answer(&mut parts.headers);
    let bodyless = onward.is_head() || matches!(parts.status, StatusCode::NO_CONTENT | StatusCode::NOT_MODIFIED);
    let late = parts.headers.contains_key(header::TRAILER);
    let grpc = parts.headers.get(header::CONTENT_TYPE).is_some_and(|kind| is_grpc(kind.as_bytes()));
    let length = parts.headers.remove(header::CONTENT_LENGTH).filter(|_| bodyless || ended || !(late || grpc));
    let mut out = status_line(parts.status);
    put(&parts.headers, &mut out);
    let form = match &length {
        _ if bodyless || ended => BodyAs::Nothing,
        Some(_) => BodyAs::Bytes,
        None => BodyAs::Chunks,
    };
    match &length {
        Some(length) => line(&mut out, "content-length", length.as_bytes()),
        None if form == BodyAs::Chunks => line(&mut out, "transfer-encoding", b"chunked"),
        None if bodyless => {}
        None => line(&mut out, "content-length", b"0"),
    }
    out.extend_from_slice(b"\r\n");
    (out, form)
}

fn status_line(status: StatusCode) -> Vec<u8> {
    format!("HTTP/1.1 {} {}\r\n", status.as_str(), status.canonical_reason().unwrap_or_default()).into_bytes()
}

fn put(fields: &HeaderMap, out: &mut Vec<u8>) {
    for (name, value) in fields {
        line(out, name.as_str(), value.as_bytes());
    }
}

fn line(out: &mut Vec<u8>, name: &str, value: &[u8]) {
    for piece in [name.as_bytes(), b": ", value, b"\r\n"] {
        out.extend_from_slice(piece);
    }
}

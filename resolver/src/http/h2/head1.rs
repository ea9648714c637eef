//! A request that came in HTTP/2, written as a head of HTTP/1.1; and an answer in HTTP/1.1, as fields of HTTP/2.
use super::super::Problem;
use super::super::framing::Framing;
use super::super::head;
use http::header::{self, HeaderMap, HeaderName};
use http::{HeaderValue, Method, Request, Response, StatusCode};

/// How the body of a request is framed. Two lengths, or one that is no number, are refused: the engine compares a body with
/// one of them only (proxy rule 13).
pub(super) fn framing<B>(request: &Request<B>, ended: bool) -> Result<Framing, Problem> {
    const WRONG: Problem = Problem::Bad { why: "Content-Length is not one number" };
    let mut lengths = request.headers().get_all(header::CONTENT_LENGTH).iter();
    let length = lengths.next();
    if lengths.next().is_some() {
        return Err(WRONG);
    }
    let digits = |value: &HeaderValue| value.as_bytes().iter().all(u8::is_ascii_digit);
    let number = |value: &HeaderValue| value.to_str().ok().filter(|_| digits(value)).and_then(|text| text.parse().ok());
    match length {
        Some(length) => match number(length) {
            // Trailers need chunks.
            Some(_) if request.headers().contains_key(header::TRAILER) && !ended => Ok(Framing::Chunked),
            Some(length) => Ok(Framing::Length(length)),
            None => Err(WRONG),
        },
        None if ended => Ok(Framing::None),
        None => Ok(Framing::Chunked),
    }
}

/// Writes the head. `fields` are those for the backend already; a handshake of a WebSocket becomes an upgrade.
pub(super) fn write(
    method: &Method,
    path: &str,
    authority: &str,
    fields: &HeaderMap,
    framing: Framing,
    upgrade: Option<&str>,
) -> Vec<u8> {
    let mut out = Vec::with_capacity(1024);
    put(
        &mut out,
        &[method.as_str().as_bytes(), b" ", path.as_bytes(), b" HTTP/1.1\r\nhost: ", authority.as_bytes(), b"\r\n"],
    );
    let mut trailers = false;
    for (name, value) in fields {
        match *name {
            header::CONTENT_LENGTH | header::COOKIE => {}
            header::TE => trailers = true,
            _ => put(&mut out, &[name.as_str().as_bytes(), b": ", value.as_bytes(), b"\r\n"]),
        }
    }
    cookies(fields, &mut out);
    match framing {
        Framing::Length(length) => put(&mut out, &[b"content-length: ", length.to_string().as_bytes(), b"\r\n"]),
        Framing::Chunked => put(&mut out, &[b"transfer-encoding: chunked\r\n"]),
        Framing::None | Framing::Close => {}
    }
    match upgrade {
        Some(protocol) => put(&mut out, &[b"connection: upgrade\r\nupgrade: ", protocol.as_bytes(), b"\r\n\r\n"]),
        None if trailers => put(&mut out, &[b"te: trailers\r\nconnection: te\r\n\r\n"]),
        None => put(&mut out, &[b"\r\n"]),
    }
    out
}

/// HTTP/2 sends a cookie each in a field of its own; HTTP/1.1 knows one field (RFC 9113 §8.2.3).
fn cookies(fields: &HeaderMap, out: &mut Vec<u8>) {
    let mut first = true;
    for cookie in fields.get_all(header::COOKIE) {
        put(out, &[if first { b"cookie: ".as_slice() } else { b"; " }, cookie.as_bytes()]);
        first = false;
    }
    if !first {
        put(out, &[b"\r\n"]);
    }
}

/// The answer's head for the client; the error says what about it cannot be said in HTTP/2.
pub(super) fn answer(read: &head::Response<'_, '_>) -> Result<Response<()>, &'static str> {
    let mut response = Response::new(());
    *response.status_mut() = StatusCode::from_u16(read.status).map_err(|_| "the status is no status")?;
    let fields = response.headers_mut();
    for field in read.fields() {
        let name = HeaderName::from_bytes(field.name.as_bytes()).map_err(|_| "a field has no valid name")?;
        let value = HeaderValue::from_bytes(field.value).map_err(|_| "a field has no valid value")?;
        fields.append(name, value);
    }
    super::fields::answer(fields);
    Ok(response)
}

/// A trailer section as fields.
pub(super) fn trailers(section: &[u8]) -> HeaderMap {
    let mut room = [httparse::EMPTY_HEADER; 64];
    let mut fields = HeaderMap::new();
    if let Ok(httparse::Status::Complete((_, read))) = httparse::parse_headers(section, &mut room) {
        for field in read {
            let name = HeaderName::from_bytes(field.name.as_bytes());
            if let (Ok(name), Ok(value)) = (name, HeaderValue::from_bytes(field.value)) {
                fields.append(name, value);
            }
        }
    }
    super::fields::late(&mut fields);
    fields
}

/// Trailers as the end of a chunked body.
pub(super) fn last_chunk(fields: &HeaderMap) -> Vec<u8> {
    let mut out = b"0\r\n".to_vec();
    for (name, value) in fields {
        put(&mut out, &[name.as_str().as_bytes(), b": ", value.as_bytes(), b"\r\n"]);
    }
    put(&mut out, &[b"\r\n"]);
    out
}

fn put(out: &mut Vec<u8>, pieces: &[&[u8]]) {
    for piece in pieces {
        out.extend_from_slice(piece);
    }
}

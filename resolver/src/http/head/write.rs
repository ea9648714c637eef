//! Heads as they are passed on (proxy rules 11 and 12).
use super::field::{Kind, is_named, kind};
use super::request::Request;
use super::response::Response;
use super::{Hop, True};
use crate::http::framing::Framing;
use httparse::Header;

/// Writes the head for the backend. It always speaks HTTP/1.1 on a connection that stays.
pub(in crate::http) fn write_request(request: &Request<'_, '_>, truth: &True, hop: &Hop, out: &mut Vec<u8>) {
    let (before, path) = request.target.pieces(request.method);
    put(out, &[request.method, b" ", before, path, b" HTTP/1.1\r\nHost: ", request.authority, b"\r\n"]);
    let mut seen = Vec::new();
    for field in request.fields {
        match kind(field.name) {
            Kind::Loop => seen.push(field.value),
            Kind::Upgrade if request.upgrade => put_field(out, field),
            Kind::Expect if request.version == super::Version::Http10 => {}
            Kind::Expect | Kind::Accept | Kind::ContentType | Kind::Other if !is_removed(request, field) => {
                put_field(out, field)
            }
            _ => {}
        }
    }
    put_framing(out, request.framing);
    truth.write(request.authority, out);
    put(out, &[b"CDN-Loop: "]);
    for value in seen {
        put(out, &[value, b", "]);
    }
    put(out, &[hop.as_bytes(), b"\r\n"]);
    out.extend_from_slice(match (request.upgrade, request.trailers) {
        (true, _) => b"Connection: Upgrade\r\n\r\n",
        (false, true) => b"TE: trailers\r\nConnection: TE\r\n\r\n",
        (false, false) => b"\r\n",
    });
}

/// Whether `Connection` names the field.
fn is_removed(request: &Request<'_, '_>, field: &Header<'_>) -> bool {
    request.options.names_fields && is_named(request.fields, field.name)
}

/// What the client of a response has to be told about its connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::http) struct Toward {
    /// The client speaks HTTP/1.1: it knows chunks.
    pub(in crate::http) http11: bool,
    /// The connection stays after this response.
    pub(in crate::http) stays: bool,
    /// The connection becomes another protocol's.
    pub(in crate::http) switches: bool,
}

/// Writes the head for the client.
pub(in crate::http) fn write_response(response: &Response<'_, '_>, toward: Toward, out: &mut Vec<u8>) {
    put(out, &[b"HTTP/1.1", response.status_line, b"\r\n"]);
    let kept = toward.switches || response.status == 426;
    for field in response.fields {
        match kind(field.name) {
            Kind::Upgrade if kept => put_field(out, field),
            Kind::Connection | Kind::Hop | Kind::Upgrade | Kind::Te | Kind::ContentLength | Kind::TransferEncoding => {}
            _ if response.options.names_fields && is_named(response.fields, field.name) => {}
            _ => put_field(out, field),
        }
    }
    // An answer without a body may still say how long it would be.
    match response {
        Response { chunked: true, .. } if toward.http11 => put_framing(out, Framing::Chunked),
        Response { length: Some(length), .. } => put_framing(out, Framing::Length(*length)),
        _ => {}
    }
    out.extend_from_slice(match toward {
        Toward { switches: true, .. } => b"Connection: Upgrade\r\n\r\n",
        _ if response.status < 200 => b"\r\n",
        Toward { stays: false, .. } => b"Connection: close\r\n\r\n",
        Toward { http11: false, .. } => b"Connection: keep-alive\r\n\r\n",
        _ if response.status == 426 => b"Connection: Upgrade\r\n\r\n",
        _ => b"\r\n",
    });
}

fn put_framing(out: &mut Vec<u8>, framing: Framing) {
    match framing {
        Framing::None | Framing::Close => {}
        Framing::Chunked => out.extend_from_slice(b"Transfer-Encoding: chunked\r\n"),
        Framing::Length(length) => {
            out.extend_from_slice(b"Content-Length: ");
            put_number(out, length);
            out.extend_from_slice(b"\r\n");
        }
    }
}

fn put_number(out: &mut Vec<u8>, number: u64) {
    // Writing to memory does not fail.
    let _ = std::io::Write::write_fmt(out, format_args!("{number}"));
}

fn put_field(out: &mut Vec<u8>, field: &Header<'_>) {
    put(out, &[field.name.as_bytes(), b": ", field.value, b"\r\n"]);
}

fn put(out: &mut Vec<u8>, pieces: &[&[u8]]) {
    for piece in pieces {
        out.extend_from_slice(piece);
    }
}

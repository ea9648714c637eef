//! Answers in the first daemon's bytes (mesh contract §1.1).
use bytes::Bytes;
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt, Empty, Full};
use hyper::header::{ALLOW, CONTENT_LENGTH, CONTENT_TYPE, HeaderValue, X_CONTENT_TYPE_OPTIONS};
use hyper::{Response, StatusCode};
use serde::Serialize;
use std::convert::Infallible;

/// Body of every answer.
pub(super) type Body = UnsyncBoxBody<Bytes, Infallible>;

/// Compact JSON and one newline.
pub(super) fn json(status: StatusCode, value: &impl Serialize) -> Response<Body> {
    let mut text = encode(value);
    text.push('\n');
    with_body(status, "application/json", text)
}

/// 204: no body, no content type.
pub(super) fn no_content() -> Response<Body> {
    empty(StatusCode::NO_CONTENT)
}

/// A head and nothing else.
pub(super) fn empty(status: StatusCode) -> Response<Body> {
    let mut response = Response::new(Empty::new().boxed_unsync());
    *response.status_mut() = status;
    response
}

/// Unknown path.
pub(super) fn not_found() -> Response<Body> {
    plain(StatusCode::NOT_FOUND, "404 page not found\n")
}

/// Known path, wrong method.
pub(super) fn method_not_allowed(allow: &str) -> Response<Body> {
    let mut response = plain(StatusCode::METHOD_NOT_ALLOWED, "Method Not Allowed\n");
    if let Ok(allow) = HeaderValue::from_str(allow) {
        response.headers_mut().insert(ALLOW, allow);
    }
    response
}

/// A whole body of a known type.
pub(super) fn with_body(status: StatusCode, content_type: &'static str, text: String) -> Response<Body> {
    let length = HeaderValue::from(text.len());
    let mut response = Response::new(Full::new(Bytes::from(text)).boxed_unsync());
    *response.status_mut() = status;
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(content_type));
    response.headers_mut().insert(CONTENT_LENGTH, length);
    response
}

fn plain(status: StatusCode, text: &str) -> Response<Body> {
    let mut response = with_body(status, "text/plain; charset=utf-8", text.to_owned());
    response.headers_mut().insert(X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    response
}

/// JSON in which `<`, `>`, `&` and the two line separators are escaped, as existing clients receive it.
pub(super) fn encode(value: &impl Serialize) -> String {
    let text = serde_json::to_string(value).unwrap_or_else(|_| "null".into());
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '<' => out.push_str("\\u003c"),
            '>' => out.push_str("\\u003e"),
            '&' => out.push_str("\\u0026"),
            '\u{2028}' => out.push_str("\\u2028"),
            '\u{2029}' => out.push_str("\\u2029"),
            c => out.push(c),
        }
    }
    out
}

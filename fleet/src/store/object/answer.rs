//! What an answer that is not the one hoped for means.
use crate::fault::Class;
use crate::store::StoreError;
use crate::store::http::Reply;

/// How much of a body a sentence repeats.
const QUOTED: usize = 1000;

/// `Stado object API error HTTP <status>: <body>`.
pub(super) fn refused(reply: &Reply) -> StoreError {
    let body = String::from_utf8_lossy(&reply.body);
    let body: String = body.trim().chars().take(QUOTED).map(|c| if c.is_control() { ' ' } else { c }).collect();
    StoreError { sentence: format!("Stado object API error HTTP {}: {body}", reply.status), class: class(reply.status) }
}

fn class(status: u16) -> Class {
    match status {
        401 | 403 => Class::Auth,
        404 => Class::NotFound,
        408 => Class::Timeout,
        429 => Class::RateLimit,
        500..=599 => Class::InfraDown,
        _ => Class::Refused,
    }
}

/// Whether the answer is the API's own `{"state":"absent",…}`, and not just any 404.
pub(super) fn absent(reply: &Reply) -> bool {
    let body: Option<serde_json::Value> = serde_json::from_slice(&reply.body).ok();
    reply.status == 404 && body.is_some_and(|b| b.get("state").and_then(|s| s.as_str()) == Some("absent"))
}

/// Whether the server refused before it touched the store; a 500 says nothing about that.
pub(super) fn nothing_written(reply: &Reply) -> bool {
    !matches!(reply.status, 500 | 502 | 504)
}

//! What is answered to whom. Everything here blocks: it reads the vault's file and writes its log.
use crate::api::resolution::is_loopback_authority;
use hyper::header::{AUTHORIZATION, HOST, HeaderMap, ORIGIN};
use hyper::{Method, StatusCode};
use serde::Deserialize;
use serde_json::{Value, json};
use stado_fleet::vault::contents::check_name;
use stado_fleet::vault::{Event, Refused, Vault, VaultError};

/// A status and its body.
pub(super) type Answer = (StatusCode, Value);

/// A request, read to its end.
#[derive(Debug)]
pub(super) struct Asked {
    pub(super) method: Method,
    pub(super) path: String,
    pub(super) headers: HeaderMap,
    pub(super) body: Vec<u8>,
    /// From where.
    pub(super) peer: String,
}

#[derive(Deserialize)]
struct Read {
    id: String,
    field: String,
}

fn error(status: StatusCode, error: &str) -> Answer {
    (status, json!({ "error": error }))
}

/// Whether it comes from a browser, or, without TLS, for a name that is not this host's loopback, or for none (design,
/// rule 7).
pub(super) fn foreign(headers: &HeaderMap, tls: bool) -> bool {
    let strange = |host: &hyper::header::HeaderValue| !host.to_str().is_ok_and(is_loopback_authority);
    headers.contains_key(ORIGIN) || (!tls && (!headers.contains_key(HOST) || headers.get_all(HOST).iter().any(strange)))
}

pub(super) fn answer(vault: &Vault, asked: &Asked) -> Answer {
    let known = matches!(asked.path.as_str(), "/v1/items/read" | "/v1/items/list");
    match (&asked.method, asked.path.as_str()) {
        (&Method::GET, "/healthz" | "/livez") => health(vault),
        (&Method::POST, _) if known => item(vault, asked).unwrap_or_else(|e| unavailable(&e)),
        _ if known => error(StatusCode::METHOD_NOT_ALLOWED, "method not allowed"),
        _ => error(StatusCode::NOT_FOUND, "not found"),
    }
}

fn health(vault: &Vault) -> Answer {
    match vault.contents() {
        Ok(_) => (StatusCode::OK, json!({"ok": true})),
        Err(e) => unavailable(&e),
    }
}

/// The cause is this host's own, and holds no secret; a stranger is not told it.
fn unavailable(e: &VaultError) -> Answer {
    tracing::warn!(target: "stado::fleet", "vault: {e}");
    error(StatusCode::SERVICE_UNAVAILABLE, "the vault cannot be read; its log says why")
}

fn item(vault: &Vault, asked: &Asked) -> Result<Answer, VaultError> {
    let header = |name: &str| asked.headers.get(name).and_then(|value| value.to_str().ok());
    let consumer = header("x-consumer").unwrap_or_default();
    let token = header(AUTHORIZATION.as_str()).and_then(|value| value.strip_prefix("Bearer ")).unwrap_or_default();
    let list = asked.path == "/v1/items/list";
    let action = if list { "list" } else { "read" };
    let wanted: Option<Read> = serde_json::from_slice(&asked.body).ok();
    // What a stranger calls itself is recorded only where it is a name.
    let called = Some(consumer).filter(|name| check_name(name).is_ok()).unwrap_or("?");
    let named = |name: &str| check_name(name).is_ok().then(|| name.to_owned());
    let (id, field) = match &wanted {
        Some(read) if !list => (named(&read.id), named(&read.field)),
        _ => (None, None),
    };
    let record = |outcome: &'static str| {
        let (item, field) = (id.as_deref(), field.as_deref());
        let from = Some(asked.peer.clone());
        vault.record(&Event { action, outcome, consumer: called, item, field, grantee: None, from })
    };
    let contents = vault.contents()?;
    let grant = match contents.admit(consumer, token) {
        Ok(grant) => grant,
        Err(_) => {
            record("unauthorized")?;
            return Ok(error(StatusCode::UNAUTHORIZED, "unauthorized"));
        }
    };
    if list {
        record("given")?;
        return Ok((StatusCode::OK, json!(contents.list(grant))));
    }
    let Some(read) = wanted else {
        return Ok(error(StatusCode::BAD_REQUEST, "the body must be {\"id\": ITEM, \"field\": FIELD}"));
    };
    match contents.read(grant, &read.id, &read.field) {
        Ok(secret) => {
            record("given")?;
            Ok((StatusCode::OK, json!({"value": secret.reveal()})))
        }
        Err(Refused::Absent) => {
            record("absent")?;
            Ok(error(StatusCode::NOT_FOUND, "no such item or field"))
        }
        Err(Refused::NotGranted | Refused::Stranger) => {
            record("not-granted")?;
            Ok(error(StatusCode::FORBIDDEN, "this consumer has no grant for the item"))
        }
    }
}

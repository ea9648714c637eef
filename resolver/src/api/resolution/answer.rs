//! Request and held directory → answer. Pure, but for the wait that `?wait=` asks for, which [`super::serve`] does.
use super::request::{BadHead, Request};
use crate::apply::held::Held;
use crate::conn::ledger::Probe;
use serde_json::json;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

/// Longest wait of one request.
const MAX_WAIT: Duration = Duration::from_secs(60);
const RESOLVE: &str = "/v1/resolve/service/";
/// Not of the contract: a command of this host announces that it is about to try adapters.
const PROBE: &str = "/v1/probe?";

/// Renders the metrics of the daemon in the Prometheus text format.
pub type MetricsText = Arc<dyn Fn() -> String + Send + Sync>;

/// Status and body.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Answer {
    /// HTTP status.
    pub status: u16,
    /// Media type.
    pub content_type: &'static str,
    /// Body.
    pub body: String,
}

impl Answer {
    fn json(status: u16, body: &serde_json::Value) -> Self {
        Self { status, content_type: "application/json", body: body.to_string() }
    }
    fn error(status: u16, error: &str) -> Self {
        Self::json(status, &json!({ "error": error }))
    }
    /// The whole response.
    pub(super) fn bytes(&self) -> Vec<u8> {
        let reason = match self.status {
            200 => "OK",
            400 => "Bad Request",
            401 => "Unauthorized",
            403 => "Forbidden",
            404 => "Not Found",
            405 => "Method Not Allowed",
            _ => "Service Unavailable",
        };
        let allow = if self.status == 405 { "Allow: GET\r\n" } else { "" };
        let head = format!(
            "HTTP/1.1 {} {reason}\r\nContent-Type: {}\r\nContent-Length: {}\r\n{allow}Cache-Control: no-store\r\nX-Content-Type-Options: nosniff\r\nConnection: close\r\n\r\n",
            self.status,
            self.content_type,
            self.body.len()
        );
        (head + &self.body).into_bytes()
    }
}

/// The answer to a head that is no request; `None` when nobody is there to read it.
pub(super) fn bad_head(bad: BadHead) -> Option<Answer> {
    match bad {
        BadHead::TooLarge => Some(Answer::error(400, "request head is too large")),
        BadHead::Invalid => Some(Answer::error(400, "invalid request header")),
        BadHead::Gone => None,
    }
}

/// What a good head asks for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Asked {
    Now(Answer),
    Health,
    Metrics,
    Announce { clients: Vec<SocketAddr>, probe: Probe },
    Resolve { service: String, consumer: String, wait: Duration },
}

/// Reads the route of a request.
pub(super) fn asked(request: &Request) -> Asked {
    if request.foreign {
        return Asked::Now(Answer::error(403, "forbidden"));
    }
    if request.method != "GET" {
        return Asked::Now(Answer::error(405, "method_not_allowed"));
    }
    match request.target.as_str() {
        "/health" => return Asked::Health,
        "/metrics" => return Asked::Metrics,
        _ => {}
    }
    if let Some(query) = request.target.strip_prefix(PROBE) {
        return announced(query);
    }
    let Some(rest) = request.target.strip_prefix(RESOLVE) else {
        return Asked::Now(Answer::error(404, "not_found"));
    };
    let (service, wait) = match rest.split_once('?') {
        None => (rest, Some(Duration::ZERO)),
        Some((service, query)) => (service, query.strip_prefix("wait=").and_then(duration)),
    };
    let Some(wait) = wait.filter(|_| !service.is_empty() && !service.contains('/')) else {
        return Asked::Now(Answer::error(400, "invalid_service"));
    };
    match &request.consumer {
        None => Asked::Now(Answer::error(401, "consumer_required")),
        Some(consumer) => {
            Asked::Resolve { service: service.to_owned(), consumer: consumer.clone(), wait: wait.min(MAX_WAIT) }
        }
    }
}

/// `client=127.0.0.1:50000&client=…`, and `only=accepts` of who leaves the services alone.
fn announced(query: &str) -> Asked {
    let mut probe = Probe::Reaches;
    let mut clients = Vec::new();
    for word in query.split('&') {
        let client = word.strip_prefix("client=").and_then(|client| client.parse::<SocketAddr>().ok());
        match client.filter(|client| client.ip().to_canonical().is_loopback()) {
            Some(client) => clients.push(client),
            None if word == "only=accepts" => probe = Probe::Accepts,
            None => return Asked::Now(Answer::error(400, "invalid_client")),
        }
    }
    Asked::Announce { clients, probe }
}

/// The answer to an announcement that was taken.
pub(super) fn taken(count: usize) -> Answer {
    Answer::json(200, &json!({ "announced": count }))
}

/// `5`, `5s` or `500ms`.
fn duration(text: &str) -> Option<Duration> {
    if let Some(millis) = text.strip_suffix("ms") {
        return millis.parse().ok().map(Duration::from_millis);
    }
    text.strip_suffix('s').unwrap_or(text).parse().ok().map(Duration::from_secs)
}

/// `/health`: 503 with `stale` only when a directory is held and is past its window; the resolver keeps resolving then.
pub(super) fn health(held: Option<&Held>, now: jiff::Timestamp) -> Answer {
    match held {
        Some(held) if held.stale(now) => Answer::json(503, &json!({"status": "stale"})),
        held => {
            let generation = held.and_then(|h| h.directory.generation()).map(|g| g.0);
            Answer::json(200, &json!({"status": "ok", "service": "stado-resolver", "generation": generation}))
        }
    }
}

/// The answer for (service, consumer). Neither host nor endpoint is ever disclosed.
pub(super) fn resolve(held: Option<&Held>, service: &str, consumer: &str) -> Answer {
    let Some(held) = held else {
        return Answer::error(
            503,
            "this host's resolver holds no service directory yet; `stado resolver status` says why",
        );
    };
    match held.directory.resolve(service, consumer) {
        Err(reason) => Answer::error(503, &reason.to_string()),
        Ok(route) => {
            let scheme = route.endpoint.scheme.as_str();
            let gateway = held.adapter(service, consumer).map(|bind| format!("{scheme}://{bind}"));
            Answer::json(
                200,
                &json!({
                    "service": format!("stado://service/{service}"),
                    "generation": held.directory.generation().map(|g| g.0),
                    "gateway_url": gateway,
                    "capabilities": route.capabilities,
                }),
            )
        }
    }
}

/// `/metrics`, when the daemon has a registry of them.
pub(super) fn metrics(text: Option<&MetricsText>) -> Answer {
    match text {
        Some(text) => Answer { status: 200, content_type: "text/plain; version=0.0.4; charset=utf-8", body: text() },
        None => Answer::error(404, "not_found"),
    }
}

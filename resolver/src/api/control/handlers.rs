//! From a request to its answer.
use super::respond::{self, Body, json, no_content};
use super::routes::{self, Miss, Route};
use super::{Server, body, door, errors, forward, openapi, reader, stream};
use crate::http::Source;
use crate::mesh::{Mesh, Refusal};
use hyper::body::Incoming;
use hyper::header::{AUTHORIZATION, HeaderMap, ORIGIN};
use hyper::{Request, Response, StatusCode};
use serde::Serialize;
use stado_fleet::wire::ServiceList;
use std::sync::Arc;
use tokio_util::sync::CancellationToken;

/// Longest `Idempotency-Key`.
const KEY_LIMIT: usize = 255;

/// Answers one request. The `Host` header is not looked at; a page in a browser is refused by its `Origin`.
pub(super) async fn answer(server: Server, request: Request<Incoming>, peer: Option<u32>) -> Response<Body> {
    if request.headers().contains_key(ORIGIN) {
        return errors::forbidden("requests with an Origin header are refused: this socket does not serve web pages");
    }
    match routes::find(request.method(), request.uri().path()) {
        Err(Miss::Path) => respond::not_found(),
        Err(Miss::Method(allow)) => respond::method_not_allowed(&allow),
        Ok(Route::HandOver) if server.mesh.door().is_gone() => errors::refusal(&Refusal::HandedOver),
        Ok(Route::HandOver) => door::open(request, peer, server.door.as_ref()),
        Ok(route) => carry_out(server, route, request).await,
    }
}

/// Changes wait while the mesh is handed over; what comes later is for the process that has it then.
async fn carry_out(server: Server, route: Route, request: Request<Incoming>) -> Response<Body> {
    let Server { mesh, stop, path, source, .. } = server;
    let changes = mesh.door();
    let turn = if route.changes() { changes.enter().await.map(Some) } else { Ok(None) };
    let gone = turn.is_err() || (changes.is_gone() && route != Route::Events);
    if gone {
        return forward::forward(&path, request).await;
    }
    let answer = run(mesh.clone(), &source, route, request, stop).await;
    drop(turn);
    answer.unwrap_or_else(|refusal| errors::refusal(&refusal))
}

async fn run(
    mesh: Arc<Mesh>,
    source: &Source,
    route: Route,
    request: Request<Incoming>,
    stop: CancellationToken,
) -> Result<Response<Body>, Refusal> {
    let (head, incoming) = request.into_parts();
    match route {
        // Answered before a mesh is asked.
        Route::HandOver => Err(Refusal::Internal),
        Route::Health => ok(&mesh.health()),
        Route::List => ok(&list(&mesh, head.uri.query())),
        Route::Refused => ok(&*mesh.refused().borrow()),
        Route::Certificates => ok(&mesh.certificates().await),
        Route::Overview => ok(&source.overview()),
        Route::Resolve(name) => ok(&mesh.resolve(&name)?),
        Route::Inspect(name) => ok(&mesh.inspect(&name)?),
        Route::Connections(name) => ok(&mesh.connections(&name)?),
        Route::Events => Ok(stream::events(mesh.events(), &head.headers, stop)),
        Route::OpenApi => Ok(respond::with_body(StatusCode::OK, "application/json", openapi::DOCUMENT.to_owned())),
        Route::Metrics => Ok(respond::with_body(StatusCode::OK, METRICS_TYPE, mesh.render_metrics())),
        Route::Register => {
            let key = idempotency_key(&head.headers)?;
            let wanted = reader::register(&body::read(incoming).await)?;
            Ok(json(StatusCode::CREATED, &mesh.register(wanted, key).await?))
        }
        Route::Heartbeat(id) => ok(&mesh.heartbeat(&id, bearer(&head.headers))?),
        Route::Deregister(id) => mesh.deregister(&id, bearer(&head.headers)).map(|()| no_content()),
        Route::Forget(name) => {
            let force = query(head.uri.query(), "force").as_deref() == Some("true");
            mesh.forget(&name, force).await.map(|()| no_content())
        }
        Route::Pin(name) => ok(&mesh.pin(&name, reader::pin(&body::read(incoming).await)?).await?),
        Route::Expose(name) => ok(&mesh.expose(&name).await?),
        Route::Conceal(name) => mesh.conceal(&name).await.map(|()| no_content()),
        Route::Rename(name) => ok(&mesh.rename(&name, &reader::rename(&body::read(incoming).await)?).await?),
    }
}

/// What `prometheus-client` writes.
pub(crate) const METRICS_TYPE: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

fn ok(value: &impl Serialize) -> Result<Response<Body>, Refusal> {
    Ok(json(StatusCode::OK, value))
}

/// All services, or with `?owner=` those of one owner.
fn list(mesh: &Mesh, text: Option<&str>) -> ServiceList {
    match query(text, "owner") {
        None => ServiceList { services: mesh.list(), owner: None },
        Some(owner) => ServiceList { services: mesh.list_owned(&owner), owner: Some(owner) },
    }
}

/// The first value of `name` in a query, decoded; a malformed one counts as absent.
fn query(text: Option<&str>, name: &str) -> Option<String> {
    let mut pairs = text?.split('&').filter_map(|pair| pair.split_once('='));
    pairs.find(|(key, _)| *key == name).and_then(|(_, value)| routes::decoded(value))
}

/// The lease token; the scheme must be exactly `Bearer `.
fn bearer(headers: &HeaderMap) -> Option<&str> {
    headers.get(AUTHORIZATION)?.to_str().ok()?.strip_prefix("Bearer ")
}

fn idempotency_key(headers: &HeaderMap) -> Result<Option<String>, Refusal> {
    let Some(value) = headers.get("idempotency-key") else { return Ok(None) };
    match value.to_str() {
        Ok(key) if !key.is_empty() && key.len() <= KEY_LIMIT => Ok(Some(key.to_owned())),
        _ => Err(Refusal::Request(format!("Idempotency-Key must be 1 to {KEY_LIMIT} visible characters"))),
    }
}

//! The server: one request a connection, read whole, answered from the vault.
use super::answer::{self, Asked};
use crate::api::listening::{Conn, Listening, Security};
use bytes::Bytes;
use http_body_util::{BodyExt, Full, Limited};
use hyper::body::Incoming;
use hyper::header::{CONNECTION, CONTENT_TYPE, HeaderValue};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Request, Response, StatusCode};
use hyper_util::rt::{TokioIo, TokioTimer};
use serde_json::{Value, json};
use stado_fleet::vault::Vault;
use std::convert::Infallible;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;
use tokio::net::TcpListener;

/// From accept to the end of the head, and from there to the end of the body.
const DEADLINE: Duration = Duration::from_secs(10);
/// Largest body.
const LARGEST: usize = 64 << 10;

/// A running vault. Dropping it closes the listener; requests under way are answered.
#[derive(Debug)]
pub struct VaultServer(Listening);

impl VaultServer {
    /// Starts answering.
    ///
    /// # Errors
    /// When the listener's address cannot be told, or is not loopback and there is no TLS.
    pub fn start(listener: TcpListener, vault: Vault, security: Security) -> std::io::Result<Self> {
        let tls = security.is_tls();
        let serve = move |conn, peer| connection(conn, peer, vault.clone(), tls);
        Listening::start("the vault", Arc::new(listener), security, serve).map(Self)
    }

    /// Where it listens.
    pub fn bind(&self) -> SocketAddr {
        self.0.bind()
    }

    /// Stops accepting and waits up to `grace` for answers under way.
    pub async fn close(self, grace: Duration) {
        self.0.close(grace).await;
    }
}

async fn connection(conn: Conn, peer: SocketAddr, vault: Vault, tls: bool) {
    let service = service_fn(move |request: Request<Incoming>| {
        let vault = vault.clone();
        async move { Ok::<_, Infallible>(respond(request, peer, vault, tls).await) }
    });
    let serving = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(DEADLINE)
        .keep_alive(false)
        .half_close(true)
        .serve_connection(TokioIo::new(conn), service);
    // A client that went, or spoke something else, has nobody to be told.
    let _ = serving.await;
}

async fn respond(request: Request<Incoming>, peer: SocketAddr, vault: Vault, tls: bool) -> Response<Full<Bytes>> {
    let (head, body) = request.into_parts();
    if answer::foreign(&head.headers, tls) {
        return response(StatusCode::FORBIDDEN, &json!({"error": "forbidden"}));
    }
    let read = tokio::time::timeout(DEADLINE, Limited::new(body, LARGEST).collect()).await;
    let Ok(Ok(body)) = read else {
        let error = "the body is too large, or did not come whole in time";
        return response(StatusCode::BAD_REQUEST, &json!({ "error": error }));
    };
    let asked = Asked {
        method: head.method,
        path: head.uri.path().to_owned(),
        headers: head.headers,
        body: body.to_bytes().to_vec(),
        peer: peer.to_string(),
    };
    let answered = tokio::task::spawn_blocking(move || answer::answer(&vault, &asked)).await;
    match answered {
        Ok((status, body)) => response(status, &body),
        Err(_) => response(StatusCode::INTERNAL_SERVER_ERROR, &json!({"error": "the vault failed"})),
    }
}

fn response(status: StatusCode, body: &Value) -> Response<Full<Bytes>> {
    let mut response = Response::new(Full::new(Bytes::from(body.to_string())));
    *response.status_mut() = status;
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    response.headers_mut().insert(CONNECTION, HeaderValue::from_static("close"));
    response
}

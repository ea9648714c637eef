//! Requests that reach a daemon after it was taken over are answered by the one that serves the socket now.
use super::errors;
use super::respond::Body;
use crate::mesh::Refusal;
use bytes::Bytes;
use http_body_util::{BodyExt, Full, Limited};
use hyper::body::Incoming;
use hyper::header::{CONNECTION, HeaderValue, TRANSFER_ENCODING};
use hyper::{Request, Response};
use hyper_util::rt::TokioIo;
use std::path::Path;
use std::time::Duration;
use tokio::net::UnixStream;

/// For an answer; one that takes longer is a stream that ends with this daemon.
const PATIENCE: Duration = Duration::from_secs(30);
/// Largest answer that is passed on.
const LARGEST: usize = 256 << 20;

type Failure = Box<dyn std::error::Error + Send + Sync>;

/// Passes `request` on, and its answer back.
pub(super) async fn forward(socket: &Path, request: Request<Incoming>) -> Response<Body> {
    let mut response = match tokio::time::timeout(PATIENCE, exchange(socket, request)).await {
        Ok(Ok(response)) => response,
        Ok(Err(error)) => {
            tracing::warn!(target: "stado::mesh", error = %error, "request_not_passed_on");
            errors::refusal(&Refusal::HandedOver)
        }
        Err(_) => errors::refusal(&Refusal::HandedOver),
    };
    // The client's next request is to find the new daemon by itself.
    response.headers_mut().insert(CONNECTION, HeaderValue::from_static("close"));
    response
}

async fn exchange(socket: &Path, request: Request<Incoming>) -> Result<Response<Body>, Failure> {
    let stream = UnixStream::connect(socket).await?;
    let (mut sender, connection) = hyper::client::conn::http1::handshake(TokioIo::new(stream)).await?;
    let connection = tokio_util::task::AbortOnDropHandle::new(tokio::spawn(connection));
    let (mut head, body) = sender.send_request(request).await?.into_parts();
    let body: Bytes = Limited::new(body, LARGEST).collect().await?.to_bytes();
    drop(connection);
    head.headers.remove(TRANSFER_ENCODING);
    Ok(Response::from_parts(head, Full::new(body).boxed_unsync()))
}

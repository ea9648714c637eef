//! `GET /v1/events`: server-sent events when the client accepts them, else one JSON object a line.
use super::respond::{Body, encode};
use crate::mesh::{Changes, Event};
use bytes::Bytes;
use futures_util::stream::unfold;
use http_body_util::{BodyExt, StreamBody};
use hyper::Response;
use hyper::body::Frame;
use hyper::header::{ACCEPT, CACHE_CONTROL, CONTENT_TYPE, HeaderMap, HeaderValue};
use std::convert::Infallible;
use std::time::Duration;
use tokio_util::sync::CancellationToken;

/// A quiet stream says this often that it lives, which also finds out readers that are gone.
const ALIVE: Duration = Duration::from_secs(15);

/// The answer: a snapshot, then changes, until the reader goes, the daemon stops or another one has taken it over: its
/// readers begin anew there, with a snapshot.
pub(super) fn events(changes: Changes, headers: &HeaderMap, stop: CancellationToken) -> Response<Body> {
    let accepts = |value: &HeaderValue| value.to_str().is_ok_and(|text| text.contains("text/event-stream"));
    let sse = headers.get_all(ACCEPT).iter().any(accepts);
    let lines = unfold((changes, stop), move |(mut changes, stop)| async move {
        let mesh = changes.mesh.clone();
        let next = tokio::select! {
            () = stop.cancelled() => return None,
            () = mesh.door().gone() => return None,
            next = tokio::time::timeout(ALIVE, changes.next()) => next,
        };
        let text = match next {
            Ok(None) => return None,
            Ok(Some(event)) => line(&event, sse),
            Err(_) if sse => ": alive\n\n".into(),
            Err(_) => "{\"event\":\"alive\"}\n".into(),
        };
        Some((Ok::<_, Infallible>(Frame::data(Bytes::from(text))), (changes, stop)))
    });
    let mut response = Response::new(StreamBody::new(lines).boxed_unsync());
    let content_type = if sse { "text/event-stream" } else { "application/x-ndjson" };
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(content_type));
    response.headers_mut().insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    response
}

fn line(event: &Event, sse: bool) -> String {
    let data = encode(event);
    let name = match event {
        Event::Snapshot { .. } => "snapshot",
        Event::Changed { .. } => "changed",
        Event::Removed { .. } => "removed",
    };
    if sse { format!("event: {name}\ndata: {data}\n\n") } else { format!("{data}\n") }
}

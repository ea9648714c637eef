//! `POST /v1/hand-over`: the way in for a process that takes this daemon over, or that was taken over and tells what it
//! still serves. The connection is upgraded, so that descriptors can travel over it.
use super::errors;
use super::respond::{self, Body};
use bytes::Bytes;
use hyper::body::Incoming;
use hyper::header::{CONNECTION, HeaderValue, UPGRADE};
use hyper::{Request, Response, StatusCode};
use hyper_util::rt::TokioIo;
use tokio::net::UnixStream;
use tokio::sync::mpsc;

/// What is spoken after the upgrade; `Upgrade: stado-hand-over/<this>`. It rises with every change of the messages.
pub const HAND_OVER_VERSION: u32 = 2;
/// The path of the request.
pub const HAND_OVER_PATH: &str = "/v1/hand-over";
const PROTOCOL: &str = "stado-hand-over/";

/// A process of this user that has something to hand over or to take.
#[derive(Debug)]
pub struct Arrival {
    /// The connection, with nothing of it read but `early`.
    pub stream: UnixStream,
    /// Bytes that were read together with the request.
    pub early: Bytes,
}

/// Where arrivals are told.
pub type Door = mpsc::Sender<Arrival>;

/// The value of the `Upgrade` header of this version.
pub fn protocol() -> String {
    format!("{PROTOCOL}{HAND_OVER_VERSION}")
}

/// The version that an `Upgrade` header names.
pub fn version_in(upgrade: &str) -> Option<u32> {
    upgrade.trim().strip_prefix(PROTOCOL)?.parse().ok()
}

/// Opens the door, if the peer is this very user and speaks this version.
pub(super) fn open(mut request: Request<Incoming>, peer: Option<u32>, door: Option<&Door>) -> Response<Body> {
    if peer != Some(rustix::process::geteuid().as_raw()) {
        return errors::forbidden("a daemon is handed over to its own user only");
    }
    let asked = request.headers().get(UPGRADE).and_then(|value| value.to_str().ok()).and_then(version_in);
    if asked != Some(HAND_OVER_VERSION) {
        return wrong_version(asked);
    }
    let Some(door) = door.cloned() else {
        return errors::conflict("this daemon is handed over to nobody: it has begun to stop");
    };
    let upgrade = hyper::upgrade::on(&mut request);
    tokio::spawn(async move {
        let Ok(upgraded) = upgrade.await else { return };
        if let Ok(parts) = upgraded.downcast::<TokioIo<UnixStream>>() {
            // Nobody behind the door any more: the peer sees the connection end.
            let _ = door.send(Arrival { stream: parts.io.into_inner(), early: parts.read_buf }).await;
        }
    });
    let mut response = respond::empty(StatusCode::SWITCHING_PROTOCOLS);
    response.headers_mut().insert(CONNECTION, HeaderValue::from_static("upgrade"));
    name_protocol(&mut response);
    response
}

fn wrong_version(asked: Option<u32>) -> Response<Body> {
    let other = asked.map_or_else(|| "none".to_owned(), |version| format!("version {version}"));
    let mut response = errors::upgrade_required(&format!(
        "this daemon speaks hand-over version {HAND_OVER_VERSION}, the other process {other}; it keeps serving"
    ));
    name_protocol(&mut response);
    response
}

fn name_protocol(response: &mut Response<Body>) {
    if let Ok(protocol) = HeaderValue::from_str(&protocol()) {
        response.headers_mut().insert(UPGRADE, protocol);
    }
}

//! The mesh API on the Unix socket (mesh contract §1): accept, check the peer, answer.
mod body;
mod door;
mod errors;
mod forward;
mod handlers;
pub mod openapi;
pub(crate) mod reader;
mod respond;
mod routes;
mod scan;
mod socket;
mod stream;

pub use door::{Arrival, Door, HAND_OVER_PATH, HAND_OVER_VERSION, protocol, version_in};
pub(crate) use handlers::METRICS_TYPE;
pub use socket::{ControlSocket, Kept, SocketError, bind_socket, probe};

use crate::http::{FleetView, Source};
use crate::mesh::Mesh;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use std::convert::Infallible;
use std::fs::File;
use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;
use tokio::net::UnixStream;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

/// How long answers that are on their way may take once a stop was asked for.
const DRAIN: Duration = Duration::from_secs(2);
/// Pause before accepting again when the process is out of descriptors.
const PAUSE: Duration = Duration::from_millis(100);

/// What every connection sees.
#[derive(Clone)]
struct Server {
    mesh: Arc<Mesh>,
    stop: CancellationToken,
    door: Option<Door>,
    path: PathBuf,
    /// What the whole of this host is told from.
    source: Arc<Source>,
}

/// Serves until `stop`; then lets running answers end, for at most two seconds, and removes the socket. A mesh that
/// another process took over is answered for until `stop` all the same, on connections that are open already, and the
/// socket stays where it is. `door`: where processes are told that want to take over; `None` turns them away. `fleet`: the
/// adapters that the overview tells beside the mesh.
pub async fn serve(
    socket: ControlSocket,
    mesh: Arc<Mesh>,
    stop: CancellationToken,
    door: Option<Door>,
    fleet: Option<FleetView>,
) {
    let connections = TaskTracker::new();
    let source = Arc::new(Source::new(&mesh, mesh.ledger().clone(), fleet));
    let server = Server { mesh: mesh.clone(), stop: stop.clone(), door, path: socket.path().to_owned(), source };
    let mut reserve = spare();
    loop {
        let accepted = tokio::select! {
            () = stop.cancelled() => break,
            () = mesh.door().gone() => {
                socket.kept().set(true);
                break;
            }
            accepted = socket.listener.accept() => accepted,
        };
        match accepted {
            Ok((stream, _)) => {
                connections.spawn(connection(stream, server.clone()));
                reserve = reserve.or_else(spare);
            }
            // One descriptor is kept back, so that a person can still ask what is wrong.
            Err(error) if is_exhausted(&error) && reserve.take().is_some() => {}
            Err(error) => {
                tracing::warn!(target: "stado::mesh", error = %error, "control_accept_failed");
                tokio::time::sleep(PAUSE).await;
                reserve = reserve.or_else(spare);
            }
        }
    }
    drop(socket);
    stop.cancelled().await;
    connections.close();
    let _ = tokio::time::timeout(DRAIN, connections.wait()).await;
}

async fn connection(stream: UnixStream, server: Server) {
    let own = rustix::process::geteuid().as_raw();
    let peer = stream.peer_cred().map(|peer| peer.uid()).ok();
    let allowed = peer.is_some_and(|peer| may_use(peer, own));
    let stop = server.stop.clone();
    let service = service_fn(move |request| {
        let server = server.clone();
        async move {
            if !allowed {
                return Ok::<_, Infallible>(errors::forbidden("this socket serves its owner and root only"));
            }
            Ok(handlers::answer(server, request, peer).await)
        }
    });
    let http = http1::Builder::new()
        .title_case_headers(true)
        .half_close(true)
        .serve_connection(TokioIo::new(stream), service)
        .with_upgrades();
    let mut http = std::pin::pin!(http);
    tokio::select! {
        _ = &mut http => return,
        () = stop.cancelled() => {}
    }
    http.as_mut().graceful_shutdown();
    let _ = http.await;
}

/// The socket's mode says so already; a descriptor can be passed on all the same.
fn may_use(peer: u32, own: u32) -> bool {
    peer == own || peer == 0
}

fn spare() -> Option<File> {
    File::open("/dev/null").ok()
}

fn is_exhausted(error: &io::Error) -> bool {
    let code = error.raw_os_error();
    [rustix::io::Errno::MFILE, rustix::io::Errno::NFILE].iter().any(|errno| code == Some(errno.raw_os_error()))
}

#[cfg(test)]
mod tests;

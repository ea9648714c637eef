//! The mesh of this host, when it is ours to serve.
use super::DaemonError;
use super::config::Config;
use super::outside::Outside;
use super::part::{Part, Place, Slot};
use super::router_side::RouterSide;
use crate::api::control;
use crate::api::metrics::MetricsListener;
use crate::conn;
use crate::docker::Docker;
use crate::mesh::{Allocator, Mesh};
use stado_fleet::link::Link;
use std::path::PathBuf;
use std::sync::Arc;
use tokio_util::sync::CancellationToken;
use tokio_util::task::AbortOnDropHandle;

/// A running mesh with its control socket.
pub(super) struct MeshSide {
    pub(super) mesh: Arc<Mesh>,
    pub(super) socket: PathBuf,
    pub(super) router: Option<RouterSide>,
    _metrics: Part<MetricsListener>,
    stop: CancellationToken,
    serving: AbortOnDropHandle<()>,
    docker: Option<Docker>,
}

impl MeshSide {
    /// Takes socket and state, binds the remembered frontends, and reserves what `reserve` asks for before the first
    /// registration is answered. `link` is the way to engines behind `ssh://`, `outside` where a fleet is told.
    pub(super) fn start(
        config: &Config,
        context: conn::Context,
        allocator: Arc<Allocator>,
        link: Option<Link>,
        outside: Option<Outside>,
        reserve: impl FnOnce(),
    ) -> Result<Self, DaemonError> {
        control::probe(&config.mesh.socket)?;
        let (own, routed) = (context.own.clone(), context.clone());
        let mesh = Mesh::start_over(config.mesh.clone(), context, allocator)?;
        reserve();
        let router = config.http.as_ref();
        let router = router.map(|http| RouterSide::start(http, &config.inherited, &mesh, routed, outside.as_ref()));
        let router = router.transpose()?;
        let socket = control::bind_socket(&config.mesh.socket)?;
        let (path, stop) = (socket.path().to_owned(), CancellationToken::new());
        let serving = AbortOnDropHandle::new(tokio::spawn(control::serve(socket, mesh.clone(), stop.clone())));
        if let Some(outside) = &outside {
            outside.follow_refused(mesh.refused());
        }
        let metrics = config.metrics_bind.map_or_else(Part::none, |bind| metrics(bind, mesh.clone(), own, outside));
        let docker = config.docker.clone().map(|docker| Docker::start(docker, mesh.clone(), link));
        Ok(Self { mesh, socket: path, router, _metrics: metrics, stop, serving, docker })
    }

    /// Stops accepting everywhere and lets streams end within the mesh's own shutdown timeout. The socket answers until
    /// the streams have ended, so that a person can still look, and is removed last.
    pub(super) async fn close(self) {
        if let Some(docker) = self.docker {
            docker.close().await;
        }
        let router = async {
            if let Some(router) = self.router {
                router.close(self.mesh.tuning().shutdown_timeout).await;
            }
        };
        tokio::join!(router, self.mesh.shutdown());
        self.stop.cancel();
        // An error would mean that the task panicked; its socket is closed then as well.
        let _ = self.serving.await;
    }
}

/// The metrics page; a port that is taken is waited for.
fn metrics(
    bind: std::net::SocketAddr,
    mesh: Arc<Mesh>,
    own: conn::OwnListeners,
    outside: Option<Outside>,
) -> Part<MetricsListener> {
    let start = move || {
        let text = mesh.clone();
        let page = MetricsListener::start(bind, Arc::new(move || text.render_metrics()), own.clone());
        page.map_err(|error| conn::refused(&error))
    };
    let first = start();
    if let Err(reason) = &first {
        tracing::warn!(target: "stado::mesh", error = reason, "metrics_not_served");
    }
    let place = Place { what: "metrics", bind: bind.to_string() };
    Part::start(Slot::new(), first, place, outside, move || std::future::ready(start()))
}

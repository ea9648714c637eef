//! The mesh of this host, when it is ours to serve.
use super::DaemonError;
use super::config::Config;
use super::outside::Outside;
use super::part::{Part, Place, Slot};
use super::router_side::RouterSide;
use crate::api::control::{self, ControlSocket, Door, Kept};
use crate::api::metrics::MetricsListener;
use crate::conn::{self, Bound, OwnListeners};
use crate::docker::{self, Containers, Docker};
use crate::mesh::{Allocator, Mesh};
use stado_fleet::link::Link;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::{Arc, Weak};
use tokio::net::UnixListener;
use tokio_util::sync::CancellationToken;
use tokio_util::task::AbortOnDropHandle;

/// A running mesh with its control socket.
pub(super) struct MeshSide {
    pub(super) mesh: Arc<Mesh>,
    pub(super) socket: PathBuf,
    pub(super) router: Option<RouterSide>,
    pub(super) metrics: Part<MetricsListener>,
    /// The listener of the socket, while it is open.
    pub(super) control: Weak<UnixListener>,
    /// Whether the socket's file outlives it.
    pub(super) kept: Kept,
    stop: CancellationToken,
    serving: AbortOnDropHandle<()>,
    /// How containers are watched; the watcher, while it runs.
    watching: Option<(docker::Config, Option<Link>)>,
    pub(super) docker: Option<Docker>,
}

/// What a mesh is served on.
pub(super) struct On {
    pub(super) mesh: Arc<Mesh>,
    pub(super) socket: ControlSocket,
    /// The metrics page's listeners, when another process handed them over.
    pub(super) metrics: Option<Bound>,
    /// Containers that another process watched.
    pub(super) containers: Containers,
    pub(super) router: Option<RouterSide>,
}

/// Who else a mesh has to do with.
#[derive(Clone)]
pub(super) struct Others {
    /// The way to engines behind `ssh://`.
    pub(super) link: Option<Link>,
    /// Where a fleet is told.
    pub(super) outside: Option<Outside>,
    /// Where processes go that take over.
    pub(super) door: Door,
}

impl MeshSide {
    /// Takes socket and state, binds the remembered frontends, and reserves what `reserve` asks for before the first
    /// registration is answered.
    pub(super) fn start(
        config: &Config,
        context: conn::Context,
        allocator: Arc<Allocator>,
        others: Others,
        reserve: impl FnOnce(),
    ) -> Result<Self, DaemonError> {
        control::probe(&config.mesh.socket)?;
        let (own, routed) = (context.own.clone(), context.clone());
        let mesh = Mesh::start_over(config.mesh.clone(), context, allocator)?;
        reserve();
        let router = config.http.as_ref();
        let router =
            router.map(|http| RouterSide::start(http, &config.inherited, &mesh, routed, others.outside.as_ref()));
        let router = router.transpose()?;
        let socket = control::bind_socket(&config.mesh.socket)?;
        let on = On { mesh, socket, metrics: None, containers: Vec::new(), router };
        Ok(Self::serve(config, on, own, others))
    }

    /// Serves a mesh on its socket, with the metrics page and the watch over containers that are configured.
    pub(super) fn serve(config: &Config, on: On, own: OwnListeners, others: Others) -> Self {
        let On { mesh, socket, metrics: page, containers, router } = on;
        let Others { link, outside, door } = others;
        let (path, control, kept) = (socket.path().to_owned(), socket.lendable(), socket.kept());
        let stop = CancellationToken::new();
        let view = outside.as_ref().and_then(|outside| outside.view.clone());
        let serving = tokio::spawn(control::serve(socket, mesh.clone(), stop.clone(), Some(door), view));
        if let Some(outside) = &outside {
            outside.follow_refused(mesh.refused());
        }
        let metrics =
            config.metrics_bind.map_or_else(Part::none, |bind| metrics(bind, page, mesh.clone(), own, outside));
        let watching = config.docker.clone().map(|docker| (docker, link));
        if watching.is_none() && !containers.is_empty() {
            mesh.abandon_containers("this daemon does not watch containers");
        }
        let serving = AbortOnDropHandle::new(serving);
        let mut side =
            Self { mesh, socket: path, metrics, control, kept, stop, serving, watching, docker: None, router };
        side.watch(containers);
        side
    }

    /// Watches containers, if that is configured, and goes on with what was watched before.
    pub(super) fn watch(&mut self, containers: Containers) {
        let watching = self.watching.clone();
        self.docker = watching.map(|(config, link)| Docker::resume(config, self.mesh.clone(), link, containers));
    }

    /// Stops accepting everywhere and lets streams end within the mesh's own shutdown timeout. The socket answers until
    /// the streams have ended, so that a person can still look, and is removed last.
    pub(super) async fn close(mut self) {
        if let Some(docker) = self.docker.take() {
            docker.close().await;
        }
        let router = async {
            if let Some(router) = self.router.take() {
                router.close(self.mesh.tuning().shutdown_timeout).await;
            }
        };
        tokio::join!(router, self.mesh.shutdown());
        self.end().await;
    }

    /// The control API ends with what it is answering now.
    pub(super) async fn end(self) {
        self.stop.cancel();
        // An error would mean that the task panicked; its socket is closed then as well.
        let _ = self.serving.await;
    }
}

/// The metrics page, on the listeners that were handed over if they are the ones; a port that is taken is waited for.
fn metrics(
    bind: SocketAddr,
    handed: Option<Bound>,
    mesh: Arc<Mesh>,
    own: OwnListeners,
    outside: Option<Outside>,
) -> Part<MetricsListener> {
    let start = move |handed: Option<Bound>| {
        let text = mesh.clone();
        let text = Arc::new(move || text.render_metrics());
        match handed {
            Some(bound) => Ok(MetricsListener::start_on(bound, text, own.clone())),
            None => MetricsListener::start(bind, text, own.clone()).map_err(|error| conn::refused(&error)),
        }
    };
    let first = start(handed.filter(|bound| bound.addr == bind));
    if let Err(reason) = &first {
        tracing::warn!(target: "stado::mesh", error = reason, "metrics_not_served");
    }
    let place = Place { what: "metrics", bind: bind.to_string() };
    Part::start(Slot::new(), first, place, outside, move || std::future::ready(start(None)))
}

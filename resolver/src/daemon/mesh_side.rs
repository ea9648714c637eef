//! The mesh of this host, when it is ours to serve.
use super::DaemonError;
use super::config::Config;
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
    /// Why the metrics page is not served, when it was asked for.
    pub(super) metrics_unserved: Option<String>,
    _metrics: Option<MetricsListener>,
    stop: CancellationToken,
    serving: AbortOnDropHandle<()>,
    docker: Option<Docker>,
}

impl MeshSide {
    /// Takes socket and state, binds the remembered frontends, and reserves what `reserve` asks for before the first
    /// registration is answered. `link` is the way to engines behind `ssh://`.
    pub(super) fn start(
        config: &Config,
        context: conn::Context,
        link: Option<Link>,
        reserve: impl FnOnce(&Arc<Allocator>),
    ) -> Result<Self, DaemonError> {
        control::probe(&config.mesh.socket)?;
        let own = context.own.clone();
        let mesh = Mesh::start(config.mesh.clone(), context)?;
        reserve(&mesh.allocator());
        let socket = control::bind_socket(&config.mesh.socket)?;
        let (path, stop) = (socket.path().to_owned(), CancellationToken::new());
        let serving = AbortOnDropHandle::new(tokio::spawn(control::serve(socket, mesh.clone(), stop.clone())));
        let text = mesh.clone();
        let page =
            config.metrics_bind.map(|bind| MetricsListener::start(bind, Arc::new(move || text.render_metrics()), own));
        let (metrics, refused) = match page {
            None => (None, None),
            Some(Ok(listener)) => (Some(listener), None),
            Some(Err(error)) => (None, Some(conn::refused(&error))),
        };
        if let Some(reason) = &refused {
            tracing::warn!(target: "stado::mesh", error = reason, "metrics_not_served");
        }
        let docker = config.docker.clone().map(|docker| Docker::start(docker, mesh.clone(), link));
        Ok(Self { mesh, socket: path, metrics_unserved: refused, _metrics: metrics, stop, serving, docker })
    }

    /// Stops accepting everywhere and lets streams end within the mesh's own shutdown timeout. The socket answers until
    /// the streams have ended, so that a person can still look, and is removed last.
    pub(super) async fn close(self) {
        if let Some(docker) = self.docker {
            docker.close().await;
        }
        self.mesh.shutdown().await;
        self.stop.cancel();
        // An error would mean that the task panicked; its socket is closed then as well.
        let _ = self.serving.await;
    }
}

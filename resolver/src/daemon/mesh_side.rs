//! The mesh of this host, when it is ours to serve.
use super::DaemonError;
use super::config::Config;
use crate::api::control;
use crate::conn;
use crate::mesh::{Allocator, Mesh};
use std::path::PathBuf;
use std::sync::Arc;
use tokio_util::sync::CancellationToken;
use tokio_util::task::AbortOnDropHandle;

/// A running mesh with its control socket.
pub(super) struct MeshSide {
    pub(super) mesh: Arc<Mesh>,
    pub(super) socket: PathBuf,
    stop: CancellationToken,
    serving: AbortOnDropHandle<()>,
}

impl MeshSide {
    /// Takes socket and state, binds the remembered frontends, and reserves what `reserve` asks for before the first
    /// registration is answered.
    pub(super) fn start(
        config: &Config,
        context: conn::Context,
        reserve: impl FnOnce(&Arc<Allocator>),
    ) -> Result<Self, DaemonError> {
        control::probe(&config.mesh.socket)?;
        let mesh = Mesh::start(config.mesh.clone(), context)?;
        mesh.set_docker_status(config.mesh_docker);
        reserve(&mesh.allocator());
        let socket = control::bind_socket(&config.mesh.socket)?;
        let (path, stop) = (socket.path().to_owned(), CancellationToken::new());
        let serving = AbortOnDropHandle::new(tokio::spawn(control::serve(socket, mesh.clone(), stop.clone())));
        Ok(Self { mesh, socket: path, stop, serving })
    }

    /// Stops accepting everywhere and lets streams end within the mesh's own shutdown timeout. The socket answers until
    /// the streams have ended, so that a person can still look, and is removed last.
    pub(super) async fn close(self) {
        self.mesh.shutdown().await;
        self.stop.cancel();
        // An error would mean that the task panicked; its socket is closed then as well.
        let _ = self.serving.await;
    }
}

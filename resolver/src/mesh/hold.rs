//! The port of a name (mesh contract §1.5, step 11): the one that is bound already, or one that is bound now and saved
//! before it is promised.
use super::allocator::{Allocation, Stage, Wanted};
use super::error::Refusal;
use super::record::Publication;
use super::{Mesh, owner_label};
use crate::conn::{self, Bound};
use stado_fleet::disk::DiskError;
use stado_fleet::name::ServiceName;
use std::net::SocketAddr;
use std::sync::Arc;

/// A frontend port: held already, or bound just now and not serving yet.
pub(super) struct Port {
    pub(super) addr: SocketAddr,
    pub(super) fresh: Option<Bound>,
}

impl Mesh {
    /// The port for `claim`, bound and durable.
    pub(super) async fn hold_port(self: &Arc<Self>, claim: &Publication, preferred: i64) -> Result<Port, Refusal> {
        if let Some(addr) = self.frontends.addr(&claim.name) {
            return Ok(Port { addr, fresh: None });
        }
        let remembered = self.ports.get(claim.name.as_str());
        let found = self.allocate(claim, remembered, preferred).await?;
        let addr = self.allocator.addr(found.port);
        if remembered != Some(i64::from(found.port)) {
            self.make_durable(&claim.name, found.port, remembered).await?;
        }
        let event = if found.stage == Stage::Remembered { "frontend_reused" } else { "frontend_allocated" };
        tracing::info!(target: "stado::mesh", service = %claim.name, frontend = %addr, "{event}");
        self.metrics.allocation(found.stage);
        Ok(Port { addr, fresh: Some(found.bound) })
    }

    async fn allocate(
        self: &Arc<Self>,
        claim: &Publication,
        remembered: Option<i64>,
        preferred: i64,
    ) -> Result<Allocation, Refusal> {
        let (mesh, name, backend) = (self.clone(), claim.name.clone(), claim.backend.port);
        let remembered = remembered.and_then(|port| u16::try_from(port).ok()).filter(|port| *port != 0);
        let work = tokio::task::spawn_blocking(move || {
            let owner = owner_label(&name);
            let wanted = Wanted { owner: &owner, name: name.as_str(), remembered, preferred };
            let avoid = |port| port == backend || mesh.read().registry.is_backend_port(port);
            let found = mesh.allocator.allocate(wanted, avoid);
            if let (Some(port), Some(stage)) = (remembered, found.as_ref().map(|found| found.stage))
                && stage != Stage::Remembered
            {
                mesh.warn_remembered(&name, port);
            }
            found
        });
        let (min, max) = self.allocator.range();
        work.await.map_err(|_| Refusal::Internal)?.ok_or(Refusal::Exhausted { min, max })
    }

    fn warn_remembered(&self, name: &ServiceName, port: u16) {
        let addr = self.allocator.addr(port);
        // Asked once more only to learn who holds it; whatever it binds is dropped at once.
        let why = conn::bind(addr, conn::Families::AtLeastOne).err().map(|error| conn::refused(&error));
        let why = why.unwrap_or_else(|| "it was taken for a moment, or is a backend's".into());
        tracing::warn!(target: "stado::mesh", service = %name, frontend = %addr, error = why, "frontend_remembered_unavailable");
    }

    /// Saves the assignment. On failure memory is as it was and the port is free again.
    async fn make_durable(&self, name: &ServiceName, port: u16, before: Option<i64>) -> Result<(), Refusal> {
        let owner = owner_label(name);
        let change = self.ports.set(name.as_str(), Some(i64::from(port)));
        if let Err(error) = self.ports.persist(change).await {
            self.ports.set(name.as_str(), before);
            self.allocator.release(port, &owner);
            self.save_failed(&error);
            return Err(Refusal::NotDurable { step: "allocate frontend", source: error });
        }
        if let Some(before) = before.and_then(|port| u16::try_from(port).ok()) {
            self.allocator.release(before, &owner);
        }
        Ok(())
    }

    pub(super) fn save_failed(&self, error: &DiskError) {
        self.metrics.save_failed();
        tracing::warn!(target: "stado::mesh", error = %error, "state_save_failed");
    }
}

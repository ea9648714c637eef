//! What a person does to a service: forget it, pin it to a port, give it another name.
use super::allocator::ClaimError;
use super::error::Refusal;
use super::record::{Kind, Record};
use super::{Mesh, names, owner_label};
use stado_fleet::name::ServiceName;
use stado_fleet::wire::Service;
use std::sync::Arc;

impl Mesh {
    /// `DELETE /v1/services/{name}`: forgets the service, its port and its hostname. A ready one only when `force` says
    /// so; its lease ends with it, and a producer that still lives registers again at its next heartbeat.
    pub async fn forget(self: &Arc<Self>, name: &str, force: bool) -> Result<(), Refusal> {
        let (mesh, name) = (self.clone(), known_shape(name)?);
        let turn = self.changes.join();
        let work = async move {
            let _turn = turn;
            mesh.forget_now(&name, force).await
        };
        tokio::spawn(work).await.unwrap_or(Err(Refusal::Internal))
    }

    /// `POST /v1/services/{name}/pin`: moves the frontend of a tcp service to `port`. Open streams go on.
    pub async fn pin(self: &Arc<Self>, name: &str, port: i64) -> Result<Service, Refusal> {
        let (mesh, name) = (self.clone(), known_shape(name)?);
        let number = u16::try_from(port).ok().filter(|port| *port != 0);
        let port = number.ok_or_else(|| Refusal::Request(format!("port {port} out of range")))?;
        let turn = self.changes.join();
        let work = async move {
            let _turn = turn;
            mesh.pin_now(&name, port).await
        };
        tokio::spawn(work).await.unwrap_or(Err(Refusal::Internal))
    }

    /// `POST /v1/services/{name}/rename`: the service keeps its address, backend and lease under another name.
    pub async fn rename(self: &Arc<Self>, name: &str, to: &str) -> Result<Service, Refusal> {
        let (mesh, name, to) = (self.clone(), known_shape(name)?, names::service_name(to)?);
        let turn = self.changes.join();
        let work = async move {
            let _turn = turn;
            mesh.rename_now(&name, &to).await
        };
        tokio::spawn(work).await.unwrap_or(Err(Refusal::Internal))
    }

    async fn forget_now(&self, name: &ServiceName, force: bool) -> Result<(), Refusal> {
        let _turn = self.names.lock(name.as_str()).await;
        self.end_lapsed(name);
        let record = self.record(name)?;
        if record.backend.is_some() && !force {
            return Err(Refusal::Conflict(format!(
                "service {name} is ready, held by {}; stop its producer first, or repeat with --force (?force=true in the API)",
                record.owner_key
            )));
        }
        self.save_places(name, None, None).await?;
        self.forget_exposed(name).await?;
        {
            let mut core = self.write();
            core.leases.end(&record.producer_id);
            core.registry.forget(name);
        }
        self.retire(self.frontends.take(name)).await;
        self.allocator.release_all(&owner_label(name));
        tracing::info!(target: "stado::mesh", service = %name, "service_forgotten");
        self.removed(name, None);
        Ok(())
    }

    async fn pin_now(self: &Arc<Self>, name: &ServiceName, port: u16) -> Result<Service, Refusal> {
        let _turn = self.names.lock(name.as_str()).await;
        let record = self.record(name)?;
        if record.kind == Kind::Http {
            return Err(Refusal::Request(format!("service {name} is http: it has a hostname, not a port of its own")));
        }
        let addr = self.allocator.addr(port);
        if self.frontends.addr(name) == Some(addr) {
            return self.resolve(name.as_str());
        }
        let bound = self.claim_port(name, port).await?;
        let before = self.ports.get(name.as_str());
        if let Err(error) = self.save_places(name, Some(i64::from(port)), None).await {
            self.allocator.release(port, &owner_label(name));
            return Err(error);
        }
        if let Some(before) = before.and_then(|port| u16::try_from(port).ok()).filter(|before| *before != port) {
            self.allocator.release(before, &owner_label(name));
        }
        let old = self.frontends.take(name);
        let now = self.clock.now();
        self.write().registry.move_frontend(name, addr, now);
        self.frontends.start(name, bound, self.current_backend(name));
        self.retire(old).await;
        tracing::info!(target: "stado::mesh", service = %name, frontend = %addr, "service_pinned");
        self.settle(name);
        self.resolve(name.as_str())
    }

    async fn claim_port(self: &Arc<Self>, name: &ServiceName, port: u16) -> Result<crate::conn::Bound, Refusal> {
        if self.read().registry.is_backend_port(port) {
            return Err(Refusal::Conflict(format!("port {port} is where the producer of a service listens")));
        }
        let (allocator, owner) = (self.allocator(), owner_label(name));
        let claimed = tokio::task::spawn_blocking(move || allocator.claim(port, &owner)).await;
        claimed.map_err(|_| Refusal::Internal)?.map_err(|error| match error {
            ClaimError::Kept(holder) => {
                Refusal::Conflict(format!("port {port} is kept for {holder}; forget or pin that one first"))
            }
            ClaimError::Busy(error) => Refusal::Busy(error),
        })
    }

    async fn rename_now(&self, from: &ServiceName, to: &ServiceName) -> Result<Service, Refusal> {
        let _turn = self.names.lock_all(&[from.as_str(), to.as_str()]).await;
        let record = self.record(from)?;
        if self.read().registry.get(to).is_some() {
            return Err(Refusal::Conflict(format!(
                "service {to} already exists; forget it first, or choose another name"
            )));
        }
        let (port, host) = (self.ports.get(from.as_str()), record.hostname.clone());
        self.save_places(to, port, host.clone()).await?;
        if let Err(error) = self.save_places(from, None, None).await {
            self.ports.set(to.as_str(), None);
            self.hosts.set(to.as_str(), None);
            return Err(error);
        }
        self.rename_exposed(from, to).await?;
        {
            let mut core = self.write();
            core.registry.rename(from, to)?;
            core.leases.rename(from, to);
        }
        self.allocator.transfer(&owner_label(from), &owner_label(to));
        self.frontends.rename(from, to, self.current_backend(to)).await;
        tracing::info!(target: "stado::mesh", service = %from, renamed_to = %to, "service_renamed");
        self.removed(from, Some(to.clone()));
        self.settle(to);
        self.resolve(to.as_str())
    }

    /// Saves what is remembered of `name`; on failure memory is as it was.
    async fn save_places(&self, name: &ServiceName, port: Option<i64>, host: Option<String>) -> Result<(), Refusal> {
        let name = name.as_str();
        let (old_port, old_host) = (self.ports.get(name), self.hosts.get(name));
        let mut saved = Ok(());
        if old_port != port {
            saved = self.ports.persist(self.ports.set(name, port)).await;
        }
        if saved.is_ok() && old_host != host {
            saved = self.hosts.persist(self.hosts.set(name, host)).await;
        }
        let Err(source) = saved else { return Ok(()) };
        self.ports.set(name, old_port);
        self.hosts.set(name, old_host);
        self.save_failed(&source);
        Err(Refusal::NotDurable { step: "save the change", source })
    }

    pub(super) fn record(&self, name: &ServiceName) -> Result<Record, Refusal> {
        self.read().registry.get(name).cloned().ok_or_else(|| Refusal::NoService(name.to_string()))
    }
}

/// A name on a path is not validated: an impossible one is unknown.
pub(super) fn known_shape(name: &str) -> Result<ServiceName, Refusal> {
    name.parse().map_err(|_| Refusal::NoService(name.to_owned()))
}

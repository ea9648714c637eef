//! A port of its own for an http service, beside its hostname: what another host of a fleet dials. It leads to the service
//! whatever the request calls it, and is remembered like the ports of tcp services.
use super::allocator::{Allocation, Wanted};
use super::error::Refusal;
use super::record::Kind;
use super::{Mesh, manage, owner_label};
use stado_fleet::name::ServiceName;
use stado_fleet::wire::Frontend;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;

impl Mesh {
    /// `POST /v1/services/{name}/expose`: the address that other hosts may dial. A tcp service has it already.
    pub async fn expose(self: &Arc<Self>, name: &str) -> Result<Frontend, Refusal> {
        let (mesh, name) = (self.clone(), manage::known_shape(name)?);
        let turn = self.changes.join();
        let work = async move {
            let _turn = turn;
            mesh.expose_now(&name).await
        };
        tokio::spawn(work).await.unwrap_or(Err(Refusal::Internal))
    }

    /// `DELETE /v1/services/{name}/expose`: an http service is reached by its hostname alone again. Its streams go on.
    pub async fn conceal(self: &Arc<Self>, name: &str) -> Result<(), Refusal> {
        let (mesh, name) = (self.clone(), manage::known_shape(name)?);
        let turn = self.changes.join();
        let work = async move {
            let _turn = turn;
            mesh.conceal_now(&name).await
        };
        tokio::spawn(work).await.unwrap_or(Err(Refusal::Internal))
    }

    async fn expose_now(self: &Arc<Self>, name: &ServiceName) -> Result<Frontend, Refusal> {
        let _turn = self.names.lock(name.as_str()).await;
        let record = self.record(name)?;
        if record.kind == Kind::Tcp {
            return record.frontend.map(shown).ok_or_else(|| Refusal::NoService(name.to_string()));
        }
        if let Some(addr) = self.frontends.addr(name) {
            return Ok(shown(addr));
        }
        let Allocation { port, bound, .. } = self.port_beside(name).await?;
        let before = self.exposed.get(name.as_str());
        if before != Some(i64::from(port)) {
            let change = self.exposed.set(name.as_str(), Some(i64::from(port)));
            if let Err(source) = self.exposed.persist(change).await {
                self.exposed.set(name.as_str(), before);
                self.allocator.release(port, &owner_label(name));
                self.save_failed(&source);
                return Err(Refusal::NotDurable { step: "allocate frontend", source });
            }
        }
        let addr = self.allocator.addr(port);
        tracing::info!(target: "stado::mesh", service = %name, frontend = %addr, "service_exposed");
        self.frontends.start(name, bound, self.current_backend(name));
        Ok(shown(addr))
    }

    async fn port_beside(self: &Arc<Self>, name: &ServiceName) -> Result<Allocation, Refusal> {
        let remembered = self.exposed.get(name.as_str()).or_else(|| self.ports.get(name.as_str()));
        let remembered = remembered.and_then(|port| u16::try_from(port).ok()).filter(|port| *port != 0);
        let (mesh, name) = (self.clone(), name.clone());
        let work = tokio::task::spawn_blocking(move || {
            let owner = owner_label(&name);
            let wanted = Wanted { owner: &owner, name: name.as_str(), remembered, preferred: 0 };
            mesh.allocator.allocate(wanted, |port| mesh.read().registry.is_backend_port(port))
        });
        let (min, max) = self.allocator.range();
        work.await.map_err(|_| Refusal::Internal)?.ok_or(Refusal::Exhausted { min, max })
    }

    async fn conceal_now(&self, name: &ServiceName) -> Result<(), Refusal> {
        let _turn = self.names.lock(name.as_str()).await;
        let Some(port) = self.exposed.get(name.as_str()) else { return Ok(()) };
        self.forget_exposed(name).await?;
        self.retire(self.frontends.take(name)).await;
        if let Ok(port) = u16::try_from(port) {
            self.allocator.release(port, &owner_label(name));
        }
        tracing::info!(target: "stado::mesh", service = %name, "service_concealed");
        Ok(())
    }

    /// The name has no port beside its hostname any more, in memory and on disk. What is bound is the caller's to close.
    pub(super) async fn forget_exposed(&self, name: &ServiceName) -> Result<(), Refusal> {
        self.save_exposed(name, None).await
    }

    /// The port beside the hostname goes on under another name.
    pub(super) async fn rename_exposed(&self, from: &ServiceName, to: &ServiceName) -> Result<(), Refusal> {
        let Some(port) = self.exposed.get(from.as_str()) else { return Ok(()) };
        self.save_exposed(to, Some(port)).await?;
        self.save_exposed(from, None).await
    }

    /// A name that was http in an earlier run and is tcp now keeps the port that other hosts know.
    pub(super) async fn adopt_exposed(&self, name: &ServiceName) -> Result<(), Refusal> {
        let Some(port) = self.exposed.get(name.as_str()) else { return Ok(()) };
        let change = self.ports.set(name.as_str(), Some(port));
        if let Err(source) = self.ports.persist(change).await {
            return Err(Refusal::NotDurable { step: "allocate frontend", source });
        }
        self.save_exposed(name, None).await
    }

    async fn save_exposed(&self, name: &ServiceName, port: Option<i64>) -> Result<(), Refusal> {
        let before = self.exposed.get(name.as_str());
        if before == port {
            return Ok(());
        }
        let change = self.exposed.set(name.as_str(), port);
        if let Err(source) = self.exposed.persist(change).await {
            self.exposed.set(name.as_str(), before);
            self.save_failed(&source);
            return Err(Refusal::NotDurable { step: "save the change", source });
        }
        Ok(())
    }

    /// Whether the name keeps a port beside its hostname, whoever stands behind it.
    pub(super) fn is_exposed(&self, name: &ServiceName) -> bool {
        self.exposed.get(name.as_str()).is_some()
    }
}

fn shown(addr: SocketAddr) -> Frontend {
    Frontend { host: addr.ip().to_string(), port: addr.port(), url: String::new() }
}

/// `exposed.json` beside `state.json`, in the way of `hostnames.json`.
pub(super) fn path(state: &Path) -> PathBuf {
    match state.file_stem().and_then(|stem| stem.to_str()) {
        None | Some("state") => state.with_file_name("exposed.json"),
        Some(stem) => state.with_file_name(format!("{stem}.exposed.json")),
    }
}

#[cfg(test)]
mod tests {
    use super::super::rig::{Home, echo, register, request};
    use super::*;
    use stado_fleet::wire::RegisterRequest;
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    use tokio::net::TcpStream;

    fn http(name: &str, backend: u16) -> RegisterRequest {
        RegisterRequest { kind: "http".into(), ..request(name, backend) }
    }

    async fn asks(port: u16) -> std::io::Result<String> {
        let mut stream = TcpStream::connect(("127.0.0.1", port)).await?;
        stream.write_all(b"whoever asks").await?;
        let mut answer = [0; 12];
        stream.read_exact(&mut answer).await?;
        Ok(String::from_utf8_lossy(&answer).into_owned())
    }

    #[tokio::test]
    async fn an_http_service_has_a_port_that_outlives_its_producer_and_its_daemon() {
        let home = Home::new();
        let mesh = home.start();
        let first = mesh.register(http("web", echo().await), None).await.unwrap();
        let port = mesh.expose("web").await.unwrap().port;
        assert!((home.first_port..home.first_port + super::super::rig::PORTS).contains(&port));
        assert_eq!(mesh.expose("web").await.unwrap().port, port, "once exposed, always there");
        assert_eq!(asks(port).await.unwrap(), "whoever asks");
        assert_eq!(mesh.resolve("web").unwrap().frontend.port, 0, "people are given the hostname");

        mesh.deregister(&first.registration_id, Some(&first.lease_token)).unwrap();
        assert!(asks(port).await.is_err(), "nobody stands behind it");
        mesh.register(http("web", echo().await), None).await.unwrap();
        assert_eq!(asks(port).await.unwrap(), "whoever asks");

        mesh.shutdown().await;
        drop(mesh);
        home.until_free();
        let mesh = home.start();
        assert!(TcpStream::connect(("127.0.0.1", port)).await.is_ok(), "bound before its producer is back");
        mesh.register(http("web", echo().await), None).await.unwrap();
        assert_eq!(asks(port).await.unwrap(), "whoever asks");
        assert_eq!(mesh.expose("web").await.unwrap().port, port);
    }

    #[tokio::test]
    async fn what_is_concealed_or_forgotten_is_closed_and_a_new_name_keeps_the_port() {
        let home = Home::new();
        let mesh = home.start();
        mesh.register(http("web", echo().await), None).await.unwrap();
        let port = mesh.expose("web").await.unwrap().port;
        mesh.rename("web", "site").await.unwrap();
        assert_eq!(asks(port).await.unwrap(), "whoever asks");
        assert_eq!(mesh.expose("site").await.unwrap().port, port);
        mesh.conceal("site").await.unwrap();
        assert!(TcpStream::connect(("127.0.0.1", port)).await.is_err());
        mesh.conceal("site").await.unwrap();

        let port = mesh.expose("site").await.unwrap().port;
        mesh.forget("site", true).await.unwrap();
        assert!(TcpStream::connect(("127.0.0.1", port)).await.is_err());
        assert!(matches!(mesh.expose("site").await, Err(Refusal::NoService(_))));
    }

    #[tokio::test]
    async fn a_tcp_service_is_exposed_as_it_is() {
        let home = Home::new();
        let mesh = home.start();
        let frontend = register(&mesh, "db").await.frontend;
        assert_eq!(mesh.expose("db").await.unwrap(), frontend);
        mesh.conceal("db").await.unwrap();
        assert_eq!(mesh.resolve("db").unwrap().frontend, frontend);
    }
}

//! What the fleet's side asks of the names that this host publishes.
use super::Mesh;
use super::record::Kind;
use stado_fleet::name::ServiceName;
use std::collections::BTreeSet;
use std::net::SocketAddr;
use std::sync::PoisonError;

/// A name as other hosts would reach it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Offer {
    /// Name.
    pub name: String,
    /// The port of a tcp service.
    pub frontend: Option<SocketAddr>,
    /// The hostname of an http service.
    pub hostname: Option<String>,
    /// What it speaks.
    pub app_protocol: String,
    /// Why it has no backend, and since when; `None` while it has one.
    pub absent: Option<(String, jiff::Timestamp)>,
    /// Whether its producer asks for it to be offered.
    pub asks: bool,
}

impl Mesh {
    /// Keeps the frontends of exactly these names bound while nobody stands behind them.
    pub fn keep_offered(&self, names: BTreeSet<String>) {
        *self.offered.lock().unwrap_or_else(PoisonError::into_inner) = names;
    }

    /// These names ask to be offered to the fleet, and this host does not let them.
    pub fn withhold(&self, names: BTreeSet<String>) {
        *self.withheld.lock().unwrap_or_else(PoisonError::into_inner) = names;
    }

    /// The names that were withheld last.
    pub(crate) fn withheld(&self) -> BTreeSet<String> {
        self.withheld.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Whether other hosts may dial the name's port.
    pub(super) fn is_offered(&self, name: &ServiceName) -> bool {
        self.is_exposed(name) || self.offered.lock().unwrap_or_else(PoisonError::into_inner).contains(name.as_str())
    }

    /// The names that `wanted` takes; it is told whether a name's producer asks for it.
    pub fn offers(&self, wanted: impl Fn(&str, bool) -> bool) -> Vec<Offer> {
        let core = self.read();
        let all = core.registry.iter().filter(|(name, record)| wanted(name.as_str(), record.publish));
        all.map(|(name, record)| Offer {
            name: name.to_string(),
            frontend: record.frontend.filter(|_| record.kind == Kind::Tcp),
            hostname: record.hostname.clone().filter(|_| record.kind == Kind::Http),
            app_protocol: record.app_protocol.clone(),
            absent: record.backend.is_none().then(|| (record.reason.to_string(), record.since.wall)),
            asks: record.publish,
        })
        .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::super::rig::{Home, register, until};
    use super::super::{Config, Mesh};
    use crate::mesh::rig::context;
    use std::time::Duration;
    use tokio::net::TcpStream;

    #[tokio::test]
    async fn what_other_hosts_dial_stays_bound_while_nobody_stands_behind_it() {
        let home = Home::new();
        let mesh = Mesh::start(Config { idle_grace: Duration::from_millis(1), ..home.config() }, context()).unwrap();
        let (offered, other) = (register(&mesh, "offered").await, register(&mesh, "other").await);
        mesh.keep_offered(["offered".to_owned()].into());
        for producer in [&offered, &other] {
            mesh.deregister(&producer.registration_id, Some(&producer.lease_token)).unwrap();
        }
        let closed =
            || mesh.resolve("other").unwrap().reason.is_some_and(|reason| reason.contains("its port is closed"));
        until("the other one is closed", closed).await;
        // Told first, closed right after; nobody but the allocator takes a port of this test's range.
        let refuses = || std::net::TcpStream::connect(("127.0.0.1", other.frontend.port)).is_err();
        until("nobody is let in", refuses).await;
        assert!(TcpStream::connect(("127.0.0.1", offered.frontend.port)).await.is_ok());
        mesh.keep_offered(Default::default());
        let freed =
            || mesh.resolve("offered").unwrap().reason.is_some_and(|reason| reason.contains("its port is closed"));
        until("it is closed once nobody may dial it", freed).await;
    }
}

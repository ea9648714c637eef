//! Addresses that this daemon listens on: never a backend of this daemon (proxy rule 4).
use super::super::bind::other_half;
use super::super::shared::Shared;
use super::super::{Backend, FrontendId};
use stado_fleet::name::LoopbackAddr;
use std::collections::HashMap;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::sync::{Arc, PoisonError, RwLock, Weak};

/// Every address this daemon listens on, and for what. Frontends enter and leave by themselves; whoever binds another TCP
/// listener of the daemon (the resolution API, a router) enters it too. Cheap to clone; all clones are one set.
#[derive(Debug, Clone, Default)]
pub struct OwnListeners(Arc<RwLock<HashMap<SocketAddr, Own>>>);

/// One of them.
#[derive(Debug, Clone)]
struct Own {
    purpose: Arc<str>,
    /// The frontend of a mesh service.
    frontend: Option<Weak<Shared>>,
}

impl OwnListeners {
    /// Enters an address, with what it is for in words (`service checkout.postgres`, `the resolution API`).
    pub fn enter(&self, addr: SocketAddr, purpose: Arc<str>) {
        self.put(addr, Own { purpose, frontend: None });
    }
    /// Enters a frontend. What stands behind one of the mesh can be asked for.
    pub(in crate::conn) fn enter_frontend(&self, shared: &Arc<Shared>) {
        let id = &shared.id;
        let frontend = id.consumer.is_none().then(|| Arc::downgrade(shared));
        self.put(id.bind, Own { purpose: Arc::clone(&id.service), frontend });
    }
    fn put(&self, addr: SocketAddr, own: Own) {
        self.0.write().unwrap_or_else(PoisonError::into_inner).insert(addr, own);
    }
    /// Forgets an address.
    pub fn leave(&self, addr: SocketAddr) {
        self.0.write().unwrap_or_else(PoisonError::into_inner).remove(&addr);
    }
    /// What this daemon uses `addr` for, by any of the address's names; a listener on every address of a family has them all.
    pub fn purpose(&self, addr: SocketAddr) -> Option<Arc<str>> {
        self.at(addr).map(|own| own.purpose)
    }
    /// What stands now behind the mesh frontend of this daemon at `addr`; `None` when it is no such frontend.
    ///
    /// A service that this host publishes has that frontend as its endpoint (docs/decisions/bridge.md). An adapter here does
    /// not dial it: it takes the one step that the frontend would take. The mesh never has a listener of its own daemon
    /// behind it, so there is no second step.
    pub(super) fn behind(&self, addr: LoopbackAddr) -> Option<Arc<Backend>> {
        let frontend = |addr| self.at(addr)?.frontend?.upgrade();
        addr.candidates().into_iter().find_map(frontend).map(|shared| shared.backend.load_full())
    }
    /// The mesh frontend of this daemon at `addr`.
    pub(in crate::conn) fn frontend(&self, addr: SocketAddr) -> Option<Arc<Shared>> {
        self.at(addr)?.frontend?.upgrade()
    }
    fn at(&self, addr: SocketAddr) -> Option<Own> {
        let own = self.0.read().unwrap_or_else(PoisonError::into_inner);
        let names = [Some(addr), other_half(addr), Some(everywhere(addr))];
        names.into_iter().flatten().find_map(|name| own.get(&name)).cloned()
    }
    /// Refuses `addr` as a backend of the frontend `id`, with the sentence that says why.
    pub(super) fn check(&self, addr: SocketAddr, id: &FrontendId) -> Result<(), String> {
        let service = &id.service;
        if addr == id.bind || other_half(addr) == Some(id.bind) || everywhere(addr) == id.bind {
            let bind = id.bind;
            return Err(format!(
                "service {service} resolves to {bind}, which is this adapter's own bind: the service directory must carry \
                 the address the service listens on, not the stable port published for its clients"
            ));
        }
        self.loops(addr, service).map_or(Ok(()), Err)
    }
    /// Why a service may not be at `addr`: this daemon itself listens there.
    pub(crate) fn loops(&self, addr: SocketAddr, service: &str) -> Option<String> {
        let purpose = self.purpose(addr)?;
        Some(format!(
            "service {service} resolves to {addr}, where this same daemon listens for {purpose}: name the address the service \
             itself listens on"
        ))
    }
    /// [`OwnListeners::loops`] for a service of the directory, which may be at a frontend of the mesh.
    pub(crate) fn loops_apart_from_the_mesh(&self, addr: SocketAddr, service: &str) -> Option<String> {
        self.at(addr).filter(|own| own.frontend.is_none())?;
        self.loops(addr, service)
    }
}

/// The same port on every address of the family.
fn everywhere(addr: SocketAddr) -> SocketAddr {
    let ip = if addr.is_ipv4() { IpAddr::from(Ipv4Addr::UNSPECIFIED) } else { Ipv6Addr::UNSPECIFIED.into() };
    SocketAddr::new(ip, addr.port())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_listener_of_the_daemon_is_named_by_what_it_is_for_until_it_leaves() {
        let own = OwnListeners::default();
        let at: SocketAddr = "127.0.0.1:8088".parse().unwrap();
        own.enter(at, "the HTTP router".into());
        let said = "service db resolves to [::1]:8088, where this same daemon listens for the HTTP router: name the address the \
                    service itself listens on";
        let half = "[::1]:8088".parse().unwrap();
        assert_eq!(own.loops_apart_from_the_mesh(half, "db").as_deref(), Some(said));
        own.leave(at);
        assert_eq!(own.loops_apart_from_the_mesh(half, "db"), None);
    }
}

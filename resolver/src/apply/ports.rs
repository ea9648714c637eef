//! Ports of this host's adapters, as the mesh's allocator has to know them.
use super::plan::AdapterId;
use crate::conn::Bound;
use crate::mesh::{AdapterPorts, Allocator};
use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::Arc;

/// Declared ports are kept from mesh services; adapters without a declared port get one of their own, remembered.
#[derive(Debug)]
pub struct Ports {
    allocator: Arc<Allocator>,
    remembered: AdapterPorts,
    reserved: BTreeMap<u16, String>,
}

impl Ports {
    /// Over the mesh's allocator.
    pub fn new(allocator: Arc<Allocator>, remembered: AdapterPorts) -> Self {
        Self { allocator, remembered, reserved: BTreeMap::new() }
    }

    /// Keeps the declared ports of exactly these adapters from mesh services.
    pub fn reserve<'a>(&mut self, adapters: impl Iterator<Item = &'a AdapterId>) {
        let wanted: BTreeMap<u16, String> =
            adapters.filter_map(|id| Some((id.declared?.port(), format!("adapter {id}")))).collect();
        for (port, owner) in &self.reserved {
            if wanted.get(port) != Some(owner) {
                self.allocator.release(*port, owner);
            }
        }
        for (port, owner) in &wanted {
            // A service that remembers the port keeps it; then the bind fails and says who holds it.
            self.allocator.reserve(*port, owner);
        }
        self.reserved = wanted;
    }

    /// Keeps one more port from mesh services for the daemon's whole life.
    pub fn reserve_for(&self, port: u16, owner: &str) {
        self.allocator.reserve(port, owner);
    }

    /// A port for an adapter without a declared one.
    pub async fn allocate(&self, id: &AdapterId) -> Result<Bound, String> {
        self.remembered.allocate(&id.allocation_key()).await.map_err(|error| error.to_string())
    }

    /// What is worth saying of the file in which they are remembered.
    pub fn warning(&self) -> Option<String> {
        self.remembered.warning()
    }

    /// The remembered address of an adapter without a declared one.
    pub fn remembered(&self, id: &AdapterId) -> Option<SocketAddr> {
        self.remembered.remembered(&id.allocation_key()).map(|port| self.allocator.addr(port))
    }
}

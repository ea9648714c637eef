//! Ports of adapters that the registry declares without `bind`: given by the same allocator as mesh services and
//! remembered in `~/.stado/adapter-ports.json`, keyed `service/consumer` (design, choices).
use super::allocator::{Allocator, Wanted};
use super::error::{MeshError, Refusal};
use super::state_store::Store;
use crate::conn::Bound;
use std::path::Path;
use std::sync::Arc;

/// The remembered ports of adapters.
#[derive(Debug)]
pub struct AdapterPorts {
    allocator: Arc<Allocator>,
    store: Store<i64>,
}

impl AdapterPorts {
    /// Reads the file and reserves its ports, so that no mesh service gets one of them. Call it before the mesh serves
    /// registrations. The caller holds the lock of its home; corrupt and newer files are treated as the state file is.
    pub fn open(path: &Path, allocator: Arc<Allocator>) -> Result<Self, MeshError> {
        let store = Store::open(path, "ports")?;
        for (key, port) in store.entries() {
            if let Some(port) = port_number(Some(port)) {
                allocator.reserve(port, &label(&key));
            }
        }
        Ok(Self { allocator, store })
    }

    /// Binds a port for `key` (`service/consumer`): the remembered one, else the first free one. It is durable before it
    /// is returned. The reservation stays when the [`Bound`] is dropped, until [`AdapterPorts::forget`].
    pub async fn allocate(&self, key: &str) -> Result<Bound, Refusal> {
        let (allocator, owner, name) = (self.allocator.clone(), label(key), key.to_owned());
        let before = self.store.get(key);
        let remembered = port_number(before);
        let work = tokio::task::spawn_blocking(move || {
            allocator.allocate(Wanted { owner: &owner, name: &name, remembered, preferred: 0 }, |_| false)
        });
        let (min, max) = self.allocator.range();
        let found = work.await.map_err(|_| Refusal::Internal)?.ok_or(Refusal::Exhausted { min, max })?;
        if remembered == Some(found.port) {
            return Ok(found.bound);
        }
        let change = self.store.set(key, Some(i64::from(found.port)));
        if let Err(source) = self.store.persist(change).await {
            self.store.set(key, before);
            self.allocator.release(found.port, &label(key));
            return Err(Refusal::NotDurable { step: "allocate frontend", source });
        }
        if let Some(before) = remembered {
            self.allocator.release(before, &label(key));
        }
        Ok(found.bound)
    }

    /// The port remembered for `key`, bound or not.
    pub fn remembered(&self, key: &str) -> Option<u16> {
        port_number(self.store.get(key))
    }

    /// Gives the port of `key` up for good.
    pub async fn forget(&self, key: &str) -> Result<(), Refusal> {
        let before = self.store.get(key);
        let change = self.store.set(key, None);
        if let Err(source) = self.store.persist(change).await {
            self.store.set(key, before);
            return Err(Refusal::NotDurable { step: "save the change", source });
        }
        self.allocator.release_all(&label(key));
        Ok(())
    }
}

fn port_number(port: Option<i64>) -> Option<u16> {
    port.and_then(|port| u16::try_from(port).ok()).filter(|port| *port != 0)
}

fn label(key: &str) -> String {
    format!("adapter {key}")
}

#[cfg(test)]
#[path = "adapter_ports_tests.rs"]
mod tests;

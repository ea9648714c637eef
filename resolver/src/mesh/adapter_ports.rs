//! Ports of adapters that the registry declares without `bind`: given by the same allocator as mesh services and
//! remembered in `~/.stado/adapter-ports.json`, keyed `service/consumer` (design, choices).
//!
//! A file that cannot be used stops nothing else: what is corrupt or cannot be read is set aside and said, and what has to be
//! left as it is (a newer daemon's) leaves these adapters without a port, with the reason, until it is out of the way.
use super::allocator::{Allocator, Wanted};
use super::error::{MeshError, Refusal};
use super::state_store::Store;
use crate::conn::Bound;
use stado_fleet::disk::{self, DiskError};
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

/// The remembered ports of adapters.
#[derive(Debug)]
pub struct AdapterPorts {
    allocator: Arc<Allocator>,
    path: PathBuf,
    open: Mutex<Open>,
}

#[derive(Debug, Default)]
struct Open {
    /// `None`: the file cannot be used, and is tried again whenever a port is asked for.
    store: Option<Arc<Store<i64>>>,
    aside: Option<PathBuf>,
}

/// Why an adapter gets no port.
#[derive(Debug, thiserror::Error)]
pub enum NoPort {
    /// What is remembered cannot be read now.
    #[error(
        "it is declared without a port, and which one it had cannot be read: {0}; move that file away to have a port given anew"
    )]
    Unread(#[from] MeshError),
    /// There is none, or it cannot be remembered.
    #[error(transparent)]
    Refused(#[from] Refusal),
}

impl AdapterPorts {
    /// Reads the file and reserves its ports, so that no mesh service gets one of them. Call it before the mesh serves
    /// registrations. The caller holds the lock of its home.
    pub fn open(path: &Path, allocator: Arc<Allocator>) -> Self {
        let ports = Self { allocator, path: path.to_owned(), open: Mutex::default() };
        if let Err(error) = ports.store() {
            tracing::warn!(target: "stado::fleet", "stado resolver: adapters without a declared port wait for theirs: {error}");
        }
        ports
    }

    /// Binds a port for `key` (`service/consumer`): the remembered one, else the first free one. It is durable before it
    /// is returned. The reservation stays when the [`Bound`] is dropped, until [`AdapterPorts::forget`].
    ///
    /// # Errors
    /// None can be given, or none can be remembered.
    pub async fn allocate(&self, key: &str) -> Result<Bound, NoPort> {
        let store = self.store()?;
        let (allocator, owner, name) = (self.allocator.clone(), label(key), key.to_owned());
        let before = store.get(key);
        let remembered = port_number(before);
        let work = tokio::task::spawn_blocking(move || {
            allocator.allocate(Wanted { owner: &owner, name: &name, remembered, preferred: 0 }, |_| false)
        });
        let (min, max) = self.allocator.range();
        let found = work.await.map_err(|_| Refusal::Internal)?.ok_or(Refusal::Exhausted { min, max })?;
        if remembered == Some(found.port) {
            return Ok(found.bound);
        }
        let change = store.set(key, Some(i64::from(found.port)));
        if let Err(source) = store.persist(change).await {
            store.set(key, before);
            self.allocator.release(found.port, &label(key));
            return Err(Refusal::NotDurable { step: "allocate frontend", source }.into());
        }
        if let Some(before) = remembered {
            self.allocator.release(before, &label(key));
        }
        Ok(found.bound)
    }

    /// The port remembered for `key`, bound or not.
    pub fn remembered(&self, key: &str) -> Option<u16> {
        port_number(self.lock().store.as_ref()?.get(key))
    }

    /// What is worth saying of the file, for as long as this daemon lives.
    pub fn warning(&self) -> Option<String> {
        let aside = self.lock().aside.clone()?;
        Some(format!(
            "{} could not be read and was set aside as {}: adapters without a declared port were given ports anew",
            self.path.display(),
            aside.display()
        ))
    }

    /// Gives the port of `key` up for good.
    ///
    /// # Errors
    /// That cannot be remembered.
    pub async fn forget(&self, key: &str) -> Result<(), NoPort> {
        let store = self.store()?;
        let before = store.get(key);
        let change = store.set(key, None);
        if let Err(source) = store.persist(change).await {
            store.set(key, before);
            return Err(Refusal::NotDurable { step: "save the change", source }.into());
        }
        self.allocator.release_all(&label(key));
        Ok(())
    }

    /// The file, opened now if it was not.
    fn store(&self) -> Result<Arc<Store<i64>>, MeshError> {
        let mut open = self.lock();
        if let Some(store) = &open.store {
            return Ok(Arc::clone(store));
        }
        let (store, aside) = usable(&self.path)?;
        for (key, port) in store.entries() {
            if let Some(port) = port_number(Some(port)) {
                self.allocator.reserve(port, &label(&key));
            }
        }
        let store = Arc::new(store);
        *open = Open { store: Some(Arc::clone(&store)), aside };
        Ok(store)
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Open> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Opens the file, and says where the one is that was there if it had to be set aside.
fn usable(path: &Path) -> Result<(Store<i64>, Option<PathBuf>), MeshError> {
    match Store::open(path, "ports") {
        Ok(store) => {
            let aside = store.set_aside().map(Path::to_owned);
            Ok((store, aside))
        }
        Err(MeshError::Disk(error)) if is_no_file_of_ours(&error) => {
            let aside = disk::move_aside(path)?;
            tracing::warn!(target: "stado::fleet", "stado resolver: {error}; it is set aside as {}", aside.display());
            Ok((Store::open(path, "ports")?, Some(aside)))
        }
        Err(error) => Err(error),
    }
}

/// Whether what is there will not become readable by itself: a directory, a file of somebody else or one that nobody may read.
fn is_no_file_of_ours(error: &DiskError) -> bool {
    error.step == "read" && matches!(error.source.kind(), ErrorKind::Other | ErrorKind::PermissionDenied)
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

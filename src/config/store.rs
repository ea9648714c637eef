//! The configured registry store.
use super::{Backend, Storage};
use stado_fleet::fault::Class;
use stado_fleet::store::local::LocalStore;
use stado_fleet::store::{Expected, RegistryStore, StoreError, StoreFuture, Stored, Swap};
use std::sync::Arc;

impl Storage {
    /// Opens the store. Only the local directory is touched here; an engine that this build does not have answers every
    /// read with what is missing, so that a host whose registry comes over SSH still works.
    pub fn open(&self) -> Result<Arc<dyn RegistryStore>, StoreError> {
        match self.backend {
            Backend::Local => Ok(Arc::new(LocalStore::open(&self.local_path)?)),
            backend => Ok(Arc::new(Missing { backend, url: self.stado_url.clone() })),
        }
    }
}

/// An engine that this build does not have.
#[derive(Debug)]
struct Missing {
    backend: Backend,
    url: Option<String>,
}

impl Missing {
    fn error(&self) -> StoreError {
        let at = self.url.as_deref().map(|url| format!(" at {url}")).unwrap_or_default();
        let sentence = format!(
            "registry store unreachable ({}): this build has no {} store{at}; set storage.backend to local, or let this host \
             read the registry from its authority (`stado registry pull --from …`)",
            self.location(),
            self.backend.word()
        );
        StoreError { sentence, class: Class::Config }
    }
}

impl RegistryStore for Missing {
    fn location(&self) -> String {
        match self.backend {
            Backend::Stado => "stado://probierz/registry.json".to_owned(),
            other => format!("{}:registry.json", other.word()),
        }
    }
    fn read(&self) -> StoreFuture<'_, Result<Option<Stored>, StoreError>> {
        Box::pin(async { Err(self.error()) })
    }
    fn swap(&self, _: Expected, _: Vec<u8>) -> StoreFuture<'_, Result<Swap, StoreError>> {
        Box::pin(async { Err(self.error()) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn an_engine_that_is_missing_names_itself_and_the_way_out() {
        let storage = Storage { backend: Backend::S3, local_path: "/unused".into(), stado_url: None };
        let error = storage.open().unwrap().read().await.unwrap_err();
        assert!(
            error.sentence.starts_with("registry store unreachable (s3:registry.json): this build has no s3 store")
        );
        assert!(error.sentence.contains("registry pull --from"));
    }

    #[tokio::test]
    async fn a_local_store_is_a_directory() {
        let dir = tempfile::tempdir().unwrap();
        let storage = Storage { backend: Backend::Local, local_path: dir.path().join("s"), stado_url: None };
        assert!(storage.open().unwrap().read().await.unwrap().is_none());
    }
}

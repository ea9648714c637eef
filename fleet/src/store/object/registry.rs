//! The registry as an object of an object API.
use super::api::{ObjectApi, Stat};
use super::{ObjectConfig, ObjectName, Routes};
use crate::name::StoreVersion;
use crate::store::local::LARGEST;
use crate::store::{Expected, RegistryStore, StoreError, StoreFuture, Stored, Swap};
use std::sync::Arc;
use std::time::Duration;

/// Always this one, whatever the caller's namespace (fleet contract §2.2).
pub const REGISTRY_OBJECT: &str = "stado://probierz/registry.json";
/// Between two looks of a watcher.
const LOOK: Duration = Duration::from_secs(2);

/// The registry behind an object API.
#[derive(Debug, Clone)]
pub struct ObjectStore {
    api: ObjectApi,
    name: ObjectName,
    look: Duration,
}

impl ObjectStore {
    /// The fleet's registry behind this API; nothing is asked yet.
    pub fn new(config: ObjectConfig, routes: Arc<dyn Routes>) -> Result<Self, StoreError> {
        Self::named(REGISTRY_OBJECT, config, routes)
    }

    /// As [`ObjectStore::new`], under another name.
    pub fn named(name: &str, config: ObjectConfig, routes: Arc<dyn Routes>) -> Result<Self, StoreError> {
        let config_error = |sentence| StoreError { sentence, class: crate::fault::Class::Config };
        let name = ObjectName::parse(name).map_err(config_error)?;
        Ok(Self { api: ObjectApi::new(config, routes), name, look: LOOK })
    }

    /// Another time between two looks of a watcher.
    pub fn looking_every(mut self, look: Duration) -> Self {
        self.look = look;
        self
    }

    async fn get(&self) -> Result<Option<Stored>, StoreError> {
        self.api.get_versioned(&self.name, usize::try_from(LARGEST).unwrap_or(usize::MAX)).await
    }

    /// Creation may have named no version; what is there now tells, when it is what was sent.
    async fn put(&self, expected: Expected, bytes: Vec<u8>) -> Result<Swap, StoreError> {
        match self.api.swap(&self.name, &expected, bytes.clone()).await? {
            Swap::Unknown(e) if expected == Expected::Absent => match self.get().await {
                Ok(Some(stored)) if *stored.bytes == *bytes => Ok(Swap::Applied(stored.version)),
                _ => Ok(Swap::Unknown(e)),
            },
            swap => Ok(swap),
        }
    }

    /// Small looks until one differs, then one read.
    async fn wait(&self, held: Option<&StoreVersion>) -> Result<Option<StoreVersion>, StoreError> {
        let mut seen: Option<Option<Stat>> = None;
        loop {
            let stat = self.api.stat(&self.name).await?;
            if seen.as_ref() != Some(&stat) {
                let now = self.get().await?.map(|stored| stored.version);
                if now.as_ref() != held {
                    return Ok(now);
                }
                seen = Some(stat);
            }
            tokio::time::sleep(self.look).await;
        }
    }
}

impl RegistryStore for ObjectStore {
    fn location(&self) -> String {
        self.name.to_string()
    }

    fn read(&self) -> StoreFuture<'_, Result<Option<Stored>, StoreError>> {
        Box::pin(self.get())
    }

    fn swap(&self, expected: Expected, bytes: Vec<u8>) -> StoreFuture<'_, Result<Swap, StoreError>> {
        Box::pin(self.put(expected, bytes))
    }

    fn watch<'a>(
        &'a self,
        held: Option<&'a StoreVersion>,
    ) -> StoreFuture<'a, Result<Option<StoreVersion>, StoreError>> {
        Box::pin(self.wait(held))
    }
}

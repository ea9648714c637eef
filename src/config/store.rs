//! The configured registry store.
use super::{Backend, HostConfig, Storage};
use stado_fleet::authority::PublishedRoutes;
use stado_fleet::fault::Class;
use stado_fleet::last_good::LastGood;
use stado_fleet::store::history::Writer;
use stado_fleet::store::local::{LocalStore, registry_key};
use stado_fleet::store::object::{Address, ObjectConfig, ObjectStore, REGISTRY_OBJECT, Routes, STORAGE_URL};
use stado_fleet::store::{Expected, RegistryStore, StoreError, StoreFuture, Stored, Swap};
use std::sync::Arc;

impl HostConfig {
    /// Opens the store. Only a local directory is touched here; an engine that this build does not have, or whose settings
    /// cannot be used, answers every read with what is wrong, so that a host whose registry comes over SSH still works.
    pub fn open_store(&self) -> Result<Arc<dyn RegistryStore>, StoreError> {
        match self.storage.backend {
            Backend::Local => {
                let store = LocalStore::open_at(&self.storage.local_path, registry_key(&self.storage.local_path))?;
                Ok(Arc::new(store.written_by(self.writer())))
            }
            Backend::Stado => Ok(self.storage.object_store(Arc::new(self.routes()))),
            Backend::S3 => Ok(usable("s3:registry.json", self.storage.engine.s3(self.writer()))),
            Backend::Etcd => Ok(usable("etcd:registry.json", self.storage.engine.etcd(self.writer()))),
            other => Ok(Arc::new(Unusable {
                location: format!("{}:registry.json", other.word()),
                why: format!(
                    "this build has no {} store; set storage.backend to local, stado, s3 or etcd, or let this host read the registry \
                     from its authority (`stado registry pull --from …`)",
                    other.word()
                ),
            })),
        }
    }

    /// Who writes from here, as far as this process can tell.
    pub(crate) fn writer(&self) -> Writer {
        let host = self.target.as_ref().map_or_else(|| self.hostname.clone(), ToString::to_string);
        Writer { user: self.user.clone(), host, from: self.ssh_client.clone() }
    }

    /// What this host's resolver has published.
    pub(crate) fn routes(&self) -> PublishedRoutes {
        let last_good = LastGood::new(self.stado_home.join("cache"));
        PublishedRoutes { published: self.published.clone(), last_good, me: self.target.clone() }
    }
}

impl Storage {
    fn object_store(&self, routes: Arc<dyn Routes>) -> Arc<dyn RegistryStore> {
        match self.object_config().and_then(|c| ObjectStore::new(c, routes).map_err(|e| e.sentence)) {
            Ok(store) => Arc::new(store),
            Err(why) => Arc::new(Unusable { location: REGISTRY_OBJECT.to_owned(), why }),
        }
    }

    fn object_config(&self) -> Result<ObjectConfig, String> {
        let missing = |key: &str| format!("storage.backend is stado and {key} is not set; it must be set");
        let url = self.stado_url.as_deref().ok_or_else(|| missing("storage.stado.url"))?;
        Ok(ObjectConfig {
            address: Address::parse(STORAGE_URL, url)?,
            token_file: self.stado_token_file.clone().ok_or_else(|| missing("storage.stado.token_file"))?,
            ca_file: self.stado_ca_file.clone(),
        })
    }
}

/// The store, or one that says why there is none.
fn usable(location: &str, store: Result<Arc<dyn RegistryStore>, String>) -> Arc<dyn RegistryStore> {
    store.unwrap_or_else(|why| Arc::new(Unusable { location: location.to_owned(), why }))
}

/// A store that cannot be used.
#[derive(Debug)]
struct Unusable {
    location: String,
    why: String,
}

impl Unusable {
    fn error(&self) -> StoreError {
        let sentence = format!("registry store unreachable ({}): {}", self.location, self.why);
        StoreError { sentence, class: Class::Config }
    }
}

impl RegistryStore for Unusable {
    fn location(&self) -> String {
        self.location.clone()
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
    use crate::config::Env;
    use std::path::Path;

    fn host(home: &Path, settings: &str) -> HostConfig {
        std::fs::create_dir_all(home.join(".stado")).unwrap();
        std::fs::write(home.join(".stado/config.json"), settings).unwrap();
        HostConfig::read(&Env::of([("HOME", home.to_str().unwrap()), ("USER", "ann")]), None).unwrap()
    }

    async fn sentence(settings: &str) -> (String, String) {
        let home = tempfile::tempdir().unwrap();
        let store = host(home.path(), settings).open_store().unwrap();
        (store.location(), store.read().await.unwrap_err().sentence)
    }

    #[tokio::test]
    async fn an_engine_that_is_missing_names_itself_and_the_way_out() {
        let (location, error) = sentence(r#"{"storage":{"backend":"gcs"}}"#).await;
        assert_eq!(location, "gcs:registry.json");
        assert!(
            error.starts_with("registry store unreachable (gcs:registry.json): this build has no gcs store"),
            "{error}"
        );
        assert!(error.contains("registry pull --from"));
    }

    #[tokio::test]
    async fn an_object_api_without_its_settings_says_which() {
        let (location, error) = sentence(r#"{"storage":{"backend":"stado"}}"#).await;
        assert_eq!(location, "stado://probierz/registry.json");
        assert!(error.contains("storage.stado.url is not set"), "{error}");
        let url = r#""url":"http://127.0.0.1:9""#;
        let (_, error) = sentence(&format!(r#"{{"storage":{{"backend":"stado","stado":{{{url}}}}}}}"#)).await;
        assert!(error.contains("storage.stado.token_file is not set"), "{error}");
        let bad = r#"{"storage":{"backend":"stado","stado":{"url":"http://example.com","token_file":"~/t"}}}"#;
        let (_, error) = sentence(bad).await;
        assert!(error.ends_with("Stado storage URL must be an HTTPS origin or authenticated HTTP loopback"), "{error}");
    }

    #[tokio::test]
    async fn an_object_api_behind_an_adapter_that_nobody_publishes_says_where_to_look() {
        // Fleet contract §8, failure 28.
        let settings = r#"{"storage":{"backend":"stado","stado":{"url":"stado://service/objects?consumer=me","token_file":"~/t"}}}"#;
        let (_, error) = sentence(settings).await;
        assert!(error.contains("is an adapter's, and no resolver has published state at "), "{error}");
        assert!(error.ends_with("see `stado resolver status`"), "{error}");
    }

    #[tokio::test]
    async fn a_local_store_is_a_directory_and_its_history_names_the_writer() {
        let home = tempfile::tempdir().unwrap();
        let host = host(home.path(), "{}");
        let store = host.open_store().unwrap();
        assert!(store.read().await.unwrap().is_none());
        store.swap(Expected::Absent, b"{}".to_vec()).await.unwrap();
        let versions = store.history().unwrap().versions().await.unwrap();
        assert_eq!(versions[0].writer.as_ref().unwrap().user, "ann");
    }

    #[tokio::test]
    async fn the_registry_that_an_object_api_serves_is_the_one_of_its_host() {
        let home = tempfile::tempdir().unwrap();
        let served = home.path().join(".stado/local-storage/ecosystem/probierz");
        std::fs::create_dir_all(&served).unwrap();
        std::fs::write(served.join("registry.json"), b"{}").unwrap();
        let store = host(home.path(), "{}").open_store().unwrap();
        assert_eq!(store.location(), "local:ecosystem/probierz/registry.json");
        assert!(store.read().await.unwrap().is_some());
    }
}

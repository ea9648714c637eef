//! What the authority itself prints (fleet contract §3.2).
use super::RegistryError;
use super::fetch::off_thread;
use crate::document::Document;
use crate::name::StoreVersion;
use crate::store::RegistryStore;

/// The one line that `resolver snapshot` prints (§3.2), without the newline. The document is not validated here: each
/// reader does that, and a repair has to be able to read what is wrong.
///
/// To a reader that holds `newer_than` already, only that nothing changed.
pub async fn snapshot_line(
    store: &dyn RegistryStore,
    newer_than: Option<&StoreVersion>,
) -> Result<String, RegistryError> {
    let location = store.location();
    let stored = store.read().await?.ok_or_else(|| RegistryError::absent(&location))?;
    if newer_than == Some(&stored.version) {
        let version = serde_json::Value::String(stored.version.to_string());
        return Ok(format!(r#"{{"store_version":{version},"unchanged":true}}"#));
    }
    off_thread(move || {
        let document = Document::parse(stored.bytes).map_err(|e| RegistryError::invalid(&location, &e))?;
        let version = serde_json::Value::String(stored.version.to_string());
        Ok(format!(r#"{{"store_version":{version},"document":{}}}"#, document.value()))
    })
    .await
}

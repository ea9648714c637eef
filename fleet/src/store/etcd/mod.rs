//! etcd as a store: the version is the key's `mod_revision`, a swap is a transaction on it, a watch goes on from the last
//! revision that was seen. Spoken through etcd's own JSON gateway, over the exchange that every other store of ours uses.
mod api;
mod config;
mod login;
mod shapes;
mod watch;

pub use config::EtcdConfig;
pub use login::Login;

use super::history::Writer;
use super::remembered::Shelf;
use super::shelved::Shelved;
use super::{BLINK, Expected, StoreError, StoreFuture, Stored, Swap};
use crate::fault::Class;
use crate::name::StoreVersion;
use api::{Failed, Gateway};
use serde_json::json;
use shapes::{Range, Txn, encoded};
use std::sync::Arc;

/// The registry as one key of an etcd cluster. Cheap to clone.
#[derive(Debug, Clone)]
pub struct EtcdStore {
    gateway: Arc<Gateway>,
    key: String,
    location: String,
    writer: Option<Writer>,
}

impl EtcdStore {
    /// The store; nothing is asked yet.
    pub fn new(config: EtcdConfig, login: Option<Login>) -> Self {
        let (key, location) = (config.key.clone(), config.location());
        Self { gateway: Arc::new(Gateway::new(config, login)), key, location, writer: None }
    }

    /// Who writes through this value; its writes are remembered then.
    pub fn written_by(mut self, writer: Writer) -> Self {
        self.writer = Some(writer);
        self
    }

    /// Reads a key as the cluster's majority has it. `keys_only`: without its value.
    async fn range(&self, key: &str, keys_only: bool) -> Result<Range, Failed> {
        let body = json!({"key": encoded(key.as_bytes()), "keys_only": keys_only});
        self.gateway.read("/v3/kv/range", &body).await
    }

    async fn get(&self, key: &str) -> Result<Option<Stored>, StoreError> {
        let what = format!("range {key}");
        let run = self.range(key, false);
        let range = crate::czekam::when_long(BLINK, &what, &self.location, "etcd", run).await;
        let range = range.map_err(|e| self.unreachable(e))?;
        range.stored().map_err(|why| self.unreachable(Failed::said(Class::Refused, why)))
    }

    async fn txn(&self, name: &str, expected: &Expected, bytes: &[u8]) -> Result<Swap, StoreError> {
        let key = encoded(name.as_bytes());
        let compare = match expected {
            Expected::Absent => json!({"key": key, "target": "CREATE", "result": "EQUAL", "create_revision": "0"}),
            Expected::Version(version) => match version.as_str().parse::<u64>() {
                Ok(revision) if revision > 0 => {
                    json!({"key": key, "target": "MOD", "result": "EQUAL", "mod_revision": revision.to_string()})
                }
                // A version of another store: nothing here ever was at it.
                _ => return self.never(name, version).await,
            },
        };
        let body = json!({
            "compare": [compare],
            "success": [{"request_put": {"key": key, "value": encoded(bytes)}}],
            "failure": [{"request_range": {"key": key, "keys_only": true}}],
        });
        let what = format!("txn {name}");
        let run = self.gateway.write("/v3/kv/txn", &body);
        match crate::czekam::when_long(BLINK, &what, &self.location, "etcd", run).await {
            Ok(txn) => self.ended(&txn, expected),
            Err(failed) if failed.unknown => Ok(Swap::Unknown(self.unreachable(failed))),
            Err(failed) => Err(self.unreachable(failed)),
        }
    }

    fn ended(&self, txn: &Txn, expected: &Expected) -> Result<Swap, StoreError> {
        let unreadable = |why: String| self.unreachable(Failed::said(Class::Refused, why));
        if txn.succeeded {
            return Ok(match txn.header.version() {
                Some(version) => Swap::Applied(version),
                None => Swap::Unknown(unreadable("it names no revision of what it stored".into())),
            });
        }
        match (txn.found().map_err(unreadable)?, expected) {
            (None, Expected::Version(_)) => Ok(Swap::Absent),
            (found, _) => Ok(Swap::Conflict { found }),
        }
    }

    async fn never(&self, key: &str, version: &StoreVersion) -> Result<Swap, StoreError> {
        let held = self.get(key).await?;
        debug_assert!(held.as_ref().is_none_or(|held| held.version != *version));
        Ok(held.map_or(Swap::Absent, |held| Swap::Conflict { found: Some(held.version) }))
    }

    fn unreachable(&self, failed: Failed) -> StoreError {
        let sentence = format!("registry store unreachable ({}): {}", self.location, failed.why);
        StoreError { sentence, class: failed.class }
    }
}

impl Shelved for EtcdStore {
    fn key(&self) -> &str {
        &self.key
    }

    fn shown(&self) -> String {
        self.location.clone()
    }

    fn writer(&self) -> Option<&Writer> {
        self.writer.as_ref()
    }

    fn is_told(&self) -> bool {
        true
    }

    fn changed<'a>(
        &'a self,
        held: Option<&'a StoreVersion>,
    ) -> StoreFuture<'a, Result<Option<StoreVersion>, StoreError>> {
        Box::pin(async move { self.wait(held).await.map_err(|e| self.unreachable(e)) })
    }
}

impl Shelf for EtcdStore {
    fn fetch<'a>(&'a self, key: &'a str) -> StoreFuture<'a, Result<Option<Stored>, StoreError>> {
        Box::pin(self.get(key))
    }

    fn place<'a>(
        &'a self,
        key: &'a str,
        expected: Expected,
        bytes: Vec<u8>,
    ) -> StoreFuture<'a, Result<Swap, StoreError>> {
        Box::pin(async move { self.txn(key, &expected, &bytes).await })
    }

    fn discard<'a>(&'a self, key: &'a str) -> StoreFuture<'a, ()> {
        Box::pin(async move {
            let body = json!({"key": encoded(key.as_bytes())});
            let _: Result<serde_json::Value, _> = self.gateway.write("/v3/kv/deleterange", &body).await;
        })
    }
}

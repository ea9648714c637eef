//! Stores of the S3 kind, by conditional writes: the version is the object's ETag, a swap is a `PUT` with `If-Match` or
//! `If-None-Match`. Nothing is retried, and a writer is told whether its request may have been read.
mod config;
#[cfg(test)]
mod emulator;
mod engine;
mod keys;
mod outcome;
mod probe;
mod sign;
#[cfg(test)]
mod tests;

pub use config::S3Config;
pub use keys::Keys;

use super::history::Writer;
use super::remembered::Shelf;
use super::shelved::Shelved;
use super::{BLINK, Expected, StoreError, StoreFuture, Stored, Swap};
use crate::fault::Class;
use crate::name::StoreVersion;
use engine::{Bucket, Engine};
use outcome::{Found, Put};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::OnceCell;

/// Between two looks of a watcher: a request costs money there.
const LOOK: Duration = Duration::from_secs(5);

/// The registry as one object of a bucket. Cheap to clone.
#[derive(Debug, Clone)]
pub struct S3Store {
    engine: Arc<dyn Engine>,
    key: String,
    location: String,
    look: Duration,
    proven: Arc<OnceCell<Proof>>,
    writer: Option<Writer>,
}

/// What the probe found.
#[derive(Debug, Clone)]
enum Proof {
    /// A stale write fails there.
    Writable,
    /// These keys may not write there: the sentence.
    ReadOnly(String),
}

impl S3Store {
    /// The store; nothing is asked yet.
    ///
    /// # Errors
    /// Settings that the engine refuses.
    pub fn new(config: &S3Config, keys: Keys) -> Result<Self, StoreError> {
        let engine = Bucket::new(config, keys).map_err(|sentence| StoreError { sentence, class: Class::Config })?;
        Ok(Self::over(Arc::new(engine), &config.key, config.location()))
    }

    fn over(engine: Arc<dyn Engine>, key: &str, location: String) -> Self {
        Self { engine, key: key.to_owned(), location, look: LOOK, proven: Arc::default(), writer: None }
    }

    /// Another time between two looks of a watcher.
    pub fn looking_every(mut self, look: Duration) -> Self {
        self.look = look;
        self
    }

    /// Who writes through this value; its writes are remembered then.
    pub fn written_by(mut self, writer: Writer) -> Self {
        self.writer = Some(writer);
        self
    }

    async fn get(&self, key: &str, unless: Option<&StoreVersion>) -> Result<Found, StoreError> {
        let what = format!("GET {key}");
        let run = self.engine.get(key, unless);
        let got = crate::czekam::when_long(BLINK, &what, &self.location, "http", run).await;
        got.map_err(|e| self.unreachable(e))
    }

    async fn stored_at(&self, key: &str) -> Result<Option<Stored>, StoreError> {
        match self.get(key, None).await? {
            Found::Stored(stored) => Ok(Some(stored)),
            Found::Nothing | Found::Same => Ok(None),
        }
    }

    async fn put_at(&self, key: &str, expected: &Expected, bytes: Vec<u8>) -> Result<Swap, StoreError> {
        let what = format!("PUT {key}");
        let run = self.engine.put(key, expected, bytes);
        match crate::czekam::when_long(BLINK, &what, &self.location, "http", run).await {
            Ok(Put::Written(version)) => Ok(Swap::Applied(version)),
            Ok(Put::Refused) => Ok(self.instead(key, expected).await),
            Ok(Put::Unknown(e)) => Ok(Swap::Unknown(self.unreachable(e))),
            Err(e) => Err(self.unreachable(e)),
        }
    }

    /// What is there instead of what a refused write expected. That it was refused is known; this only says more.
    async fn instead(&self, key: &str, expected: &Expected) -> Swap {
        match (self.stored_at(key).await, expected) {
            (Ok(None), Expected::Version(_)) => Swap::Absent,
            (Ok(Some(stored)), Expected::Version(version)) if stored.version == *version => {
                // Refused for a write that was under way beside it.
                Swap::Conflict { found: None }
            }
            (Ok(stored), _) => Swap::Conflict { found: stored.map(|stored| stored.version) },
            (Err(_), _) => Swap::Conflict { found: None },
        }
    }

    async fn proof(&self) -> Result<&Proof, StoreError> {
        self.proven.get_or_try_init(|| probe::probe(self.engine.as_ref(), &self.key, &self.location)).await
    }

    async fn wait(&self, held: Option<&StoreVersion>) -> Result<Option<StoreVersion>, StoreError> {
        loop {
            match self.get(&self.key, held).await? {
                Found::Stored(stored) if Some(&stored.version) != held => return Ok(Some(stored.version)),
                Found::Nothing if held.is_some() => return Ok(None),
                _ => tokio::time::sleep(self.look).await,
            }
        }
    }

    fn unreachable(&self, e: StoreError) -> StoreError {
        let sentence = format!("registry store unreachable ({}): {}", self.location, e.sentence);
        StoreError { sentence, ..e }
    }
}

impl Shelved for S3Store {
    fn key(&self) -> &str {
        &self.key
    }

    fn shown(&self) -> String {
        self.location.clone()
    }

    fn writer(&self) -> Option<&Writer> {
        self.writer.as_ref()
    }

    fn proven(&self) -> StoreFuture<'_, Result<(), StoreError>> {
        Box::pin(async { self.proof().await.map(|_| ()) })
    }

    fn ready(&self) -> StoreFuture<'_, Result<(), StoreError>> {
        Box::pin(async {
            match self.proof().await? {
                Proof::Writable => Ok(()),
                Proof::ReadOnly(sentence) => Err(StoreError { sentence: sentence.clone(), class: Class::Auth }),
            }
        })
    }

    fn changed<'a>(
        &'a self,
        held: Option<&'a StoreVersion>,
    ) -> StoreFuture<'a, Result<Option<StoreVersion>, StoreError>> {
        Box::pin(self.wait(held))
    }
}

impl Shelf for S3Store {
    fn fetch<'a>(&'a self, key: &'a str) -> StoreFuture<'a, Result<Option<Stored>, StoreError>> {
        Box::pin(self.stored_at(key))
    }

    fn place<'a>(
        &'a self,
        key: &'a str,
        expected: Expected,
        bytes: Vec<u8>,
    ) -> StoreFuture<'a, Result<Swap, StoreError>> {
        Box::pin(async move { self.put_at(key, &expected, bytes).await })
    }

    fn discard<'a>(&'a self, key: &'a str) -> StoreFuture<'a, ()> {
        self.engine.delete(key)
    }
}

//! What stores have in common whose engine keeps objects by their keys: the registry is one of them, its history is others
//! beside it, and every host that names the store reads and writes it by itself.
use super::history::{History, Version, Writer};
use super::remembered::{Remembered, Shelf};
use super::{Expected, RegistryStore, StoreError, StoreFuture, Stored, Swap};
use crate::name::StoreVersion;
use std::sync::Arc;

/// A registry on a [`Shelf`].
pub(super) trait Shelved: Shelf + std::fmt::Debug + Sized {
    /// The registry's key.
    fn key(&self) -> &str;
    /// As people see it.
    fn shown(&self) -> String;
    /// Who writes through this value; its writes are remembered then.
    fn writer(&self) -> Option<&Writer>;
    /// As [`RegistryStore::tells`].
    fn is_told(&self) -> bool {
        false
    }
    /// As [`RegistryStore::prove`].
    fn proven(&self) -> StoreFuture<'_, Result<(), StoreError>> {
        Box::pin(async { Ok(()) })
    }
    /// What forbids a write before it is tried.
    fn ready(&self) -> StoreFuture<'_, Result<(), StoreError>> {
        Box::pin(async { Ok(()) })
    }
    /// As [`RegistryStore::watch`].
    fn changed<'a>(
        &'a self,
        held: Option<&'a StoreVersion>,
    ) -> StoreFuture<'a, Result<Option<StoreVersion>, StoreError>>;
}

fn past<S: Shelved>(store: &S) -> Remembered<'_> {
    Remembered { shelf: store, key: store.key() }
}

/// A swap that is remembered when it is known who writes.
async fn swapped<S: Shelved>(store: &S, expected: Expected, bytes: Vec<u8>) -> Result<Swap, StoreError> {
    store.ready().await?;
    let Some(writer) = store.writer() else { return store.place(store.key(), expected, bytes).await };
    let before = past(store).before(&expected).await;
    let swap = store.place(store.key(), expected.clone(), bytes.clone()).await?;
    if let Swap::Applied(version) = &swap {
        past(store).after(before, version, &expected, writer, &bytes).await;
    }
    Ok(swap)
}

impl<S: Shelved> RegistryStore for S {
    fn location(&self) -> String {
        self.shown()
    }

    fn direct(&self) -> bool {
        true
    }

    fn tells(&self) -> bool {
        self.is_told()
    }

    fn prove(&self) -> StoreFuture<'_, Result<(), StoreError>> {
        self.proven()
    }

    fn read(&self) -> StoreFuture<'_, Result<Option<Stored>, StoreError>> {
        self.fetch(self.key())
    }

    fn swap(&self, expected: Expected, bytes: Vec<u8>) -> StoreFuture<'_, Result<Swap, StoreError>> {
        Box::pin(swapped(self, expected, bytes))
    }

    fn history(&self) -> Option<&dyn History> {
        Some(self)
    }

    fn watch<'a>(
        &'a self,
        held: Option<&'a StoreVersion>,
    ) -> StoreFuture<'a, Result<Option<StoreVersion>, StoreError>> {
        self.changed(held)
    }
}

impl<S: Shelved> History for S {
    fn versions(&self) -> StoreFuture<'_, Result<Vec<Version>, StoreError>> {
        Box::pin(async { past(self).versions().await })
    }

    fn content<'a>(&'a self, version: &'a StoreVersion) -> StoreFuture<'a, Result<Option<Arc<[u8]>>, StoreError>> {
        Box::pin(async move { past(self).content(version).await })
    }

    fn keep<'a>(&'a self, facts: &'a Version, bytes: Arc<[u8]>) -> StoreFuture<'a, Result<(), StoreError>> {
        Box::pin(async move { past(self).keep(facts, &bytes).await })
    }
}

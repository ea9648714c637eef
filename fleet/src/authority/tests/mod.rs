//! The authority over a fake link: the far host is real (its own store, the same verbs), the line can fail anywhere.
mod commit;
mod far;
mod promote;
mod push;
mod read;
mod routes;
mod snapshot;
mod truth;
mod world;

use super::*;
use crate::document::Document;
use crate::last_good::LastGood;
use crate::store::local::LocalStore;
use crate::store::{Expected, RegistryStore, Swap};
use crate::testing::{document, snapshot as snapshot_of};
use far::{Far, Fault};
use std::sync::Arc;

/// A workstation and its authority.
struct Scene {
    home: tempfile::TempDir,
    far: Far,
    near: Arc<dyn RegistryStore>,
    last_good: LastGood,
}

impl Scene {
    async fn new(faults: impl IntoIterator<Item = Fault>) -> Self {
        let home = tempfile::tempdir().unwrap();
        let store = LocalStore::open(home.path().join("far")).unwrap();
        store.swap(Expected::Absent, document(7, 5432).bytes().to_vec()).await.unwrap();
        let near = Arc::new(LocalStore::open(home.path().join("near")).unwrap());
        let last_good = LastGood::new(home.path().join("cache"));
        last_good.record(&snapshot_of(document(7, 5432), "old"), jiff::Timestamp::now()).unwrap();
        Self { far: Far::new(store, faults), near, last_good, home }
    }

    /// The source of the workstation: the authority, located through its copy.
    fn remote(&self) -> Source {
        let copy = self.last_good.read().unwrap();
        locate(copy.as_ref(), Some(&"desk".parse().unwrap()), Arc::clone(&self.near))
    }

    async fn held(&self) -> (Document, crate::name::StoreVersion) {
        let stored = self.far.store.read().await.unwrap().unwrap();
        (Document::parse(stored.bytes).unwrap(), stored.version)
    }
}

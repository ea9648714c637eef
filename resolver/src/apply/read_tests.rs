use super::*;
use crate::apply::held;
use serde_json::{Value, json};
use stado_fleet::admit::Admission;
use stado_fleet::authority::{Bulletin, Change, Holders, Watch, tell};
use stado_fleet::document::Document;
use stado_fleet::store::local::LocalStore;
use stado_fleet::store::{Expected, Swap};

fn registry(authority: &str, generation: u64, epoch: u64) -> Value {
    let target = |name: &str, ssh: &str| {
        json!({"name": name, "kind": "local", "release_platform": "linux-amd64", "ssh": ssh,
               "services": [{"name": "db", "kind": "systemd", "unit": "db.service"}],
               "service_resolver": {"api_bind": "127.0.0.1:17600", "refresh_seconds": 5, "max_stale_seconds": 15, "adapters": []}})
    };
    json!({
        "schema_version": 2,
        "targets": [target("control", "u@127.0.0.2"), target("desk", "u@127.0.0.3")],
        "coordinators": [],
        "service_directory": {
            "authority": {"target": authority, "command": "/opt/stado/bin/stado"},
            "generation": generation,
            "services": {"db": {"managed_service": "db", "active_host": "control",
                "endpoints": {"control": {"url": "tcp://127.0.0.1:5432"}}, "consumers": {"shop": {"capabilities": []}}}}
        },
        "succession": {"epoch": epoch, "standbys": []}
    })
}

async fn write(store: &LocalStore, expected: Expected, registry: &Value) -> StoreVersion {
    match store.swap(expected, serde_json::to_vec(registry).unwrap()).await.unwrap() {
        Swap::Applied(version) => version,
        other => panic!("{other:?}"),
    }
}

/// What an authority tells of one change, heard as a host hears it.
async fn told(store: &LocalStore, from: &StoreVersion, next: &Value, home: &std::path::Path) -> Change {
    let (bulletin, holders) = (Bulletin::new(Arc::new(store.clone())), Holders::new(home));
    let (here, there) = tokio::io::duplex(1 << 20);
    let telling = tokio::spawn(async move { tell(&bulletin, &holders, there).await });
    let mut watch = Watch::begin(here).await.unwrap();
    watch.next().await.unwrap();
    write(store, Expected::Version(from.clone()), next).await;
    let change = watch.next().await.unwrap().change.expect("the change is told");
    telling.abort();
    change
}

#[tokio::test]
async fn what_one_authority_told_is_applied_to_its_own_document_and_to_no_other() {
    let dir = tempfile::tempdir().unwrap();
    let control = LocalStore::open(dir.path().join("control")).unwrap();
    let first = registry("control", 1, 0);
    let one = write(&control, Expected::Absent, &first).await;
    let change = told(&control, &one, &registry("control", 2, 0), dir.path()).await;
    let valid = Arc::new(stado_fleet::validate::validate(Document::from_value(first)).unwrap());
    let snapshot = Snapshot { valid, store_version: one.clone() };
    let (desk, control_name): (TargetName, TargetName) = ("desk".parse().unwrap(), "control".parse().unwrap());
    let policy = snapshot.valid.registry.targets[&desk].resolver.clone().unwrap();
    let read = held::Arrival::Read { record: false };
    let held = Arc::new(held::next(None, snapshot, Admission::NewGeneration, desk.clone(), policy, read));

    // Whether this host was promoted meanwhile, as its own store says.
    for promoted in [false, true] {
        let own = LocalStore::open(dir.path().join(format!("own-{promoted}"))).unwrap();
        let own_version = match promoted {
            true => Some(write(&own, Expected::Absent, &registry("desk", 9, 1)).await),
            false => None,
        };
        let changes = Arc::new(Changes::default());
        changes.push(&control_name, change.clone());
        let store: Arc<dyn RegistryStore> = Arc::new(own);
        let (link, refusals) = (Link::new(Default::default()), None);
        let reading = Reading { store: store.clone(), link, changes: changes.clone(), refusals };
        let asked = stado_fleet::authority::next_source(&held.snapshot, &desk, store);
        assert!(matches!(asked, Source::Remote(_)), "it is asked of the authority that is held");
        let read = reading.start(asked, Some(desk.clone()), Some(held.clone())).await.unwrap();
        let given = read.outcome.unwrap().unwrap();
        let generation = given.valid.registry.directory.as_ref().unwrap().generation.0;
        match own_version {
            None => {
                assert_eq!((generation, &given.store_version), (2, &change.to));
                assert!(changes.since(&control_name, &one).is_empty(), "it was taken");
            }
            Some(version) => {
                assert!(matches!(read.source, Source::Store(_)), "settled in its own store");
                assert_eq!((generation, given.store_version), (9, version));
                assert_eq!(
                    changes.since(&control_name, &one),
                    std::slice::from_ref(&change),
                    "and nothing of what the other one told was used"
                );
            }
        }
    }
}

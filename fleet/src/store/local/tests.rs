use super::*;
use crate::store::conformance;
use proptest::prelude::*;
use std::os::unix::fs::symlink;
use std::sync::Arc;

fn sentence<T: std::fmt::Debug>(result: Result<T, StoreError>) -> String {
    result.unwrap_err().sentence
}

fn empty() -> (tempfile::TempDir, Arc<LocalStore>) {
    let home = tempfile::tempdir().unwrap();
    let store = Arc::new(LocalStore::open(home.path().join("store")).unwrap());
    (home, store)
}

#[tokio::test(flavor = "multi_thread")]
async fn it_is_a_store() {
    let (_home, store) = empty();
    conformance::a_swap_is_applied_conflicts_or_finds_nothing(store.as_ref()).await;
    let (_home, store) = empty();
    conformance::two_hundred_writers_at_once_lose_nothing(store).await;
    let (_home, store) = empty();
    conformance::exactly_one_creates(store).await;
    let (_home, store) = empty();
    conformance::a_watcher_sees_the_next_version(store).await;
}

#[tokio::test]
async fn the_version_is_the_hash_of_the_file_at_the_root() {
    let (home, store) = empty();
    assert_eq!(store.location(), "local:registry.json");
    let Swap::Applied(version) = store.swap(Expected::Absent, b"one".to_vec()).await.unwrap() else { panic!() };
    assert_eq!(version.as_str(), hex::encode(Sha256::digest(b"one")));
    assert_eq!(std::fs::read(home.path().join("store/registry.json")).unwrap(), b"one");
    let Swap::Conflict { found } = store.swap(Expected::Absent, b"two".to_vec()).await.unwrap() else { panic!() };
    assert_eq!(found, Some(version));
}

#[derive(Debug, Clone)]
enum Act {
    Read(usize),
    Write(usize),
    Create(usize),
    Forget(usize),
}

fn act() -> impl Strategy<Value = Act> {
    let who = 0usize..4;
    prop_oneof![
        who.clone().prop_map(Act::Read),
        who.clone().prop_map(Act::Write),
        who.clone().prop_map(Act::Create),
        who.prop_map(Act::Forget),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, ..ProptestConfig::default() })]
    /// Any interleaving of readers, writers and crashed writers: a swap is applied exactly when the version it was
    /// conditional on is there, and the content is then what it wrote.
    #[test]
    fn any_interleaving_follows_the_model(acts in proptest::collection::vec(act(), 1..40)) {
        let home = tempfile::tempdir().unwrap();
        let store = LocalStore::open(home.path()).unwrap();
        let mut model: Option<Vec<u8>> = None;
        let mut known: [Option<StoreVersion>; 4] = Default::default();
        for (n, act) in acts.into_iter().enumerate() {
            let bytes = format!("write {n}").into_bytes();
            match act {
                Act::Read(who) => {
                    let read = store.read_now().unwrap();
                    prop_assert_eq!(read.as_ref().map(|s| s.bytes.to_vec()), model.clone());
                    known[who] = read.map(|s| s.version);
                }
                Act::Write(who) => if let Some(version) = known[who].clone() {
                    let current = model.as_ref().map(|b| version_of(b).unwrap());
                    match store.swap_now(&Expected::Version(version.clone()), &bytes).unwrap() {
                        Swap::Applied(new) => {
                            prop_assert_eq!(Some(version), current);
                            prop_assert_eq!(&new, &version_of(&bytes).unwrap());
                            known[who] = Some(new);
                            model = Some(bytes);
                        }
                        Swap::Conflict { found } => {
                            prop_assert!(current.is_some() && current != Some(version));
                            prop_assert_eq!(found, current);
                        }
                        Swap::Absent => prop_assert!(model.is_none()),
                        Swap::Unknown(e) => prop_assert!(false, "{}", e),
                    }
                },
                Act::Create(who) => match store.swap_now(&Expected::Absent, &bytes).unwrap() {
                    Swap::Applied(new) => {
                        prop_assert!(model.is_none());
                        known[who] = Some(new);
                        model = Some(bytes);
                    }
                    other => {
                        let conflict = matches!(other, Swap::Conflict { .. });
                        prop_assert!(model.is_some() && conflict);
                    },
                },
                // A writer that crashed: a temporary file and its knowledge are lost.
                Act::Forget(who) => {
                    std::fs::write(home.path().join(format!(".registry.json.{n}")), b"torn").unwrap();
                    known[who] = None;
                }
            }
        }
        prop_assert_eq!(store.read_now().unwrap().map(|s| s.bytes.to_vec()), model);
    }
}

#[test]
fn a_foreign_or_newer_layout_is_refused() {
    let home = tempfile::tempdir().unwrap();
    drop(LocalStore::open(home.path()).unwrap());
    let marker = home.path().join("system/storage-layout.json");
    assert_eq!(std::fs::read_to_string(&marker).unwrap(), r#"{"product":"stado","schema_version":1}"#);
    drop(LocalStore::open(home.path()).unwrap());

    std::fs::write(&marker, r#"{"product":"stado","schema_version":2}"#).unwrap();
    assert_eq!(sentence(LocalStore::open(home.path())), "unsupported storage layout schema_version 2; expected 1");
    std::fs::write(&marker, r#"{"product":"other","schema_version":1}"#).unwrap();
    assert_eq!(sentence(LocalStore::open(home.path())), "storage layout marker belongs to another product");
    std::fs::write(&marker, "{").unwrap();
    assert!(sentence(LocalStore::open(home.path())).contains("is not JSON"));
}

#[tokio::test]
async fn no_path_leads_out_of_the_root() {
    let home = tempfile::tempdir().unwrap();
    let root = home.path().join("store");
    for key in ["../registry.json", "/etc/passwd", "a/../../b", "", "./x/.."] {
        assert_eq!(sentence(LocalStore::open_at(&root, key)), format!("storage path escapes deployment root: {key}"));
    }
    std::fs::create_dir_all(home.path().join("elsewhere")).unwrap();
    std::fs::create_dir_all(&root).unwrap();
    symlink(home.path().join("elsewhere"), root.join("ecosystem")).unwrap();
    let key = "ecosystem/registry.json";
    assert_eq!(sentence(LocalStore::open_at(&root, key)), format!("storage path escapes deployment root: {key}"));

    let nested = LocalStore::open_at(&root, "a/b/registry.json").unwrap();
    nested.swap(Expected::Absent, b"x".to_vec()).await.unwrap();
    assert_eq!(std::fs::read(root.join("a/b/registry.json")).unwrap(), b"x");
}

#[tokio::test]
async fn a_link_at_the_registry_is_refused_and_left_alone() {
    let home = tempfile::tempdir().unwrap();
    let store = LocalStore::open(home.path().join("store")).unwrap();
    let target = home.path().join("target");
    std::fs::write(&target, b"kept").unwrap();
    symlink(&target, store.root().join(REGISTRY)).unwrap();
    assert!(sentence(store.read().await).contains("it is a symbolic link"));
    let version = version_of(b"kept").unwrap();
    assert!(
        sentence(store.swap(Expected::Version(version), b"x".to_vec()).await).starts_with("registry store unreachable")
    );
    assert_eq!(std::fs::read(&target).unwrap(), b"kept");
}

#[tokio::test]
async fn a_swap_waits_for_the_lock_of_another_process() {
    let home = tempfile::tempdir().unwrap();
    let store = LocalStore::open(home.path()).unwrap();
    let name = hex::encode(Sha256::digest(b"registry.json"));
    let lock = Lock::exclusive(&home.path().join(".locks").join(name)).unwrap();
    let swap = tokio::spawn({
        let store = store.clone();
        async move { store.swap(Expected::Absent, b"x".to_vec()).await }
    });
    // Readers are not held back by a writer.
    assert!(store.read().await.unwrap().is_none());
    assert!(!swap.is_finished());
    drop(lock);
    assert!(matches!(swap.await.unwrap().unwrap(), Swap::Applied(_)));
}

fn writer(user: &str) -> Writer {
    Writer { user: user.into(), host: "control".into(), from: Some("192.0.2.7".into()) }
}

async fn swap(store: &LocalStore, bytes: &str) -> StoreVersion {
    let held = store.read().await.unwrap();
    let expected = held.map_or(Expected::Absent, |held| Expected::Version(held.version));
    let Swap::Applied(version) = store.swap(expected, bytes.as_bytes().to_vec()).await.unwrap() else { panic!() };
    version
}

#[tokio::test]
async fn each_version_is_remembered_with_its_time_and_writer() {
    let home = tempfile::tempdir().unwrap();
    let store = LocalStore::open(home.path()).unwrap().written_by(writer("ann"));
    let one = swap(&store, r#"{"service_directory":{"generation":7}}"#).await;
    let two = swap(&store.clone().written_by(writer("bo")), "{}").await;
    let versions = store.versions().await.unwrap();
    let told: Vec<_> = versions.iter().map(|v| (&v.version, v.replaced.as_ref(), v.writer.clone())).collect();
    assert_eq!(told, [(&two, Some(&one), Some(writer("bo"))), (&one, None, Some(writer("ann")))]);
    assert_eq!((versions[0].directory_generation, versions[1].directory_generation), (None, Some(7)));
    assert!(versions[0].at.parse::<jiff::Timestamp>().is_ok());
    let content = store.content(&one).await.unwrap().unwrap();
    assert_eq!(&*content, br#"{"service_directory":{"generation":7}}"#, "as bytes");
    assert!(store.content(&"never".parse().unwrap()).await.unwrap().is_none());
}

#[tokio::test]
async fn what_another_build_wrote_is_remembered_when_it_is_replaced() {
    let home = tempfile::tempdir().unwrap();
    let store = LocalStore::open(home.path()).unwrap().written_by(writer("ann"));
    std::fs::write(home.path().join("registry.json"), b"foreign").unwrap();
    let foreign = version_of(b"foreign").unwrap();
    assert_eq!(&*store.content(&foreign).await.unwrap().unwrap(), b"foreign", "while it is there");
    swap(&store, "{}").await;
    let versions = store.versions().await.unwrap();
    assert_eq!(versions.len(), 2);
    assert_eq!((&versions[1].version, &versions[1].writer), (&foreign, &None));
    assert_eq!(&*store.content(&foreign).await.unwrap().unwrap(), b"foreign");
}

#[tokio::test]
async fn a_history_is_bounded_and_its_loss_never_fails_a_write() {
    let home = tempfile::tempdir().unwrap();
    let store = LocalStore::open(home.path()).unwrap();
    for n in 0..205 {
        swap(&store, &format!("{n}")).await;
    }
    let versions = store.versions().await.unwrap();
    assert_eq!(versions.len(), 200);
    assert_eq!(versions[0].version, version_of(b"204").unwrap());

    std::fs::remove_dir_all(home.path().join(".history")).unwrap();
    std::fs::write(home.path().join(".history"), b"a file in its place").unwrap();
    swap(&store, "still written").await;
    assert_eq!(&*store.read().await.unwrap().unwrap().bytes, b"still written");
}

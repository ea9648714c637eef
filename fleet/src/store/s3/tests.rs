//! The store in memory and against a server that speaks the interface, and misbehaves when asked to.
use super::emulator::{Emulator, Fault, KEY_ID, Manner, SECRET};
use super::*;
use crate::store::RegistryStore;
use crate::store::conformance;
use crate::store::history::History;
use crate::store::http::Secret;
use std::collections::BTreeMap;
use std::sync::Mutex;

const OBJECT: &str = "prod/registry.json";

fn keys() -> Keys {
    Keys::Given { id: KEY_ID.into(), secret: Secret::new(SECRET), token: None }
}

fn open(emulator: &Emulator, more: &str, keys: Keys) -> Arc<S3Store> {
    let config = S3Config::parse(&emulator.url("prod", more), None).unwrap();
    Arc::new(S3Store::new(&config, keys).unwrap().looking_every(Duration::from_millis(5)))
}

fn scene() -> (Emulator, Arc<S3Store>) {
    let emulator = Emulator::start();
    let store = open(&emulator, "", keys());
    (emulator, store)
}

/// Objects in memory, with the promises of a bucket.
#[derive(Debug, Default)]
struct Memory(Mutex<(u64, BTreeMap<String, Stored>)>);

impl Engine for Memory {
    fn get<'a>(&'a self, key: &'a str, unless: Option<&'a StoreVersion>) -> StoreFuture<'a, Result<Found, StoreError>> {
        let found = match self.0.lock().unwrap().1.get(key) {
            None => Found::Nothing,
            Some(stored) if Some(&stored.version) == unless => Found::Same,
            Some(stored) => Found::Stored(stored.clone()),
        };
        Box::pin(std::future::ready(Ok(found)))
    }

    fn put<'a>(
        &'a self,
        key: &'a str,
        expected: &'a Expected,
        bytes: Vec<u8>,
    ) -> StoreFuture<'a, Result<Put, StoreError>> {
        let mut memory = self.0.lock().unwrap();
        let holds = match (expected, memory.1.get(key)) {
            (Expected::Absent, None) => true,
            (Expected::Version(version), Some(held)) => held.version == *version,
            _ => false,
        };
        let put = if holds {
            memory.0 += 1;
            let version: StoreVersion = memory.0.to_string().parse().unwrap();
            memory.1.insert(key.to_owned(), Stored { bytes: bytes.into(), version: version.clone() });
            Put::Written(version)
        } else {
            Put::Refused
        };
        Box::pin(std::future::ready(Ok(put)))
    }

    fn delete<'a>(&'a self, key: &'a str) -> StoreFuture<'a, ()> {
        self.0.lock().unwrap().1.remove(key);
        Box::pin(std::future::ready(()))
    }
}

fn in_memory() -> Arc<S3Store> {
    Arc::new(
        S3Store::over(Arc::new(Memory::default()), OBJECT, "memory".into()).looking_every(Duration::from_millis(5)),
    )
}

async fn applied(store: &S3Store, expected: Expected, bytes: &str) -> StoreVersion {
    let Swap::Applied(version) = store.swap(expected, bytes.into()).await.unwrap() else { panic!() };
    version
}

#[tokio::test(flavor = "multi_thread")]
async fn it_is_a_store_in_memory() {
    conformance::a_swap_is_applied_conflicts_or_finds_nothing(in_memory().as_ref()).await;
    conformance::two_hundred_writers_at_once_lose_nothing(in_memory()).await;
    conformance::exactly_one_creates(in_memory()).await;
    conformance::a_watcher_sees_the_next_version(in_memory()).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn it_is_a_store_behind_the_interface() {
    let (_emulator, store) = scene();
    conformance::a_swap_is_applied_conflicts_or_finds_nothing(store.as_ref()).await;
    let (_emulator, store) = scene();
    conformance::exactly_one_creates(store).await;
    let (_emulator, store) = scene();
    conformance::a_watcher_sees_the_next_version(store).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn two_hundred_writers_behind_the_interface_lose_nothing() {
    let (_emulator, store) = scene();
    conformance::two_hundred_writers_at_once_lose_nothing(store).await;
}

#[tokio::test]
async fn the_registry_is_one_object_and_every_host_asks_for_it_itself() {
    let (emulator, store) = scene();
    assert_eq!(store.location(), "s3://fleet/prod/registry.json");
    assert!(store.shared() && store.direct() && !store.tells());
    let one = applied(&store, Expected::Absent, "one").await;
    assert_eq!(emulator.object(OBJECT).unwrap(), b"one");
    assert_eq!(emulator.keys(), [OBJECT], "nothing is left of the trial");
    assert!(!one.as_str().contains('"'), "{one}");
    emulator.log();
    assert_eq!(store.read().await.unwrap().unwrap().version, one);
    assert_eq!(emulator.log(), [format!("GET /fleet/{OBJECT}")], "a read is one request");
    applied(&store, Expected::Version(one), "two").await;
    assert_eq!(emulator.log(), [format!("PUT /fleet/{OBJECT}")], "it is tried once");
}

#[tokio::test]
async fn each_version_is_remembered_beside_the_registry_with_its_writer() {
    let (emulator, plain) = scene();
    let writer = |user: &str| Writer { user: user.into(), host: "desk".into(), from: None };
    let ann = S3Store::clone(&plain).written_by(writer("ann"));
    // What a build without a history wrote is taken in before it is replaced.
    let one = applied(&plain, Expected::Absent, r#"{"service_directory":{"generation":7}}"#).await;
    let two = applied(&ann, Expected::Version(one.clone()), "two").await;
    let three = applied(&ann, Expected::Version(two.clone()), "three").await;
    let past: &dyn History = plain.history().unwrap();
    let versions = past.versions().await.unwrap();
    let told: Vec<_> = versions.iter().map(|v| (&v.version, v.replaced.as_ref(), v.writer.clone())).collect();
    assert_eq!(
        told,
        [(&three, Some(&two), Some(writer("ann"))), (&two, Some(&one), Some(writer("ann"))), (&one, None, None)]
    );
    assert_eq!(versions[2].directory_generation, Some(7));
    assert_eq!(&*past.content(&two).await.unwrap().unwrap(), b"two");
    assert!(past.content(&"never".parse().unwrap()).await.unwrap().is_none());
    assert!(emulator.keys().contains(&"prod/.history/index.json".to_owned()));

    let mut held = three;
    for n in 0..60 {
        held = applied(&ann, Expected::Version(held), &format!("version {n}")).await;
    }
    assert_eq!(past.versions().await.unwrap().len(), 50);
    assert_eq!(emulator.keys().len(), 1 + 1 + 50, "the oldest are taken away: {:?}", emulator.keys());
    assert!(past.content(&two).await.unwrap().is_none());
}

#[tokio::test(flavor = "multi_thread")]
async fn writers_at_once_are_all_remembered() {
    let (_emulator, plain) = scene();
    applied(&plain, Expected::Absent, "").await;
    let writers: Vec<_> = (0..12)
        .map(|n| {
            let writer = Writer { user: format!("writer {n}"), host: "desk".into(), from: None };
            let store = Arc::new(S3Store::clone(&plain).written_by(writer));
            tokio::spawn(append(store, format!("line {n}")))
        })
        .collect();
    for writer in writers {
        writer.await.unwrap();
    }
    let versions = plain.versions().await.unwrap();
    let mut writers: Vec<String> = versions.iter().filter_map(|v| Some(v.writer.clone()?.user)).collect();
    writers.sort();
    let once: std::collections::HashSet<_> = versions.iter().map(|v| v.version.to_string()).collect();
    assert_eq!(once.len(), versions.len(), "each is remembered once: {versions:?}");
    let mut all: Vec<String> = (0..12).map(|n| format!("writer {n}")).collect();
    all.sort();
    assert_eq!(writers, all);
}

#[tokio::test]
async fn a_store_that_ignores_conditions_is_refused_before_anything_is_written() {
    for (manner, how) in [
        (Manner::IgnoresMatch, "conditional on an old version (If-Match)"),
        (Manner::IgnoresNoneMatch, "an object that was to be created (If-None-Match)"),
    ] {
        let (emulator, store) = scene();
        emulator.manner(manner);
        for _ in 0..2 {
            let error = store.swap(Expected::Absent, b"one".to_vec()).await.unwrap_err();
            assert!(error.class == Class::Config && error.sentence.contains(how), "{error}");
            assert!(error.sentence.starts_with("the store at s3://fleet/prod/registry.json cannot keep the registry"));
        }
        assert_eq!(store.prove().await.unwrap_err().class, Class::Config);
        assert_eq!(emulator.object(OBJECT), None);
        assert_eq!(emulator.keys(), Vec::<String>::new());
        // A store that was mended is taken.
        emulator.manner(Manner::Good);
        store.prove().await.unwrap();
        applied(&store, Expected::Absent, "one").await;
    }
}

#[tokio::test]
async fn a_store_without_etags_has_no_versions() {
    let (emulator, store) = scene();
    emulator.manner(Manner::NoEtag);
    assert!(store.swap(Expected::Absent, b"one".to_vec()).await.is_err());
    assert_eq!(emulator.object(OBJECT), None);
}

#[tokio::test]
async fn keys_that_may_only_read_read_and_are_told_when_they_write() {
    let (emulator, store) = scene();
    applied(&store, Expected::Absent, "one").await;
    let reader = open(&emulator, "", keys());
    emulator.manner(Manner::ReadOnly);
    reader.prove().await.unwrap();
    assert_eq!(&*reader.read().await.unwrap().unwrap().bytes, b"one");
    let error = reader.swap(Expected::Absent, b"two".to_vec()).await.unwrap_err();
    assert!(error.class == Class::Auth && error.sentence.contains("these keys may not write there"), "{error}");
}

#[tokio::test]
async fn each_answer_to_a_write_is_told_for_what_it_is() {
    let (emulator, store) = scene();
    let one = applied(&store, Expected::Absent, "one").await;
    let swap = async |fault: Fault| {
        emulator.expect([fault]);
        store.swap(Expected::Version(one.clone()), b"two".to_vec()).await
    };
    // Another write was under way: nothing was written, and nobody is named.
    let conflict = swap(Fault::Say(409, "ConditionalRequestConflict")).await.unwrap();
    assert!(matches!(conflict, Swap::Conflict { found: None }), "{conflict:?}");
    let conflict = swap(Fault::Say(412, "PreconditionFailed")).await.unwrap();
    assert!(matches!(conflict, Swap::Conflict { .. }), "{conflict:?}");
    for fault in [Fault::Say(500, "InternalError"), Fault::Say(504, "x"), Fault::CutBefore] {
        let Swap::Unknown(e) = swap(fault.clone()).await.unwrap() else { panic!("{fault:?}") };
        assert!(e.sentence.starts_with("registry store unreachable (s3://fleet/prod/registry.json): "), "{e}");
    }
    for (status, code, class) in
        [(404, "NoSuchBucket", Class::Config), (403, "AccessDenied", Class::Auth), (503, "SlowDown", Class::RateLimit)]
    {
        let e = swap(Fault::Say(status, code)).await.unwrap_err();
        assert!(e.class == class && e.sentence.contains(code), "{e}");
    }
    assert_eq!(emulator.object(OBJECT).unwrap(), b"one", "none of these wrote");
    let Swap::Unknown(_) = swap(Fault::CutAfter).await.unwrap() else { panic!() };
    assert_eq!(emulator.object(OBJECT).unwrap(), b"two", "the answer was lost, not the write");
    // The object is gone: 404 to a write that is conditional on a version.
    let gone = open(&emulator, "", keys());
    let elsewhere = S3Store { key: "other/registry.json".into(), ..S3Store::clone(&gone) };
    let absent = elsewhere.swap(Expected::Version(one), b"x".to_vec()).await.unwrap();
    assert!(matches!(absent, Swap::Absent), "{absent:?}");
}

#[tokio::test]
async fn a_server_that_is_away_was_asked_nothing_and_one_that_refuses_is_quoted() {
    let (emulator, store) = scene();
    applied(&store, Expected::Absent, "one").await;
    let stranger = Keys::Given { id: "AKIDSTRANGER".into(), secret: Secret::new("x"), token: None };
    let e = open(&emulator, "", stranger).read().await.unwrap_err();
    assert!(e.class == Class::Auth && e.sentence.contains("InvalidAccessKeyId: the emulator says so"), "{e}");
    let e = open(&emulator, "", Keys::Missing("no keys are there".into())).read().await.unwrap_err();
    assert!(e.class == Class::Config && e.sentence.ends_with("no keys are there"), "{e}");

    let free = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let nowhere = format!("s3://fleet/prod?endpoint=http://127.0.0.1:{free}");
    let nowhere = S3Store::new(&S3Config::parse(&nowhere, None).unwrap(), keys()).unwrap();
    let e = nowhere.swap(Expected::Absent, b"x".to_vec()).await.unwrap_err();
    assert!(e.class == Class::InfraDown && e.sentence.contains("connect to http://127.0.0.1:"), "{e}");
    assert!(!format!("{store:?} {e:?}").contains(SECRET));
}

/// Appends its own line until the store holds it; every end that cannot be told is looked at before the next try.
async fn append(store: Arc<S3Store>, line: String) {
    loop {
        let held = store.read().await.unwrap();
        let text = held.as_ref().map_or(String::new(), |held| String::from_utf8(held.bytes.to_vec()).unwrap());
        if text.lines().any(|l| l == line) {
            return;
        }
        let expected = held.map_or(Expected::Absent, |held| Expected::Version(held.version));
        store.swap(expected, format!("{text}{line}\n").into_bytes()).await.unwrap();
    }
}

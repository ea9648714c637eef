//! etcd as a store: the conformance suite, a member that is killed, a line that is cut, a login. Against
//! the real thing.
use crate::support::etcd::{Etcd, Line};
use crate::support::{PATIENCE, wait_until};
use serde_json::json;
use stado_fleet::fault::Class;
use stado_fleet::name::StoreVersion;
use stado_fleet::store::etcd::{EtcdConfig, EtcdStore, Login};
use stado_fleet::store::http::Secret;
use stado_fleet::store::{Expected, RegistryStore, StoreError, Swap, conformance};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};
use std::time::{Duration, Instant};
use tokio::time::timeout;

fn open(url: &str) -> Arc<EtcdStore> {
    Arc::new(EtcdStore::new(EtcdConfig::parse(url, None, None).unwrap(), None))
}

async fn applied(store: &EtcdStore, expected: Expected, text: &str) -> StoreVersion {
    match store.swap(expected, text.into()).await.unwrap() {
        Swap::Applied(version) => version,
        other => panic!("{other:?}"),
    }
}

/// Appends its own line until the store holds it; every end that cannot be told is looked at before the next try. Counts what
/// it was not told as done.
async fn append(store: Arc<EtcdStore>, line: String, trouble: Arc<AtomicU32>) {
    loop {
        let held = match store.read().await {
            Ok(held) => held,
            Err(_) => {
                trouble.fetch_add(1, Relaxed);
                tokio::time::sleep(Duration::from_millis(20)).await;
                continue;
            }
        };
        let text = held.as_ref().map_or(String::new(), |held| String::from_utf8(held.bytes.to_vec()).unwrap());
        if text.lines().any(|l| l == line) {
            return;
        }
        let expected = held.map_or(Expected::Absent, |held| Expected::Version(held.version));
        if matches!(store.swap(expected, format!("{text}{line}\n").into_bytes()).await, Ok(Swap::Unknown(_)) | Err(_)) {
            trouble.fetch_add(1, Relaxed);
        }
    }
}

async fn lines(store: &EtcdStore) -> Vec<String> {
    let held = store.read().await.unwrap().unwrap();
    let mut lines: Vec<String> = String::from_utf8(held.bytes.to_vec()).unwrap().lines().map(str::to_owned).collect();
    lines.sort();
    lines
}

#[tokio::test(flavor = "multi_thread")]
async fn etcd_is_a_store() {
    needs!("etcd");
    let etcd = Etcd::start(1);
    conformance::a_swap_is_applied_conflicts_or_finds_nothing(open(&etcd.url("a")).as_ref()).await;
    conformance::exactly_one_creates(open(&etcd.url("b"))).await;
    conformance::a_watcher_sees_the_next_version(open(&etcd.url("c"))).await;
    let store = open(&etcd.url("d"));
    assert_eq!(store.location(), "etcd:/d/registry.json");
    assert!(store.shared() && store.direct() && store.tells());
    // A version of another kind of store names nothing here.
    let one = applied(&store, Expected::Absent, "one").await;
    let foreign = Expected::Version("9b2cf535f27731c9".parse().unwrap());
    let conflict = store.swap(foreign, b"two".to_vec()).await.unwrap();
    assert!(matches!(&conflict, Swap::Conflict { found } if found.as_ref() == Some(&one)), "{conflict:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn two_hundred_writers_to_etcd_lose_nothing() {
    needs!("etcd");
    let etcd = Etcd::start(1);
    // They stand in one queue there.
    conformance::two_hundred_writers_at_once_lose_nothing(open(&etcd.url("a?timeout=120s"))).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn of_three_members_one_may_be_killed_and_no_write_is_lost() {
    needs!("etcd");
    let mut etcd = Etcd::start(3);
    let store = open(&etcd.url("a?timeout=6s"));
    let one = applied(&store, Expected::Absent, "begin\n").await;
    let watching = {
        let store = store.clone();
        tokio::spawn(async move { store.watch(Some(&one)).await })
    };
    let trouble = Arc::<AtomicU32>::default();
    let names: Vec<String> = (0..20).map(|n| format!("line {n:02}")).collect();
    let mut writers = Vec::new();
    for (n, line) in names.iter().enumerate() {
        if n == 10 {
            // The one that is asked first.
            etcd.members[0].kill9();
        }
        writers.push(tokio::spawn(append(store.clone(), line.clone(), trouble.clone())));
    }
    for writer in writers {
        timeout(2 * PATIENCE, writer).await.unwrap().unwrap();
    }
    let mut all = names.clone();
    all.insert(0, "begin".into());
    assert_eq!(lines(&store).await, all);
    assert!(timeout(PATIENCE, watching).await.unwrap().unwrap().unwrap().is_some(), "the watcher was told");

    // A member that comes back has what was written meanwhile.
    etcd.up(0);
    etcd.answers(0);
    let alone = open(&format!("etcd://127.0.0.1:{}/a", etcd.members[0].port()));
    assert_eq!(lines(&alone).await, all);

    // Without a majority nothing is promised, and that is told within the deadline.
    etcd.members[1].kill9();
    etcd.members[2].kill9();
    let held = timeout(PATIENCE, store.read()).await.expect("told within the deadline").unwrap_err();
    assert!(held.sentence.contains("no member answered ("), "{held}");
    assert!(matches!(held.class, Class::InfraDown | Class::Timeout), "{held:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_watch_goes_on_from_the_last_revision_and_begins_anew_when_that_is_compacted() {
    needs!("etcd");
    let etcd = Etcd::start(1);
    let line = Line::to(etcd.members[0].port());
    let direct = open(&etcd.url("a"));
    let far = open(&format!("etcd://127.0.0.1:{}/a?timeout=20s", line.port));
    let one = applied(&direct, Expected::Absent, "one").await;
    let watch = |held: &StoreVersion| {
        let (far, held) = (far.clone(), held.clone());
        tokio::spawn(async move { far.watch(Some(&held)).await })
    };
    // A read, and the stream.
    let opened = |n: usize| wait_until("the watch is open", PATIENCE, || line.connections() >= n);

    let watching = watch(&one);
    opened(2);
    line.cut();
    let two = applied(&direct, Expected::Version(one), "two").await;
    assert!(!watching.is_finished());
    line.mend();
    let told = timeout(PATIENCE, watching).await.unwrap().unwrap().unwrap();
    assert_eq!(told, Some(two.clone()), "what was written while the line was cut is told");

    line.cut();
    line.mend();
    let watching = watch(&two);
    opened(2);
    line.cut();
    // Revisions go on without the registry, and the one that the watch would go on from is compacted away.
    let mut revision = String::new();
    for _ in 0..5 {
        let put = etcd.members[0].done("/v3/kv/put", &json!({"key": "b3RoZXI=", "value": "eA=="}));
        revision = put["header"]["revision"].as_str().unwrap().to_owned();
    }
    etcd.members[0].done("/v3/kv/compaction", &json!({"revision": revision, "physical": true}));
    line.mend();
    // The stream that is refused, the read that comes after it, and the stream from there.
    opened(3);
    assert!(!watching.is_finished(), "the registry itself is as it was");
    let three = applied(&direct, Expected::Version(two), "three").await;
    assert_eq!(timeout(PATIENCE, watching).await.unwrap().unwrap().unwrap(), Some(three.clone()));

    // A registry that is taken away is told as well.
    let watching = watch(&three);
    etcd.members[0].done("/v3/kv/deleterange", &json!({"key": "L2EvcmVnaXN0cnkuanNvbg=="}));
    assert_eq!(timeout(PATIENCE, watching).await.unwrap().unwrap().unwrap(), None);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_cluster_that_asks_for_a_login_gets_one_and_a_token_that_it_forgot_is_renewed() {
    needs!("etcd");
    let mut etcd = Etcd::start(1);
    for (path, body) in [
        ("/v3/auth/user/add", json!({"name": "root", "password": "pass-word"})),
        ("/v3/auth/role/add", json!({"name": "root"})),
        ("/v3/auth/user/grant", json!({"user": "root", "role": "root"})),
        ("/v3/auth/enable", json!({})),
    ] {
        etcd.members[0].done(path, &body);
    }
    let with = |password: &str| {
        let login = Login::Given { user: "root".into(), password: Secret::new(password) };
        EtcdStore::new(EtcdConfig::parse(&etcd.url("a"), None, None).unwrap(), Some(login))
    };
    let refused = |error: StoreError| {
        assert_eq!(error.class, Class::Auth, "{error}");
        assert!(!error.sentence.contains("pass-word"), "{error}");
    };
    refused(open(&etcd.url("a")).read().await.unwrap_err());
    refused(with("wrong").read().await.unwrap_err());
    let store = with("pass-word");
    let one = applied(&store, Expected::Absent, "one").await;
    assert!(!format!("{store:?}").contains("pass-word"));
    // It keeps its tokens in memory.
    etcd.members[0].kill9();
    etcd.up(0);
    wait_until("etcd answers", PATIENCE, || {
        std::net::TcpStream::connect(("127.0.0.1", etcd.members[0].port())).is_ok()
    });
    let mut held = store.read().await;
    let began = Instant::now();
    while held.as_ref().is_err_and(|e| e.class != Class::Auth) && began.elapsed() < PATIENCE {
        tokio::time::sleep(Duration::from_millis(50)).await;
        held = store.read().await;
    }
    assert_eq!(held.unwrap().unwrap().version, one);
}

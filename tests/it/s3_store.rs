//! A bucket as a store, on a server that others made: the probe, the conformance suite, the history.
use crate::support::s3_server::S3Server;
use stado_fleet::store::history::Writer;
use stado_fleet::store::s3::S3Store;
use stado_fleet::store::{Expected, RegistryStore, Swap, conformance};
use std::sync::Arc;

#[tokio::test(flavor = "multi_thread")]
async fn an_s3_server_that_others_made_is_a_store() {
    needs!("s3-server");
    let server = S3Server::start();
    server.open("probe", "").prove().await.unwrap();
    conformance::a_swap_is_applied_conflicts_or_finds_nothing(server.open("a", "").as_ref()).await;
    conformance::exactly_one_creates(server.open("b", "&timeout=60s")).await;
    conformance::a_watcher_sees_the_next_version(server.open("c", "")).await;
    // They stand in one queue there, and each is refused by every other's success.
    conformance::writers_at_once_lose_nothing(server.open("d", "&timeout=60s"), 24).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_s3_server_that_others_made_keeps_the_history() {
    needs!("s3-server");
    let server = S3Server::start();
    let writer = Writer { user: "ann".into(), host: "desk".into(), from: None };
    let store = Arc::new(S3Store::clone(&server.open("a", "")).written_by(writer.clone()));
    let mut held = Expected::Absent;
    for text in ["one", "two", "three"] {
        let Swap::Applied(version) = store.swap(held, text.into()).await.unwrap() else { panic!("{text}") };
        held = Expected::Version(version);
    }
    let past = store.history().unwrap();
    let versions = past.versions().await.unwrap();
    assert_eq!(versions.len(), 3, "{versions:?}");
    assert!(versions.iter().all(|version| version.writer.as_ref() == Some(&writer)), "{versions:?}");
    assert_eq!(&*past.content(&versions[1].version).await.unwrap().unwrap(), b"two");
}

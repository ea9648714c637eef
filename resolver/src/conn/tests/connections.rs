//! Who is connected and who was, as people and the local API are told (rule 9).
use super::support::*;
use crate::conn::Backend;
use stado_fleet::wire::{Connection, ConnectionList};
use tokio::io::AsyncWriteExt;

fn list(rig: &Rig) -> ConnectionList {
    rig.context.ledger.connections("svc").unwrap()
}

#[tokio::test]
async fn an_open_connection_is_listed_with_its_bytes_until_it_ends_and_then_with_its_end() {
    let (backend, addr) = listener().await;
    let rig = Rig::mesh(local(addr));
    let (mut client, mut served) = rig.pair(&backend).await;
    client.write_all(b"four").await.unwrap();
    assert_eq!(read_exact(&mut served, 4).await, b"four");
    served.write_all(b"answer").await.unwrap();
    assert_eq!(read_exact(&mut client, 6).await, b"answer");
    until("the bytes are counted", || list(&rig).counters.bytes_down == 6).await;
    let now = list(&rig);
    let [open]: [Connection; 1] = now.open.try_into().unwrap();
    let from = client.local_addr().unwrap().to_string();
    assert_eq!((open.client, open.outcome.as_str(), open.bytes_up, open.bytes_down), (from.clone(), "open", 4, 6));
    assert_eq!((now.ended, now.counters.active, now.counters.bytes_up), (vec![], 1, 4));

    reset(served);
    expect_reset(&mut client).await;
    until("it is over", || list(&rig).open.is_empty()).await;
    let now = list(&rig);
    let [over]: [Connection; 1] = now.ended.try_into().unwrap();
    assert_eq!((over.client, over.outcome.as_str(), over.blame.as_deref()), (from, "service_reset", Some("service")));
    assert!(over.reason.is_some());
    // What an ended connection has moved stays counted.
    assert_eq!((now.counters.active, now.counters.bytes_up, now.counters.bytes_down), (0, 4, 6));
}

#[tokio::test]
async fn refusals_are_counted_by_reason_and_the_last_twenty_ends_are_kept() {
    let (closed, addr) = listener().await;
    drop(closed);
    let rig = Rig::mesh(local(addr));
    for _ in 0..25 {
        assert_eq!(read_all(&mut rig.connect().await).await.unwrap(), b"");
    }
    until("all are refused", || list(&rig).counters.refused.unreachable == 25).await;
    rig.frontend().set_backend(Backend::None("stopped".into()));
    assert_eq!(read_all(&mut rig.connect().await).await.unwrap(), b"");
    until("the last is refused", || list(&rig).counters.refused.no_backend == 1).await;
    until("all have ended", || list(&rig).open.is_empty()).await;
    let now = list(&rig);
    assert_eq!((now.counters.opened, now.counters.refused.limit, now.counters.refused.looped), (0, 0, 0));
    assert_eq!(now.ended.len(), 20);
    for over in now.ended {
        assert_eq!((over.outcome.as_str(), over.blame.as_deref()), ("refused", Some("service")));
        assert!(over.reason.unwrap().contains(&addr.to_string()));
    }
}

#[tokio::test]
async fn a_service_without_a_frontend_has_no_list() {
    let rig = Rig::mesh(Backend::None("starting".into()));
    assert_eq!(rig.context.ledger.connections("other"), None);
}

//! The end: streams are waited for, a second signal cuts them, files and sockets say so.
use super::support::*;
use crate::daemon::Announcement;
use stado_fleet::ledger::{Publisher, publisher};

async fn with_open_stream() -> (Host, Running, Client, u16, Echo) {
    let host = Host::new();
    let echo = Echo::start("db").await;
    let port = port();
    host.push(&host.registry(1, &[("db", "shop", Some(port))], &[("db", "me", format!("tcp://{}", echo.addr))])).await;
    let daemon = host.start();
    host.serving().await;
    let mut client = Client::connect(port).await;
    assert_eq!(client.ask("1").await.as_deref(), Some("db 1"));
    (host, daemon, client, port, echo)
}

#[tokio::test]
async fn a_drain_stops_accepting_at_once_and_ends_as_soon_as_the_streams_end() {
    let (host, daemon, mut client, port, _echo) = with_open_stream().await;
    daemon.shutdown.signal();
    let draining = || daemon.said.lock().unwrap().iter().any(|a| matches!(a, Announcement::Draining(1))).then_some(());
    until("the announcement", draining).await;
    // Only now: a probe that is still accepted is a stream too, and would be counted.
    until("no more accepting", || std::net::TcpStream::connect(("127.0.0.1", port)).is_err().then_some(())).await;
    assert_eq!(client.ask("2").await.as_deref(), Some("db 2"));
    drop(client);
    daemon.ended().await.unwrap();
    let Publisher::Dead { state, .. } = publisher(&host.paths()).unwrap() else { panic!("still alive") };
    assert_eq!((state.state.as_str(), state.listening, state.adapters.len()), ("stopped", false, 0));
    assert!(!host.dir.path().join("mesh.sock").exists());
}

#[tokio::test]
async fn a_second_signal_ends_now() {
    let (host, daemon, mut client, _, _echo) = with_open_stream().await;
    daemon.shutdown.signal();
    assert_eq!(client.ask("2").await.as_deref(), Some("db 2"));
    daemon.shutdown.signal();
    daemon.ended().await.unwrap();
    assert!(host.state().is_none());
}

//! The client library against a real daemon.
use crate::support::home::{DEVMESHD, Home};
use crate::support::process::Process;
use crate::support::tcp::ask;
use crate::support::{PATIENCE, wait_until};
use stado::client::{Api, Error, FirstAttempt, RegistrationOptions, State, blocking, listen};
use std::io::{Read, Write};
use std::path::PathBuf;
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::time::timeout;

fn serve(home: &Home) -> Process {
    home.start("devmeshd", DEVMESHD, &["serve", "--docker-enabled=false"])
}

fn options(home: &Home, name: &str) -> RegistrationOptions {
    RegistrationOptions {
        socket: Some(socket(home)),
        ttl: Some(Duration::from_secs(3)),
        first_attempt: FirstAttempt::RetryFor(PATIENCE),
        ..RegistrationOptions::new(name, "")
    }
}

fn socket(home: &Home) -> PathBuf {
    home.file(".devmesh/run/devmesh.sock")
}

#[tokio::test(flavor = "multi_thread")]
async fn a_program_keeps_its_address_through_a_killed_daemon_and_sees_what_happened() {
    let home = Home::new();
    // The program starts before its daemon.
    let listening = tokio::spawn(listen(options(&home, "checkout.api")));
    let daemon = serve(&home);
    let listener = listening.await.unwrap().unwrap();
    let endpoint = listener.registration().endpoint();
    let first = listener.registration().info();
    let mut changes = listener.registration().changes();
    let mut client = tokio::net::TcpStream::connect(&endpoint).await.unwrap();
    client.write_all(b"hello").await.unwrap();
    let (mut served, _) = listener.accept().await.unwrap();
    let mut got = [0; 5];
    served.read_exact(&mut got).await.unwrap();
    assert_eq!(&got, b"hello");

    tokio::task::spawn_blocking(|| daemon.kill9()).await.unwrap();
    let lost = timeout(PATIENCE, changes.wait_for(|s| !matches!(s, State::Registered))).await.unwrap().unwrap().clone();
    assert!(matches!(&lost, State::Retrying { error, .. } if matches!(**error, Error::Unreachable { .. })), "{lost:?}");
    let _daemon = serve(&home);
    timeout(PATIENCE, changes.wait_for(|s| matches!(s, State::Registered))).await.unwrap().unwrap();
    let info = listener.registration().info();
    assert_eq!(info.endpoint, endpoint);
    assert_ne!(info.registration_id, first.registration_id);

    let api = Api::new(socket(&home));
    assert_eq!(api.resolve("checkout.api").await.unwrap().status, "ready");
    listener.close().await;
    let service = api.resolve("checkout.api").await.unwrap();
    assert_eq!((service.status.as_str(), service.frontend.endpoint()), ("unavailable", endpoint));
    assert_eq!(api.resolve("nobody").await.unwrap_err().code(), Some("service_not_found"));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_repeated_creation_under_one_key_is_one_registration() {
    let home = Home::new();
    let _daemon = serve(&home);
    let api = Api::new(socket(&home));
    let request = stado::client::wire::RegisterRequest {
        name: "a".into(),
        backend: stado::client::wire::BackendAddr { host: "127.0.0.1".into(), port: 1 },
        ..Default::default()
    };
    wait_until("the daemon answers", PATIENCE, || home.devmesh(&["health"]).code == 0);
    let first = api.register(&request, Some("key-1")).await.unwrap();
    let again = api.register(&request, Some("key-1")).await.unwrap();
    assert_eq!((again.registration_id, again.lease_token), (first.registration_id.clone(), first.lease_token.clone()));
    assert_eq!(api.register(&request, Some("key-2")).await.unwrap_err().code(), Some("name_conflict"));
    assert_eq!(api.heartbeat(&first.registration_id, "wrong").await.unwrap_err().code(), Some("unauthorized"));
    api.heartbeat(&first.registration_id, &first.lease_token).await.unwrap();
    api.deregister(&first.registration_id, &first.lease_token).await.unwrap();
    assert_eq!(
        api.heartbeat(&first.registration_id, &first.lease_token).await.unwrap_err().code(),
        Some("registration_not_found")
    );
}

#[test]
fn the_blocking_library_publishes_a_standard_listener() {
    let home = Home::new();
    let _daemon = serve(&home);
    let listener = blocking::listen(options(&home, "plain.threads")).unwrap();
    let endpoint = listener.registration().endpoint();
    std::thread::scope(|scope| {
        let asked = scope.spawn(|| ask(&endpoint, "hello"));
        let (mut stream, _) = listener.accept().unwrap();
        let mut line = [0; 6];
        stream.read_exact(&mut line).unwrap();
        stream.write_all(&line).unwrap();
        assert_eq!(asked.join().unwrap().as_deref(), Some("hello"));
    });
    let api = blocking::Api::new(socket(&home)).unwrap();
    assert_eq!(api.list().unwrap().len(), 1);
    listener.close();
    wait_until("unavailable", PATIENCE, || api.resolve("plain.threads").unwrap().status == "unavailable");
}

//! The object API as a part of the daemon: served, told, handed over, drained.
use super::support::*;
use crate::api::object::{Action, Asking, Config, Limits, Namespace, Prefix, Token, Verifier, Verifying};
use crate::daemon::Announcement;
use stado_fleet::store::history::Writer;
use std::collections::{BTreeMap, BTreeSet};
use std::os::unix::fs::PermissionsExt;
use std::sync::Arc;
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

const TOKEN: &str = "a-token";

fn objects(host: &Host, bind: u16) -> Config {
    let file = host.dir.path().join("token");
    std::fs::write(&file, TOKEN).unwrap();
    std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o600)).unwrap();
    let all = vec![Action::Get, Action::Put, Action::List, Action::Stat, Action::Delete];
    let prefixes = vec![Prefix { prefix: String::new(), actions: all }];
    Config {
        bind: ([127, 0, 0, 1], bind).into(),
        root: host.home().join("local-storage"),
        writer: Writer { user: "u".into(), host: "me".into(), from: None },
        namespaces: BTreeMap::from([("notes".to_owned(), Namespace { token: Token::File(file), prefixes })]),
        verifying: None,
        tls: None,
        trust_proxy: false,
    }
}

fn request(line: &str, length: usize) -> String {
    format!("{line} HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {TOKEN}\r\nContent-Length: {length}\r\n\r\n")
}

async fn stat(port: u16) -> String {
    answer_to(port, &request("GET /api/object/stat?uri=stado://notes/a", 0)).await
}

/// The port in the published address.
async fn served(host: &Host) -> u16 {
    let state = host.until_state("the object API is told", |state| state.object_api.is_some()).await;
    let url = state.object_api.unwrap();
    assert!(url.starts_with("http://127.0.0.1:"), "{url}");
    url.rsplit(':').next().unwrap().parse().unwrap()
}

#[tokio::test]
async fn it_is_served_told_and_handed_over_with_a_request_under_way() {
    let mut host = Host::new();
    host.objects = Some(Ok(objects(&host, 0)));
    let old = host.start();
    let port = served(&host).await;
    assert_eq!(old.up().await.object_api, Some(format!("http://127.0.0.1:{port}")));
    // A body that is half here when the other daemon comes.
    let mut slow = TcpStream::connect(("127.0.0.1", port)).await.unwrap();
    let put = request("PUT /api/object?uri=stado://notes/a", 10);
    slow.write_all(format!("{put}half-").as_bytes()).await.unwrap();
    let new = Running::start(crate::daemon::Config { take_over: true, ..host.config() });
    new.up().await;
    let gone = || old.said.lock().unwrap().iter().any(|a| matches!(a, Announcement::HandedOver { .. })).then_some(());
    until("it was taken over", gone).await;
    assert_eq!(served(&host).await, port, "any port is the one it was");
    assert!(stat(port).await.starts_with("HTTP/1.1 404"), "the new one answers");
    slow.write_all(b"done!").await.unwrap();
    let mut answer = String::new();
    slow.read_to_string(&mut answer).await.unwrap();
    assert!(answer.starts_with("HTTP/1.1 200") && answer.contains("stored"), "{answer}");
    drop(slow);
    old.ended().await.unwrap();
    let after = stat(port).await;
    assert!(after.starts_with("HTTP/1.1 200") && after.contains(r#""size":10"#), "{after}");
    new.stop().await;
    assert!(TcpStream::connect(("127.0.0.1", port)).await.is_err(), "and is closed with the last one");
}

#[tokio::test]
async fn an_answer_under_way_is_given_before_the_daemon_ends() {
    let mut host = Host::new();
    host.objects = Some(Ok(objects(&host, 0)));
    let daemon = host.start();
    let port = served(&host).await;
    let mut slow = TcpStream::connect(("127.0.0.1", port)).await.unwrap();
    slow.write_all(format!("{}half-", request("PUT /api/object?uri=stado://notes/a", 10)).as_bytes()).await.unwrap();
    // The request is known to have been accepted once another one is answered.
    stat(port).await;
    daemon.shutdown.drain();
    until("it accepts no more", || std::net::TcpStream::connect(("127.0.0.1", port)).is_err().then_some(())).await;
    slow.write_all(b"done!").await.unwrap();
    let mut answer = String::new();
    slow.read_to_string(&mut answer).await.unwrap();
    assert!(answer.contains("stored"), "{answer}");
    daemon.ended().await.unwrap();
}

#[tokio::test]
async fn a_port_that_is_held_and_a_configuration_that_cannot_be_used_stop_nothing_else() {
    let mut host = Host::new();
    let holder = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = holder.local_addr().unwrap().port();
    host.objects = Some(Ok(objects(&host, port)));
    host.push(&host.registry(1, &[], &[("db", "me", "tcp://127.0.0.1:1".into())])).await;
    let daemon = host.start();
    let unserved = |row: &str| {
        let row = row.to_owned();
        move |state: &stado_fleet::ledger::ResolverState| {
            state.unserved.iter().any(|u| u.service == "object-api" && u.reason.contains(&row))
        }
    };
    host.until_state("it is told", unserved("lsof -nP -iTCP:")).await;
    host.serving().await;
    drop(holder);
    assert_eq!(served(&host).await, port, "served as soon as the port is free");
    host.until_state("nothing is left to tell", |state| state.unserved.is_empty()).await;
    daemon.stop().await;

    host.objects = Some(Err("object_api.bind is \"x\", which is no IP:PORT".into()));
    let daemon = host.start();
    host.until_state("it is told", unserved("which is no IP:PORT; `stado resolver restart`")).await;
    daemon.stop().await;

    let beyond = Config { bind: ([0, 0, 0, 0], port).into(), ..objects(&host, port) };
    host.objects = Some(Ok(beyond));
    let daemon = host.start();
    host.until_state("it is told", unserved("without TLS must bind a loopback address")).await;
    daemon.stop().await;
}

/// A vault that refuses.
#[derive(Debug)]
struct Refusing;

impl Verifier for Refusing {
    fn token<'a>(&'a self, _: &'a str) -> Asking<'a, [u8; 32]> {
        Box::pin(async { Err("Skarbiec returned HTTP 500: x".into()) })
    }
    fn items(&self) -> Asking<'_, BTreeSet<String>> {
        Box::pin(async { Ok(["item".to_owned()].into()) })
    }
    fn place(&self) -> String {
        "Skarbiec http://127.0.0.1:1".into()
    }
}

#[tokio::test]
async fn a_namespace_that_the_vault_keeps_closed_is_told_with_the_reason() {
    let mut host = Host::new();
    let mut config = objects(&host, 0);
    let vault = Token::Vault { item: "item".into() };
    config.namespaces.insert("secret".into(), Namespace { token: vault, ..config.namespaces["notes"].clone() });
    let limits = Limits { recheck: Duration::from_secs(3600), ..Limits::default() };
    config.verifying = Some(Verifying { verifier: Arc::new(Refusing), limits });
    host.objects = Some(Ok(config));
    let daemon = host.start();
    let port = served(&host).await;
    let refused = answer_to(port, &request("GET /api/object?uri=stado://secret/a", 0)).await;
    assert!(refused.starts_with("HTTP/1.1 503") && refused.contains("blad czekania"), "{refused}");
    let state = host.until_state("it is told", |state| !state.unserved.is_empty()).await;
    assert_eq!(state.unserved[0].service, "object-api namespace secret");
    assert!(state.unserved[0].reason.contains("przyczyna: Skarbiec returned HTTP 500"), "{:?}", state.unserved);
    assert!(stat(port).await.starts_with("HTTP/1.1 404"), "the other namespace is unharmed");
    daemon.stop().await;
}

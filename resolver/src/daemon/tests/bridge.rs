//! Services of this host's mesh in its directory, and what a withdrawal ends.
use super::hand_over::{api, port_of, register};
use super::support::*;
use crate::http::HttpConfig;
use serde_json::{Value, json};
use stado_fleet::document::Document;
use stado_fleet::edit::bridge::{self, NewPublication, NewUse};
use stado_fleet::store::RegistryStore;
use std::net::SocketAddr;
use std::time::{Duration, Instant};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

/// Asks until the connection has ended; how long that took.
async fn until_ended(client: &mut Client) -> Duration {
    let since = Instant::now();
    while client.ask("still").await.is_some() {
        tokio::time::sleep(Duration::from_millis(5)).await;
        assert!(since.elapsed() < Duration::from_secs(30), "it goes on");
    }
    since.elapsed()
}

/// What the store has now.
async fn stored(host: &Host) -> Document {
    Document::parse(host.store.read().await.unwrap().unwrap().bytes).unwrap()
}

async fn counted(config: &crate::daemon::Config, service: &str) -> Value {
    let (status, list) = api(config, &format!("GET /v1/services/{service}/connections"), "", "").await;
    assert_eq!(status, 200, "{list}");
    list
}

/// Says hello in HTTP, switches protocols, and then echoes.
async fn switching() -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let addr = listener.local_addr().unwrap();
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            tokio::spawn(async move {
                let mut head = [0; 4096];
                let read = stream.read(&mut head).await.unwrap_or(0);
                let asked = String::from_utf8_lossy(&head[..read]).to_lowercase();
                let onto = if asked.contains("upgrade: websocket") { "websocket" } else { "echo" };
                let switch =
                    format!("HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: {onto}\r\n\r\n");
                let _ = stream.write_all(switch.as_bytes()).await;
                let (mut from, mut to) = stream.split();
                let _ = tokio::io::copy(&mut from, &mut to).await;
            });
        }
    });
    addr
}

#[tokio::test]
async fn a_withdrawn_consumer_loses_what_it_has_open_within_a_second_and_nobody_else_does() {
    let host = Host::new();
    let (db, web) = (Echo::start("db").await, switching().await);
    let (mine, others, by_name, router) = (port(), port(), port(), port());
    let services = [("db", "me", format!("tcp://{}", db.addr)), ("web", "me", format!("http://{web}"))];
    let all = [("db", "shop", Some(mine)), ("db", "till", Some(others)), ("web", "shop", Some(by_name))];
    host.push(&host.registry(1, &all, &services)).await;
    let mut config = host.config();
    config.http = Some(HttpConfig { http: Some(SocketAddr::from(([127, 0, 0, 1], router))), ..HttpConfig::default() });
    let daemon = Running::start(config.clone());
    host.serving().await;
    let (mut goes, mut stays) = (Client::connect(mine).await, Client::connect(others).await);
    assert_eq!(goes.ask("1").await.as_deref(), Some("db 1"));
    assert_eq!(stays.ask("1").await.as_deref(), Some("db 1"));
    let mut upgraded = TcpStream::connect(("127.0.0.1", router)).await.unwrap();
    let ask = b"GET / HTTP/1.1\r\nHost: web.localhost\r\nConnection: Upgrade\r\nUpgrade: echo\r\n\r\n";
    upgraded.write_all(ask).await.unwrap();
    let mut head = [0; 12];
    upgraded.read_exact(&mut head).await.unwrap();
    assert_eq!(&head, b"HTTP/1.1 101");

    host.push(&host.registry(2, &all[1..2], &services)).await;
    let since = Instant::now();
    until_ended(&mut goes).await;
    let mut rest = Vec::new();
    let _ = tokio::time::timeout(Duration::from_secs(5), upgraded.read_to_end(&mut rest)).await.expect("it ends");
    let took = since.elapsed();
    assert!(took < Duration::from_secs(1), "{took:?}");
    assert_eq!(stays.ask("2").await.as_deref(), Some("db 2"));

    let list = counted(&config, "db").await;
    assert_eq!((&list["counters"]["withdrawn"], &list["counters"]["active"]), (&json!(1), &json!(1)), "{list}");
    let ended = &list["ended"][0];
    assert_eq!((&ended["outcome"], &ended["consumer"]), (&json!("withdrawn"), &json!("shop")), "{list}");
    assert_eq!(ended["reason"], "consumer \"shop\" is not authorized for service \"db\"");
    assert_eq!(counted(&config, "web").await["counters"]["withdrawn"], 1);
    let metrics = answer_to(host.api, "GET /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n").await;
    let line = "stado_connections_withdrawn_total{service=\"db\",consumer=\"shop\"} 1";
    assert!(metrics.contains(line), "{metrics}");

    // The service itself goes.
    host.push(&host.registry(3, &[("web", "till", Some(by_name))], &services[1..])).await;
    until_ended(&mut stays).await;
    let list = counted(&config, "db").await;
    assert_eq!(list["ended"][0]["reason"], "unknown logical service \"db\"", "{list}");
    daemon.stop().await;
}

/// Answers with the head and one event, and says no more.
async fn event_stream() -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let addr = listener.local_addr().unwrap();
    tokio::spawn(async move {
        let mut open = Vec::new();
        while let Ok((mut stream, _)) = listener.accept().await {
            let _ = stream.read(&mut [0; 4096]).await;
            let head = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n";
            let _ = stream.write_all(head).await;
            let _ = stream.write_all(b"3\r\nhi\n\r\n").await;
            open.push(stream);
        }
    });
    addr
}

/// A client of the router that speaks HTTP/2 in clear.
async fn h2_client(router: u16) -> h2::client::SendRequest<bytes::Bytes> {
    let stream = TcpStream::connect(("127.0.0.1", router)).await.unwrap();
    let (send, connection) = h2::client::handshake(stream).await.unwrap();
    tokio::spawn(connection);
    let send = send.ready().await.unwrap();
    // The router's settings come with its first frames.
    let deadline = tokio::time::Instant::now() + DEADLINE;
    while !send.is_extended_connect_protocol_enabled() {
        assert!(tokio::time::Instant::now() < deadline);
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    send
}

/// The next bytes of an answer.
async fn piece(body: &mut h2::RecvStream) -> Option<Result<bytes::Bytes, h2::Error>> {
    tokio::time::timeout(DEADLINE, body.data()).await.expect("no bytes and no end")
}

#[tokio::test]
async fn streams_of_http2_and_websockets_end_with_what_is_withdrawn_and_the_connection_goes_on() {
    let host = Host::new();
    let (web, events, stays) = (switching().await, event_stream().await, event_stream().await);
    let router = port();
    let url = |at: SocketAddr| format!("http://{at}");
    let services = [("web", "me", url(web)), ("events", "me", url(events)), ("stays", "me", url(stays))];
    let all = [("web", "shop", Some(port())), ("events", "shop", Some(port())), ("stays", "till", Some(port()))];
    host.push(&host.registry(1, &all, &services)).await;
    let mut config = host.config();
    config.http = Some(HttpConfig { http: Some(SocketAddr::from(([127, 0, 0, 1], router))), ..HttpConfig::default() });
    let daemon = Running::start(config.clone());
    host.serving().await;

    // WebSockets, in HTTP/1.1 and in a stream of HTTP/2, and an answer that goes on.
    let mut old = TcpStream::connect(("127.0.0.1", router)).await.unwrap();
    let ask = b"GET /ws HTTP/1.1\r\nHost: web.localhost\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\
                Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Version: 13\r\n\r\n";
    old.write_all(ask).await.unwrap();
    let mut head = [0; 12];
    old.read_exact(&mut head).await.unwrap();
    assert_eq!(&head, b"HTTP/1.1 101");
    let mut send = h2_client(router).await;
    let mut connect = http::Request::builder().method("CONNECT").uri("http://web.localhost/ws");
    connect = connect.header("sec-websocket-version", "13");
    let mut connect = connect.body(()).unwrap();
    connect.extensions_mut().insert(h2::ext::Protocol::from_static("websocket"));
    let (answer, mut up) = send.send_request(connect, false).unwrap();
    let answer = tokio::time::timeout(DEADLINE, answer).await.unwrap().unwrap();
    assert_eq!(answer.status(), 200);
    let mut socket = answer.into_body();
    up.send_data(bytes::Bytes::from_static(b"over"), false).unwrap();
    assert_eq!(piece(&mut socket).await.unwrap().unwrap(), "over");
    let get = |name: &str| http::Request::get(format!("http://{name}.localhost/")).body(()).unwrap();
    let mut bodies = Vec::new();
    for name in ["events", "stays"] {
        send = send.ready().await.unwrap();
        let (answer, _) = send.send_request(get(name), true).unwrap();
        let mut body = tokio::time::timeout(DEADLINE, answer).await.unwrap().unwrap().into_body();
        assert_eq!(piece(&mut body).await.unwrap().unwrap(), "hi\n");
        bodies.push(body);
    }

    host.push(&host.registry(2, &all[2..], &services)).await;
    let since = Instant::now();
    let ended = piece(&mut socket).await.expect("an end that is no clean one").unwrap_err();
    assert!(ended.is_reset(), "{ended}");
    let ended = piece(&mut bodies[0]).await.expect("an end that is no clean one").unwrap_err();
    assert!(ended.is_reset(), "{ended}");
    let mut rest = Vec::new();
    let _ = tokio::time::timeout(DEADLINE, old.read_to_end(&mut rest)).await.expect("it ends");
    let took = since.elapsed();
    assert!(took < Duration::from_secs(1), "{took:?}");
    for (name, count) in [("web", 2), ("events", 1)] {
        let list = counted(&config, name).await;
        assert_eq!(list["counters"]["withdrawn"], count, "{name}: {list}");
        assert_eq!(list["ended"][0]["outcome"], "withdrawn", "{list}");
    }

    // The connection, its other stream, and what is allowed go on; what is not is unknown here.
    send = send.ready().await.unwrap();
    let (answer, _) = send.send_request(get("stays"), true).unwrap();
    let mut body = tokio::time::timeout(DEADLINE, answer).await.unwrap().unwrap().into_body();
    assert_eq!(piece(&mut body).await.unwrap().unwrap(), "hi\n");
    send = send.ready().await.unwrap();
    let (answer, _) = send.send_request(get("events"), true).unwrap();
    assert_eq!(tokio::time::timeout(DEADLINE, answer).await.unwrap().unwrap().status(), 404);
    assert!(counted(&config, "stays").await["counters"]["withdrawn"] == 0);
    drop((bodies, body, send, old));
    daemon.stop().await;
}

#[tokio::test]
async fn an_adapter_whose_address_changed_long_ago_is_withdrawn_like_any_other() {
    let host = Host::new();
    let db = Echo::start("db").await;
    let services = [("db", "me", format!("tcp://{}", db.addr))];
    let (before, after) = (port(), port());
    host.push(&host.registry(1, &[("db", "shop", Some(before))], &services)).await;
    let daemon = host.start();
    host.serving().await;
    let mut open = Client::connect(before).await;
    assert_eq!(open.ask("1").await.as_deref(), Some("db 1"));
    host.push(&host.registry(2, &[("db", "shop", Some(after))], &services)).await;
    host.until_state("generation 2", |s| s.generation == Some(2)).await;
    assert_eq!(open.ask("2").await.as_deref(), Some("db 2"), "a changed address ends nothing");
    host.push(&host.registry(3, &[("db", "till", Some(after))], &services)).await;
    until_ended(&mut open).await;
    daemon.stop().await;
}

#[tokio::test]
async fn a_daemon_that_was_taken_over_ends_what_is_withdrawn_too() {
    let host = Host::new();
    let db = Echo::start("db").await;
    let services = [("db", "me", format!("tcp://{}", db.addr))];
    let at = port();
    host.push(&host.registry(1, &[("db", "shop", Some(at))], &services)).await;
    let old = host.start();
    host.serving().await;
    let mut open = Client::connect(at).await;
    assert_eq!(open.ask("1").await.as_deref(), Some("db 1"));
    let new = Running::start(crate::daemon::Config { take_over: true, ..host.config() });
    new.up().await;
    assert_eq!(open.ask("2").await.as_deref(), Some("db 2"));
    host.push(&host.registry(2, &[("db", "till", Some(at))], &services)).await;
    until_ended(&mut open).await;
    old.ended().await.unwrap();
    new.stop().await;
}

fn publication(port: u16) -> NewPublication {
    NewPublication {
        service: "orders".into(),
        host: "me".into(),
        mesh: "checkout.db".into(),
        endpoint: format!("tcp://127.0.0.1:{port}").parse().unwrap(),
        hostname: None,
        app_protocol: String::new(),
        consumers: Vec::new(),
        standby: false,
        at: "2026-12-01T00:00:00Z".into(),
    }
}

#[tokio::test]
async fn a_published_service_is_reached_on_its_own_host_too_and_the_directory_follows_its_port() {
    let host = Host::new();
    let (echo, other) = (Echo::start("db").await, Echo::start("web").await);
    let services = [("web", "me", format!("tcp://{}", other.addr))];
    host.push(&host.registry(1, &[], &services)).await;
    let config = host.config();
    let daemon = host.start();
    host.serving().await;
    let frontend = port_of(&register(&config, "checkout.db", echo.addr.port(), "k").await);
    let published = bridge::publish(&stored(&host).await, &publication(frontend)).unwrap().edited.document;
    let want = NewUse { service: "orders".into(), host: "me".into(), consumer: None, port: None };
    let used = bridge::use_service(&published, &want).unwrap().edited.document;
    host.push(used.value()).await;
    let state = host.until_state("the adapter", |s| s.adapters.iter().any(|a| a.service == "orders")).await;
    let adapter: SocketAddr = state.adapters[0].bind.parse().unwrap();
    assert_ne!(adapter.port(), frontend);
    assert_eq!(ask_once(adapter.port()).await.as_deref(), Some("db hi"), "no loop, and no second hop");

    let pinned = port();
    let (status, answer) =
        api(&config, "POST /v1/services/checkout.db/pin", "", &json!({"port": pinned}).to_string()).await;
    assert_eq!(status, 200, "{answer}");
    let url = json!(format!("tcp://127.0.0.1:{pinned}"));
    let deadline = tokio::time::Instant::now() + Duration::from_secs(30);
    while stored(&host).await.value()["service_directory"]["services"]["orders"]["endpoints"]["me"]["url"] != url {
        assert!(tokio::time::Instant::now() < deadline, "the directory still has the old port");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    let generation = stored(&host).await.generation().map(|g| g.0);
    host.until_state("the new generation", |s| s.generation == generation).await;
    assert_eq!(ask_once(adapter.port()).await.as_deref(), Some("db hi"));

    let (status, _) = api(&config, "POST /v1/services/checkout.db/rename", "", r#"{"name":"checkout.other"}"#).await;
    assert_eq!(status, 200);
    let said = "orders is published as checkout.db of me, and this mesh knows no checkout.db; ";
    host.until_state("it is said", |s| s.warnings.iter().any(|warning| warning.starts_with(said))).await;
    daemon.stop().await;
}

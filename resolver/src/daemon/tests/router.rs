//! HTTP services of the fleet by hostname, beside those of the mesh.
use super::support::*;
use crate::http::HttpConfig;
use crate::http::tls::{PairFiles, TlsSettings};
use stado_fleet::ledger::ResolverState;
use std::net::SocketAddr;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;

/// Answers every connection once with `word`.
async fn web(word: &'static str) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let addr = listener.local_addr().unwrap();
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            let mut head = [0u8; 4096];
            let _ = stream.read(&mut head).await;
            let answer =
                format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\nConnection: close\r\n\r\n{word}", word.len());
            let _ = stream.write_all(answer.as_bytes()).await;
        }
    });
    addr
}

async fn get(router: u16, host: &str) -> String {
    answer_to(router, &format!("GET / HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n")).await
}

fn warned(state: &ResolverState, text: &str) -> bool {
    state.warnings.iter().any(|warning| warning.contains(text))
}

#[tokio::test]
async fn an_http_adapter_has_a_hostname_and_gives_way_to_the_mesh() {
    let host = Host::new();
    let (api, mine, router) = (web("fleet").await, web("mesh").await, port());
    let adapters = [("shop.api", "me", Some(port())), ("db", "me", Some(port()))];
    let services =
        |api: SocketAddr| [("shop.api", "me", format!("http://{api}")), ("db", "me", format!("tcp://{api}"))];
    host.push(&host.registry(1, &adapters, &services(api))).await;
    let mut config = host.config();
    let http = HttpConfig { http: Some(SocketAddr::from(([127, 0, 0, 1], router))), ..HttpConfig::default() };
    config.http = Some(http);
    let daemon = Running::start(config);
    host.serving().await;
    until_answered(router, "shop-api.localhost", "fleet").await;
    assert!(get(router, "db.localhost").await.starts_with("HTTP/1.1 404"), "tcp services have no hostname");
    let index =
        answer_to(router, "GET /services.json HTTP/1.1\r\nHost: stado.localhost\r\nConnection: close\r\n\r\n").await;
    let listed = format!("\"address\":\"http://shop-api.localhost:{router}\"");
    assert!(index.contains(&listed) && index.contains("\"id\":\"fleet/db/me\""), "{index}");

    // The fleet as a picture, and the story of a route one click away.
    let own = |path: &str| format!("GET {path} HTTP/1.1\r\nHost: stado.localhost\r\nConnection: close\r\n\r\n");
    let picture = answer_to(router, &own("/fleet.svg")).await;
    assert!(picture.contains("image/svg+xml") && picture.contains("<a href=\"/story?id=fleet/db/me\""), "{picture}");
    let story = answer_to(router, &own("/story?id=fleet/shop.api/me")).await;
    assert!(story.contains("shop.api for me is ready") && story.contains("the directory places it here"), "{story}");

    // The service moves: the next request goes where it is.
    let moved = web("moved").await;
    host.push(&host.registry(2, &adapters, &services(moved))).await;
    until_answered(router, "shop-api.localhost", "moved").await;

    let socket = host.config().mesh.socket;
    let body =
        format!(r#"{{"name":"shop.api","kind":"http","backend":{{"host":"127.0.0.1","port":{}}}}}"#, mine.port());
    let mut control = tokio::net::UnixStream::connect(&socket).await.unwrap();
    let head = format!(
        "POST /v1/registrations HTTP/1.1\r\nHost: x\r\nConnection: close\r\nContent-Length: {}\r\n\r\n",
        body.len()
    );
    control.write_all((head + &body).as_bytes()).await.unwrap();
    let mut answer = String::new();
    control.read_to_string(&mut answer).await.unwrap();
    assert!(answer.starts_with("HTTP/1.1 201"), "{answer}");
    assert!(get(router, "shop-api.localhost").await.ends_with("mesh"));
    let loser =
        "shop.api adapter for consumer me is not reached by hostname: hostname shop-api.localhost is already owned";
    host.until_state("the loser is named", |state| warned(state, loser)).await;
    daemon.stop().await;
}

async fn until_answered(router: u16, host: &str, word: &str) {
    let deadline = tokio::time::Instant::now() + std::time::Duration::from_secs(30);
    while !get(router, host).await.ends_with(word) {
        assert!(tokio::time::Instant::now() < deadline, "not answered by {word}");
        tokio::time::sleep(std::time::Duration::from_millis(20)).await;
    }
}

#[tokio::test]
async fn a_stranger_on_the_routers_other_loopback_half_is_named_until_it_leaves() {
    let (host, router) = (Host::new(), port());
    let Ok(stranger) = std::net::TcpListener::bind(("::1", router)) else { return };
    let services = [("shop", "me", "http://127.0.0.1:9".to_owned())];
    host.push(&host.registry(1, &[("shop", "me", Some(port()))], &services)).await;
    let mut config = host.config();
    let http = HttpConfig { http: Some(SocketAddr::from(([127, 0, 0, 1], router))), ..HttpConfig::default() };
    config.http = Some(http);
    let daemon = Running::start(config);
    host.serving().await;
    let said =
        format!("the router at 127.0.0.1:{router} serves one loopback family only: [::1]:{router} is held by pid");
    host.until_state("the stranger is named", |state| warned(state, &said)).await;
    drop(stranger);
    host.until_state("the half is taken", |state| !warned(state, "loopback family")).await;
    assert!(tokio::net::TcpStream::connect(("::1", router)).await.is_ok());
    daemon.stop().await;
}

#[tokio::test]
async fn the_wait_of_a_first_request_began_with_its_connection() {
    let host = Host::new();
    // Connections are taken by the system, and nobody ever answers.
    let mute = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let (addr, router) = (mute.local_addr().unwrap(), port());
    let services = [("shop", "me", format!("http://{addr}"))];
    host.push(&host.registry(1, &[("shop", "me", Some(port()))], &services)).await;
    let mut config = host.config();
    let http = HttpConfig { http: Some(SocketAddr::from(([127, 0, 0, 1], router))), ..HttpConfig::default() };
    config.http = Some(http);
    let daemon = Running::start(config);
    host.serving().await;
    let index = "GET /services.json HTTP/1.1\r\nHost: stado.localhost\r\nConnection: close\r\n\r\n";
    let deadline = tokio::time::Instant::now() + std::time::Duration::from_secs(30);
    while !answer_to(router, index).await.contains("shop.localhost") {
        assert!(tokio::time::Instant::now() < deadline, "it has no hostname");
        tokio::time::sleep(std::time::Duration::from_millis(20)).await;
    }
    let mut client = tokio::net::TcpStream::connect(("127.0.0.1", router)).await.unwrap();
    // Waits are published in whole seconds.
    tokio::time::sleep(std::time::Duration::from_secs(3)).await;
    let asked = jiff::Timestamp::now();
    client.write_all(b"GET /slow HTTP/1.1\r\nHost: shop.localhost\r\n\r\n").await.unwrap();
    let paths = host.paths();
    let listed = || stado_fleet::ledger::waits(&paths).ok()??.into_iter().find(|wait| wait.request.is_some());
    let wait = until("the wait is listed", listed).await;
    let since: jiff::Timestamp = wait.since.parse().unwrap();
    assert!(asked.duration_since(since).as_secs() >= 1, "asked at {asked}, waits since {since}");
    drop(client);
    daemon.stop().await;
}

#[tokio::test]
async fn a_certificate_whose_file_no_longer_loads_is_said_in_the_state_file() {
    let (host, dir) = (Host::new(), tempfile::tempdir().unwrap());
    let files = PairFiles { cert: dir.path().join("a.pem"), key: dir.path().join("a-key.pem") };
    let made = rcgen::generate_simple_self_signed(vec!["a.test".to_owned()]).unwrap();
    std::fs::write(&files.cert, made.cert.pem()).unwrap();
    std::fs::write(&files.key, made.signing_key.serialize_pem()).unwrap();
    let services = [("shop", "me", "http://127.0.0.1:9".to_owned())];
    host.push(&host.registry(1, &[("shop", "me", Some(port()))], &services)).await;
    let mut config = host.config();
    let https = Some(SocketAddr::from(([127, 0, 0, 1], port())));
    let tls = TlsSettings { pair: Some(files.clone()), ..TlsSettings::default() };
    config.http = Some(HttpConfig { https, tls, ..HttpConfig::default() });
    let daemon = Running::start(config);
    host.serving().await;
    std::fs::write(&files.cert, "no certificate").unwrap();
    let kept = "the one that was loaded before is served";
    host.until_state("the file is named", |state| warned(state, kept) && warned(state, "a.pem")).await;
    std::fs::write(&files.cert, made.cert.pem()).unwrap();
    host.until_state("all is well", |state| !warned(state, kept)).await;
    daemon.stop().await;
}

use super::answer::MetricsText;
use super::request::{BadHead, is_loopback_authority, parse};
use super::serve::Resolution;
use crate::apply::held::Held;
use crate::conn::ledger::Ledger;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;

async fn start(metrics: Option<MetricsText>) -> (Resolution, SocketAddr) {
    let (api, addr, _) = start_holding(metrics).await;
    (api, addr)
}

/// With the sender of what is held: while it lives, there may be something yet.
async fn start_holding(metrics: Option<MetricsText>) -> (Resolution, SocketAddr, watch::Sender<Option<Arc<Held>>>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let addr = listener.local_addr().unwrap();
    let (holds, held) = watch::channel(None);
    (Resolution::start(vec![listener], addr, held, metrics, Ledger::new()), addr, holds)
}

async fn send(addr: SocketAddr, raw: &[u8]) -> String {
    let mut stream = TcpStream::connect(addr).await.unwrap();
    stream.write_all(raw).await.unwrap();
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer).await.unwrap();
    String::from_utf8(answer).unwrap()
}

/// Status and body.
async fn ask(addr: SocketAddr, line: &str, headers: &str) -> (u16, String) {
    let answer = send(addr, format!("{line} HTTP/1.1\r\n{headers}\r\n").as_bytes()).await;
    let (head, body) = answer.split_once("\r\n\r\n").unwrap();
    assert!(head.contains("\r\nConnection: close"), "{head}");
    assert!(head.contains(&format!("\r\nContent-Length: {}", body.len())), "{head}");
    (head.split(' ').nth(1).unwrap().parse().unwrap(), body.to_owned())
}

const CALLER: &str = "Host: 127.0.0.1\r\nX-Stado-Consumer: me\r\n";

#[tokio::test]
async fn each_wrong_request_gets_its_exact_answer() {
    let (_api, addr) = start(None).await;
    let cases = [
        ("POST /health", CALLER, 405, r#"{"error":"method_not_allowed"}"#),
        ("GET /", CALLER, 404, r#"{"error":"not_found"}"#),
        ("GET /v1/resolve/service", CALLER, 404, r#"{"error":"not_found"}"#),
        ("GET /metrics", CALLER, 404, r#"{"error":"not_found"}"#),
        ("GET /v1/probe", CALLER, 404, r#"{"error":"not_found"}"#),
        ("GET /v1/probe?client=127.0.0.1:5&client=[::1]:6&only=accepts", CALLER, 200, r#"{"announced":2}"#),
        ("GET /v1/probe?client=192.0.2.1:5", CALLER, 400, r#"{"error":"invalid_client"}"#),
        ("GET /v1/probe?client=127.0.0.1:5", "Host: x\r\n", 403, r#"{"error":"forbidden"}"#),
        ("GET /v1/resolve/service/", CALLER, 400, r#"{"error":"invalid_service"}"#),
        ("GET /v1/resolve/service/a/b", CALLER, 400, r#"{"error":"invalid_service"}"#),
        ("GET /v1/resolve/service/a?b=c", CALLER, 400, r#"{"error":"invalid_service"}"#),
        ("GET /v1/resolve/service/a?wait=soon", CALLER, 400, r#"{"error":"invalid_service"}"#),
        ("GET /v1/resolve/service/a", "Host: localhost:1\r\n", 401, r#"{"error":"consumer_required"}"#),
        ("GET /v1/resolve/service/a", "Host: x\r\nX-Stado-Consumer: \r\n", 403, r#"{"error":"forbidden"}"#),
        (
            "GET /v1/resolve/service/a",
            "Host: [::1]:9\r\nX-Stado-Consumer: \r\n",
            401,
            r#"{"error":"consumer_required"}"#,
        ),
        ("GET /health", "Host: localhost\r\nOrigin: http://localhost\r\n", 403, r#"{"error":"forbidden"}"#),
        ("GET /health", "Host: localhost\r\nOrigin: null\r\n", 403, r#"{"error":"forbidden"}"#),
        ("GET /health", "Host: localhost\r\nSec-Fetch-Site: cross-site\r\n", 403, r#"{"error":"forbidden"}"#),
        ("GET /metrics", "Host: localhost\r\nsec-fetch-site: same-origin\r\n", 403, r#"{"error":"forbidden"}"#),
        ("HEAD /health", CALLER, 405, r#"{"error":"method_not_allowed"}"#),
        (
            "OPTIONS /v1/resolve/service/a",
            "Host: localhost\r\nOrigin: http://x.example\r\n",
            403,
            r#"{"error":"forbidden"}"#,
        ),
        ("GET /health", "Host: rebound.example\r\n", 403, r#"{"error":"forbidden"}"#),
        ("GET http://rebound.example/health", "Host: localhost\r\n", 403, r#"{"error":"forbidden"}"#),
        ("GET /health", "Host: localhost\r\nHost: localhost\r\n", 400, r#"{"error":"invalid request header"}"#),
        ("GET /health", "no colon\r\n", 400, r#"{"error":"invalid request header"}"#),
    ];
    for (line, headers, status, body) in cases {
        assert_eq!(ask(addr, line, headers).await, (status, body.to_owned()), "{line} {headers:?}");
    }
}

#[tokio::test]
async fn health_without_a_directory_is_ok_and_resolving_says_what_to_do() {
    let (_api, addr) = start(None).await;
    let health = ask(addr, "GET /health", "Host: 127.0.0.1:17600\r\n").await;
    assert_eq!(health, (200, r#"{"status":"ok","service":"stado-resolver","generation":null}"#.to_owned()));
    // Scripts that write a request by hand leave Host out; a browser never does.
    assert_eq!(ask(addr, "GET /health", "").await.0, 200);
    let (status, body) = ask(addr, "GET /v1/resolve/service/a", CALLER).await;
    assert_eq!(status, 503);
    assert!(body.contains("holds no service directory yet"), "{body}");
}

#[tokio::test]
async fn a_head_over_the_limit_is_refused_and_one_below_it_is_not() {
    let (_api, addr) = start(None).await;
    let filler = |n: usize| format!("Host: localhost\r\nX-Filler: {}\r\n", "x".repeat(n));
    assert_eq!(ask(addr, "GET /health", &filler(15 * 1024)).await.0, 200);
    let refused = (400, r#"{"error":"request head is too large"}"#.to_owned());
    assert_eq!(ask(addr, "GET /health", &filler(17 * 1024)).await, refused);
    assert_eq!(ask(addr, "GET /health", &filler(300 * 1024)).await, refused);
}

#[tokio::test]
async fn a_head_that_ends_early_is_invalid_and_one_in_pieces_is_read() {
    let (_api, addr) = start(None).await;
    let mut stream = TcpStream::connect(addr).await.unwrap();
    stream.write_all(b"GET /health HTTP/1.1\r\nHost: loc").await.unwrap();
    stream.shutdown().await.unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await.unwrap();
    assert!(answer.ends_with(r#"{"error":"invalid request header"}"#), "{answer}");

    let mut stream = TcpStream::connect(addr).await.unwrap();
    for byte in b"GET /health HTTP/1.1\r\nHost: localhost\r\n\r\n" {
        stream.write_all(&[*byte]).await.unwrap();
        stream.flush().await.unwrap();
    }
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await.unwrap();
    assert!(answer.starts_with("HTTP/1.1 200 OK\r\n"), "{answer}");
}

#[tokio::test]
async fn a_silent_client_does_not_hold_up_others_nor_the_end() {
    let (api, addr) = start(None).await;
    let silent = TcpStream::connect(addr).await.unwrap();
    assert_eq!(ask(addr, "GET /health", "").await.0, 200);
    tokio::time::timeout(Duration::from_secs(5), api.close(Duration::from_secs(60))).await.unwrap();
    assert!(TcpStream::connect(addr).await.is_err());
    drop(silent);
}

/// A request that waits for a service that never comes.
async fn waiting(addr: SocketAddr) -> TcpStream {
    let mut stream = TcpStream::connect(addr).await.unwrap();
    let request = format!("GET /v1/resolve/service/a?wait=60s HTTP/1.1\r\n{CALLER}\r\n");
    stream.write_all(request.as_bytes()).await.unwrap();
    stream
}

/// Waits until so many look at what is held: the API, and twice each of those who wait.
async fn readers(holds: &watch::Sender<Option<Arc<Held>>>, n: usize) {
    let there = async {
        while holds.receiver_count() != n {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(20), there).await.unwrap_or_else(|_| panic!("{}", holds.receiver_count()));
}

#[tokio::test]
async fn those_who_wait_hold_up_nobody_who_asks_and_are_answered_when_it_stops() {
    let (api, addr, holds) = start_holding(None).await;
    let mut all = Vec::new();
    for _ in 0..400 {
        all.push(waiting(addr).await);
    }
    readers(&holds, 1 + 2 * 400).await;
    let asked = tokio::time::timeout(Duration::from_secs(20), ask(addr, "GET /health", "")).await;
    assert_eq!(asked.expect("answered although hundreds wait").0, 200);
    tokio::time::timeout(Duration::from_secs(20), api.close(Duration::from_secs(60))).await.unwrap();
    for mut stream in all {
        let mut answer = String::new();
        stream.read_to_string(&mut answer).await.unwrap();
        assert!(answer.starts_with("HTTP/1.1 503 "), "{answer}");
    }
}

#[tokio::test]
async fn a_wait_ends_with_its_client() {
    let (api, addr, holds) = start_holding(None).await;
    let client = waiting(addr).await;
    readers(&holds, 3).await;
    socket2::SockRef::from(&client).set_linger(Some(Duration::ZERO)).unwrap();
    drop(client);
    readers(&holds, 1).await;
    api.close(Duration::ZERO).await;
}

#[tokio::test]
async fn metrics_are_served_when_there_are_any() {
    let (_api, addr) = start(Some(Arc::new(|| "stado_x 1\n".to_owned()))).await;
    assert_eq!(ask(addr, "GET /metrics", "").await, (200, "stado_x 1\n".to_owned()));
}

#[test]
fn loopback_authorities_are_told_from_others() {
    for good in [
        "localhost",
        "LOCALHOST:80",
        "localhost.",
        "127.0.0.1:17600",
        "127.9.9.9",
        "[::1]",
        "[::1]:1",
        "[::ffff:127.0.0.1]:1",
    ] {
        assert!(is_loopback_authority(good), "{good}");
    }
    for bad in [
        "",
        "localhost.example",
        "127.0.0.1.example",
        "10.0.0.1",
        "[::2]",
        "::1",
        "[::1]x",
        "localhost:x",
        "localhost:99999",
        "a@localhost",
        "0.0.0.0",
    ] {
        assert!(!is_loopback_authority(bad), "{bad}");
    }
}

proptest::proptest! {
    #[test]
    fn no_bytes_make_the_parser_fail_otherwise_than_by_its_own_errors(bytes in proptest::collection::vec(proptest::prelude::any::<u8>(), 0..2048)) {
        let parsed = parse(&bytes);
        proptest::prop_assert!(!matches!(parsed, Err(BadHead::Gone)));
    }
}

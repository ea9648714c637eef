//! Rule 20 where it meets requests, and backends that speak TLS.
use super::support::*;
use crate::http::Protocol;
use crate::http::tls::{PairFiles, Tls, TlsSettings, backend};
use std::sync::Arc;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio_rustls::client::TlsStream;

/// A certificate for these names, self-made.
pub(super) fn certificate(names: &[&str]) -> (Arc<Tls>, tempfile::TempDir) {
    let (pair, dir) = pair_files(names);
    let tls = Tls::load(TlsSettings { pair: Some(pair), ..TlsSettings::default() }).unwrap().unwrap();
    (Arc::new(tls), dir)
}

fn pair_files(names: &[&str]) -> (PairFiles, tempfile::TempDir) {
    let dir = tempfile::tempdir().unwrap();
    let names: Vec<String> = names.iter().map(ToString::to_string).collect();
    let made = rcgen::generate_simple_self_signed(names).unwrap();
    let pair = PairFiles { cert: dir.path().join("cert.pem"), key: dir.path().join("key.pem") };
    stado_fleet::disk::replace(&pair.cert, made.cert.pem().as_bytes()).unwrap();
    stado_fleet::disk::replace(&pair.key, made.signing_key.serialize_pem().as_bytes()).unwrap();
    (pair, dir)
}

async fn secure(rig: &Rig) -> TlsStream<TcpStream> {
    backend::connect(rig.connect().await, "a.test").await.unwrap()
}

async fn tls_head<S: tokio::io::AsyncRead + Unpin>(stream: &mut S) -> String {
    let mut bytes = Vec::new();
    while !bytes.ends_with(b"\r\n\r\n") {
        bytes.push(tokio::time::timeout(PATIENCE, stream.read_u8()).await.expect("a head in time").unwrap());
    }
    text(bytes)
}

#[tokio::test]
async fn https_is_served_as_http_is_and_the_backend_is_told() {
    let (tls, _dir) = certificate(&["a.test"]);
    let rig = Rig::over_tls(tls).await;
    let mut client = secure(&rig).await;
    for _ in 0..2 {
        client.write_all(GET.as_bytes()).await.unwrap();
    }
    let mut backend = rig.accept().await;
    for _ in 0..2 {
        let head = read_head(&mut backend).await;
        assert!(head.contains("X-Forwarded-Proto: https\r\n") && head.contains(";proto=https;"), "{head}");
        write(&mut backend, OK).await;
        let mut answer = vec![0; OK.len()];
        client.read_exact(&mut answer).await.unwrap();
        assert_eq!(text(answer), OK);
    }
}

#[tokio::test]
async fn large_bodies_pass_whole_through_tls() {
    const SIZE: usize = 3_000_000;
    let (tls, _dir) = certificate(&["a.test"]);
    let rig = Rig::over_tls(tls).await;
    let mut client = secure(&rig).await;
    client.write_all(GET.as_bytes()).await.unwrap();
    let mut backend = rig.accept().await;
    read_head(&mut backend).await;
    let body: Vec<u8> = (0..SIZE).map(|at| (at % 253) as u8).collect();
    let sent = body.clone();
    let sending = tokio::spawn(async move {
        write(&mut backend, format!("HTTP/1.1 200 OK\r\nContent-Length: {SIZE}\r\n\r\n")).await;
        write(&mut backend, sent).await;
        backend
    });
    tls_head(&mut client).await;
    let mut got = vec![0; SIZE];
    client.read_exact(&mut got).await.unwrap();
    assert!(got == body);
    drop(sending.await.unwrap());
}

#[tokio::test]
async fn an_authority_that_the_certificate_does_not_cover_is_421() {
    let (tls, _dir) = certificate(&["a.test"]);
    let rig = Rig::over_tls(tls).await;
    rig.route(&[("a.test", rig.backend()), ("b.test", rig.backend())]);
    let mut client = secure(&rig).await;
    client.write_all(b"GET / HTTP/1.1\r\nHost: b.test\r\nConnection: close\r\n\r\n").await.unwrap();
    assert!(tls_head(&mut client).await.starts_with("HTTP/1.1 421 Misdirected Request\r\n"));
    rig.backend_was_left_alone().await;
}

#[tokio::test]
async fn plain_http_on_the_tls_port_is_sent_to_https_or_told() {
    let (tls, _dir) = certificate(&["a.test", "none.test"]);
    let rig = Rig::over_tls(tls).await;
    rig.route(&[("a.test", rig.backend()), ("b.test", rig.backend())]);
    let port = rig.addr.port();
    let to = |path: &str| format!("\r\nLocation: https://a.test:{port}{path}\r\n");
    for (request, path) in [
        ("GET /x?y=%20 HTTP/1.1\r\nHost: a.test\r\n\r\n", "/x?y=%20"),
        ("GET / HTTP/1.1\r\nHost: A.test.:9\r\n\r\n", "/"),
        ("GET http://a.test/z HTTP/1.1\r\nHost: other\r\n\r\n", "/z"),
        ("HEAD / HTTP/1.0\r\nHost: a.test\r\n\r\n", "/"),
    ] {
        let answer = rig.ask(request).await;
        assert!(answer.starts_with("HTTP/1.1 307 Temporary Redirect\r\n") && answer.contains(&to(path)), "{answer}");
    }
    // Nothing would be there.
    let answer = rig.ask("GET / HTTP/1.1\r\nHost: c.test\r\n\r\n").await;
    assert!(answer.starts_with("HTTP/1.1 404 Not Found\r\n") && answer.contains("c.test"), "{answer}");
    assert!(answer.contains("known here: a.test, b.test\n") && !answer.contains("Location"), "{answer}");
    let answer = rig.ask("GET / HTTP/1.1\r\nHost: none.test\r\nAccept: application/json\r\n\r\n").await;
    assert!(answer.starts_with("HTTP/1.1 404 ") && answer.contains("\"code\":\"unknown_host\""), "{answer}");
    let answer = rig.ask("GET / HTTP/1.1\r\nHost: stado.localhost\r\n\r\n").await;
    assert!(answer.starts_with("HTTP/1.1 404 "), "{answer}");
    let answer = rig.ask("GET / HTTP/1.1\r\nHost: b.test\r\n\r\n").await;
    assert!(answer.starts_with("HTTP/1.1 421 Misdirected Request\r\n") && answer.contains("b.test"), "{answer}");
    for request in [
        "POST / HTTP/1.1\r\nHost: a.test\r\nContent-Length: 3\r\n\r\nabc",
        "GET / HTTP/1.1\r\n\r\n",
        "GET / HTTP/1.1\r\nHost: a.test\r\nHost: b.test\r\n\r\n",
        "GET / HTTP/1.1\r\nHost: a@b/\r\n\r\n",
        "GET / HTTP/1.1\r\nHost: a.test:99999\r\n\r\n",
        "PRI * HTTP/2.0\r\n\r\n",
    ] {
        let answer = rig.ask(request).await;
        assert!(answer.starts_with("HTTP/1.1 400 Bad Request\r\n"), "{request:?}: {answer}");
        assert!(answer.ends_with("\r\n\r\nClient sent an HTTP request to an HTTPS server.\n"), "{answer}");
    }
    rig.backend_was_left_alone().await;
}

#[tokio::test]
async fn a_head_without_tls_has_the_deadline_of_the_hello() {
    let (pair, _dir) = pair_files(&["a.test"]);
    let hello = std::time::Duration::from_millis(300);
    let tls = Tls::load(TlsSettings { pair: Some(pair), hello, ..TlsSettings::default() }).unwrap().unwrap();
    let rig = Rig::over_tls(Arc::new(tls)).await;
    let mut client = rig.send("GET / HTTP/1.1\r\n").await;
    assert_eq!(text(read_all(&mut client).await.unwrap_or_default()), "");
}

#[tokio::test]
async fn an_upgraded_connection_works_over_tls() {
    let (tls, _dir) = certificate(&["a.test"]);
    let rig = Rig::over_tls(tls).await;
    let mut client = secure(&rig).await;
    let upgrade = "GET / HTTP/1.1\r\nHost: a.test\r\nConnection: Upgrade\r\nUpgrade: x\r\n\r\nearly";
    client.write_all(upgrade.as_bytes()).await.unwrap();
    let mut backend = rig.accept().await;
    read_head(&mut backend).await;
    write(&mut backend, "HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\nConnection: Upgrade\r\n\r\nhello").await;
    assert!(tls_head(&mut client).await.starts_with("HTTP/1.1 101 "));
    let mut hello = [0; 5];
    client.read_exact(&mut hello).await.unwrap();
    assert_eq!((&hello, read_exact(&mut backend, 5).await.as_str()), (b"hello", "early"));
    reset(backend);
    let mut rest = Vec::new();
    // Without a close of TLS's own, so nobody takes it for an end.
    assert!(client.read_to_end(&mut rest).await.is_err());
}

/// The error that ends `stream`; TLS's own goodbye would be none.
async fn broken<S: tokio::io::AsyncRead + Unpin>(stream: &mut S) -> std::io::ErrorKind {
    let read = async {
        while stream.read_u8().await? > 0 {}
        std::io::Result::Ok(())
    };
    tokio::time::timeout(PATIENCE, read).await.expect("the stream ends").unwrap_err().kind()
}

#[tokio::test]
async fn a_clients_reset_reaches_a_backend_that_speaks_tls_as_a_reset() {
    let (tls, _dir) = certificate(&["localhost"]);
    let rig = Rig::new().await;
    rig.route_as(Protocol::Https, &[("a.test", rig.backend())]);
    let client = rig.send(GET).await;
    let mut backend = tls.accept(rig.accept().await).await.unwrap().stream;
    tls_head(&mut backend).await;
    reset(client);
    assert_eq!(broken(&mut backend).await, std::io::ErrorKind::ConnectionReset);
    // And once more when the connection has become another protocol's.
    let mut client = rig.send("GET / HTTP/1.1\r\nHost: a.test\r\nConnection: Upgrade\r\nUpgrade: x\r\n\r\n").await;
    let mut backend = tls.accept(rig.accept().await).await.unwrap().stream;
    tls_head(&mut backend).await;
    let switch = "HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\nConnection: Upgrade\r\n\r\n";
    backend.write_all(switch.as_bytes()).await.unwrap();
    read_head(&mut client).await;
    reset(client);
    assert_eq!(broken(&mut backend).await, std::io::ErrorKind::ConnectionReset);
}

#[tokio::test]
async fn a_backend_that_speaks_only_tls_is_reached_and_its_connection_kept() {
    let (tls, _dir) = certificate(&["localhost"]);
    let rig = Rig::new().await;
    rig.route_as(Protocol::Https, &[("a.test", rig.backend())]);
    let mut client = rig.send(GET).await;
    let accepted = rig.accept().await;
    let mut backend = tls.accept(accepted).await.unwrap().stream;
    for turn in 0..2 {
        assert!(tls_head(&mut backend).await.starts_with("GET / HTTP/1.1\r\n"));
        backend.write_all(OK.as_bytes()).await.unwrap();
        assert_eq!(read_exact(&mut client, OK.len()).await, OK);
        if turn == 0 {
            write(&mut client, GET).await;
        }
    }
    rig.backend_was_left_alone().await;
}

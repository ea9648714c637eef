use super::support::{Rig, answers, backend, head, soon};
use crate::http::tls::CertNames;
use crate::http::{Limits, Protocol};
use http::{Method, Request};
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

#[tokio::test]
async fn an_authority_that_the_certificate_does_not_cover_is_421() {
    let (one, _) = answers("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok").await;
    let mut names = CertNames::default();
    names.add_name("*.test");
    let sites = [("a.test", Protocol::Http1, one.clone()), ("a.localhost", Protocol::Http1, one)];
    let rig = Rig::with(&sites, Limits::default(), Some(names)).await;
    assert_eq!(rig.get("https://a.test/").await.status, 200);
    assert_eq!(rig.get("https://a.localhost/").await.status, 421);
}

#[tokio::test]
async fn what_is_not_http_is_refused_and_reaches_nobody() {
    let (one, mut told) = answers("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok").await;
    let rig = Rig::start(&[("a.test", Protocol::Http1, one)]).await;
    let differs = Request::get("https://a.test/").header("host", "b.test");
    let twice = Request::post("https://a.test/").header("content-length", "1").header("content-length", "2");
    for (malformed, body) in [(differs, &b""[..]), (twice, b"x")] {
        let mut client = rig.client().await;
        let (response, mut stream) = client.send_request(malformed.body(()).unwrap(), body.is_empty()).unwrap();
        if !body.is_empty() {
            stream.send_data(body.into(), true).unwrap();
        }
        match soon(response).await {
            Ok(answer) => assert_eq!(answer.status(), 400),
            Err(error) => assert_eq!(error.reason(), Some(h2::Reason::PROTOCOL_ERROR)),
        }
    }
    let mut client = rig.client().await;
    let connect = Request::builder().method(Method::CONNECT).uri("a.test:443").body(()).unwrap();
    let refused = soon(client.send_request(connect, false).unwrap().0).await.unwrap();
    assert!(refused.status().is_client_error() || refused.status().is_server_error(), "{refused:?}");
    let looped = Request::get("https://a.test/").header("cdn-loop", rig.ctx.hop.as_str()).body(()).unwrap();
    assert_eq!(rig.ask(looped, b"").await.status, 508);
    assert!(told.try_recv().is_err());
}

#[tokio::test]
async fn a_bare_end_of_the_clients_stream_does_not_lose_the_answer() {
    let slow = backend(async |mut stream| {
        head(&mut stream).await;
        // Until the router has seen the end of the client's stream there is nothing that could go wrong.
        tokio::time::sleep(Duration::from_millis(100)).await;
        stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\nanswer").await.unwrap();
    })
    .await;
    let rig = Rig::start(&[("a.test", Protocol::Http1, slow)]).await;
    let mut tcp = TcpStream::connect(rig.addr).await.unwrap();
    let mut bytes = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0".to_vec();
    // GET, http, / from the static table, and :authority as a literal.
    let block = [&[0x82, 0x86, 0x84, 0x41, 6][..], b"a.test"].concat();
    bytes.extend([0, 0, block.len() as u8, 1, 5, 0, 0, 0, 1]);
    bytes.extend(block);
    tcp.write_all(&bytes).await.unwrap();
    tcp.shutdown().await.unwrap();
    let mut answer = Vec::new();
    soon(tcp.read_to_end(&mut answer)).await.unwrap();
    assert!(answer.windows(6).any(|at| at == b"answer"), "{answer:?}");
}

#[tokio::test]
async fn a_head_has_a_deadline_and_a_connection_that_rests_has_none_but_its_own() {
    let (one, _) = answers("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok").await;
    let head_deadline = Duration::from_secs(2);
    let limits = Limits { head_deadline, ..Limits::default() };
    let rig = Rig::with(&[("a.test", Protocol::Http1, one)], limits, None).await;
    // One that answers pings is kept.
    let mut client = rig.client().await;
    // A preface that never ends, and a head that never ends.
    let head = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0\0\0\x03\x01\0\0\0\0\x01\x82\x86\x84";
    for begun in [&b"PRI * HT"[..], head] {
        let mut tcp = TcpStream::connect(rig.addr).await.unwrap();
        tcp.write_all(begun).await.unwrap();
        let mut rest = Vec::new();
        let _ = soon(tcp.read_to_end(&mut rest)).await;
    }
    let (response, _) = client.send_request(Request::get("http://a.test/").body(()).unwrap(), true).unwrap();
    assert_eq!(soon(response).await.unwrap().status(), 200);
}

use super::support::{PATIENCE, Rig, pair};
use crate::http::tls::TlsSettings;
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

async fn rig() -> (tempfile::TempDir, Rig) {
    let dir = tempfile::tempdir().unwrap();
    let rig = Rig::of([pair(dir.path(), "a", &["a.test"])]).await;
    (dir, rig)
}

#[tokio::test]
async fn what_is_neither_tls_nor_http_is_closed() {
    let (_dir, rig) = rig().await;
    assert!(rig.raw(b"\0\x01\x02").await.is_empty());
    rig.problem("neither TLS nor HTTP").await;
    assert!(rig.raw(b"GET / HTTP/1.1\r\n\r\n").await.is_empty());
    rig.problem("an HTTP request came to the HTTPS port").await;
    drop(TcpStream::connect(rig.addr).await.unwrap());
    rig.problem("left before its first byte").await;
    assert_eq!(rig.ask("a.test").await.unwrap(), "a.test h1 a.test");
}

#[tokio::test]
async fn a_hello_has_one_total_deadline_however_it_trickles() {
    let dir = tempfile::tempdir().unwrap();
    let hello = Duration::from_millis(300);
    let more = vec![pair(dir.path(), "a", &["a.test"])];
    let rig = Rig::start(TlsSettings { more, hello, ..TlsSettings::default() }).await;
    for first in [&b""[..], &[22, 3, 1, 1, 0]] {
        let mut tcp = TcpStream::connect(rig.addr).await.unwrap();
        tcp.write_all(first).await.unwrap();
        let trickle = async {
            let (mut reader, mut writer) = tcp.split();
            let mut rest = Vec::new();
            tokio::select! {
                _ = reader.read_to_end(&mut rest) => {}
                () = async { while writer.write_all(if first.is_empty() { b"" } else { b"x" }).await.is_ok() {
                    tokio::time::sleep(Duration::from_millis(50)).await;
                }} => {}
            }
        };
        tokio::time::timeout(PATIENCE, trickle).await.expect("the connection is ended");
    }
    rig.problem("was not done within 0.3s").await;
}

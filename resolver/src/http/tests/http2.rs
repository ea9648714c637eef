//! Where a connection becomes HTTP/2: by ALPN over TLS, and with prior knowledge in clear (rule 18).
use super::support::*;
use super::tls::certificate;
use crate::http::tls::backend::trusting;
use std::sync::Arc;
use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt};
use tokio_rustls::TlsConnector;
use tokio_rustls::rustls::pki_types::ServerName;
use tokio_rustls::rustls::version::TLS13;

/// One request in HTTP/2 on `stream`, answered by the backend in HTTP/1.1; the head that the backend got.
async fn one_request(rig: &Rig, stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static) -> String {
    let (send, connection) = h2::client::handshake(stream).await.unwrap();
    tokio::spawn(connection);
    let mut send = send.ready().await.unwrap();
    let request = http::Request::get("https://a.test/path").body(()).unwrap();
    let (response, _) = send.send_request(request, true).unwrap();
    let mut backend = rig.accept().await;
    let head = read_head(&mut backend).await;
    write(&mut backend, OK).await;
    assert_eq!(tokio::time::timeout(PATIENCE, response).await.unwrap().unwrap().status(), 200);
    head
}

#[tokio::test]
async fn a_client_that_offers_http_2_over_tls_speaks_it() {
    let (tls, _dir) = certificate(&["a.test"]);
    let rig = Rig::over_tls(tls).await;
    let mut config = trusting(&[&TLS13]).unwrap();
    config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
    let name = ServerName::try_from("a.test").unwrap();
    let stream = TlsConnector::from(Arc::new(config)).connect(name, rig.connect().await).await.unwrap();
    assert_eq!(stream.get_ref().1.alpn_protocol(), Some(&b"h2"[..]));
    let head = one_request(&rig, stream).await;
    assert!(head.starts_with("GET /path HTTP/1.1\r\n") && head.contains("x-forwarded-proto: https\r\n"), "{head}");
}

#[tokio::test]
async fn prior_knowledge_is_heard_however_it_comes_in() {
    let rig = Rig::new().await;
    let head = one_request(&rig, rig.connect().await).await;
    assert!(head.contains("x-forwarded-proto: http\r\n"), "{head}");
    // Byte by byte: the client's own handshake goes through a pipe that is carried over piece by piece.
    let (near, far) = tokio::io::duplex(1 << 16);
    let mut socket = rig.connect().await;
    socket.set_nodelay(true).unwrap();
    tokio::spawn(async move {
        let (mut far_read, mut far_write) = tokio::io::split(far);
        let (mut read, mut written) = socket.split();
        let up = async {
            while let Ok(byte) = tokio::io::AsyncReadExt::read_u8(&mut far_read).await {
                written.write_all(&[byte]).await.unwrap();
                tokio::task::yield_now().await;
            }
        };
        tokio::join!(up, tokio::io::copy(&mut read, &mut far_write))
    });
    one_request(&rig, near).await;
}

#[tokio::test]
async fn a_method_that_begins_like_a_preface_is_a_method() {
    let rig = Rig::new().await;
    for method in ["PROPFIND", "PRI", "P"] {
        let mut client = rig.send(format!("{method} / HTTP/1.1\r\nHost: a.test\r\n\r\n")).await;
        let mut backend = rig.accept().await;
        assert!(read_head(&mut backend).await.starts_with(&format!("{method} / HTTP/1.1\r\n")));
        write(&mut backend, OK.replace("\r\n\r\n", "\r\nConnection: close\r\n\r\n")).await;
        drop(backend);
        client.shutdown().await.unwrap();
        assert!(text(read_all(&mut client).await.unwrap()).starts_with("HTTP/1.1 200 "), "{method}");
    }
}

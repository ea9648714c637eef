use super::support::{Answer, Rig, answers, backend, head, send_all, soon};
use crate::http::Protocol;
use bytes::Bytes;
use h2::ext::Protocol as Onto;
use http::{Method, Request};
use tokio::io::{AsyncReadExt, AsyncWriteExt};

fn handshake() -> Request<()> {
    let mut request = Request::builder().method(Method::CONNECT).uri("https://a.test/chat?room=1");
    request = request.header("sec-websocket-version", "13").header("sec-websocket-protocol", "soap");
    let mut request = request.body(()).unwrap();
    request.extensions_mut().insert(Onto::from_static("websocket"));
    request
}

#[tokio::test]
async fn a_websocket_goes_through_a_stream_each_byte_once_and_in_order() {
    let echo = backend(async |mut stream| {
        let head = head(&mut stream).await;
        assert!(head.starts_with("GET /chat?room=1 HTTP/1.1\r\nhost: a.test\r\n"), "{head}");
        assert!(head.contains("connection: upgrade\r\nupgrade: websocket\r\n"), "{head}");
        assert!(head.contains("sec-websocket-key: ") && head.contains("sec-websocket-version: 13\r\n"), "{head}");
        let answer = "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\
                      Sec-WebSocket-Accept: x\r\nSec-WebSocket-Protocol: soap\r\n\r\nfirst ";
        stream.write_all(answer.as_bytes()).await.unwrap();
        let mut all = Vec::new();
        stream.read_to_end(&mut all).await.unwrap();
        stream.write_all(&all).await.unwrap();
    })
    .await;
    let rig = Rig::start(&[("a.test", Protocol::Http1, echo)]).await;
    let mut client = rig.client().await;
    super::support::wait_for("the settings are there", || client.is_extended_connect_protocol_enabled()).await;
    let (response, mut stream) = client.send_request(handshake(), false).unwrap();
    // Sent before the answer: it waits for the backend's word.
    send_all(&mut stream, Bytes::from_static(b"early "), false).await;
    let response = soon(response).await.unwrap();
    assert_eq!(
        (response.status().as_u16(), &response.headers()["sec-websocket-protocol"]),
        (200, &"soap".parse::<http::HeaderValue>().unwrap())
    );
    assert!(!response.headers().contains_key("sec-websocket-accept") && !response.headers().contains_key("upgrade"));
    let large = "x".repeat(1 << 20);
    let bytes = Bytes::from(large.clone());
    let sending = tokio::spawn(async move { send_all(&mut stream, bytes, true).await });
    let answer = soon(Answer::read(response)).await;
    sending.await.unwrap();
    assert_eq!(answer.body.len(), "first early ".len() + large.len());
    assert!(answer.body == format!("first early {large}"));
}

#[tokio::test]
async fn a_refused_handshake_is_an_ordinary_answer_and_nothing_goes_behind_it() {
    let refuses = backend(async |mut stream| {
        head(&mut stream).await;
        stream.write_all(b"HTTP/1.1 403 Forbidden\r\nContent-Length: 3\r\n\r\nno\n").await.unwrap();
        let mut rest = Vec::new();
        let _ = stream.read_to_end(&mut rest).await;
        assert!(rest.is_empty(), "{rest:?}");
    })
    .await;
    let rig = Rig::start(&[("a.test", Protocol::Http1, refuses)]).await;
    let mut client = rig.client().await;
    super::support::wait_for("the settings are there", || client.is_extended_connect_protocol_enabled()).await;
    let (response, mut stream) = client.send_request(handshake(), false).unwrap();
    stream.send_data("hidden".into(), false).unwrap();
    let answer = Answer::read(soon(response).await.unwrap()).await;
    assert_eq!((answer.status, answer.body.as_str()), (403, "no\n"));
}

#[tokio::test]
async fn no_other_protocol_is_passed_on_and_none_of_its_bytes() {
    let (plain, mut told) = answers("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n").await;
    let rig = Rig::start(&[("a.test", Protocol::Http1, plain)]).await;
    let mut client = rig.client().await;
    super::support::wait_for("the settings are there", || client.is_extended_connect_protocol_enabled()).await;
    for word in ["h2c", "websocket, h2c", "web socket", "", "foo\r\n\r\nGET /smuggled HTTP/1.1\r\nHost: b.test"] {
        let mut request = handshake();
        request.extensions_mut().insert(Onto::from(word));
        let (response, _stream) = client.send_request(request, true).unwrap();
        match soon(response).await {
            Ok(response) => assert_eq!(response.status(), 400, "{word:?}"),
            Err(error) => assert!(error.is_reset(), "{word:?}: {error}"),
        }
    }
    assert!(told.try_recv().is_err(), "a word of it came to the backend");
}

#[tokio::test]
async fn a_backend_that_speaks_http_2_gets_the_stream_itself_if_it_takes_websockets() {
    for takes in [true, false] {
        let speaks = backend(move |stream| async move {
            let mut builder = h2::server::Builder::new();
            if takes {
                builder.enable_connect_protocol();
            }
            let mut connection = builder.handshake::<_, Bytes>(stream).await.unwrap();
            while let Some(Ok((request, mut respond))) = connection.accept().await {
                tokio::spawn(async move {
                    assert_eq!(request.extensions().get::<Onto>().unwrap().as_str(), "websocket");
                    assert_eq!(request.uri().path(), "/chat");
                    let mut messages = request.into_body();
                    let mut back = respond.send_response(http::Response::new(()), false).unwrap();
                    while let Some(piece) = messages.data().await {
                        send_all(&mut back, piece.unwrap(), false).await;
                    }
                    back.send_data(Bytes::new(), true).unwrap();
                });
            }
        })
        .await;
        let rig = Rig::start(&[("a.test", Protocol::H2c, speaks)]).await;
        let mut client = rig.client().await;
        super::support::wait_for("the settings are there", || client.is_extended_connect_protocol_enabled()).await;
        let (response, mut stream) = client.send_request(handshake(), false).unwrap();
        let response = soon(response).await.unwrap();
        if takes {
            assert_eq!(response.status(), 200);
            send_all(&mut stream, Bytes::from_static(b"hello"), true).await;
            assert_eq!(soon(Answer::read(response)).await.body, "hello");
        } else {
            let answer = soon(Answer::read(response)).await;
            assert!(answer.status == 502 && answer.body.contains("RFC 8441"), "{}", answer.body);
        }
    }
}

#[tokio::test]
async fn a_page_instead_of_a_switch_does_not_open_the_stream() {
    let page = backend(async |mut stream| {
        head(&mut stream).await;
        let _ = stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\npage").await;
    })
    .await;
    let rig = Rig::start(&[("a.test", Protocol::Http1, page)]).await;
    let mut client = rig.client().await;
    super::support::wait_for("the settings are there", || client.is_extended_connect_protocol_enabled()).await;
    let (response, _stream) = client.send_request(handshake(), false).unwrap();
    let answer = Answer::read(soon(response).await.unwrap()).await;
    assert_eq!(answer.status, 502);
    assert!(answer.body.contains("101") && !answer.body.contains("page\n"), "{}", answer.body);
}

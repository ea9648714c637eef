//! Clients that speak HTTP/1 and backends that speak HTTP/2 alone (rule 18; `app_protocol` `h2c` and `grpc`).
use super::support::*;
use crate::http::Protocol;
use bytes::Bytes;
use h2::server::SendResponse;
use h2::{Reason, RecvStream};
use http::{Request, Response};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use tokio::net::TcpListener;
use tokio::sync::{Notify, mpsc};

/// A router before a backend whose streams `script` gets; how many sessions there were.
async fn rig<F>(
    script: impl Fn(usize, Request<RecvStream>, SendResponse<Bytes>) -> F + Clone + Send + Sync + 'static,
) -> (Rig, Arc<AtomicUsize>)
where
    F: Future<Output = ()> + Send + 'static,
{
    let rig = Rig::new().await;
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let addr = listener.local_addr().unwrap().to_string();
    rig.route_as(Protocol::H2c, &[("a.test", crate::conn::Backend::Local(addr.parse().unwrap()))]);
    let sessions = Arc::new(AtomicUsize::new(0));
    let count = sessions.clone();
    tokio::spawn(async move {
        loop {
            let (stream, _) = listener.accept().await.unwrap();
            let (nth, script) = (count.fetch_add(1, Ordering::Relaxed), script.clone());
            tokio::spawn(async move {
                let mut connection = h2::server::handshake(stream).await.unwrap();
                while let Some(Ok((request, respond))) = connection.accept().await {
                    tokio::spawn(script(nth, request, respond));
                }
            });
        }
    });
    (rig, sessions)
}

/// Answers with what it got, head and body, and the trailers as trailers.
async fn echo(_: usize, request: Request<RecvStream>, mut respond: SendResponse<Bytes>) {
    let (parts, mut body) = request.into_parts();
    let mut response = Response::new(());
    *response.headers_mut() = parts.headers;
    response.headers_mut().insert("x-asked", format!("{} {}", parts.method, parts.uri).parse().unwrap());
    response.headers_mut().remove("content-length");
    let mut stream = respond.send_response(response, false).unwrap();
    while let Some(piece) = body.data().await {
        let piece = piece.unwrap();
        let _ = body.flow_control().release_capacity(piece.len());
        stream.send_data(piece, false).unwrap();
    }
    stream.send_trailers(body.trailers().await.unwrap().unwrap_or_default()).unwrap();
}

fn head(request: &str) -> String {
    format!("{request} HTTP/1.1\r\nHost: A.test:8088\r\n")
}

#[tokio::test]
async fn a_request_of_http_1_becomes_a_stream_and_its_answer_comes_back_in_chunks_with_trailers() {
    let (rig, sessions) = rig(echo).await;
    let mut client = rig.connect().await;
    for _ in 0..2 {
        let fields = "Connection: X-Hop\r\nX-Hop: gone\r\nKeep-Alive: gone\r\nTE: trailers\r\nCookie: a=1\r\nX-Forwarded-For: gone\r\n";
        let framed = "Trailer: X-Sum\r\nTransfer-Encoding: chunked\r\n\r\n3\r\none\r\n";
        write(&mut client, head("POST /a/../b//c?x=1;y=%zz") + fields + framed).await;
        let answer = read_head(&mut client).await;
        assert!(
            answer.starts_with("HTTP/1.1 200 OK\r\n") && answer.contains("Transfer-Encoding: chunked\r\n"),
            "{answer}"
        );
        assert!(answer.contains("x-asked: POST http://A.test:8088/a/../b//c?x=1;y=%zz\r\n"), "{answer}");
        assert!(answer.contains("x-forwarded-for: 127.0.0.1\r\n") && answer.contains("cookie: a=1\r\n"), "{answer}");
        assert!(!answer.contains("gone") && !answer.contains("x-hop"), "{answer}");
        assert_eq!(read_exact(&mut client, 8).await, "3\r\none\r\n", "a piece goes out when it comes");
        write(&mut client, "3\r\ntwo\r\n0\r\nX-Sum: 6\r\n\r\n").await;
        assert_eq!(read_head(&mut client).await, "3\r\ntwo\r\n0\r\nx-sum: 6\r\n\r\n");
    }
    assert_eq!(sessions.load(Ordering::Relaxed), 1, "streams share a session");
    until("both are counted", || rig.site("a.test").stats.counted().classes[1] == 2).await;
}

#[tokio::test]
async fn lengths_stay_lengths_and_what_has_no_body_has_none() {
    let (rig, _) = rig(|_, request: Request<RecvStream>, mut respond: SendResponse<Bytes>| async move {
        let path = request.uri().path().to_owned();
        let status = path.trim_start_matches('/').parse().unwrap_or(200u16);
        let mut response = Response::builder().status(status);
        let has_length = path != "/empty" && status != 204;
        if has_length {
            response = response.header("content-length", 4);
        }
        let bodyless = request.method() == "HEAD" || status != 200 || !has_length;
        let mut stream = respond.send_response(response.body(()).unwrap(), bodyless).unwrap();
        if !bodyless {
            stream.send_data("four".into(), true).unwrap();
        }
    })
    .await;
    let mut client = rig.connect().await;
    for (asked, answer) in [
        ("GET /", "HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nfour"),
        ("HEAD /", "HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\n"),
        ("GET /304", "HTTP/1.1 304 Not Modified\r\nContent-Length: 4\r\n\r\n"),
        ("GET /204", "HTTP/1.1 204 No Content\r\n\r\n"),
        ("GET /empty", "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n"),
        ("GET /", "HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nfour"),
    ] {
        write(&mut client, head(asked) + "\r\n").await;
        assert_eq!(read_exact(&mut client, answer.len()).await, answer, "{asked}");
    }
    let mut old = rig.send("GET / HTTP/1.0\r\nHost: a.test\r\n\r\n").await;
    assert!(text(read_all(&mut old).await.unwrap()).ends_with("\r\n\r\nfour"));
}

#[tokio::test]
async fn a_counted_upload_of_megabytes_arrives_whole() {
    const SIZE: usize = 3_000_001;
    let (tell, mut told) = mpsc::unbounded_channel();
    let (rig, _) = rig(move |_, request: Request<RecvStream>, mut respond: SendResponse<Bytes>| {
        let tell = tell.clone();
        async move {
            assert_eq!(request.headers()["content-length"], SIZE.to_string());
            let (mut body, mut all) = (request.into_body(), Vec::new());
            while let Some(piece) = body.data().await {
                let piece = piece.unwrap();
                all.extend_from_slice(&piece);
                let _ = body.flow_control().release_capacity(piece.len());
            }
            tell.send(all).unwrap();
            respond.send_response(Response::builder().status(204).body(()).unwrap(), true).unwrap();
        }
    })
    .await;
    let bytes: Vec<u8> = (0..SIZE).map(|at| (at % 251) as u8).collect();
    let mut client = rig.send(head("POST /") + &format!("Content-Length: {SIZE}\r\n\r\n")).await;
    write(&mut client, &bytes).await;
    assert!(read_head(&mut client).await.starts_with("HTTP/1.1 204 "));
    assert!(told.recv().await.unwrap() == bytes);
}

#[tokio::test]
async fn early_answers_pass_and_an_answer_during_an_upload_is_the_answer() {
    let (rig, _) = rig(|_, request: Request<RecvStream>, mut respond: SendResponse<Bytes>| async move {
        let hints = Response::builder().status(103).header("link", "</a>").body(()).unwrap();
        respond.send_informational(hints).unwrap();
        let response = Response::builder().status(413).header("content-length", 2).body(()).unwrap();
        respond.send_response(response, false).unwrap().send_data("no".into(), true).unwrap();
        // The engine resets what was not read, without an error: the answer stands.
        drop(request);
    })
    .await;
    let mut client = rig.send(head("POST /") + "Content-Length: 100000000\r\n\r\nbegun").await;
    assert_eq!(read_head(&mut client).await, "HTTP/1.1 103 Early Hints\r\nlink: </a>\r\n\r\n");
    assert!(read_head(&mut client).await.starts_with("HTTP/1.1 413 "));
    assert_eq!(read_exact(&mut client, 2).await, "no");
}

#[tokio::test]
async fn a_stream_that_breaks_is_a_page_before_the_answer_and_a_broken_transfer_inside_it() {
    let read = Arc::new(Notify::new());
    let told = read.clone();
    let (rig, _) = rig(move |_, request: Request<RecvStream>, mut respond: SendResponse<Bytes>| {
        let told = told.clone();
        async move {
            if request.uri().path() == "/before" {
                return respond.send_reset(Reason::INTERNAL_ERROR);
            }
            let mut stream = respond.send_response(Response::new(()), false).unwrap();
            stream.send_data("half".into(), false).unwrap();
            told.notified().await;
            stream.send_reset(Reason::INTERNAL_ERROR);
        }
    })
    .await;
    let answer = rig.ask(head("GET /before") + "Connection: close\r\n\r\n").await;
    assert!(answer.starts_with("HTTP/1.1 502 Bad Gateway\r\n") && answer.contains("reset the stream"), "{answer}");
    let mut client = rig.send(head("GET /inside") + "\r\n").await;
    read_head(&mut client).await;
    assert_eq!(read_exact(&mut client, 9).await, "4\r\nhalf\r\n");
    read.notify_one();
    expect_reset(&mut client).await;
}

#[tokio::test]
async fn a_client_that_leaves_resets_its_stream_and_no_other() {
    let (left, begun) = (Arc::new(Notify::new()), Arc::new(Notify::new()));
    let tell = (left.clone(), begun.clone());
    let (rig, sessions) = rig(move |n, request: Request<RecvStream>, mut respond: SendResponse<Bytes>| {
        let (left, begun) = tell.clone();
        async move {
            if request.uri().path() != "/wait" {
                return echo(n, request, respond).await;
            }
            begun.notify_one();
            let reason = std::future::poll_fn(|cx| respond.poll_reset(cx)).await.unwrap();
            assert_eq!(reason, Reason::CANCEL);
            left.notify_one();
        }
    })
    .await;
    for more in ["\r\n", "Content-Length: 10\r\n\r\nabc"] {
        let client = rig.send(head("POST /wait") + more).await;
        begun.notified().await;
        reset(client);
        tokio::time::timeout(PATIENCE, left.notified()).await.expect("the backend is told");
    }
    assert!(rig.ask(head("GET /") + "Connection: close\r\n\r\n").await.starts_with("HTTP/1.1 200 "));
    assert_eq!(sessions.load(Ordering::Relaxed), 1);
}

#[tokio::test]
async fn a_request_that_was_not_looked_at_is_made_once_more() {
    let (rig, sessions) = rig(|nth, request: Request<RecvStream>, mut respond: SendResponse<Bytes>| async move {
        if nth == 0 { respond.send_reset(Reason::REFUSED_STREAM) } else { echo(nth, request, respond).await }
    })
    .await;
    let answer = rig.ask(head("POST /") + "Content-Length: 0\r\nConnection: close\r\n\r\n").await;
    assert!(answer.starts_with("HTTP/1.1 200 OK\r\n"), "{answer}");
    assert_eq!(sessions.load(Ordering::Relaxed), 2);
}

#[tokio::test]
async fn what_http_2_cannot_say_is_400_and_a_backend_that_does_not_speak_it_502() {
    let (rig, sessions) = rig(echo).await;
    for path in ["/<a>", "/a?q=\"b\"", "/a#b"] {
        let answer = rig.ask(head(&format!("GET {path}")) + "\r\n").await;
        assert!(answer.starts_with("HTTP/1.1 400 ") && answer.contains("speaks HTTP/2"), "{path}: {answer}");
    }
    assert_eq!(sessions.load(Ordering::Relaxed), 0);
    let other = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let addr = other.local_addr().unwrap().to_string();
    rig.route_as(Protocol::H2c, &[("a.test", crate::conn::Backend::Local(addr.parse().unwrap()))]);
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = other.accept().await {
            write(&mut stream, "HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n").await;
        }
    });
    let answer = rig.ask(head("GET /") + "Connection: close\r\n\r\n").await;
    assert!(answer.starts_with("HTTP/1.1 502 Bad Gateway\r\n") && answer.contains("HTTP/2"), "{answer}");
    rig.route_as(Protocol::H2c, &[("a.test", crate::conn::Backend::Local("127.0.0.1:1".parse().unwrap()))]);
    let answer = rig.ask(head("GET /") + "Connection: close\r\n\r\n").await;
    assert!(
        answer.starts_with("HTTP/1.1 502 ") && answer.contains("127.0.0.1:1") && answer.contains("refused"),
        "{answer}"
    );
}

#[tokio::test]
async fn a_client_that_does_not_read_holds_the_stream_back_and_no_other() {
    let sent = Arc::new(AtomicUsize::new(0));
    let count = sent.clone();
    let (rig, _) = rig(move |n, request: Request<RecvStream>, mut respond: SendResponse<Bytes>| {
        let count = count.clone();
        async move {
            if request.uri().path() != "/flood" {
                return echo(n, request, respond).await;
            }
            let mut stream = respond.send_response(Response::new(()), false).unwrap();
            loop {
                stream.reserve_capacity(16 << 10);
                let granted = std::future::poll_fn(|cx| stream.poll_capacity(cx)).await.unwrap().unwrap();
                stream.send_data(vec![b'x'; granted].into(), false).unwrap();
                count.fetch_add(granted, Ordering::Relaxed);
            }
        }
    })
    .await;
    let client = rig.send(head("GET /flood") + "\r\n").await;
    let mut before = usize::MAX;
    let mut still = 0;
    until("the backend is held back", || {
        still = if std::mem::replace(&mut before, sent.load(Ordering::Relaxed)) == before && before > 0 {
            still + 1
        } else {
            0
        };
        still > 20
    })
    .await;
    assert!(before < 32 << 20, "{before}");
    assert!(rig.ask(head("GET /") + "Connection: close\r\n\r\n").await.starts_with("HTTP/1.1 200 "));
    drop(client);
}

#[tokio::test]
async fn an_upgrade_is_not_passed_to_a_backend_that_knows_none() {
    let (rig, _) = rig(echo).await;
    let ask = head("GET /ws") + "Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\n\r\n";
    let mut client = rig.send(ask).await;
    let answer = read_head(&mut client).await;
    assert!(answer.starts_with("HTTP/1.1 200 ") && answer.contains("sec-websocket-version: 13\r\n"), "{answer}");
    assert!(!answer.contains("upgrade"), "{answer}");
}

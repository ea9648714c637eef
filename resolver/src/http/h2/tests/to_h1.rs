use super::support::{Answer, Rig, answers, backend, head, local, send_all, soon, wait_for};
use crate::conn::Backend;
use crate::http::Protocol;
use bytes::Bytes;
use h2::Reason;
use http::{HeaderMap, Request};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::sync::Notify;

#[tokio::test]
async fn a_request_is_what_the_client_asked_and_what_is_true_of_it() {
    let (one, mut told) =
        answers("HTTP/1.1 200 OK\r\nContent-Length: 2\r\nConnection: x-hop\r\nX-Hop: 1\r\nX-End: 2\r\n\r\nok").await;
    let rig = Rig::start(&[("a.test", Protocol::Http1, one)]).await;
    let request = Request::get("https://A.test:8443/a/../b//c?x=1;y=%zz")
        .header("cookie", "a=1")
        .header("cookie", "b=2")
        .header("x-forwarded-for", "1.2.3.4")
        .header("proxy-authorization", "secret")
        .header("te", "trailers");
    let answer = rig.ask(request.body(()).unwrap(), b"").await;
    assert_eq!((answer.status, answer.body.as_str()), (200, "ok"));
    assert_eq!((answer.header("x-end"), answer.header("x-hop"), answer.header("content-length")), ("2", "", "2"));
    let head = told.recv().await.unwrap();
    assert!(head.starts_with("GET /a/../b//c?x=1;y=%zz HTTP/1.1\r\nhost: A.test:8443\r\n"), "{head}");
    for line in [
        "cookie: a=1; b=2",
        "x-forwarded-for: 127.0.0.1",
        "x-real-ip: 127.0.0.1",
        "x-forwarded-proto: https",
        "x-forwarded-host: A.test:8443",
        "forwarded: for=127.0.0.1;proto=https;host=\"A.test:8443\"",
        "te: trailers",
        "connection: te",
    ] {
        assert_eq!(head.matches(&format!("{line}\r\n")).count(), 1, "{line} in\n{head}");
    }
    assert!(!head.contains("1.2.3.4") && !head.contains("secret") && !head.contains("transfer-encoding"), "{head}");
}

#[tokio::test]
async fn bodies_and_trailers_pass_both_ways() {
    let echo = backend(async |mut stream| {
        head(&mut stream).await;
        let mut body = Vec::new();
        while !body.ends_with(b"\r\n\r\n") {
            body.push(stream.read_u8().await.unwrap());
        }
        let answer = format!(
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n{:x}\r\n{}\r\n0\r\nX-Late: yes\r\nHost: no\r\n\r\n",
            body.len(),
            String::from_utf8(body).unwrap()
        );
        stream.write_all(answer.as_bytes()).await.unwrap();
    })
    .await;
    let rig = Rig::start(&[("a.test", Protocol::Http1, echo)]).await;
    let mut client = rig.client().await;
    let (response, mut body) = client.send_request(Request::post("http://a.test/").body(()).unwrap(), false).unwrap();
    body.send_data("hello".into(), false).unwrap();
    let mut trailers = HeaderMap::new();
    trailers.insert("x-sum", "5".parse().unwrap());
    body.send_trailers(trailers).unwrap();
    let answer = Answer::read(response.await.unwrap()).await;
    assert_eq!(answer.body, "5\r\nhello\r\n0\r\nx-sum: 5\r\n\r\n");
    assert_eq!(answer.trailers.len(), 1);
    assert_eq!(answer.trailers["x-late"], "yes");
}

#[tokio::test]
async fn trailers_pass_without_a_body() {
    let (one, _) = answers("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\ngrpc-status: 5\r\n\r\n").await;
    let rig = Rig::start(&[("a.test", Protocol::Http1, one)]).await;
    let answer = rig.get("http://a.test/").await;
    assert_eq!(
        (answer.body.as_str(), &answer.trailers["grpc-status"]),
        ("", &"5".parse::<http::HeaderValue>().unwrap())
    );
}

#[tokio::test]
async fn early_answers_are_the_backends() {
    let early = backend(async |mut stream| {
        let head = head(&mut stream).await;
        assert!(head.contains("expect: 100-continue\r\n"), "{head}");
        stream
            .write_all(b"HTTP/1.1 103 Early Hints\r\nLink: </a.css>\r\n\r\nHTTP/1.1 100 Continue\r\n\r\n")
            .await
            .unwrap();
        let mut body = [0; 10];
        stream.read_exact(&mut body).await.unwrap();
        stream.write_all(b"HTTP/1.1 204 No Content\r\n\r\n").await.unwrap();
    })
    .await;
    let rig = Rig::start(&[("a.test", Protocol::Http1, early)]).await;
    let mut client = rig.client().await;
    let request = Request::put("http://a.test/").header("expect", "100-continue").header("content-length", "10");
    let (mut response, mut body) = client.send_request(request.body(()).unwrap(), false).unwrap();
    let mut next = async || soon(std::future::poll_fn(|cx| response.poll_informational(cx))).await.unwrap().unwrap();
    let hints = next().await;
    assert_eq!(
        (hints.status().as_u16(), &hints.headers()["link"]),
        (103, &"</a.css>".parse::<http::HeaderValue>().unwrap())
    );
    assert_eq!(next().await.status(), 100);
    body.send_data(Bytes::from_static(b"0123456789"), true).unwrap();
    assert_eq!(response.await.unwrap().status(), 204);
}

#[tokio::test]
async fn an_answer_that_comes_during_an_upload_is_the_answer() {
    let (one, _) = answers("HTTP/1.1 413 Too Large\r\nContent-Length: 4\r\n\r\nno!\n").await;
    let rig = Rig::start(&[("a.test", Protocol::Http1, one)]).await;
    let mut client = rig.client().await;
    let request = Request::post("http://a.test/").header("content-length", "1000000");
    let (response, _body) = client.send_request(request.body(()).unwrap(), false).unwrap();
    let answer = Answer::read(soon(response).await.unwrap()).await;
    assert_eq!((answer.status, answer.body.as_str()), (413, "no!\n"));
}

#[tokio::test]
async fn who_does_not_read_holds_little_and_nobody_else() {
    let written = Arc::new(AtomicUsize::new(0));
    let seen = written.clone();
    let flood = backend(move |mut stream| {
        let seen = seen.clone();
        async move {
            head(&mut stream).await;
            stream.write_all(b"HTTP/1.1 200 OK\r\n\r\n").await.unwrap();
            while stream.write_all(&[b'x'; 16 << 10]).await.is_ok() {
                seen.fetch_add(16 << 10, Ordering::Relaxed);
            }
        }
    })
    .await;
    let (quick, _) = answers("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok").await;
    let rig = Rig::start(&[("flood.test", Protocol::Http1, flood), ("quick.test", Protocol::Http1, quick)]).await;
    let mut client = rig.client().await;
    let (response, _) = client.send_request(Request::get("http://flood.test/").body(()).unwrap(), true).unwrap();
    let _unread = response.await.unwrap();
    // The kernel's buffers fill, and then nothing moves any more.
    let mut before = usize::MAX;
    wait_for("the backend is held back", || {
        std::mem::replace(&mut before, written.load(Ordering::Relaxed)) == before && before > 0
    })
    .await;
    for _ in 0..20 {
        let (response, _) = client.send_request(Request::get("http://quick.test/").body(()).unwrap(), true).unwrap();
        assert_eq!(Answer::read(soon(response).await.unwrap()).await.body, "ok");
    }
    assert!(written.load(Ordering::Relaxed) < 32 << 20, "{written:?}");
}

#[tokio::test]
async fn a_reset_is_passed_to_the_backend() {
    let (begun, reset) = (Arc::new(Notify::new()), Arc::new(Notify::new()));
    let tell = (begun.clone(), reset.clone());
    let waits = backend(move |mut stream| {
        let (begun, reset) = tell.clone();
        async move {
            head(&mut stream).await;
            begun.notify_one();
            let error = stream.read_u8().await.unwrap_err();
            assert_eq!(error.kind(), std::io::ErrorKind::ConnectionReset);
            reset.notify_one();
        }
    })
    .await;
    let rig = Rig::start(&[("a.test", Protocol::Http1, waits)]).await;
    let mut client = rig.client().await;
    let (response, mut stream) = client.send_request(Request::get("http://a.test/").body(()).unwrap(), true).unwrap();
    soon(begun.notified()).await;
    stream.send_reset(Reason::CANCEL);
    soon(reset.notified()).await;
    drop(response);
}

#[tokio::test]
async fn a_backend_that_dies_inside_an_answer_is_no_clean_end() {
    for framing in ["Content-Length: 10\r\n\r\nhalf", "Transfer-Encoding: chunked\r\n\r\n4\r\nhalf\r\n"] {
        let read = Arc::new(Notify::new());
        let told = read.clone();
        let dies = backend(move |mut stream| {
            let told = told.clone();
            async move {
                head(&mut stream).await;
                stream.write_all(format!("HTTP/1.1 200 OK\r\n{framing}").as_bytes()).await.unwrap();
                told.notified().await;
            }
        })
        .await;
        let rig = Rig::start(&[("a.test", Protocol::Http1, dies)]).await;
        let mut client = rig.client().await;
        let (response, _) = client.send_request(Request::get("http://a.test/").body(()).unwrap(), true).unwrap();
        let mut body = response.await.unwrap().into_body();
        assert_eq!(body.data().await.unwrap().unwrap(), "half");
        read.notify_one();
        let error = soon(body.data()).await.unwrap().unwrap_err();
        assert_eq!(error.reason(), Some(Reason::INTERNAL_ERROR));
    }
}

#[tokio::test]
async fn what_came_before_a_backend_died_comes_before_the_reset() {
    for framing in ["Content-Length: 10\r\n\r\nhalf", "Transfer-Encoding: chunked\r\n\r\n4\r\nhalf\r\n5\r\n"] {
        let dies = backend(move |mut stream| async move {
            head(&mut stream).await;
            stream.write_all(format!("HTTP/1.1 200 OK\r\n{framing}").as_bytes()).await.unwrap();
        })
        .await;
        let rig = Rig::start(&[("a.test", Protocol::Http1, dies)]).await;
        for _ in 0..20 {
            assert_eq!(rig.half().await, Some(Reason::INTERNAL_ERROR));
        }
    }
}

#[tokio::test]
async fn a_body_that_is_none_and_comes_with_its_head_is_502() {
    for body in ["zz\r\n", "\r\n", "2\r\nabc\r\n0\r\n\r\n"] {
        let odd = backend(move |mut stream| async move {
            head(&mut stream).await;
            let answer = format!("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n{body}");
            stream.write_all(answer.as_bytes()).await.unwrap();
        })
        .await;
        let rig = Rig::start(&[("a.test", Protocol::Http1, odd)]).await;
        let answer = soon(rig.get("http://a.test/")).await;
        assert_eq!(answer.status, 502, "{body:?}");
        assert!(answer.body.contains("its answer is malformed: a chunk"), "{}", answer.body);
    }
}

#[tokio::test]
async fn a_kept_connection_that_the_backend_closed_costs_no_request() {
    let connections = Arc::new(AtomicUsize::new(0));
    let count = connections.clone();
    let once = backend(move |mut stream| {
        count.fetch_add(1, Ordering::Relaxed);
        async move {
            head(&mut stream).await;
            stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok").await.unwrap();
            // The next request on this connection gets no answer.
            head(&mut stream).await;
        }
    })
    .await;
    let rig = Rig::start(&[("a.test", Protocol::Http1, once)]).await;
    assert_eq!(rig.get("http://a.test/").await.body, "ok");
    wait_for("the connection is kept", || rig.ctx.pool.idle() == 1).await;
    assert_eq!(rig.get("http://a.test/").await.body, "ok");
    assert_eq!(connections.load(Ordering::Relaxed), 2);
    // What may have been acted on is not sent twice.
    wait_for("the connection is kept", || rig.ctx.pool.idle() == 1).await;
    let answer = rig.ask(Request::post("http://a.test/").body(()).unwrap(), b"x").await;
    assert_eq!((answer.status, connections.load(Ordering::Relaxed)), (502, 2), "{}", answer.body);
}

#[tokio::test]
async fn an_idempotent_request_is_sent_once_more_with_what_came_of_its_body() {
    let (tell, mut told) = tokio::sync::mpsc::unbounded_channel();
    let connections = AtomicUsize::new(0);
    let once = backend(move |mut stream| {
        let (first, tell) = (connections.fetch_add(1, Ordering::Relaxed) == 0, tell.clone());
        async move {
            if first {
                head(&mut stream).await;
                stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok").await.unwrap();
            }
            let begun = head(&mut stream).await;
            let mut body = vec![0; if first { 8 } else { 27 }];
            stream.read_exact(&mut body).await.unwrap();
            tell.send((begun, String::from_utf8(body).unwrap())).unwrap();
            if !first {
                stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\ndone").await.unwrap();
            }
        }
    })
    .await;
    let rig = Rig::start(&[("a.test", Protocol::Http1, once)]).await;
    assert_eq!(rig.get("http://a.test/").await.body, "ok");
    wait_for("the connection is kept", || rig.ctx.pool.idle() == 1).await;
    let mut client = rig.client().await;
    let (response, mut body) = client.send_request(Request::put("http://a.test/").body(()).unwrap(), false).unwrap();
    body.send_data("one".into(), false).unwrap();
    let (begun, piece) = soon(told.recv()).await.unwrap();
    assert!(begun.starts_with("PUT / ") && piece == "3\r\none\r\n", "{begun}{piece}");
    body.send_data("two".into(), false).unwrap();
    let mut trailers = HeaderMap::new();
    trailers.insert("x", "y".parse().unwrap());
    body.send_trailers(trailers).unwrap();
    assert_eq!(soon(told.recv()).await.unwrap().1, "3\r\none\r\n3\r\ntwo\r\n0\r\nx: y\r\n\r\n");
    assert_eq!(Answer::read(soon(response).await.unwrap()).await.body, "done");
}

#[tokio::test]
async fn what_is_not_reached_is_said() {
    let free = local(tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap().local_addr().unwrap());
    let gone = Backend::None("its lease ran out".into());
    let (odd, _) = answers("SSH-2.0-OpenSSH\r\n\r\n").await;
    let rig = Rig::start(&[
        ("refused.test", Protocol::Http1, free.clone()),
        ("gone.test", Protocol::Http1, gone),
        ("odd.test", Protocol::Http1, odd),
        ("refused2.test", Protocol::H2c, free),
    ])
    .await;
    for (host, status, word) in [
        ("refused.test", 502, "refused"),
        ("refused2.test", 502, "refused"),
        ("gone.test", 503, "its lease ran out"),
        ("odd.test", 502, "its answer is malformed"),
        ("unknown.test", 404, "gone.test"),
    ] {
        let answer = rig.get(&format!("http://{host}/")).await;
        assert_eq!(answer.status, status, "{host}: {}", answer.body);
        assert!(answer.body.contains(word), "{word} in {}", answer.body);
    }
    let json =
        rig.ask(Request::get("http://gone.test/").header("accept", "application/json").body(()).unwrap(), b"").await;
    assert!(json.header("content-type").starts_with("application/json"), "{:?}", json.headers);
}

#[tokio::test]
async fn a_backend_that_speaks_tls_only_is_spoken_to_in_tls() {
    let dir = tempfile::tempdir().unwrap();
    let files = crate::http::tls::tests::support::pair(dir.path(), "own", &["whatever.example"]);
    let settings = crate::http::tls::TlsSettings { more: vec![files], ..Default::default() };
    let own = Arc::new(crate::http::tls::Tls::load(settings).unwrap().unwrap());
    let https = backend(move |stream| {
        let own = own.clone();
        async move {
            let mut conn = own.accept(stream).await.unwrap();
            assert_eq!((conn.sni.as_deref(), conn.alpn), (Some("a.test"), crate::http::tls::Alpn::H1));
            let mut bytes = vec![0; 4096];
            let n = conn.stream.read(&mut bytes).await.unwrap();
            assert!(bytes[..n].starts_with(b"GET / HTTP/1.1\r\n"));
            conn.stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\nsecret").await.unwrap();
            let _ = conn.stream.read(&mut bytes).await;
        }
    })
    .await;
    let rig = Rig::start(&[("a.test", Protocol::Https, https)]).await;
    assert_eq!(rig.get("http://a.test/").await.body, "secret");
}

#[tokio::test]
async fn an_upload_is_held_back_by_a_backend_that_does_not_read() {
    let stuck = backend(async |mut stream| {
        head(&mut stream).await;
        std::future::pending::<()>().await;
    })
    .await;
    let rig = Rig::start(&[("a.test", Protocol::Http1, stuck)]).await;
    let mut client = rig.client().await;
    let (_response, mut body) = client.send_request(Request::post("http://a.test/").body(()).unwrap(), false).unwrap();
    let sent = Arc::new(AtomicUsize::new(0));
    let count = sent.clone();
    tokio::spawn(async move {
        loop {
            send_all(&mut body, Bytes::from(vec![b'x'; 16 << 10]), false).await;
            count.fetch_add(16 << 10, Ordering::Relaxed);
        }
    });
    let mut before = usize::MAX;
    wait_for("the client is held back", || {
        std::mem::replace(&mut before, sent.load(Ordering::Relaxed)) == before && before > 0
    })
    .await;
    assert!(before < 32 << 20, "{before}");
}

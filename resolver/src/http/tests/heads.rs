//! Rules 10 to 13: routing and what is passed on.
use super::support::*;
use crate::conn::Backend;

fn with(fields: &str) -> String {
    format!("GET / HTTP/1.1\r\nHost: a.test\r\n{fields}\r\n")
}

#[tokio::test]
async fn two_hostnames_reach_two_backends() {
    let (one, two) = (Rig::new().await, Rig::new().await);
    one.route(&[("a.test", one.backend()), ("b.test", two.backend()), ("c.test", Backend::None("it left".into()))]);
    for (host, backend) in [("A.test.", &one), ("b.TEST:1234", &two), ("b.test:65535", &two), ("b.test:", &two)] {
        let mut client = one.send(format!("GET / HTTP/1.1\r\nHost: {host}\r\n\r\n")).await;
        let mut served = backend.accept().await;
        assert!(read_head(&mut served).await.contains(&format!("Host: {host}\r\n")));
        write(&mut served, OK).await;
        assert_eq!(read_exact(&mut client, OK.len()).await, OK);
    }
    let answer = one.ask("GET / HTTP/1.1\r\nHost: d.test\r\nConnection: close\r\n\r\n").await;
    assert!(answer.starts_with("HTTP/1.1 404 Not Found\r\n") && answer.contains("d.test"), "{answer}");
    assert!(answer.contains("a.test") && answer.contains("b.test"), "{answer}");
    let answer = one.ask("GET / HTTP/1.1\r\nHost: c.test\r\nConnection: close\r\n\r\n").await;
    assert!(answer.starts_with("HTTP/1.1 503 Service Unavailable\r\n") && answer.contains("it left"), "{answer}");
}

#[tokio::test]
async fn the_absolute_target_beats_host_and_never_chooses_the_address() {
    let rig = Rig::new().await;
    let _client = rig.send("GET http://a.test:1/x HTTP/1.1\r\nHost: other.test\r\n\r\n").await;
    let head = read_head(&mut rig.accept().await).await;
    assert!(head.starts_with("GET /x HTTP/1.1\r\nHost: a.test:1\r\n") && !head.contains("other.test"), "{head}");
}

#[tokio::test]
async fn malformed_and_ambiguous_requests_are_400_and_close_with_nothing_at_the_backend() {
    let rig = Rig::new().await;
    let chunked = "Transfer-Encoding: chunked\r\n";
    let requests = [
        "GET / HTTP/1.1\r\n\r\n".to_owned(),
        with("Host: a.test\r\n"),
        with("Host: b.test\r\n"),
        "GET http:///x HTTP/1.1\r\nHost: a.test\r\n\r\n".to_owned(),
        "GET http://:80/x HTTP/1.1\r\nHost: a.test\r\n\r\n".to_owned(),
        "GET / HTTP/1.1\r\nHost: a.test:65536\r\n\r\n".to_owned(),
        "GET / HTTP/1.1\r\nHost: a.test:99999999999999999999\r\n\r\n".to_owned(),
        "GET http://a.test:99999/x HTTP/1.1\r\nHost: a.test\r\n\r\n".to_owned(),
        "GET http://u@a.test/x HTTP/1.1\r\nHost: a.test\r\n\r\n".to_owned(),
        with("X: a\x01\r\n"),
        with(&format!("Content-Length: 3\r\n{chunked}")),
        with("Content-Length: 3\r\nContent-Length: 4\r\n"),
        with("Transfer-Encoding: gzip\r\n"),
        with("Transfer-Encoding: chunked, identity\r\n"),
        with("Content-Length : 3\r\n"),
        with("X: a\nY: b\r\n"),
        with("X: a\rY: b\r\n"),
        "GET / HTTP/1.1\nHost: a.test\n\n".to_owned(),
        "GET / HTTP/1.1\r\nHost: a.test\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n".to_owned(),
        format!("POST / HTTP/1.1\r\nHost: a.test\r\n{chunked}\r\nzz\r\n"),
        format!("POST / HTTP/1.1\r\nHost: a.test\r\n{chunked}\r\n5\nhello\r\n0\r\n\r\n"),
    ];
    for request in requests {
        // What follows a refused request is not read as another one.
        let answer = rig.ask(format!("{request}{GET}")).await;
        assert!(answer.starts_with("HTTP/1.1 400 Bad Request\r\n"), "{request:?}: {answer}");
        assert!(answer.contains("Connection: close\r\n"), "{request:?}: {answer}");
        assert_eq!(answer.matches("HTTP/1.1 ").count(), 1, "{request:?}: {answer}");
    }
    rig.backend_was_left_alone().await;
}

#[tokio::test]
async fn http_10_without_host_is_an_unknown_host() {
    let rig = Rig::new().await;
    assert!(rig.ask("GET / HTTP/1.0\r\n\r\n").await.starts_with("HTTP/1.1 404 "));
}

#[tokio::test]
async fn what_is_for_one_hop_is_removed_both_ways_and_the_rest_is_kept() {
    let rig = Rig::new().await;
    let mut client = rig
        .send(with(
            "Connection: x-secret\r\nX-Secret: gone\r\nProxy-Authorization: gone\r\nKeep-Alive: gone\r\nUpgrade: gone\r\n\
             TE: gone;q=1, trailers\r\nX-Forwarded-For: gone\r\nForwarded: gone\r\nX-Real-IP: gone\r\n\
             X_Forwarded_For: gone\r\nx-forwarded_PROTO: gone\r\nX_Real-IP: gone\r\nContent_Length: gone\r\n\
             Transfer_Encoding: gone\r\nProxy_Authorization: gone\r\nX_Mine: kept\r\nAccept-Encoding: zstd\r\nx-MiXed: kept\r\n",
        ))
        .await;
    let mut backend = rig.accept().await;
    let head = read_head(&mut backend).await;
    assert!(!head.contains("gone"), "{head}");
    for kept in [
        "Accept-Encoding: zstd\r\n",
        "x-MiXed: kept\r\n",
        "X_Mine: kept\r\n",
        "TE: trailers\r\n",
        "X-Forwarded-For: 127.0.0.1\r\n",
    ] {
        assert!(head.contains(kept), "{kept:?} in {head}");
    }
    write(
        &mut backend,
        "HTTP/1.1 200 Fine\r\nConnection: X-Hop\r\nX-Hop: gone\r\nKeep-Alive: gone\r\nProxy-Authenticate: gone\r\n\
         Upgrade: gone\r\nContent-Encoding: zstd\r\nContent-Length: 0\r\n\r\n",
    )
    .await;
    let head = read_head(&mut client).await;
    assert_eq!(head, "HTTP/1.1 200 Fine\r\nContent-Encoding: zstd\r\nContent-Length: 0\r\n\r\n");
}

#[tokio::test]
async fn encodings_are_never_asked_for_and_path_and_query_pass_byte_for_byte() {
    let rig = Rig::new().await;
    let target = "/%2e%2E/..//a;b?x=1;y=2&&z=%zz&\u{e9}#";
    let _client = rig.send(format!("GET {target} HTTP/1.1\r\nHost: a.test\r\n\r\n")).await;
    let head = read_head(&mut rig.accept().await).await;
    assert!(head.starts_with(&format!("GET {target} HTTP/1.1\r\n")), "{head}");
    assert!(!head.to_lowercase().contains("accept-encoding"), "{head}");
}

#[tokio::test]
async fn a_request_that_comes_back_is_508() {
    let rig = Rig::new().await;
    let (mut client, mut backend, head) = rig.get().await;
    // The backend is a proxy that sends everything to us again.
    let answer = rig.ask(head.replace("\r\n\r\n", "\r\nConnection: close\r\n\r\n")).await;
    assert!(answer.starts_with("HTTP/1.1 508 Loop Detected\r\n"), "{answer}");
    write(&mut backend, OK).await;
    assert_eq!(read_exact(&mut client, OK.len()).await, OK);
}

#[tokio::test]
async fn a_backend_that_is_this_router_is_508() {
    let rig = Rig::new().await;
    rig.route(&[("a.test", Backend::Local(rig.addr.to_string().parse().unwrap()))]);
    let answer = rig.ask(with("Connection: close\r\n")).await;
    assert!(answer.starts_with("HTTP/1.1 508 "), "{answer}");
    assert_eq!(rig.counters().refused_loop, 1);
}

#[tokio::test]
async fn connect_is_refused_and_other_versions_are_505() {
    let rig = Rig::new().await;
    let answer = rig.ask("CONNECT a.test:80 HTTP/1.1\r\nHost: a.test:80\r\n\r\n").await;
    assert!(answer.starts_with("HTTP/1.1 405 "), "{answer}");
    let answer = rig.ask("GET / HTTP/1.9\r\nHost: a.test\r\n\r\n").await;
    assert!(answer.starts_with("HTTP/1.1 505 HTTP Version Not Supported\r\n"), "{answer}");
    assert!(answer.contains("\r\n\r\n505 HTTP Version Not Supported\n"), "{answer}");
    rig.backend_was_left_alone().await;
}

#[tokio::test]
async fn heads_that_are_too_large_are_431() {
    let rig = Rig::new().await;
    for fields in [format!("X: {}\r\n", "a".repeat(70 << 10)), "a: b\r\n".repeat(200)] {
        assert!(rig.ask(with(&fields)).await.starts_with("HTTP/1.1 431 "));
    }
    rig.backend_was_left_alone().await;
}

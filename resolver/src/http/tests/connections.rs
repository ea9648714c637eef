//! Rule 16: kept connections to backends and to clients.
use super::support::*;
use crate::conn::Backend;
use tokio::net::{TcpListener, TcpStream};

#[tokio::test]
async fn many_requests_share_one_connection_on_both_sides() {
    let rig = Rig::new().await;
    let mut client = rig.connect().await;
    let mut backend = None;
    for _ in 0..3 {
        write(&mut client, GET).await;
        if backend.is_none() {
            backend = Some(rig.accept().await);
        }
        let backend = backend.as_mut().unwrap();
        read_head(backend).await;
        write(backend, OK).await;
        assert_eq!(read_exact(&mut client, OK.len()).await, OK);
    }
    rig.backend_was_left_alone().await;
    assert_eq!(rig.counters().opened, 3);
    assert_eq!(rig.site("a.test").stats.counted().classes[1], 3);
}

#[tokio::test]
async fn requests_that_come_together_are_answered_in_order() {
    let rig = Rig::new().await;
    let mut client = rig.send(format!("{}{}", GET.replace("/ ", "/1 "), GET.replace("/ ", "/2 "))).await;
    let mut backend = rig.accept().await;
    assert!(read_head(&mut backend).await.starts_with("GET /1 "));
    assert!(is_silent(&mut backend).await, "the second request waits for the first answer");
    write(&mut backend, OK).await;
    assert!(read_head(&mut backend).await.starts_with("GET /2 "));
    write(&mut backend, OK).await;
    assert_eq!(read_exact(&mut client, 2 * OK.len()).await, format!("{OK}{OK}"));
}

#[tokio::test]
async fn a_kept_connection_that_was_closed_is_noticed_before_use() {
    let rig = Rig::new().await;
    let (mut client, mut backend, _) = rig.get().await;
    write(&mut backend, OK).await;
    read_exact(&mut client, OK.len()).await;
    drop(backend);
    // Not idempotent: it could not be sent twice.
    write(&mut client, "POST / HTTP/1.1\r\nHost: a.test\r\nContent-Length: 0\r\n\r\n").await;
    let mut backend = rig.accept().await;
    assert!(read_head(&mut backend).await.starts_with("POST / "));
    write(&mut backend, OK).await;
    assert_eq!(read_exact(&mut client, OK.len()).await, OK);
}

#[tokio::test]
async fn an_idempotent_request_is_sent_once_more_when_no_byte_of_an_answer_came() {
    let rig = Rig::new().await;
    let (mut client, mut backend, _) = rig.get().await;
    write(&mut backend, OK).await;
    read_exact(&mut client, OK.len()).await;
    write(&mut client, GET).await;
    read_head(&mut backend).await;
    drop(backend);
    let mut backend = rig.accept().await;
    assert!(read_head(&mut backend).await.starts_with("GET / "));
    // Once: a fresh connection that fails as well is the answer.
    drop(backend);
    assert!(read_head(&mut client).await.starts_with("HTTP/1.1 502 "));
    rig.backend_was_left_alone().await;
}

/// A client and a backend with a kept connection between them.
async fn kept(rig: &Rig) -> (TcpStream, TcpStream) {
    let (mut client, mut backend, _) = rig.get().await;
    write(&mut backend, OK).await;
    read_exact(&mut client, OK.len()).await;
    (client, backend)
}

#[tokio::test]
async fn an_idempotent_request_is_sent_once_more_also_when_its_body_comes_piece_by_piece() {
    for (framing, pieces) in [
        ("Content-Length: 9\r\n", ["one", "two", "end"]),
        ("Transfer-Encoding: chunked\r\n", ["3\r\none\r\n", "3\r\ntwo\r\n", "0\r\nX: y\r\n\r\n"]),
    ] {
        for dies_after in 0..=pieces.len() {
            let rig = Rig::new().await;
            let (mut client, mut backend) = kept(&rig).await;
            write(&mut client, format!("PUT /x HTTP/1.1\r\nHost: a.test\r\n{framing}\r\n")).await;
            read_head(&mut backend).await;
            for piece in &pieces[..dies_after] {
                write(&mut client, piece).await;
                assert_eq!(read_exact(&mut backend, piece.len()).await, *piece);
            }
            drop(backend);
            let mut backend = rig.accept().await;
            assert!(read_head(&mut backend).await.starts_with("PUT /x "));
            for piece in &pieces[dies_after..] {
                write(&mut client, piece).await;
            }
            let whole = pieces.concat();
            assert_eq!(read_exact(&mut backend, whole.len()).await, whole, "{framing:?} after {dies_after}");
            write(&mut backend, OK).await;
            assert_eq!(read_exact(&mut client, OK.len()).await, OK);
        }
    }
}

#[tokio::test]
async fn a_body_of_which_more_went_out_than_is_held_is_not_sent_again() {
    const SIZE: usize = 100_000;
    let rig = Rig::new().await;
    let (mut client, mut backend) = kept(&rig).await;
    write(&mut client, format!("PUT / HTTP/1.1\r\nHost: a.test\r\nContent-Length: {SIZE}\r\n\r\n")).await;
    read_head(&mut backend).await;
    for _ in 0..10 {
        write(&mut client, "x".repeat(SIZE / 20)).await;
        read_exact(&mut backend, SIZE / 20).await;
    }
    drop(backend);
    assert!(read_head(&mut client).await.starts_with("HTTP/1.1 502 "));
    rig.backend_was_left_alone().await;
}

#[tokio::test]
async fn a_request_that_the_backend_may_have_acted_on_is_never_sent_twice() {
    for (request, answer) in
        [("POST / HTTP/1.1\r\nHost: a.test\r\nContent-Length: 2\r\n\r\nhi", ""), (GET, "HTTP/1.1 2")]
    {
        let rig = Rig::new().await;
        let (mut client, mut backend, _) = rig.get().await;
        write(&mut backend, OK).await;
        read_exact(&mut client, OK.len()).await;
        write(&mut client, request).await;
        read_head(&mut backend).await;
        write(&mut backend, answer).await;
        drop(backend);
        assert!(read_head(&mut client).await.starts_with("HTTP/1.1 502 "), "{request:?}");
        rig.backend_was_left_alone().await;
    }
}

#[tokio::test]
async fn a_connection_with_stray_bytes_behind_its_answer_is_not_used_again() {
    let rig = Rig::new().await;
    let (mut client, mut backend, _) = rig.get().await;
    write(&mut backend, format!("{OK}HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nstray")).await;
    assert_eq!(read_exact(&mut client, OK.len()).await, OK);
    write(&mut client, GET).await;
    let mut fresh = rig.accept().await;
    read_head(&mut fresh).await;
    write(&mut fresh, OK).await;
    assert_eq!(read_exact(&mut client, OK.len()).await, OK);
}

#[tokio::test]
async fn a_backend_that_moved_gets_the_next_request_also_on_a_kept_connection() {
    let rig = Rig::new().await;
    let (mut client, mut backend, _) = rig.get().await;
    write(&mut backend, OK).await;
    read_exact(&mut client, OK.len()).await;
    let moved = TcpListener::bind("127.0.0.1:0").await.unwrap();
    rig.route(&[("a.test", Backend::Local(moved.local_addr().unwrap().to_string().parse().unwrap()))]);
    write(&mut client, GET).await;
    let (mut served, _) = moved.accept().await.unwrap();
    read_head(&mut served).await;
    write(&mut served, OK).await;
    assert_eq!(read_exact(&mut client, OK.len()).await, OK);
}

#[tokio::test]
async fn idle_connections_are_closed_when_the_backend_closes_them() {
    let rig = Rig::new().await;
    let (mut client, mut backend, _) = rig.get().await;
    write(&mut backend, OK).await;
    read_exact(&mut client, OK.len()).await;
    until("the connection is kept", || rig.context.pool.idle() == 1).await;
    tokio::io::AsyncWriteExt::shutdown(&mut backend).await.unwrap();
    until("it is given up", || rig.context.pool.idle() == 0).await;
    assert_eq!(read_all(&mut backend).await.unwrap(), b"");
}

#[tokio::test]
async fn a_backend_named_localhost_is_found_on_either_family() {
    let rig = Rig::new().await;
    let Ok(six) = TcpListener::bind("[::1]:0").await else { return };
    let port = six.local_addr().unwrap().port();
    rig.route(&[("a.test", Backend::Local(format!("localhost:{port}").parse().unwrap()))]);
    let mut client = rig.send(GET).await;
    let (mut served, _) = six.accept().await.unwrap();
    read_head(&mut served).await;
    write(&mut served, OK).await;
    assert_eq!(read_exact(&mut client, OK.len()).await, OK);
}

#[tokio::test]
async fn a_client_that_asks_for_the_end_gets_it() {
    let rig = Rig::new().await;
    for request in
        ["GET / HTTP/1.1\r\nHost: a.test\r\nConnection: close\r\n\r\n", "GET / HTTP/1.0\r\nHost: a.test\r\n\r\n"]
    {
        let mut client = rig.send(request).await;
        let mut backend = rig.accept().await;
        assert!(!read_head(&mut backend).await.contains("close"));
        write(&mut backend, OK).await;
        let answer = text(read_all(&mut client).await.unwrap());
        assert_eq!(answer, "HTTP/1.1 200 OK\r\nContent-Length: 2\r\nConnection: close\r\n\r\nok");
        drop(backend);
        until("nothing is kept", || rig.context.pool.idle() == 0).await;
    }
    let mut client = rig.send("GET / HTTP/1.0\r\nHost: a.test\r\nConnection: keep-alive\r\n\r\n").await;
    let mut backend = rig.accept().await;
    read_head(&mut backend).await;
    write(&mut backend, OK).await;
    assert!(read_head(&mut client).await.contains("Connection: keep-alive\r\n"));
}

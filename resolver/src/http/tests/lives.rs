//! Rules 15 and 19: who leaves when, deadlines, and the end of the router.
use super::support::*;
use crate::http::Limits;
use std::time::Duration;
use tokio::io::AsyncWriteExt;

#[tokio::test]
async fn a_half_close_after_the_request_does_not_lose_the_answer() {
    let rig = Rig::new().await;
    let (mut client, mut backend, _) = rig.get().await;
    client.shutdown().await.unwrap();
    assert!(is_silent(&mut backend).await, "an end of stream is no cancellation");
    write(&mut backend, OK).await;
    assert_eq!(text(read_all(&mut client).await.unwrap()), OK);
}

#[tokio::test]
async fn a_reset_is_passed_to_the_backend_within_a_second() {
    let rig = Rig::new().await;
    let (client, mut backend, _) = rig.get().await;
    reset(client);
    expect_reset(&mut backend).await;
}

#[tokio::test]
async fn a_reset_after_a_half_close_is_passed_on_as_well() {
    let rig = Rig::new().await;
    let (mut client, mut backend, _) = rig.get().await;
    client.shutdown().await.unwrap();
    assert!(is_silent(&mut backend).await);
    reset(client);
    expect_reset(&mut backend).await;
}

#[tokio::test]
async fn a_reset_inside_an_upload_is_passed_on() {
    let rig = Rig::new().await;
    let client = rig.send("POST / HTTP/1.1\r\nHost: a.test\r\nContent-Length: 10\r\n\r\nabc").await;
    let mut backend = rig.accept().await;
    read_head(&mut backend).await;
    read_exact(&mut backend, 3).await;
    reset(client);
    expect_reset(&mut backend).await;
}

#[tokio::test]
async fn a_body_that_ends_too_early_is_no_body() {
    let rig = Rig::new().await;
    let mut client = rig.send("POST / HTTP/1.1\r\nHost: a.test\r\nContent-Length: 10\r\n\r\nabc").await;
    let mut backend = rig.accept().await;
    read_head(&mut backend).await;
    client.shutdown().await.unwrap();
    expect_reset(&mut backend).await;
    assert!(text(read_all(&mut client).await.unwrap()).starts_with("HTTP/1.1 400 "));
}

#[tokio::test]
async fn a_client_that_left_after_its_half_close_is_noticed_at_the_next_write() {
    let rig = Rig::new().await;
    let (client, mut backend, _) = rig.get().await;
    drop(client);
    write(&mut backend, "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n").await;
    // Our write is what makes the client's system say that nobody is there.
    let ended = async {
        loop {
            if backend.write_all(b"1\r\nx\r\n").await.is_err() {
                return;
            }
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    tokio::time::timeout(PATIENCE, ended).await.expect("the backend is told");
}

#[tokio::test]
async fn a_client_that_never_reads_its_answer_frees_the_backend() {
    let limits = Limits { unread: Duration::from_millis(200), ..Limits::default() };
    for head in ["Content-Length: 1099511627776", "Transfer-Encoding: chunked"] {
        let rig = Rig::with(limits).await;
        let (mut client, mut backend, _) = rig.get().await;
        write(&mut backend, format!("HTTP/1.1 200 OK\r\n{head}\r\n\r\n")).await;
        let piece = format!("10000\r\n{}\r\n", "x".repeat(0x10000));
        let filling = async { while backend.write_all(piece.as_bytes()).await.is_ok() {} };
        tokio::time::timeout(PATIENCE, filling).await.expect("the backend is told");
        expect_reset(&mut client).await;
        until("its place is free", || rig.site("a.test").stats.counted().in_flight == 0).await;
    }
}

#[tokio::test]
async fn a_client_that_waits_for_its_answer_is_not_one_that_leaves_it_unread() {
    let limits = Limits { unread: Duration::from_millis(50), ..Limits::default() };
    let rig = Rig::with(limits).await;
    let (mut client, mut backend, _) = rig.get().await;
    write(&mut backend, "HTTP/1.1 103 Early Hints\r\n\r\n").await;
    assert!(read_head(&mut client).await.starts_with("HTTP/1.1 103 "));
    for _ in 0..2 {
        assert!(is_silent(&mut client).await && is_silent(&mut client).await);
    }
    write(&mut backend, "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\no").await;
    assert!(read_to(&mut client, "\r\n\r\no").await.starts_with("HTTP/1.1 200 "));
    assert!(is_silent(&mut client).await && is_silent(&mut client).await);
    write(&mut backend, "k").await;
    assert_eq!(read_exact(&mut client, 1).await, "k");
}

#[tokio::test]
async fn after_a_hand_over_a_kept_connection_may_bring_one_more_request() {
    let mut rig = Rig::new().await;
    let (mut client, mut backend, _) = rig.get().await;
    write(&mut backend, OK).await;
    read_to(&mut client, "ok").await;
    let idle = {
        let mut idle = rig.send(GET).await;
        read_head(&mut backend).await;
        write(&mut backend, OK).await;
        read_to(&mut idle, "ok").await;
        idle
    };
    let mut router = rig.router.take().unwrap();
    drop(router.release().await);
    write(&mut client, GET).await;
    read_head(&mut backend).await;
    write(&mut backend, OK).await;
    let answer = text(read_all(&mut client).await.unwrap());
    assert!(answer.contains("\r\nConnection: close\r\n") && answer.ends_with("ok"), "{answer}");
    let mut idle = idle;
    assert_eq!(read_all(&mut idle).await.unwrap(), b"", "it ends in order a moment later");
    until("nobody is connected", || router.connections() == 0).await;
}

#[tokio::test]
async fn a_head_has_one_deadline_and_a_long_answer_or_a_rest_has_not() {
    let deadline = Duration::from_millis(300);
    let rig = Rig::with(Limits { head_deadline: deadline, ..Limits::default() }).await;
    // Byte by byte does not renew it.
    let mut slow = rig.send("GET / HTTP/1.1\r\n").await;
    let (mut answer, mut bytes) = (Vec::new(), b"X: y\r\n".iter().cycle());
    let drip = async {
        loop {
            let _ = slow.write_all(&[*bytes.next().unwrap()]).await;
            let mut more = [0; 1024];
            match tokio::time::timeout(Duration::from_millis(20), tokio::io::AsyncReadExt::read(&mut slow, &mut more))
                .await
            {
                Ok(Ok(0) | Err(_)) => return,
                Ok(Ok(n)) => answer.extend_from_slice(&more[..n]),
                Err(_) => {}
            }
        }
    };
    tokio::time::timeout(PATIENCE, drip).await.expect("it ends");
    assert!(text(answer).starts_with("HTTP/1.1 408 "));
    // Nothing at all is closed without a word.
    let mut mute = rig.connect().await;
    assert_eq!(read_all(&mut mute).await.unwrap(), b"");
    // A kept connection rests longer than a head may take, and an answer takes longer as well.
    let (mut client, mut backend, _) = rig.get().await;
    tokio::time::sleep(deadline * 2).await;
    write(&mut backend, OK).await;
    assert_eq!(read_exact(&mut client, OK.len()).await, OK);
    tokio::time::sleep(deadline * 2).await;
    write(&mut client, GET).await;
    read_head(&mut backend).await;
}

#[tokio::test]
async fn a_connection_without_requests_is_closed_after_its_idle_time() {
    let rig = Rig::with(Limits { idle: Duration::from_millis(200), ..Limits::default() }).await;
    let (mut client, mut backend, _) = rig.get().await;
    write(&mut backend, OK).await;
    read_exact(&mut client, OK.len()).await;
    assert_eq!(read_all(&mut client).await.unwrap(), b"");
}

#[tokio::test]
async fn the_end_waits_for_answers_and_closes_what_rests() {
    let mut rig = Rig::new().await;
    let (mut resting, mut kept, _) = rig.get().await;
    write(&mut kept, OK).await;
    read_exact(&mut resting, OK.len()).await;
    let (mut busy, _) = (rig.send(GET).await, ());
    read_head(&mut kept).await;
    let closing = tokio::spawn(rig.router.take().unwrap().close(PATIENCE));
    assert_eq!(read_all(&mut resting).await.unwrap(), b"");
    write(&mut kept, OK).await;
    let answer = text(read_all(&mut busy).await.unwrap());
    assert!(answer.contains("Connection: close\r\n") && answer.ends_with("ok"), "{answer}");
    closing.await.unwrap();
    assert_eq!(read_all(&mut kept).await.unwrap(), b"");
}

#[tokio::test]
async fn the_end_resets_what_does_not_end_in_time() {
    let mut rig = Rig::new().await;
    let (mut client, mut backend, _) = rig.get().await;
    rig.router.take().unwrap().close(Duration::ZERO).await;
    expect_reset(&mut client).await;
    assert!(read_all(&mut backend).await.map_or(true, |rest| rest.is_empty()));
}

#[tokio::test]
async fn while_accepting_is_held_clients_of_the_router_wait_for_whoever_takes_over() {
    let mut rig = Rig::new().await;
    rig.context.conn.hold.hold();
    let mut client = rig.send(GET).await;
    rig.backend_was_left_alone().await;
    let listeners = rig.router.as_mut().unwrap().release().await;
    rig.context.conn.hold.release();
    let _next = crate::http::Router::start(rig.context.clone(), listeners, None);
    let mut backend = rig.accept().await;
    read_head(&mut backend).await;
    write(&mut backend, OK).await;
    assert!(read_to(&mut client, "ok").await.starts_with("HTTP/1.1 200 "));
}

#[tokio::test]
async fn listeners_can_be_handed_on_still_open() {
    let mut rig = Rig::new().await;
    let listeners = rig.router.as_mut().unwrap().release().await;
    let early = rig.send(GET).await;
    let next = crate::http::Router::start(rig.context.clone(), listeners, None);
    let mut backend = rig.accept().await;
    read_head(&mut backend).await;
    assert_eq!(next.local_addrs().next().unwrap().0, rig.addr);
    drop(early);
}

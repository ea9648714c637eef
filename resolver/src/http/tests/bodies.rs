//! Rule 14: bodies stream both ways, and their ends are true.
use super::support::*;
use tokio::io::AsyncWriteExt;
use tokio::time::timeout;

fn post(fields: &str) -> String {
    format!("POST / HTTP/1.1\r\nHost: a.test\r\n{fields}\r\n")
}

#[tokio::test]
async fn the_head_of_an_answer_goes_out_when_it_arrives_and_every_chunk_when_it_arrives() {
    let rig = Rig::new().await;
    let (mut client, mut backend, _) = rig.get().await;
    write(&mut backend, "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n")
        .await;
    assert!(read_head(&mut client).await.contains("Transfer-Encoding: chunked\r\n"));
    for event in ["9\r\ndata: 1\n\n\r\n", "9\r\ndata: 2\n\n\r\n"] {
        write(&mut backend, event).await;
        assert_eq!(read_exact(&mut client, event.len()).await, event);
    }
    write(&mut backend, "0\r\n\r\n").await;
    assert_eq!(read_exact(&mut client, 5).await, "0\r\n\r\n");
}

#[tokio::test]
async fn request_bodies_stream_as_they_come() {
    let rig = Rig::new().await;
    let mut client = rig.send(post("Transfer-Encoding: chunked\r\n")).await;
    let mut backend = rig.accept().await;
    assert!(read_head(&mut backend).await.contains("Transfer-Encoding: chunked\r\n"));
    for chunk in ["3\r\nabc\r\n", "1\r\nd\r\n", "0\r\n\r\n"] {
        write(&mut client, chunk).await;
        assert_eq!(read_exact(&mut backend, chunk.len()).await, chunk);
    }
    write(&mut backend, OK).await;
    assert_eq!(read_exact(&mut client, OK.len()).await, OK);
}

#[tokio::test]
async fn a_response_that_arrives_during_an_upload_is_the_response() {
    let rig = Rig::new().await;
    let mut client = rig.send(post("Content-Length: 100000000\r\n")).await;
    let mut backend = rig.accept().await;
    read_head(&mut backend).await;
    write(&mut backend, "HTTP/1.1 413 Too Large\r\nConnection: close\r\nContent-Length: 2\r\n\r\nno").await;
    let head = read_head(&mut client).await;
    assert!(head.starts_with("HTTP/1.1 413 Too Large\r\n"), "{head}");
    assert_eq!(read_exact(&mut client, 2).await, "no");
    drop(backend);
}

#[tokio::test]
async fn a_response_is_read_though_the_backend_closed_during_the_upload() {
    let rig = Rig::new().await;
    let mut client = rig.send(post("Content-Length: 100000000\r\n")).await;
    let mut backend = rig.accept().await;
    read_head(&mut backend).await;
    write(&mut backend, "HTTP/1.1 401 No\r\nContent-Length: 2\r\n\r\nno").await;
    backend.shutdown().await.unwrap();
    let head = read_head(&mut client).await;
    assert!(head.starts_with("HTTP/1.1 401 No\r\n"), "{head}");
    assert_eq!(read_exact(&mut client, 2).await, "no");
}

#[tokio::test]
async fn both_sides_may_talk_at_once() {
    let rig = Rig::new().await;
    let mut client = rig.send(post("Transfer-Encoding: chunked\r\n")).await;
    let mut backend = rig.accept().await;
    read_head(&mut backend).await;
    write(&mut backend, "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n").await;
    read_head(&mut client).await;
    for _ in 0..3 {
        write(&mut client, "4\r\nping\r\n").await;
        assert_eq!(read_exact(&mut backend, 9).await, "4\r\nping\r\n");
        write(&mut backend, "4\r\npong\r\n").await;
        assert_eq!(read_exact(&mut client, 9).await, "4\r\npong\r\n");
    }
    write(&mut backend, "0\r\n\r\n").await;
    assert_eq!(read_exact(&mut client, 5).await, "0\r\n\r\n");
    // The answer is over first; the rest of the request still arrives, and then the connection serves another one.
    write(&mut client, format!("0\r\n\r\n{GET}")).await;
    assert_eq!(read_exact(&mut backend, 5).await, "0\r\n\r\n");
    read_head(&mut backend).await;
}

#[tokio::test]
async fn informational_answers_are_the_backends_to_give() {
    let rig = Rig::new().await;
    let mut client = rig.send(post("Content-Length: 2\r\nExpect: 100-continue\r\n")).await;
    let mut backend = rig.accept().await;
    assert!(read_head(&mut backend).await.contains("Expect: 100-continue\r\n"));
    assert!(is_silent(&mut client).await, "nobody but the backend says 100");
    write(&mut backend, "HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\nHTTP/1.1 100 Continue\r\n\r\n").await;
    assert_eq!(read_head(&mut client).await, "HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n");
    assert_eq!(read_head(&mut client).await, "HTTP/1.1 100 Continue\r\n\r\n");
    write(&mut client, "hi").await;
    assert_eq!(read_exact(&mut backend, 2).await, "hi");
    write(&mut backend, OK).await;
    assert_eq!(read_exact(&mut client, OK.len()).await, OK);
}

#[tokio::test]
async fn a_body_that_was_refused_before_it_was_sent_ends_the_connection() {
    let rig = Rig::new().await;
    let mut client = rig.send(post("Content-Length: 2\r\nExpect: 100-continue\r\n")).await;
    let mut backend = rig.accept().await;
    read_head(&mut backend).await;
    write(&mut backend, "HTTP/1.1 417 No\r\nContent-Length: 0\r\n\r\n").await;
    assert!(read_head(&mut client).await.contains("Connection: close\r\n"));
}

#[tokio::test]
async fn http_10_clients_get_no_chunks_and_no_informational_answers() {
    let rig = Rig::new().await;
    let mut client = rig.send("GET / HTTP/1.0\r\nHost: a.test\r\n\r\n").await;
    let mut backend = rig.accept().await;
    assert!(read_head(&mut backend).await.starts_with("GET / HTTP/1.1\r\n"));
    write(
        &mut backend,
        "HTTP/1.1 103 Hints\r\n\r\nHTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nhi\r\n0\r\n\r\n",
    )
    .await;
    let answer = text(read_all(&mut client).await.unwrap());
    assert_eq!(answer, "HTTP/1.1 200 OK\r\nConnection: close\r\n\r\nhi");
}

#[tokio::test]
async fn trailers_pass_both_ways_also_with_no_body() {
    let rig = Rig::new().await;
    let mut client = rig.send(post("Trailer: X-Sum\r\nTransfer-Encoding: chunked\r\n")).await;
    write(&mut client, "0\r\nX-Sum: 1\r\nTransfer-Encoding: gone\r\n\r\n").await;
    let mut backend = rig.accept().await;
    assert!(read_head(&mut backend).await.contains("Trailer: X-Sum\r\n"));
    assert_eq!(read_head(&mut backend).await, "0\r\nX-Sum: 1\r\n\r\n");
    write(&mut backend, "HTTP/1.1 200 OK\r\nTrailer: Y\r\nTransfer-Encoding: chunked\r\n\r\n0\r\nY: 2\r\n\r\n").await;
    read_head(&mut client).await;
    assert_eq!(read_head(&mut client).await, "0\r\nY: 2\r\n\r\n");
}

#[tokio::test]
async fn a_backend_that_dies_inside_a_body_is_a_broken_transfer() {
    for (head, body) in [
        ("Content-Length: 10\r\n", "half"),
        ("Transfer-Encoding: chunked\r\n", "5\r\nhel"),
        ("Transfer-Encoding: chunked\r\n", "5\r\nhello\r\n"),
    ] {
        for dies_by_reset in [false, true] {
            let rig = Rig::new().await;
            let (mut client, mut backend, _) = rig.get().await;
            write(&mut backend, format!("HTTP/1.1 200 OK\r\n{head}\r\n{body}")).await;
            read_head(&mut client).await;
            assert_eq!(read_exact(&mut client, body.len()).await, body);
            if dies_by_reset {
                reset(backend);
                expect_reset(&mut client).await;
            } else {
                drop(backend);
                // Less than was promised: an end, but no clean one.
                assert_eq!(read_all(&mut client).await.unwrap(), b"");
            }
        }
    }
    let rig = Rig::new().await;
    let (mut client, mut backend, _) = rig.get().await;
    write(&mut backend, "HTTP/1.1 200 OK\r\n\r\nhalf").await;
    assert!(read_head(&mut client).await.contains("Connection: close\r\n"));
    read_exact(&mut client, 4).await;
    reset(backend);
    // Only the end of the stream would say that the body is whole.
    expect_reset(&mut client).await;
    // So it is for an HTTP/1.0 client, whom chunks are not passed on to.
    for begun in ["5\r\nhello\r\n", "9\r\nhello"] {
        let rig = Rig::new().await;
        let mut client = rig.send("GET / HTTP/1.0\r\nHost: a.test\r\n\r\n").await;
        let mut backend = rig.accept().await;
        read_head(&mut backend).await;
        write(&mut backend, format!("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n{begun}")).await;
        read_head(&mut client).await;
        assert_eq!(read_exact(&mut client, 5).await, "hello");
        drop(backend);
        expect_reset(&mut client).await;
    }
}

#[tokio::test]
async fn a_backend_that_speaks_first_and_is_no_http_is_502_at_once() {
    for words in ["SSH-2.0-OpenSSH_9.2\r\n", "\r\nHTTP:", "220 mail"] {
        let rig = Rig::new().await;
        let (mut client, mut backend, _) = rig.get().await;
        write(&mut backend, words).await;
        let head = read_head(&mut client).await;
        assert!(head.starts_with("HTTP/1.1 502 "), "{head}");
    }
}

#[tokio::test]
async fn a_body_that_is_none_and_comes_with_its_head_is_502() {
    let rig = Rig::new().await;
    for body in ["zz\r\n", "\r\n", "5\nhello", "2\r\nabc\r\n0\r\n\r\n", "0\r\nno trailer\r\n\r\n"] {
        let (mut client, mut backend, _) = rig.get().await;
        let hints = "HTTP/1.1 103 Hints\r\n\r\n";
        write(&mut backend, format!("{hints}HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n{body}")).await;
        let mut head = read_head(&mut client).await;
        if head == hints {
            head = read_head(&mut client).await;
        }
        assert!(head.starts_with("HTTP/1.1 502 Bad Gateway\r\n"), "{body:?}: {head}");
        assert!(read_to(&mut client, "\n").await.contains("502"), "{body:?}");
    }
}

#[tokio::test]
async fn a_body_without_a_length_ends_with_its_connection() {
    let rig = Rig::new().await;
    let (mut client, mut backend, _) = rig.get().await;
    write(&mut backend, "HTTP/1.0 200 OK\r\n\r\nall of it").await;
    drop(backend);
    let answer = text(read_all(&mut client).await.unwrap());
    assert_eq!(answer, "HTTP/1.1 200 OK\r\nConnection: close\r\n\r\nall of it");
}

#[tokio::test]
async fn megabytes_pass_whole_both_ways_and_the_connection_goes_on() {
    const SIZE: usize = 9_000_001;
    let rig = Rig::new().await;
    let bytes: Vec<u8> = (0..SIZE).map(|at| (at % 251) as u8).collect();
    let mut client = rig.send(post(&format!("Content-Length: {SIZE}\r\n"))).await;
    let mut backend = rig.accept().await;
    for _ in 0..2 {
        read_head(&mut backend).await;
        let (sent, got) = (bytes.clone(), read_bytes(&mut backend, SIZE));
        let (_, got) = tokio::join!(async { client.write_all(&sent).await.unwrap() }, got);
        assert!(got == bytes);
        write(&mut backend, format!("HTTP/1.1 200 OK\r\nContent-Length: {SIZE}\r\n\r\n")).await;
        read_head(&mut client).await;
        let got = read_bytes(&mut client, SIZE);
        let (_, got) = tokio::join!(async { backend.write_all(&bytes).await.unwrap() }, got);
        assert!(got == bytes);
        write(&mut client, post(&format!("Content-Length: {SIZE}\r\n"))).await;
    }
    read_head(&mut backend).await;
}

#[tokio::test]
async fn chunked_megabytes_pass_whole() {
    let rig = Rig::new().await;
    let (mut client, mut backend, _) = rig.get().await;
    let body: Vec<u8> = (1..400usize)
        .flat_map(|n| [format!("{:x}\r\n", n * 50).into_bytes(), vec![b'x'; n * 50], b"\r\n".to_vec()].concat())
        .chain(*b"0\r\n\r\n")
        .collect();
    write(&mut backend, "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n").await;
    read_head(&mut client).await;
    let got = read_bytes(&mut client, body.len());
    let (_, got) = tokio::join!(async { backend.write_all(&body).await.unwrap() }, got);
    assert!(got == body);
}

async fn read_bytes(stream: &mut tokio::net::TcpStream, n: usize) -> Vec<u8> {
    let mut bytes = vec![0; n];
    let read = tokio::io::AsyncReadExt::read_exact(stream, &mut bytes);
    timeout(PATIENCE, read).await.expect("all bytes in time").unwrap();
    bytes
}

#[tokio::test]
async fn a_client_that_does_not_read_holds_the_backend_back_and_nobody_else() {
    let rig = Rig::new().await;
    let (client, mut backend, _) = rig.get().await;
    write(&mut backend, "HTTP/1.1 200 OK\r\nContent-Length: 1000000000\r\n\r\n").await;
    let block = vec![b'x'; 1 << 20];
    let mut sent = 0usize;
    while timeout(std::time::Duration::from_millis(500), backend.write_all(&block)).await.is_ok() {
        sent += 1;
        assert!(sent < 64, "more than 64 MiB were taken for a client that reads nothing");
    }
    let (mut other, mut second, _) = rig.get().await;
    write(&mut second, OK).await;
    assert_eq!(read_exact(&mut other, OK.len()).await, OK);
    drop(client);
}

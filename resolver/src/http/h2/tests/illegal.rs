//! Frames that no client may send, byte by byte: the answer is an error of the stream or of the connection, nothing reaches
//! the backend, and others are served.
use super::support::{Rig, answers, backend, soon};
use crate::conn::Backend;
use crate::http::Protocol;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0";
const DATA: u8 = 0;
const HEADERS: u8 = 1;
const RST: u8 = 3;
const SETTINGS: u8 = 4;
const GOAWAY: u8 = 7;
const WINDOW: u8 = 8;
const CONTINUATION: u8 = 9;

fn frame(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    let length = u32::try_from(payload.len()).unwrap().to_be_bytes();
    [&length[1..], &[kind, flags], &stream.to_be_bytes(), payload].concat()
}

/// Fields as literals without an index.
fn block(fields: &[(&str, &str)]) -> Vec<u8> {
    let text = |text: &str| [&[u8::try_from(text.len()).unwrap()][..], text.as_bytes()].concat();
    fields.iter().flat_map(|(name, value)| [vec![0], text(name), text(value)].concat()).collect()
}

const GET: [(&str, &str); 4] = [(":method", "GET"), (":scheme", "http"), (":path", "/"), (":authority", "a.test")];

fn get_with(more: &[(&str, &str)]) -> Vec<u8> {
    frame(HEADERS, 5, 1, &block(&[&GET, more].concat()))
}

/// Kinds of the frames that come back until the connection ends, or until one of them is an error.
async fn kinds(rig: &Rig, bytes: &[u8]) -> Vec<u8> {
    let mut tcp = TcpStream::connect(rig.addr).await.unwrap();
    // A router that has had enough closes while it is still being written to.
    let _ = tcp.write_all(&[PREFACE, bytes].concat()).await;
    let mut kinds = Vec::new();
    let mut head = [0; 9];
    while soon(tcp.read_exact(&mut head)).await.is_ok() {
        let length = u32::from_be_bytes([0, head[0], head[1], head[2]]);
        let mut payload = vec![0; length as usize];
        if soon(tcp.read_exact(&mut payload)).await.is_err() {
            break;
        }
        kinds.push(head[3]);
        if [RST, GOAWAY].contains(&head[3]) {
            break;
        }
    }
    kinds
}

/// A request whose trailers have a pseudo field: its stream is reset, the backend gets no end of it, and the next stream of the
/// same connection is served.
#[tokio::test]
async fn pseudo_fields_among_trailers_are_an_error_of_the_stream() {
    for protocol in [Protocol::Http1, Protocol::H2c] {
        let (tell, mut told) = tokio::sync::mpsc::unbounded_channel();
        let one = backend(move |mut stream| {
            let tell = tell.clone();
            async move {
                let mut all = Vec::new();
                let _ = stream.read_to_end(&mut all).await;
                let _ = tell.send(String::from_utf8_lossy(&all).into_owned());
            }
        })
        .await;
        let (two, _) = answers("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok").await;
        // What waits for the backend's answer for ever is not what the test waits for.
        let one = if protocol == Protocol::H2c { hangs().await } else { one };
        let rig = Rig::start(&[("a.test", protocol, one), ("b.test", Protocol::Http1, two)]).await;
        let post: Vec<_> = [(":method", "POST")].into_iter().chain(GET[1..].iter().copied()).collect();
        let mut other = GET;
        other[3].1 = "b.test";
        let bytes = [
            frame(HEADERS, 4, 1, &block(&post)),
            frame(DATA, 0, 1, b"body"),
            frame(HEADERS, 5, 1, &block(&[("x-sum", "1"), (":path", "/admin")])),
            frame(HEADERS, 5, 3, &block(&other)),
        ];
        // The engine itself refuses pseudo fields behind others; alone they are what it lets pass.
        let alone = [
            frame(HEADERS, 4, 1, &block(&post)),
            frame(DATA, 0, 1, b"body"),
            frame(HEADERS, 5, 1, &block(&[(":path", "/admin"), ("x-sum", "1")])),
            bytes[3].clone(),
        ];
        for bytes in [bytes.concat(), alone.concat()] {
            let mut tcp = TcpStream::connect(rig.addr).await.unwrap();
            tcp.write_all(&[PREFACE, &bytes].concat()).await.unwrap();
            let (mut reset, mut answered) = (false, false);
            while !(reset && answered) {
                let (kind, stream, payload) = next(&mut tcp).await;
                assert!(kind != GOAWAY, "the connection ends");
                reset |= kind == RST && stream == 1 && payload == 1u32.to_be_bytes();
                answered |= kind == DATA && stream == 3 && payload == b"ok";
            }
            if protocol == Protocol::Http1 {
                let got = soon(told.recv()).await.unwrap();
                assert!(!got.ends_with("0\r\n\r\n") && !got.contains("x-sum"), "{got}");
            }
        }
    }
}

/// A backend that speaks HTTP/2 and answers nothing.
async fn hangs() -> Backend {
    backend(async |stream| {
        let mut connection = h2::server::handshake(stream).await.unwrap();
        let mut kept = Vec::new();
        while let Some(Ok(stream)) = connection.accept().await {
            kept.push(stream);
        }
    })
    .await
}

/// The next frame: kind, stream, payload.
async fn next(tcp: &mut TcpStream) -> (u8, u32, Vec<u8>) {
    let mut head = [0; 9];
    soon(tcp.read_exact(&mut head)).await.unwrap();
    let mut payload = vec![0; u32::from_be_bytes([0, head[0], head[1], head[2]]) as usize];
    soon(tcp.read_exact(&mut payload)).await.unwrap();
    (head[3], u32::from_be_bytes([head[5], head[6], head[7], head[8]]), payload)
}

#[tokio::test]
async fn illegal_frames_are_errors_and_reach_nobody() {
    let (one, mut told) = answers("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok").await;
    let rig = Rig::start(&[("a.test", Protocol::Http1, one)]).await;
    let cases: Vec<(&str, Vec<u8>)> = vec![
        ("data on no stream", frame(DATA, 1, 0, b"x")),
        ("data on a stream that is not open", frame(DATA, 1, 1, b"x")),
        ("an even stream", frame(HEADERS, 5, 2, &block(&GET))),
        ("a name in capitals", get_with(&[("X-Large", "1")])),
        ("a field of one connection", get_with(&[("connection", "close")])),
        ("a transfer coding", get_with(&[("transfer-encoding", "chunked")])),
        ("te of another kind", get_with(&[("te", "gzip")])),
        ("a pseudo field twice", get_with(&[(":path", "/again")])),
        ("a pseudo field that nobody knows", get_with(&[(":else", "1")])),
        ("a pseudo field behind a field", frame(HEADERS, 5, 1, &block(&[GET[0], ("a", "b"), GET[1], GET[2], GET[3]]))),
        ("no method", frame(HEADERS, 5, 1, &block(&GET[1..]))),
        ("a path that is none", frame(HEADERS, 5, 1, &block(&[GET[0], GET[1], (":path", "/<a>"), GET[3]]))),
        ("a line end in a value", get_with(&[("a", "b\r\nc: d")])),
        ("a body shorter than said", frame(HEADERS, 5, 1, &block(&[&GET[..], &[("content-length", "3")]].concat()))),
        ("settings of an odd size", frame(SETTINGS, 0, 0, &[0; 5])),
        ("settings on a stream", frame(SETTINGS, 0, 1, &[])),
        ("a window that grows by nothing", frame(WINDOW, 0, 0, &[0; 4])),
        ("a window that is too large", frame(WINDOW, 0, 0, &0x7fff_ffff_u32.to_be_bytes()).repeat(2)),
        ("a continuation of nothing", frame(CONTINUATION, 4, 1, &block(&GET))),
        ("another frame inside a head", [frame(HEADERS, 1, 1, &block(&GET)), frame(DATA, 1, 1, b"x")].concat()),
        ("a block that is none", frame(HEADERS, 5, 1, &[0xff; 20])),
        ("a frame that is too large", frame(DATA, 0, 1, &[0; 20_000])),
        (
            "continuations without an end",
            [frame(HEADERS, 1, 1, &block(&GET)), frame(CONTINUATION, 0, 1, b"").repeat(5000)].concat(),
        ),
    ];
    for (what, bytes) in cases {
        let kinds = kinds(&rig, &bytes).await;
        assert!(kinds.iter().any(|kind| [RST, GOAWAY].contains(kind)), "{what}: {kinds:?}");
    }
    assert!(told.try_recv().is_err());
    assert_eq!(rig.get("http://a.test/").await.body, "ok");
}

use super::support::{Answer, Rig, backend, soon, wait_for};
use crate::conn::Backend;
use crate::http::Protocol;
use bytes::Bytes;
use h2::server::SendResponse;
use h2::{Reason, RecvStream};
use http::{HeaderMap, Request, Response};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::sync::Notify;

/// A backend that speaks HTTP/2; `script` gets each stream. Counts connections.
async fn h2_backend<F>(
    script: impl Fn(Request<RecvStream>, SendResponse<Bytes>) -> F + Clone + Send + Sync + 'static,
) -> (Backend, Arc<AtomicUsize>)
where
    F: Future<Output = ()> + Send + 'static,
{
    let connections = Arc::new(AtomicUsize::new(0));
    let count = connections.clone();
    let backend = backend(move |stream| {
        count.fetch_add(1, Ordering::Relaxed);
        let script = script.clone();
        async move {
            let mut connection = h2::server::handshake(stream).await.unwrap();
            while let Some(Ok((request, respond))) = connection.accept().await {
                tokio::spawn(script(request, respond));
            }
        }
    })
    .await;
    (backend, connections)
}

async fn echo(request: Request<RecvStream>, mut respond: SendResponse<Bytes>) {
    let (parts, mut body) = request.into_parts();
    let mut response = Response::new(());
    response.headers_mut().insert("x-authority", parts.uri.authority().unwrap().as_str().parse().unwrap());
    response.headers_mut().insert("x-path", parts.uri.path_and_query().unwrap().as_str().parse().unwrap());
    response.headers_mut().insert("x-from", parts.headers["x-forwarded-for"].clone());
    let mut stream = respond.send_response(response, false).unwrap();
    while let Some(piece) = body.data().await {
        let piece = piece.unwrap();
        let _ = body.flow_control().release_capacity(piece.len());
        super::support::send_all(&mut stream, piece, false).await;
    }
    let trailers = body.trailers().await.unwrap().unwrap_or_default();
    stream.send_trailers(trailers).unwrap();
}

#[tokio::test]
async fn streams_share_a_session_and_nothing_is_taken_apart() {
    let (one, connections) = h2_backend(echo).await;
    let rig = Rig::start(&[("a.test", Protocol::H2c, one)]).await;
    let mut client = rig.client().await;
    let mut asked = Vec::new();
    for n in 0..50 {
        let url = format!("https://A.test:9/{n}?x=1;y=%zz");
        let (response, mut body) = client.send_request(Request::post(url).body(()).unwrap(), false).unwrap();
        body.send_data(format!("body {n}").into(), false).unwrap();
        let mut trailers = HeaderMap::new();
        trailers.insert("x-n", n.into());
        body.send_trailers(trailers).unwrap();
        asked.push((n, response));
    }
    for (n, response) in asked {
        let answer = Answer::read(soon(response).await.unwrap()).await;
        assert_eq!((answer.status, answer.body, &answer.trailers["x-n"]), (200, format!("body {n}"), &n.into()));
        assert_eq!(answer.headers["x-authority"], "A.test:9");
        assert_eq!(answer.headers["x-path"], format!("/{n}?x=1;y=%zz"));
        assert_eq!(answer.headers["x-from"], "127.0.0.1");
    }
    assert_eq!(connections.load(Ordering::Relaxed), 1);
}

#[tokio::test]
async fn resets_pass_with_their_reason() {
    let (asked, left, read) = (Arc::new(Notify::new()), Arc::new(Notify::new()), Arc::new(Notify::new()));
    let tell = (asked.clone(), left.clone(), read.clone());
    let (one, _) = h2_backend(move |request, mut respond| {
        let (asked, left, read) = tell.clone();
        async move {
            match request.uri().path() {
                "/before" => respond.send_reset(Reason::INADEQUATE_SECURITY),
                "/inside" => {
                    let mut body = respond.send_response(Response::new(()), false).unwrap();
                    body.send_data("half".into(), false).unwrap();
                    read.notified().await;
                    body.send_reset(Reason::HTTP_1_1_REQUIRED);
                }
                _ => {
                    asked.notify_one();
                    let reason = std::future::poll_fn(|cx| respond.poll_reset(cx)).await.unwrap();
                    assert_eq!(reason, Reason::CANCEL);
                    left.notify_one();
                }
            }
        }
    })
    .await;
    let rig = Rig::start(&[("a.test", Protocol::H2c, one)]).await;
    let mut client = rig.client().await;
    let mut get = |path: &str| {
        let request = Request::get(format!("http://a.test{path}")).body(()).unwrap();
        client.send_request(request, true).unwrap()
    };
    let before = soon(get("/before").0).await.unwrap_err();
    assert_eq!(before.reason(), Some(Reason::INADEQUATE_SECURITY));
    let mut body = soon(get("/inside").0).await.unwrap().into_body();
    assert_eq!(soon(body.data()).await.unwrap().unwrap(), "half");
    read.notify_one();
    let error = soon(body.data()).await.unwrap().unwrap_err();
    assert_eq!(error.reason(), Some(Reason::HTTP_1_1_REQUIRED));
    let (response, mut stream) = get("/wait");
    soon(asked.notified()).await;
    stream.send_reset(Reason::CANCEL);
    soon(left.notified()).await;
    drop(response);
}

/// A frame of HTTP/2.
fn frame(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    let mut frame = u32::try_from(payload.len()).unwrap().to_be_bytes()[1..].to_vec();
    frame.extend([kind, flags]);
    frame.extend(stream.to_be_bytes());
    frame.extend(payload);
    frame
}

/// Answers each stream with a head, data and a reset in one write.
async fn answers_and_resets(mut stream: tokio::net::TcpStream) {
    const DATA: u8 = 0;
    const HEADERS: u8 = 1;
    const RESET: u8 = 3;
    const SETTINGS: u8 = 4;
    const PING: u8 = 6;
    const ACK: u8 = 1;
    stream.read_exact(&mut [0; 24]).await.unwrap();
    stream.write_all(&frame(SETTINGS, 0, 0, b"")).await.unwrap();
    let mut head = [0; 9];
    while stream.read_exact(&mut head).await.is_ok() {
        let mut payload = vec![0; (usize::from(head[1]) << 8) | usize::from(head[2])];
        stream.read_exact(&mut payload).await.unwrap();
        let id = u32::from_be_bytes(head[5..].try_into().unwrap());
        let answer = match (head[3], head[4]) {
            (SETTINGS, 0) => frame(SETTINGS, ACK, 0, b""),
            (PING, 0) => frame(PING, ACK, 0, &payload),
            (HEADERS, _) => [
                // `:status 200` of the static table, and the end of the fields.
                frame(HEADERS, 4, id, &[0x88]),
                frame(DATA, 0, id, b"half"),
                frame(RESET, 0, id, &13u32.to_be_bytes()),
            ]
            .concat(),
            _ => continue,
        };
        stream.write_all(&answer).await.unwrap();
    }
}

#[tokio::test]
async fn what_came_before_a_reset_comes_before_the_reset() {
    let one = backend(answers_and_resets).await;
    let rig = Rig::start(&[("a.test", Protocol::H2c, one)]).await;
    for _ in 0..20 {
        assert_eq!(rig.half().await, Some(Reason::HTTP_1_1_REQUIRED));
    }
}

#[tokio::test]
async fn a_backend_that_says_goodbye_costs_no_request() {
    let backend_connections = Arc::new(AtomicUsize::new(0));
    let count = backend_connections.clone();
    let restarting = backend(move |stream| {
        let nth = count.fetch_add(1, Ordering::Relaxed);
        async move {
            let mut connection = h2::server::handshake(stream).await.unwrap();
            while let Some(Ok((_, mut respond))) = connection.accept().await {
                if nth == 0 {
                    respond.send_reset(Reason::REFUSED_STREAM);
                    connection.graceful_shutdown();
                } else {
                    respond.send_response(Response::new(()), true).unwrap();
                }
            }
        }
    })
    .await;
    let rig = Rig::start(&[("a.test", Protocol::H2c, restarting)]).await;
    assert_eq!(rig.get("http://a.test/").await.status, 200);
    assert_eq!(backend_connections.load(Ordering::Relaxed), 2);
}

#[tokio::test]
async fn a_call_that_was_not_looked_at_is_made_again_with_its_body() {
    let connections = Arc::new(AtomicUsize::new(0));
    let count = connections.clone();
    let restarting = backend(move |stream| {
        let nth = count.fetch_add(1, Ordering::Relaxed);
        async move {
            let mut connection = h2::server::handshake(stream).await.unwrap();
            while let Some(Ok((request, mut respond))) = connection.accept().await {
                tokio::spawn(async move {
                    if nth > 0 {
                        return echo_body(request, respond).await;
                    }
                    let mut body = request.into_body();
                    assert_eq!(body.data().await.unwrap().unwrap(), "call");
                    respond.send_reset(Reason::REFUSED_STREAM);
                });
            }
        }
    })
    .await;
    let rig = Rig::start(&[("a.test", Protocol::H2c, restarting)]).await;
    for (whole, sessions) in [("call", 2), ("call again", 2)] {
        let mut client = rig.client().await;
        let (response, mut body) =
            client.send_request(Request::post("http://a.test/").body(()).unwrap(), false).unwrap();
        body.send_data("call".into(), whole == "call").unwrap();
        if whole != "call" {
            body.send_data(" again".into(), true).unwrap();
        }
        let answer = Answer::read(soon(response).await.unwrap()).await;
        assert_eq!((answer.status, answer.body.as_str()), (200, whole));
        assert_eq!(connections.load(Ordering::Relaxed), sessions);
    }
}

#[tokio::test]
async fn an_answer_stands_though_its_backend_stops_the_upload() {
    let (one, _) = h2_backend(|request, mut respond| async move {
        let mut stream = respond.send_response(Response::builder().status(413).body(()).unwrap(), false).unwrap();
        stream.send_data("no".into(), true).unwrap();
        // The engine resets what was not read, without an error.
        drop(request);
    })
    .await;
    let rig = Rig::start(&[("a.test", Protocol::H2c, one)]).await;
    for _ in 0..20 {
        let mut client = rig.client().await;
        let (response, _upload) =
            client.send_request(Request::post("http://a.test/").body(()).unwrap(), false).unwrap();
        let answer = soon(response).await.unwrap();
        assert_eq!(answer.status(), 413);
        let mut body = answer.into_body();
        assert_eq!(soon(body.data()).await.unwrap().unwrap(), "no");
        // The router does the same towards its client.
        if let Some(rest) = soon(body.data()).await {
            assert_eq!(rest.unwrap_err().reason(), Some(Reason::NO_ERROR));
        }
    }
}

async fn echo_body(request: Request<RecvStream>, mut respond: SendResponse<Bytes>) {
    let mut body = request.into_body();
    let mut stream = respond.send_response(Response::new(()), false).unwrap();
    while let Some(piece) = body.data().await {
        super::support::send_all(&mut stream, piece.unwrap(), false).await;
    }
    stream.send_data(Bytes::new(), true).unwrap();
}

#[tokio::test]
async fn a_backend_that_speaks_something_else_is_said() {
    let (one, _) = super::support::answers("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n").await;
    let rig = Rig::start(&[("a.test", Protocol::H2c, one)]).await;
    let answer = soon(rig.get("http://a.test/")).await;
    assert_eq!(answer.status, 502, "{}", answer.body);
    assert!(answer.body.contains("HTTP/2"), "{}", answer.body);
}

#[tokio::test]
async fn sessions_that_nobody_uses_end() {
    let (one, connections) = h2_backend(echo).await;
    let limits = crate::http::Limits { backend_idle: std::time::Duration::from_millis(50), ..Default::default() };
    let rig = Rig::with(&[("a.test", Protocol::H2c, one)], limits, None).await;
    assert_eq!(rig.get("http://a.test/").await.status, 200);
    wait_for("the session ends", || rig.ctx.sessions.open() == 0).await;
    assert_eq!(rig.get("http://a.test/").await.status, 200);
    assert_eq!(connections.load(Ordering::Relaxed), 2);
}

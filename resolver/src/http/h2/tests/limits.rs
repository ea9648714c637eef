use super::support::{Rig, answers, backend, head, soon};
use crate::http::{Limits, Protocol};
use bytes::Bytes;
use h2::Reason;
use h2::client::SendRequest;
use http::Request;
use tokio::io::AsyncWriteExt;

/// Opens streams and resets them until that is an error.
async fn flood(mut client: SendRequest<Bytes>) -> h2::Error {
    loop {
        client = match client.ready().await {
            Ok(client) => client,
            Err(error) => return error,
        };
        match client.send_request(Request::get("http://a.test/").body(()).unwrap(), true) {
            Ok((_response, mut stream)) => {
                tokio::task::yield_now().await;
                stream.send_reset(Reason::CANCEL);
            }
            Err(error) => return error,
        }
    }
}

#[tokio::test]
async fn who_opens_and_resets_without_an_end_is_told_to_calm_down() {
    let waits = backend(async |mut stream| while !head(&mut stream).await.is_empty() {}).await;
    let limits = Limits { h2_resets: 20, ..Limits::default() };
    let rig = Rig::with(&[("a.test", Protocol::Http1, waits)], limits, None).await;
    let tcp = tokio::net::TcpStream::connect(rig.addr).await.unwrap();
    let (client, connection) = h2::client::handshake(tcp).await.unwrap();
    let ended = tokio::spawn(connection);
    let error = soon(flood(client)).await;
    let whole = soon(ended).await.unwrap().err().and_then(|error| error.reason());
    // Where the router's reset overtakes its goodbye, nothing but the end is seen.
    assert!(error.reason().or(whole).is_none_or(|reason| reason == Reason::ENHANCE_YOUR_CALM), "{error} {whole:?}");
}

#[tokio::test]
async fn streams_and_heads_have_a_limit() {
    let (one, _) = answers("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok").await;
    let limits = Limits { h2_streams: 7, head_bytes: 8 << 10, ..Limits::default() };
    let rig = Rig::with(&[("a.test", Protocol::Http1, one)], limits, None).await;
    let mut client = rig.client().await;
    let (response, _) = client.send_request(Request::get("http://a.test/").body(()).unwrap(), true).unwrap();
    assert_eq!(soon(response).await.unwrap().status(), 200);
    assert_eq!(client.current_max_send_streams(), 7);
    let large = Request::get("http://a.test/").header("x-large", "x".repeat(9 << 10)).body(()).unwrap();
    let answer = soon(client.send_request(large, true).unwrap().0).await;
    assert!(answer.as_ref().map_or(true, |answer| answer.status() == 431), "{answer:?}");
    let (response, _) =
        rig.client().await.send_request(Request::get("http://a.test/").body(()).unwrap(), true).unwrap();
    assert_eq!(soon(response).await.unwrap().status(), 200);
}

#[tokio::test]
async fn a_client_that_never_reads_its_answer_frees_the_backend() {
    let (free, mut freed) = tokio::sync::mpsc::unbounded_channel();
    let pours = backend(move |mut stream| {
        let free = free.clone();
        async move {
            head(&mut stream).await;
            let begun = b"HTTP/1.1 200 OK\r\nContent-Length: 1099511627776\r\n\r\n";
            stream.write_all(begun).await.unwrap();
            while stream.write_all(&[b'x'; 64 << 10]).await.is_ok() {}
            free.send(()).unwrap();
        }
    })
    .await;
    let limits = Limits { unread: std::time::Duration::from_millis(200), ..Limits::default() };
    let rig = Rig::with(&[("a.test", Protocol::Http1, pours)], limits, None).await;
    let mut client = rig.client().await;
    let (response, _) = client.send_request(Request::get("http://a.test/").body(()).unwrap(), true).unwrap();
    let mut body = soon(response).await.unwrap().into_body();
    soon(freed.recv()).await.unwrap();
    let error = loop {
        match soon(body.data()).await.unwrap() {
            Ok(_) => {}
            Err(error) => break error,
        }
    };
    assert_eq!(error.reason(), Some(Reason::CANCEL));
}

#[tokio::test]
async fn a_service_has_as_many_requests_as_it_may_have() {
    let waits = backend(async |mut stream| {
        head(&mut stream).await;
        std::future::pending::<()>().await;
    })
    .await;
    let limits = Limits { service_requests: 1, ..Limits::default() };
    let rig = Rig::with(&[("a.test", Protocol::Http1, waits)], limits, None).await;
    let mut client = rig.client().await;
    let (first, _) = client.send_request(Request::get("http://a.test/").body(()).unwrap(), true).unwrap();
    super::support::wait_for("the first is at the backend", || {
        rig.ctx.routes.find("a.test").unwrap().stats.counted().in_flight == 1
    })
    .await;
    assert_eq!(rig.get("http://a.test/").await.status, 503);
    drop(first);
}

#[tokio::test]
async fn more_fields_than_the_limit_are_too_large_a_head() {
    let (small, _told) = answers("HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\nx").await;
    let rig = Rig::start(&[("a.test", Protocol::Http1, small)]).await;
    let client = rig.client().await;
    for (fields, status) in [(100, 200), (200, 431)] {
        let mut request = Request::get("http://a.test/");
        for n in 0..fields {
            request = request.header(format!("x-{n}"), "y");
        }
        let mut ready = client.clone().ready().await.unwrap();
        let (response, _) = ready.send_request(request.body(()).unwrap(), true).unwrap();
        assert_eq!(soon(response).await.unwrap().status().as_u16(), status, "{fields}");
    }
}

//! Adapters: relays to other hosts, refusals, waits and answers.
use super::support::*;
use crate::conn::ledger::Ledger;
use crate::conn::{Backend, Context, Dialer, Opening};
use stado_fleet::directory::Route;
use stado_fleet::fault::{Blame, Class};
use stado_fleet::ledger::Wait;
use stado_fleet::link::{LinkError, RemoteStream, Stage};
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt, DuplexStream};
use tokio::sync::oneshot;
use tokio::time::timeout;

type Far = Result<DuplexStream, LinkError>;

/// Another host whose opens are answered by the test.
#[derive(Debug, Default)]
struct FarHost(Mutex<Vec<oneshot::Receiver<Far>>>);
impl FarHost {
    /// Queues one open; the sender answers it.
    fn expect(&self) -> oneshot::Sender<Far> {
        let (answer, asked) = oneshot::channel();
        self.0.lock().unwrap().insert(0, asked);
        answer
    }
}
impl Dialer for FarHost {
    fn open<'a>(&'a self, _route: &'a Route, _budget: Duration) -> Opening<'a> {
        let asked = self.0.lock().unwrap().pop();
        Box::pin(async move {
            match asked {
                Some(asked) => {
                    let stream = asked.await.unwrap_or_else(|_| Err(no("dropped")))?;
                    Ok(Box::pin(stream) as Pin<Box<dyn RemoteStream>>)
                }
                None => Err(no("nobody expected this open")),
            }
        })
    }
}
fn no(sentence: &str) -> LinkError {
    LinkError { stage: Stage::Open, sentence: sentence.into(), class: Class::Refused }
}

pub(super) fn route(endpoint: SocketAddr, local: bool) -> Backend {
    Backend::Fleet(Arc::new(Route {
        service: "svc".parse().unwrap(),
        active_host: "gpu-box".parse().unwrap(),
        endpoint: stado_fleet::name::Endpoint {
            scheme: stado_fleet::name::Scheme::Http,
            addr: endpoint.to_string().parse().unwrap(),
        },
        capabilities: Vec::new(),
        paths: [].into(),
        local,
        stado_command: None,
    }))
}

fn remote() -> Backend {
    route("127.0.0.1:8080".parse().unwrap(), false)
}

fn adapter(backend: Backend) -> (Rig, Arc<FarHost>) {
    let far = Arc::new(FarHost::default());
    let context = Context::new(Arc::clone(&far) as Arc<dyn Dialer>, Ledger::new());
    (Rig::on(free_port(), Some("lem"), backend, context), far)
}

impl Rig {
    fn waits(&self) -> Vec<Wait> {
        self.context.ledger.snapshot_waits()
    }
    async fn one_wait(&self, phase: &str) -> Wait {
        until("the wait is listed", || matches!(&*self.waits(), [wait] if wait.phase == phase)).await;
        self.waits().remove(0)
    }
    async fn no_wait(&self) {
        until("no wait is listed", || self.waits().is_empty()).await;
    }
}

/// Opens a relay: the client and the far end of its stream.
async fn opened(rig: &Rig, far: &FarHost) -> (tokio::net::TcpStream, DuplexStream) {
    let (ours, theirs) = tokio::io::duplex(1 << 10);
    far.expect().send(Ok(ours)).unwrap();
    (rig.connect().await, theirs)
}

async fn far_read(far: &mut DuplexStream, n: usize) -> Vec<u8> {
    let mut bytes = vec![0; n];
    timeout(PATIENCE, far.read_exact(&mut bytes)).await.unwrap().unwrap();
    bytes
}

#[tokio::test]
async fn a_remote_stream_is_relayed_with_half_close_both_ways() {
    let (rig, far) = adapter(remote());
    let (mut client, mut theirs) = opened(&rig, &far).await;
    let big = vec![b'x'; 300_000];
    let expected = big.clone();
    let reading = tokio::spawn(async move {
        let mut got = Vec::new();
        theirs.read_to_end(&mut got).await.unwrap();
        theirs.write_all(b"after the end").await.unwrap();
        theirs.shutdown().await.unwrap();
        got
    });
    client.write_all(&big).await.unwrap();
    client.shutdown().await.unwrap();
    assert_eq!(read_all(&mut client).await.unwrap(), b"after the end");
    assert!(timeout(PATIENCE, reading).await.unwrap().unwrap() == expected);
    until("the connection is over", || rig.counters().active == 0).await;
}

#[tokio::test]
async fn a_client_of_a_host_that_was_left_is_led_to_where_the_service_is_now() {
    let (rig, far) = adapter(remote());
    let (left, now) = (far.expect(), far.expect());
    let mut client = rig.connect().await;
    rig.one_wait("open").await;
    left.send(Err(no("the directory places it elsewhere"))).unwrap();
    let Backend::Fleet(route) = remote() else { unreachable!() };
    let elsewhere = Route { active_host: "desk".parse().unwrap(), ..(*route).clone() };
    rig.frontend().set_backend(Backend::Fleet(Arc::new(elsewhere)));
    let (ours, mut theirs) = tokio::io::duplex(1 << 10);
    now.send(Ok(ours)).unwrap();
    client.write_all(b"q").await.unwrap();
    assert_eq!(far_read(&mut theirs, 1).await, b"q");
    assert_eq!((rig.counters().opened, rig.counters().refused_unreachable), (1, 0));
}

#[tokio::test]
async fn a_client_reset_drops_the_remote_stream() {
    let (rig, far) = adapter(remote());
    let (mut client, mut theirs) = opened(&rig, &far).await;
    client.write_all(b"q").await.unwrap();
    assert_eq!(far_read(&mut theirs, 1).await, b"q");
    reset(client);
    assert_eq!(timeout(PATIENCE, theirs.read(&mut [0; 8])).await.unwrap().unwrap(), 0);
    until("the connection is over", || rig.counters().active == 0).await;
}

#[tokio::test]
async fn a_remote_stream_that_breaks_resets_the_client() {
    let (rig, far) = adapter(remote());
    let (mut client, theirs) = opened(&rig, &far).await;
    until("the stream is open", || rig.counters().opened == 1).await;
    drop(theirs);
    // A dropped duplex ends the stream for readers and breaks it for writers.
    while client.write_all(b"anyone?").await.is_ok() {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    until("the connection is over", || rig.counters().active == 0).await;
    assert!(matches!(
        rig.context.ledger.recent("svc").remove(0).outcome,
        crate::conn::ledger::Outcome::ServiceReset(_)
    ));
}

/// A stream that is open and fails at its first read.
#[derive(Debug)]
struct Breaks(std::io::ErrorKind);
impl tokio::io::AsyncRead for Breaks {
    fn poll_read(
        self: Pin<&mut Self>,
        _: &mut std::task::Context<'_>,
        _: &mut tokio::io::ReadBuf<'_>,
    ) -> std::task::Poll<std::io::Result<()>> {
        std::task::Poll::Ready(Err(self.0.into()))
    }
}
impl tokio::io::AsyncWrite for Breaks {
    fn poll_write(
        self: Pin<&mut Self>,
        _: &mut std::task::Context<'_>,
        bytes: &[u8],
    ) -> std::task::Poll<std::io::Result<usize>> {
        std::task::Poll::Ready(Ok(bytes.len()))
    }
    fn poll_flush(self: Pin<&mut Self>, _: &mut std::task::Context<'_>) -> std::task::Poll<std::io::Result<()>> {
        std::task::Poll::Ready(Ok(()))
    }
    fn poll_shutdown(self: Pin<&mut Self>, _: &mut std::task::Context<'_>) -> std::task::Poll<std::io::Result<()>> {
        std::task::Poll::Ready(Ok(()))
    }
}
impl Dialer for Breaks {
    fn open<'a>(&'a self, _route: &'a Route, _budget: Duration) -> Opening<'a> {
        Box::pin(std::future::ready(Ok(Box::pin(Self(self.0)) as Pin<Box<dyn RemoteStream>>)))
    }
}

#[tokio::test]
async fn a_lost_session_is_told_from_a_channel_that_the_service_reset() {
    for (kind, blame) in
        [(std::io::ErrorKind::ConnectionReset, Blame::Service), (std::io::ErrorKind::ConnectionAborted, Blame::Remote)]
    {
        let context = Context::new(Arc::new(Breaks(kind)), Ledger::new());
        let rig = Rig::on(free_port(), Some("lem"), remote(), context);
        // It may be as fast as the client's own connect.
        match tokio::net::TcpStream::connect(rig.addr).await {
            Ok(mut client) => expect_reset(&mut client).await,
            Err(error) => assert_eq!(error.kind(), std::io::ErrorKind::ConnectionReset),
        }
        until("the connection is over", || rig.context.ledger.recent("svc").len() == 1).await;
        assert_eq!(rig.context.ledger.recent("svc").remove(0).blame, Some(blame), "{kind}");
    }
}

const ANSWER: &str =
    "HTTP/1.1 502 Bad Gateway\r\nContent-Type: text/plain\r\nContent-Length: 21\r\n\r\nupstream unavailable\n";

#[tokio::test]
async fn a_refused_http_client_gets_exactly_the_502_and_others_a_close() {
    let (rig, far) = adapter(remote());
    let ask = async |bytes: &[u8]| {
        far.expect().send(Err(no("connection refused"))).unwrap();
        let mut client = rig.connect().await;
        client.write_all(bytes).await.unwrap();
        read_all(&mut client).await
    };
    for request in ["GET / HTTP/1.1\r\nHost: x\r\n\r\n", "POST /v1 HTTP/1.1\r\nContent-Length: 3\r\n\r\nabc", "DEL"] {
        assert_eq!(String::from_utf8(ask(request.as_bytes()).await.unwrap()).unwrap(), ANSWER);
    }
    // Bytes that nobody read may turn the close into a reset: both are a close without an answer.
    assert_eq!(ask(b"SSH-2.0-client\r\n").await.unwrap_or_default(), b"");
    assert_eq!(ask(b"").await.unwrap(), b"");
    let recent = rig.context.ledger.recent("svc").remove(0);
    assert_eq!(recent.outcome.to_string(), "refused: active host \"gpu-box\": connection refused");
}

#[tokio::test]
async fn a_mesh_client_is_never_given_a_page() {
    let (listener, addr) = listener().await;
    drop(listener);
    let rig = Rig::mesh(local(addr));
    let mut client = rig.connect().await;
    client.write_all(b"GET / HTTP/1.1\r\n\r\n").await.unwrap();
    assert_eq!(read_all(&mut client).await.unwrap_or_default(), b"");
}

#[tokio::test]
async fn an_unanswered_open_is_listed_until_it_is_answered() {
    let (rig, far) = adapter(remote());
    let answer = far.expect();
    let client = rig.connect().await;
    let wait = rig.one_wait("open").await;
    let expected = Wait {
        service: "svc".into(),
        consumer: "lem".into(),
        bind: rig.addr.to_string(),
        active_host: "gpu-box".into(),
        endpoint: "127.0.0.1:8080".into(),
        since: wait.since.clone(),
        phase: "open".into(),
        client: Some(client.local_addr().unwrap().to_string()),
        request: None,
    };
    assert_eq!(wait, expected);
    let (ours, _theirs) = tokio::io::duplex(64);
    answer.send(Ok(ours)).unwrap();
    rig.no_wait().await;
    assert_eq!(rig.context.ledger.snapshot_answers(), Default::default());
}

#[tokio::test]
async fn an_unanswered_request_is_listed_with_its_line_and_the_answer_clears_it() {
    let (rig, far) = adapter(remote());
    let (mut client, mut theirs) = opened(&rig, &far).await;
    for line in ["GET /v1/models HTTP/1.1", "GET /second HTTP/1.1"] {
        client.write_all(format!("{line}\r\n\r\n").as_bytes()).await.unwrap();
        let wait = rig.one_wait("answer").await;
        assert_eq!(wait.request.as_deref(), Some(line));
        far_read(&mut theirs, line.len() + 4).await;
        theirs.write_all(b"HTTP/1.1 200 OK\r\n").await.unwrap();
        read_exact(&mut client, 17).await;
        rig.no_wait().await;
    }
    let answers = rig.context.ledger.snapshot_answers();
    assert!(answers["svc"].last_answered_at.is_some() && answers["svc"].first_unanswered_at.is_none());
}

#[tokio::test]
async fn a_client_that_gives_up_leaves_the_list_and_counts_as_unanswered_until_an_answer() {
    let (rig, far) = adapter(remote());
    for how in ["close", "reset"] {
        let (mut client, _theirs) = opened(&rig, &far).await;
        client.write_all(b"GET / HTTP/1.1\r\n\r\n").await.unwrap();
        rig.one_wait("answer").await;
        if how == "close" {
            drop(client)
        } else {
            reset(client)
        }
        rig.no_wait().await;
        let row = rig.context.ledger.snapshot_answers().remove("svc").unwrap();
        assert!(row.first_unanswered_at.is_some() && row.last_unanswered_at.is_some(), "{how}: {row:?}");
    }
    let (mut client, mut theirs) = opened(&rig, &far).await;
    client.write_all(b"ping").await.unwrap();
    far_read(&mut theirs, 4).await;
    theirs.write_all(b"pong").await.unwrap();
    read_exact(&mut client, 4).await;
    let row = rig.context.ledger.snapshot_answers().remove("svc").unwrap();
    assert!(row.last_answered_at.is_some() && row.first_unanswered_at.is_none(), "{row:?}");
}

#[tokio::test]
async fn a_client_that_leaves_during_the_open_ends_the_wait_and_a_reset_ends_the_open() {
    let (rig, far) = adapter(remote());
    let answer = far.expect();
    let client = rig.connect().await;
    rig.one_wait("open").await;
    drop(client);
    rig.no_wait().await;
    assert!(!answer.is_closed(), "an end of stream alone cancels nothing");
    let row = rig.context.ledger.snapshot_answers().remove("svc").unwrap_or_default();
    assert_eq!(row.first_unanswered_at, None, "a client that asked nothing made no request");
    let (ours, _theirs) = tokio::io::duplex(64);
    answer.send(Ok(ours)).unwrap();

    let mut answer = far.expect();
    let client = rig.connect().await;
    rig.one_wait("open").await;
    reset(client);
    timeout(PATIENCE, answer.closed()).await.unwrap();
    rig.no_wait().await;
}

#[tokio::test]
async fn what_a_client_sends_during_the_open_goes_up_with_its_end() {
    let (rig, far) = adapter(remote());
    let answer = far.expect();
    let mut client = rig.connect().await;
    client.write_all(b"early request\n").await.unwrap();
    rig.one_wait("open").await;
    client.shutdown().await.unwrap();
    rig.no_wait().await;
    let (ours, mut theirs) = tokio::io::duplex(64);
    answer.send(Ok(ours)).unwrap();
    let mut got = Vec::new();
    timeout(PATIENCE, theirs.read_to_end(&mut got)).await.unwrap().unwrap();
    assert_eq!(got, b"early request\n");
    theirs.write_all(b"late answer").await.unwrap();
    drop(theirs);
    assert_eq!(read_all(&mut client).await.unwrap(), b"late answer");
    let row = rig.context.ledger.snapshot_answers().remove("svc").unwrap();
    assert!(row.last_answered_at.is_some() && row.first_unanswered_at.is_none(), "{row:?}");
}

#[tokio::test]
async fn a_local_route_is_dialled_here_and_its_waits_are_listed_too() {
    let (backend, addr) = listener().await;
    let (rig, _far) = adapter(route(addr, true));
    let (mut client, served) = rig.pair(&backend).await;
    client.write_all(b"GET / HTTP/1.1\r\n\r\n").await.unwrap();
    let wait = rig.one_wait("answer").await;
    assert_eq!((wait.active_host.as_str(), wait.endpoint), ("gpu-box", addr.to_string()));
    drop(served);
    rig.no_wait().await;
}

#[tokio::test]
async fn waits_and_answers_are_published_beside_the_state() {
    let dir = tempfile::tempdir().unwrap();
    let paths = stado_fleet::ledger::PublishedPaths::beside(&dir.path().join("resolver-state.json"));
    let (rig, far) = adapter(remote());
    let publisher = crate::publish::Publisher::start(paths.clone(), rig.context.ledger.clone()).await.unwrap();
    let listed = || stado_fleet::ledger::waits(&paths).unwrap().unwrap();
    assert!(listed().is_empty());
    let (mut client, mut theirs) = opened(&rig, &far).await;
    client.write_all(b"GET /slow HTTP/1.1\r\n\r\n").await.unwrap();
    until("the request is listed", || {
        matches!(&*listed(), [wait] if wait.phase == "answer" && wait.request.as_deref() == Some("GET /slow HTTP/1.1"))
    })
    .await;
    drop(client);
    until("the list is empty again", || listed().is_empty()).await;
    let row = || stado_fleet::ledger::answers(&paths).unwrap().remove("svc").unwrap_or_default();
    until("the request is unanswered", || row().first_unanswered_at.is_some()).await;
    theirs.write_all(b"HTTP/1.1 200 OK\r\n\r\n").await.unwrap();
    until("the answer clears it", || row().last_answered_at.is_some() && row().first_unanswered_at.is_none()).await;
    publisher.finish(|state| state.state = "failed".into()).await;
}

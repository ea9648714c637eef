//! A router for one connection after another, backends that follow a script, and a client that shows what it got.
use crate::conn::ledger::Ledger;
use crate::conn::{Backend, Context, FrontendId, NoFleet};
use crate::http::h2::{Ends, serve};
use crate::http::serve1::Scheme;
use crate::http::tls::CertNames;
use crate::http::{HttpContext, Limits, Observer, Protocol, Routes, Site, Table};
use bytes::Bytes;
use h2::client::SendRequest;
use h2::{Reason, RecvStream, SendStream};
use http::{HeaderMap, Request, Response};
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

pub(super) const PATIENCE: Duration = Duration::from_secs(60);

/// A running router that speaks HTTP/2 with prior knowledge.
pub(super) struct Rig {
    pub(super) addr: SocketAddr,
    pub(super) ctx: Arc<HttpContext>,
}

impl Rig {
    pub(super) async fn start(sites: &[(&str, Protocol, Backend)]) -> Self {
        Self::with(sites, Limits::default(), None).await
    }

    pub(super) async fn with(sites: &[(&str, Protocol, Backend)], limits: Limits, covered: Option<CertNames>) -> Self {
        let ledger = Ledger::new();
        let mut table = Table::default();
        for (host, protocol, backend) in sites {
            table.set(host, Some(Arc::new(site(&ledger, host, *protocol, backend.clone()))));
        }
        let routes = Arc::new(Routes::default());
        routes.store(table);
        let conn = Context::new(Arc::new(NoFleet), ledger);
        let ctx = Arc::new(HttpContext::new(routes, conn, Arc::new(Observer::default()), None, limits));
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let addr = listener.local_addr().unwrap();
        let (shared, covered) = (ctx.clone(), covered.map(Arc::new));
        tokio::spawn(async move {
            loop {
                let (stream, peer) = listener.accept().await.unwrap();
                let ends = Ends { peer, local: addr, scheme: Scheme::Https, covered: covered.clone() };
                tokio::spawn(serve(stream, ends, shared.clone(), Vec::new()));
            }
        });
        Self { addr, ctx }
    }

    pub(super) async fn client(&self) -> SendRequest<Bytes> {
        let mut builder = h2::client::Builder::new();
        // One stream that is not read must not take the others' window.
        builder.initial_connection_window_size(16 << 20);
        let (send, connection) = builder.handshake(TcpStream::connect(self.addr).await.unwrap()).await.unwrap();
        tokio::spawn(connection);
        send.ready().await.unwrap()
    }

    /// One request without a body.
    pub(super) async fn get(&self, url: &str) -> Answer {
        self.ask(Request::get(url).body(()).unwrap(), b"").await
    }

    /// An answer that begins with `half` and is reset then: with what.
    pub(super) async fn half(&self) -> Option<Reason> {
        let mut client = self.client().await;
        let (response, _) = client.send_request(Request::get("http://a.test/").body(()).unwrap(), true).unwrap();
        let mut body = soon(response).await.unwrap().into_body();
        assert_eq!(soon(body.data()).await.unwrap().unwrap(), "half");
        loop {
            match soon(body.data()).await.unwrap() {
                Ok(piece) => assert!(piece.is_empty(), "{piece:?}"),
                Err(error) => return error.reason(),
            }
        }
    }

    /// One request with a body.
    pub(super) async fn ask(&self, request: Request<()>, body: &'static [u8]) -> Answer {
        let mut client = self.client().await;
        let (response, mut stream) = client.send_request(request, body.is_empty()).unwrap();
        if !body.is_empty() {
            stream.send_data(Bytes::from_static(body), true).unwrap();
        }
        Answer::read(response.await.unwrap()).await
    }
}

fn site(ledger: &Ledger, host: &str, protocol: Protocol, backend: Backend) -> Site {
    let id = FrontendId { service: host.into(), consumer: None, bind: "127.0.0.1:1".parse().unwrap() };
    Site {
        service: host.into(),
        consumer: None,
        host: host.into(),
        protocol,
        backend,
        since: jiff::Timestamp::now(),
        budget: Duration::from_secs(10),
        slot: ledger.slot(&id),
        frontend: Arc::new(id),
        stats: Arc::default(),
    }
}

/// A whole answer.
#[derive(Debug)]
pub(super) struct Answer {
    pub(super) status: u16,
    pub(super) headers: HeaderMap,
    pub(super) body: String,
    pub(super) trailers: HeaderMap,
}

impl Answer {
    pub(super) async fn read(response: Response<RecvStream>) -> Self {
        let (parts, mut body) = response.into_parts();
        let mut bytes = Vec::new();
        while let Some(piece) = body.data().await {
            let piece = piece.unwrap();
            let _ = body.flow_control().release_capacity(piece.len());
            bytes.extend_from_slice(&piece);
        }
        let trailers = body.trailers().await.unwrap().unwrap_or_default();
        let body = String::from_utf8(bytes).unwrap();
        Self { status: parts.status.as_u16(), headers: parts.headers, body, trailers }
    }

    pub(super) fn header(&self, name: &str) -> &str {
        self.headers.get(name).map_or("", |value| value.to_str().unwrap())
    }
}

/// A backend: `script` gets each connection.
pub(super) async fn backend<F>(script: impl Fn(TcpStream) -> F + Send + 'static) -> Backend
where
    F: Future<Output = ()> + Send + 'static,
{
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let addr = listener.local_addr().unwrap();
    tokio::spawn(async move {
        loop {
            let (stream, _) = listener.accept().await.unwrap();
            tokio::spawn(script(stream));
        }
    });
    local(addr)
}

pub(super) fn local(addr: SocketAddr) -> Backend {
    Backend::Local(addr.to_string().parse().unwrap())
}

/// Reads a head in HTTP/1.1.
pub(super) async fn head(stream: &mut TcpStream) -> String {
    let mut bytes = Vec::new();
    while !bytes.ends_with(b"\r\n\r\n") {
        match stream.read_u8().await {
            Ok(byte) => bytes.push(byte),
            Err(_) => break,
        }
    }
    String::from_utf8(bytes).unwrap()
}

/// A backend that answers each request with `answer`, and every byte it got as a header would be too much: they are sent to
/// the returned channel.
pub(super) async fn answers(answer: &'static str) -> (Backend, tokio::sync::mpsc::UnboundedReceiver<String>) {
    let (tell, told) = tokio::sync::mpsc::unbounded_channel();
    let backend = backend(move |mut stream| {
        let tell = tell.clone();
        async move {
            loop {
                let head = head(&mut stream).await;
                if head.is_empty() {
                    return;
                }
                let _ = tell.send(head);
                stream.write_all(answer.as_bytes()).await.unwrap();
            }
        }
    })
    .await;
    (backend, told)
}

/// Sends all of `bytes` as the window allows.
pub(super) async fn send_all(stream: &mut SendStream<Bytes>, bytes: Bytes, last: bool) {
    crate::http::h2::body::send(stream, bytes, last, PATIENCE).await.unwrap();
}

pub(super) async fn wait_for(what: &str, mut condition: impl FnMut() -> bool) {
    let end = tokio::time::Instant::now() + PATIENCE;
    while !condition() {
        assert!(tokio::time::Instant::now() < end, "not within {PATIENCE:?}: {what}");
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}

/// `work`, which has to end.
pub(super) async fn soon<T>(work: impl Future<Output = T>) -> T {
    tokio::time::timeout(PATIENCE, work).await.expect("it ends")
}

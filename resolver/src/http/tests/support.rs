//! A router on a port of its own, backends that are raw sockets, and conditions with a deadline.
use crate::conn::ledger::{Counters, Ledger};
use crate::conn::{self, Backend, Bound, Dialer, Families, FrontendId, NoFleet};
use crate::http::tls::Tls;
use crate::http::{HttpContext, Limits, Listener, Protocol, Router, Routes, Scheme, Site, Table};
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::time::{Instant, sleep, timeout};

/// Nothing that should happen takes longer, however busy the machine is.
pub(super) const PATIENCE: Duration = Duration::from_secs(20);

fn free_port() -> Bound {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    let start = std::process::id().wrapping_mul(53);
    for _ in 0..4000 {
        let port = 25_000 + u16::try_from((start.wrapping_add(NEXT.fetch_add(1, Ordering::Relaxed))) % 4000).unwrap();
        if let Ok(bound) = conn::bind(SocketAddr::from(([127, 0, 0, 1], port)), Families::Both) {
            return bound;
        }
    }
    panic!("no free port");
}

/// A router whose host `a.test` is a raw backend.
pub(super) struct Rig {
    pub(super) router: Option<Router>,
    pub(super) context: Arc<HttpContext>,
    pub(super) addr: SocketAddr,
    pub(super) backend: TcpListener,
}

impl Rig {
    pub(super) async fn new() -> Self {
        Self::with(Limits::default()).await
    }

    pub(super) async fn with(limits: Limits) -> Self {
        Self::start(limits, Scheme::Http, None).await
    }

    /// One that speaks TLS.
    pub(super) async fn over_tls(tls: Arc<Tls>) -> Self {
        Self::start(Limits::default(), Scheme::Https, Some(tls)).await
    }

    async fn start(limits: Limits, scheme: Scheme, tls: Option<Arc<Tls>>) -> Self {
        Self::dialling(Arc::new(NoFleet), limits, scheme, tls).await
    }

    /// One whose services are on other hosts.
    pub(super) async fn of_a_fleet(dialer: Arc<dyn Dialer>) -> Self {
        Self::dialling(dialer, Limits::default(), Scheme::Http, None).await
    }

    async fn dialling(dialer: Arc<dyn Dialer>, limits: Limits, scheme: Scheme, tls: Option<Arc<Tls>>) -> Self {
        let conn = conn::Context::new(dialer, Ledger::new());
        let context = Arc::new(HttpContext::new(Arc::new(Routes::default()), conn, Arc::default(), None, limits));
        let bound = free_port();
        let addr = bound.addr;
        let router = Router::start(Arc::clone(&context), vec![Listener { bound, scheme }], tls);
        let backend = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let rig = Self { router: Some(router), context, addr, backend };
        rig.route(&[("a.test", rig.backend())]);
        rig
    }

    pub(super) fn backend(&self) -> Backend {
        Backend::Local(self.backend.local_addr().unwrap().to_string().parse().unwrap())
    }

    /// Puts a table of these hosts in force.
    pub(super) fn route(&self, hosts: &[(&str, Backend)]) {
        self.route_as(Protocol::Http1, hosts);
    }

    pub(super) fn route_as(&self, protocol: Protocol, hosts: &[(&str, Backend)]) {
        let mut table = Table::default();
        for (host, backend) in hosts {
            let id = FrontendId { service: (*host).into(), consumer: None, bind: self.addr };
            let slot = self.context.conn.ledger.slot(&id);
            let site = Site {
                service: (*host).into(),
                consumer: None,
                host: (*host).into(),
                protocol,
                backend: backend.clone(),
                since: jiff::Timestamp::UNIX_EPOCH,
                budget: Duration::from_secs(3),
                frontend: Arc::new(id),
                slot,
                stats: Arc::default(),
            };
            table.set(host, Some(Arc::new(site)));
        }
        self.context.routes.store(table);
    }

    pub(super) fn site(&self, host: &str) -> Arc<Site> {
        self.context.routes.find(host).unwrap()
    }

    pub(super) fn counters(&self) -> Counters {
        self.context.conn.ledger.counters("a.test").unwrap()
    }

    pub(super) async fn connect(&self) -> TcpStream {
        TcpStream::connect(self.addr).await.unwrap()
    }

    /// A connection on which `bytes` were sent.
    pub(super) async fn send(&self, bytes: impl AsRef<[u8]>) -> TcpStream {
        let mut client = self.connect().await;
        client.write_all(bytes.as_ref()).await.unwrap();
        client
    }

    /// Everything that is answered to `bytes` until the connection ends.
    pub(super) async fn ask(&self, bytes: impl AsRef<[u8]>) -> String {
        let mut client = self.send(bytes).await;
        text(read_all(&mut client).await.unwrap())
    }

    /// The next connection to the backend.
    pub(super) async fn accept(&self) -> TcpStream {
        timeout(PATIENCE, self.backend.accept()).await.expect("a connection to the backend").unwrap().0
    }

    /// Fails if the backend has been connected to.
    pub(super) async fn backend_was_left_alone(&self) {
        // What had to happen has happened: a connection would be in the backlog already.
        let accepted = timeout(Duration::from_millis(50), self.backend.accept()).await;
        assert!(accepted.is_err(), "the backend got a connection");
    }

    /// A client's GET and the backend's end of it, with its head read.
    pub(super) async fn get(&self) -> (TcpStream, TcpStream, String) {
        let client = self.send(GET).await;
        let mut backend = self.accept().await;
        let head = read_head(&mut backend).await;
        (client, backend, head)
    }
}

pub(super) const GET: &str = "GET / HTTP/1.1\r\nHost: a.test\r\n\r\n";
pub(super) const OK: &str = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok";

pub(super) fn text(bytes: Vec<u8>) -> String {
    String::from_utf8_lossy(&bytes).into_owned()
}

pub(super) async fn read_exact(stream: &mut TcpStream, n: usize) -> String {
    let mut bytes = vec![0; n];
    timeout(PATIENCE, stream.read_exact(&mut bytes)).await.expect("bytes in time").unwrap();
    text(bytes)
}

/// Up to and with `end`, and not a byte more.
pub(super) async fn read_to(stream: &mut TcpStream, end: &str) -> String {
    let mut bytes = Vec::new();
    let read = async {
        while !bytes.ends_with(end.as_bytes()) {
            match stream.read_u8().await {
                Ok(byte) => bytes.push(byte),
                Err(error) => panic!("{error} after {:?}", String::from_utf8_lossy(&bytes)),
            }
        }
    };
    if timeout(PATIENCE, read).await.is_err() {
        panic!("only {:?} came", String::from_utf8_lossy(&bytes));
    }
    text(bytes)
}

pub(super) async fn read_head(stream: &mut TcpStream) -> String {
    read_to(stream, "\r\n\r\n").await
}

pub(super) async fn write(stream: &mut TcpStream, bytes: impl AsRef<[u8]>) {
    timeout(PATIENCE, stream.write_all(bytes.as_ref())).await.expect("written in time").unwrap();
}

pub(super) async fn read_all(stream: &mut TcpStream) -> std::io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    timeout(PATIENCE, stream.read_to_end(&mut bytes)).await.expect("the stream ends").map(|_| bytes)
}

/// Waits until `ready` says so.
pub(super) async fn until(what: &str, mut ready: impl FnMut() -> bool) {
    let deadline = Instant::now() + PATIENCE;
    while !ready() {
        assert!(Instant::now() < deadline, "{what} did not happen");
        sleep(Duration::from_millis(5)).await;
    }
}

/// Closes with a reset.
pub(super) fn reset(stream: TcpStream) {
    socket2::SockRef::from(&stream).set_linger(Some(Duration::ZERO)).unwrap();
    drop(stream);
}

/// Fails unless the peer resets within a second or, on a busy machine, as soon as anything happens.
pub(super) async fn expect_reset(stream: &mut TcpStream) {
    let error = read_all(stream).await.expect_err("a reset, not an end of stream");
    assert_eq!(error.kind(), std::io::ErrorKind::ConnectionReset, "{error}");
}

/// Fails if anything comes for a moment: for what must not come before something else was done.
pub(super) async fn is_silent(stream: &mut TcpStream) -> bool {
    let mut byte = [0; 1];
    timeout(Duration::from_millis(50), stream.peek(&mut byte)).await.is_err()
}

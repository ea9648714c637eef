//! Frontends on scanned ports, backends on port 0, and conditions with a deadline.
use crate::conn::ledger::{Counters, Ledger};
use crate::conn::{Backend, Bound, Context, Families, Frontend, FrontendId, NoFleet, bind};
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::time::{Instant, sleep, timeout};

/// Nothing that should happen takes longer, however busy the machine is.
pub(in crate::conn) const PATIENCE: Duration = Duration::from_secs(20);

/// Binds the next free port, both families, below the ephemeral range.
pub(in crate::conn) fn free_port() -> Bound {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    let start = std::process::id().wrapping_mul(37);
    for _ in 0..4000 {
        let port = 21_000 + u16::try_from((start + NEXT.fetch_add(1, Ordering::Relaxed)) % 4000).unwrap();
        if let Ok(bound) = bind(SocketAddr::from(([127, 0, 0, 1], port)), Families::Both) {
            return bound;
        }
    }
    panic!("no free port");
}

/// A mesh frontend and what a test asks about it.
pub(in crate::conn) struct Rig {
    pub(in crate::conn) frontend: Option<Frontend>,
    pub(in crate::conn) addr: SocketAddr,
    pub(in crate::conn) context: Context,
}
impl Rig {
    pub(in crate::conn) fn mesh(backend: Backend) -> Self {
        Self::mesh_with(backend, |_| {})
    }
    pub(in crate::conn) fn mesh_with(backend: Backend, change: impl FnOnce(&mut Context)) -> Self {
        let mut context = Context::new(Arc::new(NoFleet), Ledger::new());
        change(&mut context);
        Self::on(free_port(), None, backend, context)
    }
    pub(in crate::conn) fn on(bound: Bound, consumer: Option<&str>, backend: Backend, context: Context) -> Self {
        let addr = bound.addr;
        let id = FrontendId { service: "svc".into(), consumer: consumer.map(Arc::from), bind: addr };
        let frontend = Frontend::start(bound, id, backend, Duration::from_secs(3), context.clone());
        Self { frontend: Some(frontend), addr, context }
    }
    pub(in crate::conn) fn frontend(&self) -> &Frontend {
        self.frontend.as_ref().unwrap()
    }
    pub(in crate::conn) async fn connect(&self) -> TcpStream {
        TcpStream::connect(self.addr).await.unwrap()
    }
    pub(in crate::conn) fn counters(&self) -> Counters {
        self.context.ledger.counters("svc").unwrap()
    }
    /// A client and the backend's end of its connection, once it is relayed.
    pub(in crate::conn) async fn pair(&self, backend: &TcpListener) -> (TcpStream, TcpStream) {
        let before = self.counters().opened;
        let client = self.connect().await;
        let (served, _) = timeout(PATIENCE, backend.accept()).await.unwrap().unwrap();
        until("the connection is open", || self.counters().opened > before).await;
        (client, served)
    }
}

pub(in crate::conn) fn local(addr: SocketAddr) -> Backend {
    Backend::Local(addr.to_string().parse().unwrap())
}

pub(in crate::conn) async fn listener() -> (TcpListener, SocketAddr) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let addr = listener.local_addr().unwrap();
    (listener, addr)
}

/// A backend that greets with `name` and then echoes.
pub(in crate::conn) async fn greeter(name: &'static str) -> SocketAddr {
    let (listener, addr) = listener().await;
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            tokio::spawn(async move {
                let _ = stream.write_all(name.as_bytes()).await;
                let (mut read, mut write) = stream.split();
                let _ = tokio::io::copy(&mut read, &mut write).await;
                let _ = write.shutdown().await;
            });
        }
    });
    addr
}

pub(in crate::conn) async fn read_exact(stream: &mut TcpStream, n: usize) -> Vec<u8> {
    let mut bytes = vec![0; n];
    timeout(PATIENCE, stream.read_exact(&mut bytes)).await.unwrap().unwrap();
    bytes
}

pub(in crate::conn) async fn read_all(stream: &mut TcpStream) -> std::io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    timeout(PATIENCE, stream.read_to_end(&mut bytes)).await.expect("the stream ends").map(|_| bytes)
}

/// Waits until `ready` says so.
pub(in crate::conn) async fn until(what: &str, mut ready: impl FnMut() -> bool) {
    let deadline = Instant::now() + PATIENCE;
    while !ready() {
        assert!(Instant::now() < deadline, "{what} did not happen");
        sleep(Duration::from_millis(5)).await;
    }
}

/// Closes with a reset.
pub(in crate::conn) fn reset(stream: TcpStream) {
    socket2::SockRef::from(&stream).set_linger(Some(Duration::ZERO)).unwrap();
    drop(stream);
}

/// Fails unless the peer resets within a second, however it is found out.
pub(in crate::conn) async fn expect_reset(stream: &mut TcpStream) {
    let mut sink = vec![0; 64 << 10];
    let ended = timeout(Duration::from_secs(1), async {
        loop {
            match stream.read(&mut sink).await {
                Ok(0) => return Ok(()),
                Ok(_) => {}
                Err(error) => return Err(error),
            }
        }
    });
    let error = ended.await.expect("a reset within a second").expect_err("a reset, not an end of stream");
    assert_eq!(error.kind(), std::io::ErrorKind::ConnectionReset, "{error}");
}

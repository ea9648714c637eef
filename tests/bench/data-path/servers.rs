//! The servers behind the proxies, in this process. Each subject has an echo server of its own, so that the ports which its
//! connections leave behind are nobody else's.
use std::io::{ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use tokio::io::{AsyncReadExt, AsyncWriteExt};

/// One read or write of bulk.
pub const CHUNK: usize = 128 << 10;

pub struct Servers {
    /// Reads and counts.
    pub sink: SocketAddr,
    /// Writes for as long as somebody reads.
    pub source: SocketAddr,
    /// Bytes that arrived at the sink.
    pub arrived: Arc<AtomicU64>,
    echoes: tokio::runtime::Handle,
    _stop: tokio::sync::oneshot::Sender<()>,
}

impl Servers {
    pub fn start() -> Self {
        let arrived = Arc::new(AtomicU64::new(0));
        let counter = Arc::clone(&arrived);
        let sink = serve(move |stream| sink(stream, &counter));
        let source = serve(source);
        let (stop, stopped) = tokio::sync::oneshot::channel();
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let echoes = runtime.handle().clone();
        std::thread::spawn(move || runtime.block_on(stopped));
        Self { sink, source, arrived, echoes, _stop: stop }
    }

    /// A new echo server.
    pub fn echo(&self) -> SocketAddr {
        let (listener, address) = listen();
        self.echoes.spawn(async move {
            listener.set_nonblocking(true).unwrap();
            let listener = tokio::net::TcpListener::from_std(listener).unwrap();
            while let Ok((stream, _)) = listener.accept().await {
                tokio::spawn(echo(stream));
            }
        });
        address
    }
}

pub fn listen() -> (TcpListener, SocketAddr) {
    let socket = socket2::Socket::new(socket2::Domain::IPV4, socket2::Type::STREAM, None).unwrap();
    socket.bind(&SocketAddr::from(([127, 0, 0, 1], 0)).into()).unwrap();
    socket.listen(4096).unwrap();
    let listener = TcpListener::from(socket);
    let address = listener.local_addr().unwrap();
    (listener, address)
}

/// A thread for every connection.
fn serve(work: impl Fn(TcpStream) + Send + Sync + 'static) -> SocketAddr {
    let (listener, address) = listen();
    let work = Arc::new(work);
    std::thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            let work = Arc::clone(&work);
            std::thread::spawn(move || work(stream));
        }
    });
    address
}

fn sink(mut stream: TcpStream, arrived: &AtomicU64) {
    drain(&mut stream, arrived);
}

/// Reads to the end and counts.
pub fn drain(stream: &mut TcpStream, counter: &AtomicU64) {
    let mut buffer = vec![0; CHUNK];
    loop {
        match stream.read(&mut buffer) {
            Ok(0) => return,
            Ok(n) => counter.fetch_add(u64::try_from(n).unwrap(), Ordering::Relaxed),
            Err(error) if error.kind() == ErrorKind::Interrupted => continue,
            Err(_) => return,
        };
    }
}

/// Writes until the reader has gone.
pub fn source(mut stream: TcpStream) {
    let chunk = vec![7; CHUNK];
    while stream.write_all(&chunk).is_ok() {}
}

async fn echo(mut stream: tokio::net::TcpStream) {
    let _ = stream.set_nodelay(true);
    let mut buffer = [0u8; 256];
    while let Ok(n @ 1..) = stream.read(&mut buffer).await {
        if stream.write_all(&buffer[..n]).await.is_err() {
            return;
        }
    }
}

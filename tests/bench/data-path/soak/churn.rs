//! What is done all the time.
use super::server::{self, BULK, COUNT, ECHO, GIVE, RESET};
use stado::client::Api;
use stado_fleet::wire::{BackendAddr, RegisterRequest, RegisterResponse};
use std::fmt;
use std::future::Future;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::{Duration, Instant};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

/// How often each thing was done, and what must not have happened.
#[derive(Default)]
pub struct Tally {
    pub hand_overs: AtomicU64,
    /// Connections to a service with a backend that were refused, cut, or gave a wrong answer.
    pub broken: AtomicU64,
    registrations: AtomicU64,
    moves: AtomicU64,
    trips: AtomicU64,
    resets: AtomicU64,
    half_closes: AtomicU64,
    bulk: AtomicU64,
    long: AtomicU64,
}
impl fmt::Display for Tally {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let n = |counter: &AtomicU64| counter.load(Relaxed);
        write!(
            f,
            "{} registrations, {} backend moves, {} short connections, {} resets, {} half-closes, {} × 8 MiB, {} long streams, \
             {} hand-overs, {} broken",
            n(&self.registrations),
            n(&self.moves),
            n(&self.trips),
            n(&self.resets),
            n(&self.half_closes),
            n(&self.bulk),
            n(&self.long),
            n(&self.hand_overs),
            n(&self.broken)
        )
    }
}

/// Everything that a task needs.
#[derive(Clone)]
struct Scene {
    socket: PathBuf,
    steady: SocketAddr,
    backends: [SocketAddr; 2],
    tally: Arc<Tally>,
}

pub async fn start(socket: &Path, tally: &Arc<Tally>, stop: &CancellationToken) -> Vec<JoinHandle<()>> {
    let backends = [server::start().await, server::start().await];
    let made = register(socket, "soak.steady", backends[0]).await.expect("the first registration");
    let scene = Scene { socket: socket.to_owned(), steady: stable(&made), backends, tally: Arc::clone(tally) };
    vec![
        repeat(&scene, stop, registrations),
        repeat(&scene, stop, moves),
        repeat(&scene, stop, trip),
        repeat(&scene, stop, trip),
        repeat(&scene, stop, reset_by_client),
        repeat(&scene, stop, reset_by_service),
        repeat(&scene, stop, half_close),
        repeat(&scene, stop, bulk),
        repeat(&scene, stop, long_stream),
        repeat(&scene, stop, keep_steady(&made)),
    ]
}

/// Does `work` again and again. An error is a broken connection: it is counted and told.
fn repeat<F>(scene: &Scene, stop: &CancellationToken, work: impl Fn(Scene, u64) -> F + Send + 'static) -> JoinHandle<()>
where
    F: Future<Output = Result<(), String>> + Send,
{
    let (scene, stop) = (scene.clone(), stop.clone());
    tokio::spawn(async move {
        let mut turn = 0;
        while !stop.is_cancelled() {
            if let Err(error) = work(scene.clone(), turn).await {
                scene.tally.broken.fetch_add(1, Relaxed);
                eprintln!("broken: {error}");
            }
            turn += 1;
            tokio::time::sleep(Duration::from_millis(3)).await;
        }
    })
}

async fn register(socket: &Path, name: &str, backend: SocketAddr) -> Result<RegisterResponse, String> {
    let backend = BackendAddr { host: "127.0.0.1".into(), port: backend.port().into() };
    let request = RegisterRequest { name: name.into(), backend, ttl_seconds: 3600, ..RegisterRequest::default() };
    // During a hand-over an answer may be lost with its process: the key makes the second request the first one's.
    let key = format!("{name}-{:?}", Instant::now());
    let api = Api::new(socket);
    let mut last = String::new();
    for _ in 0..50 {
        match api.register(&request, Some(&key)).await {
            Ok(made) => return Ok(made),
            Err(error) => last = error.to_string(),
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    Err(format!("register {name}: {last}"))
}

async fn deregister(socket: &Path, made: &RegisterResponse) {
    let api = Api::new(socket);
    for _ in 0..50 {
        match api.deregister(&made.registration_id, &made.lease_token).await {
            Err(stado::client::Error::Unreachable { .. }) => tokio::time::sleep(Duration::from_millis(100)).await,
            _ => return,
        }
    }
}

fn stable(made: &RegisterResponse) -> SocketAddr {
    SocketAddr::new(made.frontend.host.parse().unwrap(), made.frontend.port)
}

/// A name that comes, serves and goes; forty of them in turn.
async fn registrations(scene: Scene, turn: u64) -> Result<(), String> {
    let made = register(&scene.socket, &format!("soak.churn-{}", turn % 40), scene.backends[0]).await?;
    echo(stable(&made), 64).await.map_err(|error| format!("a new name: {error}"))?;
    deregister(&scene.socket, &made).await;
    scene.tally.registrations.fetch_add(1, Relaxed);
    Ok(())
}

/// A name whose backend moves from one server to the other.
async fn moves(scene: Scene, turn: u64) -> Result<(), String> {
    let backend = scene.backends[usize::try_from(turn % 2).unwrap()];
    let made = register(&scene.socket, "soak.moving", backend).await?;
    echo(stable(&made), 64).await.map_err(|error| format!("a moved backend: {error}"))?;
    deregister(&scene.socket, &made).await;
    scene.tally.moves.fetch_add(1, Relaxed);
    Ok(())
}

async fn trip(scene: Scene, turn: u64) -> Result<(), String> {
    let size = 1 << (turn % 16);
    echo(scene.steady, size).await.map_err(|error| format!("a short connection: {error}"))?;
    scene.tally.trips.fetch_add(1, Relaxed);
    Ok(())
}

async fn echo(address: SocketAddr, size: usize) -> std::io::Result<()> {
    let mut stream = TcpStream::connect(address).await?;
    stream.write_u8(ECHO).await?;
    let (sent, mut back) = (vec![9; size], vec![0; size]);
    let (mut read, mut write) = stream.split();
    tokio::try_join!(write.write_all(&sent), read.read_exact(&mut back))?;
    Ok(())
}

async fn reset_by_client(scene: Scene, _turn: u64) -> Result<(), String> {
    let work = async {
        let mut stream = TcpStream::connect(scene.steady).await?;
        stream.write_all(&[ECHO, 1]).await?;
        stream.read_u8().await?;
        socket2::SockRef::from(&stream).set_linger(Some(Duration::ZERO))
    };
    work.await.map_err(|error| format!("before a reset: {error}"))?;
    scene.tally.resets.fetch_add(1, Relaxed);
    Ok(())
}

async fn reset_by_service(scene: Scene, _turn: u64) -> Result<(), String> {
    let mut stream = TcpStream::connect(scene.steady).await.map_err(|error| format!("before a reset: {error}"))?;
    stream.write_all(&[RESET]).await.map_err(|error| format!("before a reset: {error}"))?;
    match tokio::time::timeout(Duration::from_secs(20), stream.read_u8()).await {
        Ok(Err(error)) if error.kind() == std::io::ErrorKind::ConnectionReset => {}
        other => return Err(format!("a reset of the service arrived as {other:?}")),
    }
    scene.tally.resets.fetch_add(1, Relaxed);
    Ok(())
}

/// All bytes, then the end, then the answer.
async fn half_close(scene: Scene, turn: u64) -> Result<(), String> {
    let size = 1000 * (turn % 300);
    let work = async {
        let mut stream = TcpStream::connect(scene.steady).await?;
        stream.write_u8(COUNT).await?;
        stream.write_all(&vec![3; usize::try_from(size).unwrap()]).await?;
        stream.shutdown().await?;
        stream.read_u64().await
    };
    let counted = work.await.map_err(|error| format!("a half-close: {error}"))?;
    if counted != size {
        return Err(format!("{counted} of {size} bytes arrived before the end"));
    }
    scene.tally.half_closes.fetch_add(1, Relaxed);
    Ok(())
}

async fn bulk(scene: Scene, _turn: u64) -> Result<(), String> {
    let work = async {
        let mut stream = TcpStream::connect(scene.steady).await?;
        stream.write_u8(GIVE).await?;
        tokio::io::copy(&mut stream, &mut tokio::io::sink()).await
    };
    let came = work.await.map_err(|error| format!("bulk: {error}"))?;
    if came != u64::try_from(BULK).unwrap() {
        return Err(format!("{came} of {BULK} bytes arrived"));
    }
    scene.tally.bulk.fetch_add(1, Relaxed);
    tokio::time::sleep(Duration::from_millis(200)).await;
    Ok(())
}

/// A stream that outlives a hand-over or two.
async fn long_stream(scene: Scene, _turn: u64) -> Result<(), String> {
    let work = async {
        let mut stream = TcpStream::connect(scene.steady).await?;
        stream.write_u8(ECHO).await?;
        let start = Instant::now();
        while start.elapsed() < Duration::from_secs(25) {
            stream.write_u8(5).await?;
            stream.read_u8().await?;
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        std::io::Result::Ok(())
    };
    work.await.map_err(|error| format!("a long stream: {error}"))?;
    scene.tally.long.fetch_add(1, Relaxed);
    Ok(())
}

/// Renews the lease that the others rely on.
fn keep_steady(
    made: &RegisterResponse,
) -> impl Fn(Scene, u64) -> std::pin::Pin<Box<dyn Future<Output = Result<(), String>> + Send>> + use<> {
    let (id, token) = (made.registration_id.clone(), made.lease_token.clone());
    move |scene, _turn| {
        let (id, token) = (id.clone(), token.clone());
        Box::pin(async move {
            let api = Api::new(&scene.socket);
            tokio::time::sleep(Duration::from_millis(500)).await;
            match api.heartbeat(&id, &token).await {
                Ok(_) | Err(stado::client::Error::Unreachable { .. }) => Ok(()),
                Err(error) => Err(format!("the steady lease: {error}")),
            }
        })
    }
}

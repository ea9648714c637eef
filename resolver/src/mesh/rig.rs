//! What the tests of the mesh and of its API stand on: a temporary home, a range of free ports, a running mesh.
use super::{Config, Mesh};
use crate::conn::{self, Families, NoFleet};
use stado_fleet::wire::{BackendAddr, RegisterRequest, RegisterResponse};
use std::net::{Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

/// A home that lives as long as the test.
pub(crate) struct Home {
    pub(crate) dir: tempfile::TempDir,
    pub(crate) first_port: u16,
}

/// Ports of one home.
pub(crate) const PORTS: u16 = 20;

impl Home {
    /// Must run inside a runtime: the ports are found by binding them.
    pub(crate) fn new() -> Self {
        static TURN: AtomicU32 = AtomicU32::new(0);
        let dir = tempfile::tempdir().unwrap();
        for _ in 0..450 {
            let block = (std::process::id() + TURN.fetch_add(1, Ordering::Relaxed)) % 450;
            let first = 20_000 + u16::try_from(block).unwrap() * PORTS;
            let free = |port| conn::bind(SocketAddr::new(Ipv4Addr::LOCALHOST.into(), port), Families::Both);
            if (first..first + PORTS).map(free).collect::<Result<Vec<_>, _>>().is_ok() {
                return Self { dir, first_port: first };
            }
        }
        panic!("no {PORTS} free ports in a row between 20000 and 29000");
    }

    pub(crate) fn state(&self) -> PathBuf {
        self.dir.path().join("config/state.json")
    }

    pub(crate) fn config(&self) -> Config {
        Config {
            socket: self.dir.path().join("run/devmesh.sock"),
            state_path: self.state(),
            port_min: self.first_port,
            port_max: self.first_port + PORTS - 1,
            ..Config::default()
        }
    }

    /// Waits until nobody listens on a port of this home: the threads that carry connections are not the runtime's, and
    /// close their listeners a moment after it was dropped. A killed process takes them with it.
    pub(crate) fn until_free(&self) {
        let deadline = std::time::Instant::now() + Duration::from_secs(10);
        let taken = |at: SocketAddr| {
            std::net::TcpListener::bind(at).is_err_and(|error| error.kind() == std::io::ErrorKind::AddrInUse)
        };
        let held =
            |port| taken((Ipv4Addr::LOCALHOST, port).into()) || taken((std::net::Ipv6Addr::LOCALHOST, port).into());
        while (self.first_port..self.first_port + PORTS).any(held) {
            assert!(std::time::Instant::now() < deadline, "a port of this home is still held");
            std::thread::sleep(Duration::from_millis(2));
        }
    }

    pub(crate) fn start(&self) -> Arc<Mesh> {
        Mesh::start(self.config(), context()).unwrap()
    }
}

pub(crate) fn context() -> conn::Context {
    conn::Context::new(Arc::new(NoFleet), conn::ledger::Ledger::new())
}

/// A request for `name` with a backend that nobody needs to listen on.
pub(crate) fn request(name: &str, backend: u16) -> RegisterRequest {
    RegisterRequest {
        name: name.into(),
        backend: BackendAddr { host: "127.0.0.1".into(), port: backend.into() },
        ..RegisterRequest::default()
    }
}

pub(crate) async fn register(mesh: &Arc<Mesh>, name: &str) -> RegisterResponse {
    mesh.register(request(name, 9), None).await.unwrap()
}

/// An echo server on a port of the kernel's choice.
pub(crate) async fn echo() -> u16 {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            tokio::spawn(async move {
                let (mut from, mut to) = stream.split();
                let _ = tokio::io::copy(&mut from, &mut to).await;
            });
        }
    });
    port
}

/// Waits until `holds`, for at most ten seconds.
pub(crate) async fn until(what: &str, mut holds: impl FnMut() -> bool) {
    let deadline = tokio::time::Instant::now() + Duration::from_secs(10);
    while !holds() {
        assert!(tokio::time::Instant::now() < deadline, "not within ten seconds: {what}");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

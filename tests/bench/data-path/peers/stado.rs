//! The mesh frontends of a release daemon in a home of its own.
use super::{User, files, spawn};
use crate::lines::{Line, Results};
use crate::process::Tree;
use stado::client::Api;
use stado_fleet::wire::{BackendAddr, RegisterRequest};
use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

/// Ports of services that were remembered: below the ephemeral range.
const FIRST: u16 = 10_000;
const LAST: u16 = 30_000;
const PATIENCE: Duration = Duration::from_secs(60);

pub fn command(home: &Path) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_devmeshd"));
    let port = |port: u16| port.to_string();
    command.args([
        "serve",
        "--docker-enabled=false",
        "--tcp-frontend-min",
        &port(FIRST),
        "--tcp-frontend-max",
        &port(LAST),
    ]);
    command.env_clear().env("HOME", home);
    command
}

pub fn socket(home: &Path) -> PathBuf {
    home.join(".devmesh/run/devmesh.sock")
}

/// One short question, asked from outside of any runtime.
pub fn ask<T>(work: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(work)
}

/// Registers every server under a name of its own and gives the stable addresses.
pub fn register<const N: usize>(home: &Path, backends: &[SocketAddr; N]) -> [SocketAddr; N] {
    let api = Api::new(socket(home));
    let end = Instant::now() + PATIENCE;
    while ask(api.health()).is_err() {
        assert!(Instant::now() < end, "the daemon does not answer: {}", files::last_words(home));
        std::thread::sleep(Duration::from_millis(5));
    }
    std::array::from_fn(|n| {
        let backend = BackendAddr { host: "127.0.0.1".into(), port: backends[n].port().into() };
        let request =
            RegisterRequest { name: format!("bench.s{n}"), backend, ttl_seconds: 3600, ..RegisterRequest::default() };
        let made = ask(api.register(&request, None)).unwrap();
        SocketAddr::new(made.frontend.host.parse().unwrap(), made.frontend.port)
    })
}

/// A daemon that took up remembered services: how long it took to answer, and its memory then.
pub struct Remembered {
    pub took: Duration,
    pub memory: u64,
    pub unavailable: usize,
    _tree: Tree,
    _home: tempfile::TempDir,
}

pub fn start_remembered(services: usize) -> Remembered {
    let home = files::home(User::Own);
    let ports: BTreeMap<String, u16> =
        (0..services).map(|n| (format!("bench.s{n}"), FIRST + u16::try_from(n).unwrap())).collect();
    let state = home.path().join(".config/devmesh/state.json");
    std::fs::create_dir_all(state.parent().unwrap()).unwrap();
    std::fs::write(&state, serde_json::json!({"version": 1, "tcp_ports": ports}).to_string()).unwrap();
    let start = Instant::now();
    let tree = spawn(command(home.path()), home.path(), User::Own);
    let api = Api::new(socket(home.path()));
    while ask(api.health()).is_err() {
        assert!(start.elapsed() < PATIENCE, "the daemon does not answer: {}", files::last_words(home.path()));
        std::thread::sleep(Duration::from_millis(2));
    }
    let took = start.elapsed();
    // What it does after its first answer is done within a moment.
    std::thread::sleep(Duration::from_millis(500));
    let bound = ask(api.list()).unwrap().iter().filter(|service| service.frontend.port != 0).count();
    Remembered { took, memory: tree.memory(), unavailable: services - bound, _tree: tree, _home: home }
}

/// 9,000 services, both loopback families each.
pub fn start_many(results: &mut Results) {
    for _ in 0..3 {
        let many = start_remembered(9000);
        if many.unavailable > 0 {
            println!(
                "{} of 9,000 services could not be bound: ports {FIRST} and up are not all free",
                many.unavailable
            );
        }
        results.add(Line::StartTime, super::Subject::Stado, many.took.as_secs_f64());
        results.add(Line::StartMemory, super::Subject::Stado, many.memory as f64 / f64::from(1 << 20));
    }
}

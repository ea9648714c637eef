//! A host with a home of its own, and daemons on it.
use super::super::*;
use serde_json::{Value, json};
use stado_fleet::ledger::{PublishedPaths, Publisher, ResolverState, publisher};
use stado_fleet::link::LinkConfig;
use stado_fleet::store::local::LocalStore;
use stado_fleet::store::{Expected, RegistryStore, Swap};
use std::net::SocketAddr;
use std::sync::atomic::{AtomicU16, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinHandle;

/// Longer than anything that works takes, also on a busy machine.
pub(super) const DEADLINE: Duration = Duration::from_secs(30);

/// A port that was free on both families a moment ago. Processes start at different places of the range.
pub(super) fn port() -> u16 {
    static NEXT: AtomicU16 = AtomicU16::new(0);
    let start = u16::try_from(std::process::id() % 56).unwrap() * 100;
    loop {
        let port = 25100 + (start + NEXT.fetch_add(1, Ordering::Relaxed)) % 5600;
        let free = |ip: &str| std::net::TcpListener::bind((ip, port)).is_ok();
        if free("127.0.0.1") && free("::1") {
            return port;
        }
    }
}

/// Polls until `found` gives something.
pub(super) async fn until<T>(what: &str, mut found: impl FnMut() -> Option<T>) -> T {
    let poll = async {
        loop {
            if let Some(value) = found() {
                return value;
            }
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    tokio::time::timeout(DEADLINE, poll).await.unwrap_or_else(|_| panic!("never came: {what}"))
}

/// A service that answers every line with `<name> <line>`.
pub(super) struct Echo {
    pub(super) addr: SocketAddr,
    task: JoinHandle<()>,
}
impl Echo {
    pub(super) async fn start(name: &'static str) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let addr = listener.local_addr().unwrap();
        let task = tokio::spawn(async move {
            loop {
                let (mut stream, _) = listener.accept().await.unwrap();
                tokio::spawn(async move {
                    let mut bytes = [0_u8; 256];
                    while let Ok(n) = stream.read(&mut bytes).await
                        && n > 0
                    {
                        let answer = format!("{name} {}", String::from_utf8_lossy(&bytes[..n]));
                        if stream.write_all(answer.as_bytes()).await.is_err() {
                            return;
                        }
                    }
                });
            }
        });
        Self { addr, task }
    }
}
impl Drop for Echo {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// A client that stays connected.
pub(super) struct Client(TcpStream);
impl Client {
    pub(super) async fn connect(port: u16) -> Self {
        Self(TcpStream::connect(("127.0.0.1", port)).await.unwrap())
    }
    /// The answer to `word`; `None` when the connection ended.
    pub(super) async fn ask(&mut self, word: &str) -> Option<String> {
        let talk = async {
            self.0.write_all(word.as_bytes()).await.ok()?;
            let mut bytes = [0_u8; 256];
            let n = self.0.read(&mut bytes).await.ok()?;
            (n > 0).then(|| String::from_utf8_lossy(&bytes[..n]).into_owned())
        };
        tokio::time::timeout(DEADLINE, talk).await.expect("no answer and no end")
    }
}
/// One connection, one answer; `None` when it was refused or closed.
pub(super) async fn ask_once(port: u16) -> Option<String> {
    TcpStream::connect(("127.0.0.1", port)).await.ok()?;
    Client::connect(port).await.ask("hi").await
}

/// Everything that one connection brings back for `request`.
pub(super) async fn answer_to(port: u16, request: &str) -> String {
    let mut stream = TcpStream::connect(("127.0.0.1", port)).await.unwrap();
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await.unwrap();
    answer
}

/// One request to the resolution API: status and body.
pub(super) async fn http(port: u16, path: &str, consumer: Option<&str>) -> (u16, Value) {
    let mut stream = TcpStream::connect(("127.0.0.1", port)).await.unwrap();
    let consumer = consumer.map(|c| format!("X-Stado-Consumer: {c}\r\n")).unwrap_or_default();
    let request = format!("GET {path} HTTP/1.1\r\nHost: localhost\r\n{consumer}\r\n");
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await.unwrap();
    let (head, body) = answer.split_once("\r\n\r\n").unwrap();
    (head.split(' ').nth(1).unwrap().parse().unwrap(), serde_json::from_str(body).unwrap())
}

/// A host that is the authority of its own fleet.
pub(super) struct Host {
    pub(super) dir: tempfile::TempDir,
    pub(super) store: Arc<LocalStore>,
    pub(super) api: u16,
    pub(super) target: Option<&'static str>,
    pub(super) store_url: Option<String>,
    pub(super) api_override: Option<SocketAddr>,
    pub(super) gate: Option<crate::gate::Config>,
    pub(super) objects: Option<Result<crate::api::object::Config, String>>,
    pub(super) mesh_ports: (u16, u16),
}

impl Host {
    pub(super) fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let store = Arc::new(LocalStore::open(dir.path().join("stado/local-storage")).unwrap());
        let first = port();
        Self {
            dir,
            store,
            api: port(),
            target: Some("me"),
            store_url: None,
            api_override: None,
            gate: None,
            objects: None,
            mesh_ports: (first, first.saturating_add(200)),
        }
    }

    pub(super) fn home(&self) -> std::path::PathBuf {
        self.dir.path().join("stado")
    }

    pub(super) fn paths(&self) -> PublishedPaths {
        PublishedPaths::beside(&self.home().join("resolver-state.json"))
    }

    /// A registry of this host (`me`, the authority) and another one (`far`), with adapters `(service, consumer, port)` and
    /// services `(name, host, url)`; each adapter's consumer is authorized.
    pub(super) fn registry(
        &self,
        generation: u64,
        adapters: &[(&str, &str, Option<u16>)],
        services: &[(&str, &str, String)],
    ) -> Value {
        let unit = |name: &str| json!({"name": name, "kind": "systemd", "unit": format!("{name}.service")});
        let units = |host: &str| -> Vec<Value> {
            services.iter().filter(|(_, h, _)| *h == host).map(|(name, ..)| unit(name)).collect()
        };
        let adapter = |(service, consumer, port): &(&str, &str, Option<u16>)| match port {
            Some(port) => json!({"service": service, "consumer": consumer, "bind": format!("127.0.0.1:{port}")}),
            None => json!({"service": service, "consumer": consumer}),
        };
        let service = |(name, host, url): &(&str, &str, String)| {
            let consumers: serde_json::Map<String, Value> = adapters
                .iter()
                .filter(|(s, ..)| s == name)
                .map(|(_, consumer, _)| ((*consumer).to_owned(), json!({"capabilities": ["use"]})))
                .chain([("other".to_owned(), json!({"capabilities": []}))])
                .collect();
            let body = json!({"managed_service": name, "active_host": host, "endpoints": {*host: {"url": url}}, "consumers": consumers});
            ((*name).to_owned(), body)
        };
        json!({
            "schema_version": 2,
            "targets": [
                {"name": "me", "kind": "local", "release_platform": "linux-amd64", "ssh": "u@127.0.0.2", "services": units("me"),
                 "service_resolver": {"api_bind": format!("127.0.0.1:{}", self.api), "refresh_seconds": 1, "max_stale_seconds": 3,
                                      "adapters": adapters.iter().map(adapter).collect::<Vec<_>>()}},
                {"name": "far", "kind": "local", "release_platform": "linux-amd64", "ssh": "u@127.0.0.3", "services": units("far")}
            ],
            "coordinators": [],
            "service_directory": {
                "authority": {"target": "me", "command": "/opt/stado/bin/stado"},
                "generation": generation,
                "services": services.iter().map(service).collect::<serde_json::Map<_, _>>(),
            }
        })
    }

    /// Writes a registry, whatever is there; its version.
    pub(super) async fn push(&self, registry: &Value) -> String {
        let bytes = serde_json::to_vec_pretty(registry).unwrap();
        let held = self.store.read().await.unwrap();
        let expected = held.map_or(Expected::Absent, |stored| Expected::Version(stored.version));
        let swap = self.store.swap(expected, bytes).await.unwrap();
        match swap {
            Swap::Applied(version) => version.to_string(),
            other => panic!("{other:?}"),
        }
    }

    pub(super) fn config(&self) -> Config {
        let mesh = crate::mesh::Config {
            socket: self.dir.path().join("mesh.sock"),
            state_path: self.dir.path().join("mesh/state.json"),
            port_min: self.mesh_ports.0,
            port_max: self.mesh_ports.1,
            shutdown_timeout: Duration::from_secs(20),
            ..crate::mesh::Config::default()
        };
        let fleet = FleetConfig {
            publish: crate::bridge::Policy::default(),
            home: self.home(),
            target: self.target.map(|t| t.parse().unwrap()),
            asked: None,
            hostname: "nobody.example".into(),
            user: "u".into(),
            store: self.store.clone(),
            store_url: self.store_url.clone(),
            link: LinkConfig::default(),
            api_bind: self.api_override,
            gate: self.gate.clone(),
            account: None,
            objects: self.objects.clone(),
            paths: self.paths(),
            forwards_dir: self.home().join("forwards"),
            refusals: None,
        };
        Config {
            mesh,
            docker: None,
            http: None,
            inherited: crate::http::Inherited::default(),
            fleet: Some(fleet),
            version: "test",
            metrics_bind: None,
            take_over: false,
        }
    }

    pub(super) fn start(&self) -> Running {
        Running::start(self.config())
    }

    /// The published state, if its publisher lives.
    pub(super) fn state(&self) -> Option<ResolverState> {
        match publisher(&self.paths()).unwrap() {
            Publisher::Alive(state) => Some(state),
            _ => None,
        }
    }

    /// Waits for a published state.
    pub(super) async fn until_state(&self, what: &str, good: impl Fn(&ResolverState) -> bool) -> ResolverState {
        until(what, || self.state().filter(|state| good(state))).await
    }

    pub(super) async fn serving(&self) -> ResolverState {
        self.until_state("serving", |state| state.state == "serving").await
    }

    /// Waits for the daemon after `before`: what a killed one left is of this same process, and looks alive as soon as the
    /// next one has the lock.
    pub(super) async fn serving_after(&self, before: &ResolverState) -> ResolverState {
        self.until_state("serving", |s| s.state == "serving" && s.started_at != before.started_at).await
    }

    pub(super) fn marker(&self, service: &str) -> Option<String> {
        std::fs::read_to_string(self.home().join(format!("forwards/{service}.local"))).ok()
    }
}

/// A daemon of this process.
pub(super) struct Running {
    pub(super) shutdown: Shutdown,
    pub(super) said: Arc<Mutex<Vec<Announcement>>>,
    task: JoinHandle<Result<(), DaemonError>>,
}
impl Running {
    pub(super) fn start(config: Config) -> Self {
        let (shutdown, said) = (Shutdown::new(), Arc::new(Mutex::new(Vec::new())));
        let sink = said.clone();
        let announce = move |announcement| sink.lock().unwrap().push(announcement);
        let task = tokio::spawn(run(config, announce, shutdown.clone()));
        Self { shutdown, said, task }
    }
    /// The first announcement.
    pub(super) async fn up(&self) -> Served {
        until("the announcement", || {
            self.said
                .lock()
                .unwrap()
                .iter()
                .find_map(|a| if let Announcement::Up(served) = a { Some(served.clone()) } else { None })
        })
        .await
    }
    /// How it ended.
    pub(super) async fn ended(self) -> Result<(), DaemonError> {
        tokio::time::timeout(DEADLINE, self.task).await.expect("the daemon does not end").unwrap()
    }
    /// Drains it.
    pub(super) async fn stop(self) {
        self.shutdown.drain();
        self.ended().await.unwrap();
    }
    /// As a kill leaves it: nothing of it runs on, nothing was said.
    pub(super) async fn kill(self) {
        self.task.abort();
        let _ = self.task.await;
    }
}

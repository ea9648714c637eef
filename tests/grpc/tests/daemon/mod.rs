//! The built daemon with its router, in a home of its own.
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;
use tempfile::TempDir;
use tokio::net::{TcpListener, TcpStream};
use tokio::process::{Child, Command};
use tokio::time::{Instant, sleep};

/// Longer than anything honest takes on a slow machine.
const PATIENCE: Duration = Duration::from_secs(60);

/// Ends with this value.
pub struct Daemon {
    home: TempDir,
    _process: Child,
    /// Where the router is.
    pub port: u16,
}

fn program(name: &str) -> PathBuf {
    let folder = std::env::var_os("STADO_BIN").map(PathBuf::from);
    let folder = folder.unwrap_or_else(|| Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target/debug"));
    let program = folder.join(name);
    assert!(program.is_file(), "{} is missing: build it, or name its folder in STADO_BIN", program.display());
    program
}

/// A port that nobody had a moment ago.
async fn free() -> u16 {
    TcpListener::bind("127.0.0.1:0").await.unwrap().local_addr().unwrap().port()
}

impl Daemon {
    pub async fn start() -> Self {
        let (home, port) = (tempfile::Builder::new().prefix("st").tempdir().unwrap(), free().await);
        let at = format!("127.0.0.1:{port}");
        let mut command = command(&home, "devmeshd");
        command.args(["serve", "--docker-enabled=false", "--http-enabled", "--http-addr", &at]).kill_on_drop(true);
        let daemon = Self { _process: command.spawn().unwrap(), home, port };
        let end = Instant::now() + PATIENCE;
        while TcpStream::connect(&at).await.is_err() || !daemon.devmesh(&["health"]).status().await.unwrap().success() {
            assert!(Instant::now() < end, "no daemon at {at}");
            sleep(Duration::from_millis(20)).await;
        }
        daemon
    }

    /// A gRPC service at `<name>.test`.
    pub async fn register(&self, name: &str, backend: SocketAddr) {
        let mut register = self.devmesh(&arguments(name, &backend.to_string()));
        assert!(register.args(["--once", "--ttl", "600"]).status().await.unwrap().success());
    }

    /// The same, of a producer that says goodbye: the name stays known.
    pub async fn register_and_leave(&self, name: &str) {
        let backend = format!("127.0.0.1:{}", free().await);
        let mut producer = self.devmesh(&arguments(name, &backend)).kill_on_drop(true).spawn().unwrap();
        let end = Instant::now() + PATIENCE;
        while !self.devmesh(&["services", "resolve", name]).status().await.unwrap().success() {
            assert!(Instant::now() < end, "{name} is not registered");
            sleep(Duration::from_millis(20)).await;
        }
        let pid = producer.id().unwrap().to_string();
        assert!(Command::new("kill").args(["-TERM", &pid]).status().await.unwrap().success());
        producer.wait().await.unwrap();
    }

    fn devmesh(&self, args: &[&str]) -> Command {
        let mut command = command(&self.home, "devmesh");
        command.args(args);
        command
    }
}

fn arguments<'a>(name: &'a str, backend: &'a str) -> Vec<&'a str> {
    let host = Box::leak(format!("{name}.test").into_boxed_str());
    let service = ["register", "--name", name, "--kind", "http", "--http-host", host];
    [&service[..], &["--app-protocol", "grpc", "--backend", backend]].concat()
}

fn command(home: &TempDir, name: &str) -> Command {
    let mut command = Command::new(program(name));
    command.env_clear().env("HOME", home.path()).env("PATH", "/usr/bin:/bin");
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    command
}

//! The gate, through the link that the fleet uses and through OpenSSH's client.
mod admission;
mod multiplex;
mod openssh;
mod relay;

use super::*;
use russh::keys::ssh_key::LineEnding;
use russh::keys::{Algorithm, PrivateKey};
use stado_fleet::link::{ExecLimits, Link, LinkConfig, LinkError, Stage, single_path};
use stado_fleet::name::{ConnectionPath, TargetName};
use std::collections::HashSet;
use std::path::Path;
use std::sync::Mutex;
use std::time::{Duration, Instant};

const SHORT: Duration = Duration::from_secs(20);

/// Answers every verb with what it was given; allows the listed endpoints.
#[derive(Debug, Default)]
struct Echo {
    allowed: Mutex<HashSet<SocketAddr>>,
    /// Allowed once the directory is read again.
    late: Mutex<HashSet<SocketAddr>>,
    /// Ends what was lent.
    over: tokio_util::sync::CancellationToken,
    /// How often a verb ran.
    runs: std::sync::atomic::AtomicUsize,
}

impl Verbs for Echo {
    fn run<'a>(&'a self, argv: &'a [String], stdin: Vec<u8>) -> Running<'a> {
        self.runs.fetch_add(1, std::sync::atomic::Ordering::SeqCst);
        let mut stdout = format!("{}\n", argv.join(" ")).into_bytes();
        stdout.extend(stdin);
        Box::pin(std::future::ready(VerbOutput { stdout, stderr: b"note\n".to_vec(), status: 3 }))
    }
    fn watch(&self, mut stream: ChannelStream) -> Pin<Box<dyn Future<Output = ()> + Send + '_>> {
        Box::pin(async move {
            use tokio::io::{AsyncReadExt, AsyncWriteExt};
            stream.write_all(b"watched\n").await.unwrap();
            while stream.read(&mut [0; 1]).await.is_ok_and(|n| n > 0) {}
            self.runs.fetch_add(1, std::sync::atomic::Ordering::SeqCst);
        })
    }
    fn renew(&self) -> Pin<Box<dyn Future<Output = ()> + Send + '_>> {
        let late = std::mem::take(&mut *self.late.lock().unwrap());
        self.allowed.lock().unwrap().extend(late);
        Box::pin(std::future::ready(()))
    }
    fn lend(&self, _: &KeyData, endpoint: SocketAddr) -> Result<Grant, String> {
        let allowed = self.allowed.lock().unwrap().contains(&endpoint);
        let over = self.over.clone().cancelled_owned();
        let grant = allowed.then(|| Box::pin(over) as Grant);
        grant.ok_or_else(|| format!("the directory places nothing at {endpoint} on this host"))
    }
}

struct Rig {
    dir: tempfile::TempDir,
    gate: Option<Gate>,
    address: SocketAddr,
    verbs: Arc<Echo>,
}

fn write_key(file: &Path) -> PrivateKey {
    let key = PrivateKey::random(&mut russh::keys::key::safe_rng(), Algorithm::Ed25519).unwrap();
    stado_fleet::disk::create_new(file, key.to_openssh(LineEnding::LF).unwrap().as_bytes()).unwrap();
    std::fs::write(file.with_extension("pub"), key.public_key().to_openssh().unwrap()).unwrap();
    key
}

fn public(key: &PrivateKey) -> String {
    key.public_key().to_openssh().unwrap()
}

impl Rig {
    /// A gate on a free port, with a user key that may come in and that knows the gate.
    async fn start() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let user = write_key(&dir.path().join("user"));
        let rig_config = Config {
            bind: "127.0.0.1:0".parse().unwrap(),
            host_key: dir.path().join("gate/host_ed25519"),
            authorized_keys: dir.path().join("authorized_keys"),
        };
        std::fs::write(&rig_config.authorized_keys, public(&user) + "\n").unwrap();
        let verbs = Arc::new(Echo::default());
        let gate = Gate::start(rig_config, verbs.clone()).await.unwrap();
        let rig = Self { dir, address: gate.local_addr(), gate: Some(gate), verbs };
        let host = host_key::read_or_make(&rig.path("gate/host_ed25519")).unwrap();
        let listed = format!("[127.0.0.1]:{} {}\n", rig.address.port(), public(&host));
        std::fs::write(rig.path("known_hosts"), listed).unwrap();
        rig
    }

    fn path(&self, name: &str) -> std::path::PathBuf {
        self.dir.path().join(name)
    }

    fn link(&self) -> Link {
        Link::new(LinkConfig {
            user: "anyone".into(),
            identity_files: vec![self.path("user")],
            known_hosts: vec![self.path("known_hosts")],
            ..LinkConfig::default()
        })
    }

    fn paths(&self) -> Vec<ConnectionPath> {
        single_path(self.address.to_string().parse().unwrap())
    }

    async fn exec(&self, command: &str, stdin: &[u8]) -> Result<stado_fleet::link::ExecOutput, LinkError> {
        self.link().exec(&host(), &self.paths(), command, stdin, limits()).await
    }

    fn allow(&self, endpoint: SocketAddr) {
        self.verbs.allowed.lock().unwrap().insert(endpoint);
    }
}

fn limits() -> ExecLimits {
    ExecLimits { stdout: 1 << 20, deadline: SHORT }
}

fn host() -> TargetName {
    "far".parse().unwrap()
}

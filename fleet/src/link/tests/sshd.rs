//! A real sshd with its own keys and configuration, on a loopback address of its own.
use super::*;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};

const SSHD: &str = "/usr/sbin/sshd";

/// What a test changes about its server.
#[derive(Default)]
pub(super) struct Options {
    /// Lines for sshd_config, before the usual ones (sshd takes the first value of a keyword).
    pub(super) config: Vec<String>,
    /// Host keys by type; `ed25519` when empty.
    pub(super) host_keys: Vec<&'static str>,
}

pub(super) struct Sshd {
    child: Child,
    pub(super) dir: tempfile::TempDir,
    pub(super) address: std::net::IpAddr,
    pub(super) port: u16,
    host_keys: Vec<&'static str>,
}

/// `None` (said on stdout) where there is no sshd; a failure where skips are not allowed.
pub(super) fn start(options: Options) -> Option<Sshd> {
    if !Path::new(SSHD).exists() {
        assert!(std::env::var_os("STADO_NO_SKIPS").is_none_or(|v| v != "1"), "{SSHD} is missing");
        println!("skipped: {SSHD} is missing (Debian: apt-get install openssh-server)");
        return None;
    }
    Some(Sshd::start(options))
}

pub(super) fn run(program: &str, arguments: &[&str]) -> String {
    let output = Command::new(program).args(arguments).stdin(Stdio::null()).output().unwrap();
    assert!(output.status.success(), "{program} {arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

pub(super) fn keygen(kind: &str, file: &Path) {
    run("ssh-keygen", &["-q", "-t", kind, "-N", "", "-C", "test", "-f", file.to_str().unwrap()]);
}

/// A loopback address that no other test of any process of ours uses now.
fn own_address() -> std::net::IpAddr {
    static NEXT: AtomicU32 = AtomicU32::new(2);
    let n = NEXT.fetch_add(1, Ordering::Relaxed);
    let pid = std::process::id();
    std::net::Ipv4Addr::new(127, (pid % 200 + 20) as u8, (pid / 200 % 250) as u8, (n % 250) as u8).into()
}

impl Sshd {
    fn start(options: Options) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let address = own_address();
        let host_keys = if options.host_keys.is_empty() { vec!["ed25519"] } else { options.host_keys };
        for kind in &host_keys {
            keygen(kind, &dir.path().join(format!("host_{kind}")));
        }
        keygen("ed25519", &dir.path().join("user"));
        std::fs::copy(dir.path().join("user.pub"), dir.path().join("authorized_keys")).unwrap();
        if rustix::process::getuid().is_root() {
            std::fs::create_dir_all("/run/sshd").unwrap();
        }
        let port = (20_000..32_000).find(|p| std::net::TcpListener::bind((address, *p)).is_ok()).unwrap();
        let mut config = options.config;
        config.extend(
            host_keys.iter().map(|kind| format!("HostKey {}", dir.path().join(format!("host_{kind}")).display())),
        );
        config.extend([
            format!("ListenAddress {address}:{port}"),
            format!("AuthorizedKeysFile {}", dir.path().join("authorized_keys").display()),
            // What the account's own shell does at its start is no part of a test.
            format!("SetEnv HOME={}", dir.path().display()),
            "PidFile none".into(),
            "UsePAM no".into(),
            "StrictModes no".into(),
            "PasswordAuthentication no".into(),
            "KbdInteractiveAuthentication no".into(),
        ]);
        // Of this one sshd takes the last value.
        if !config.iter().any(|line| line.starts_with("MaxStartups")) {
            config.push("MaxStartups 100".into());
        }
        std::fs::write(dir.path().join("sshd_config"), config.join("\n") + "\n").unwrap();
        let mut sshd = Self { child: spawn(dir.path()), dir, address, port, host_keys };
        sshd.wait_ready();
        sshd.trust();
        sshd
    }

    /// Adds a line to the configuration and restarts the server on its port.
    pub(super) fn reconfigure(&mut self, line: &str) {
        let file = self.path("sshd_config");
        let config = std::fs::read_to_string(&file).unwrap();
        std::fs::write(&file, format!("{line}\n{config}")).unwrap();
        self.restart();
    }

    /// Restarts the listener so that it takes connections at another port as well; sessions go on.
    pub(super) fn also_at(&mut self, port: u16) {
        let file = self.path("sshd_config");
        let config = std::fs::read_to_string(&file).unwrap();
        std::fs::write(&file, format!("ListenAddress {}:{port}\n{config}", self.address)).unwrap();
        let known = std::fs::read_to_string(self.path("known_hosts")).unwrap();
        let more = known.replace(&format!(":{} ", self.port), &format!(":{port} "));
        self.known_hosts(&(known + &more));
        let pid = rustix::process::Pid::from_raw(self.child.id() as i32).unwrap();
        rustix::process::kill_process(pid, rustix::process::Signal::HUP).unwrap();
    }

    pub(super) fn restart(&mut self) {
        self.kill();
        self.child = spawn(self.dir.path());
        self.wait_ready();
    }

    fn wait_ready(&mut self) {
        let deadline = Instant::now() + SHORT;
        while std::net::TcpStream::connect((self.address, self.port)).is_err() {
            if let Some(status) = self.child.try_wait().unwrap() {
                panic!("sshd ended with {status}: {}", self.log());
            }
            assert!(Instant::now() < deadline, "sshd does not listen: {}", self.log());
            std::thread::sleep(Duration::from_millis(10));
        }
    }

    pub(super) fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    pub(super) fn log(&self) -> String {
        std::fs::read_to_string(self.path("log")).unwrap_or_default()
    }

    /// The public part of a host key, as `type base64`.
    pub(super) fn host_key(&self, kind: &str) -> String {
        let text = std::fs::read_to_string(self.path(&format!("host_{kind}.pub"))).unwrap();
        text.split(' ').take(2).collect::<Vec<_>>().join(" ")
    }

    /// As known_hosts lists it.
    pub(super) fn listed(&self) -> String {
        format!("[{}]:{}", self.address, self.port)
    }

    /// Writes a known_hosts file that holds exactly this host's keys.
    pub(super) fn trust(&self) {
        let lines: Vec<String> =
            self.host_keys.iter().map(|kind| format!("{} {}", self.listed(), self.host_key(kind))).collect();
        self.known_hosts(&lines.join("\n"));
    }

    pub(super) fn known_hosts(&self, text: &str) {
        std::fs::write(self.path("known_hosts"), format!("{text}\n")).unwrap();
    }

    pub(super) fn config(&self) -> LinkConfig {
        LinkConfig {
            user: run("id", &["-un"]).trim().to_owned(),
            identity_files: vec![self.path("user")],
            known_hosts: vec![self.path("known_hosts")],
            ..LinkConfig::default()
        }
    }

    pub(super) fn link(&self) -> Link {
        Link::new(self.config())
    }

    pub(super) fn paths(&self) -> Vec<ConnectionPath> {
        single_path(format!("{}:{}", self.address, self.port).parse().unwrap())
    }

    /// Ends the server and its sessions, as a crash of the host would (but with a FIN).
    pub(super) fn kill(&mut self) {
        for pid in self.children() {
            let _ = rustix::process::kill_process(pid, rustix::process::Signal::KILL);
        }
        let _ = self.child.kill();
        let _ = self.child.wait();
    }

    /// Ends the sessions and keeps the listener.
    pub(super) fn kill_sessions(&self) {
        for pid in self.children() {
            let _ = rustix::process::kill_process(pid, rustix::process::Signal::KILL);
        }
    }

    pub(super) fn stop_sessions(&self) {
        for pid in self.children() {
            let _ = rustix::process::kill_process(pid, rustix::process::Signal::STOP);
        }
    }

    fn children(&self) -> Vec<rustix::process::Pid> {
        let mut found = Vec::new();
        let mut parents = vec![self.child.id()];
        while let Some(parent) = parents.pop() {
            let path = format!("/proc/{parent}/task/{parent}/children");
            for child in std::fs::read_to_string(path).unwrap_or_default().split_whitespace() {
                let pid: u32 = child.parse().unwrap();
                parents.push(pid);
                found.extend(rustix::process::Pid::from_raw(pid as i32));
            }
        }
        found
    }
}

fn spawn(dir: &Path) -> Child {
    let log = std::fs::File::create(dir.join("log")).unwrap();
    let config = dir.join("sshd_config");
    let mut command = Command::new(SSHD);
    command.args(["-D", "-e", "-f"]).arg(config).stdin(Stdio::null()).stdout(Stdio::null()).stderr(log);
    command.spawn().unwrap()
}

impl Drop for Sshd {
    fn drop(&mut self) {
        self.kill();
    }
}

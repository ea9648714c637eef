//! A real PostgreSQL cluster in a temporary folder, and `psql` sessions.
use super::ports::{self, Lease};
use super::process::{Process, run};
use super::{PATIENCE, is_root, program, wait_until};
use rustix::process::Signal;
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

/// The server's programs: on the PATH or in Debian's folder of the newest version.
pub fn programs() -> Option<PathBuf> {
    let on_path = program("postgres").and_then(|p| p.canonicalize().ok()?.parent().map(Path::to_owned));
    let versions = std::fs::read_dir("/usr/lib/postgresql").into_iter().flatten().flatten();
    let installed = versions.map(|version| version.path().join("bin")).max();
    on_path.into_iter().chain(installed).find(|dir| dir.join("initdb").is_file() && dir.join("postgres").is_file())
}

/// A cluster; the user `rig` may do everything without a password.
pub struct Postgres {
    dir: tempfile::TempDir,
    port: Lease,
    process: Option<Process>,
    namespace: Option<String>,
}

impl Postgres {
    /// A new cluster that listens on 127.0.0.1, in a network namespace if one is named.
    pub fn start(namespace: Option<&str>) -> Self {
        let dir = tempfile::Builder::new().prefix("pg").tempdir().unwrap();
        if is_root() {
            // The server refuses to run as root.
            run(Command::new("chown").arg("postgres:").arg(dir.path())).ok();
        }
        let namespace = namespace.map(str::to_owned);
        let mut postgres = Self { dir, port: ports::one(), process: None, namespace };
        run(postgres
            .command("initdb")
            .args(["-U", "rig", "-A", "trust", "-N", "--no-instructions", "-D"])
            .arg(postgres.data()))
        .ok();
        postgres.up();
        postgres
    }

    fn data(&self) -> PathBuf {
        self.dir.path().join("data")
    }

    fn command(&self, name: &str) -> Command {
        let mut words: Vec<String> = Vec::new();
        if let Some(namespace) = &self.namespace {
            words.extend(["ip", "netns", "exec", namespace].map(Into::into));
        }
        if is_root() {
            words.extend(["setpriv", "--reuid=postgres", "--regid=postgres", "--clear-groups"].map(Into::into));
        }
        words.push(programs().unwrap().join(name).to_str().unwrap().into());
        let mut command = Command::new(&words[0]);
        command.args(&words[1..]).current_dir(self.dir.path()).env_clear();
        command.env("PATH", "/usr/bin:/bin:/usr/sbin:/sbin").env("LC_ALL", "C");
        command
    }

    fn up(&mut self) {
        let port = self.port.port().to_string();
        let sockets = format!("unix_socket_directories={}", self.dir.path().display());
        let mut command = self.command("postgres");
        command.arg("-D").arg(self.data()).args(["-p", &port, "-c", &sockets]);
        command.args(["-c", "listen_addresses=127.0.0.1", "-c", "fsync=off", "-c", "max_connections=50"]);
        let mut process = Process::start(&mut command, &self.dir.path().join(format!("log-{port}")));
        process.expect("database system is ready to accept connections");
        self.process = Some(process);
    }

    /// Its port on 127.0.0.1.
    pub fn port(&self) -> u16 {
        self.port.port()
    }

    /// Stops the server, which ends its connections, and starts the same cluster on another port.
    pub fn restart_elsewhere(&mut self) {
        let mut process = self.process.take().expect("the server is up");
        // Fast shutdown; SIGTERM would wait for the clients.
        process.signal(Signal::INT);
        assert!(process.wait().success(), "{}", process.log());
        self.port = ports::one();
        self.up();
    }
}

/// A port of 127.0.0.1, in a network namespace if one is named.
#[derive(Debug, Clone, Copy)]
pub struct At<'a> {
    pub port: u16,
    pub namespace: Option<&'a str>,
}

impl From<u16> for At<'_> {
    fn from(port: u16) -> Self {
        Self { port, namespace: None }
    }
}

/// `psql` for one statement, its rows.
pub fn query<'a>(at: impl Into<At<'a>>, sql: &str) -> Result<String, String> {
    let run = run(psql(at.into()).args(["-c", sql]));
    if run.code == 0 { Ok(run.stdout.trim().to_owned()) } else { Err(run.stderr) }
}

fn psql(at: At<'_>) -> Command {
    let mut command = match at.namespace {
        None => Command::new("psql"),
        Some(namespace) => {
            let mut command = Command::new("ip");
            command.args(["netns", "exec", namespace, "psql"]);
            command
        }
    };
    let port = at.port.to_string();
    command.args(["-X", "-q", "-A", "-t", "-v", "ON_ERROR_STOP=1", "-h", "127.0.0.1", "-p", &port, "-U", "rig"]);
    command.arg("postgres").env_clear().env("PATH", "/usr/local/bin:/usr/bin:/bin").env("PGCONNECT_TIMEOUT", "10");
    command
}

/// A client that stays connected.
pub struct Session {
    child: Child,
    stdin: ChildStdin,
    stdout: BufReader<ChildStdout>,
}

impl Session {
    pub fn open<'a>(at: impl Into<At<'a>>) -> Self {
        let mut command = psql(at.into());
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::inherit());
        let mut child = command.spawn().unwrap();
        let (stdin, stdout) = (child.stdin.take().unwrap(), BufReader::new(child.stdout.take().unwrap()));
        Self { child, stdin, stdout }
    }

    /// Runs statements; their rows, or `None` when the session has broken.
    pub fn run(&mut self, sql: &str) -> Option<String> {
        const END: &str = "-- end of rows --";
        writeln!(self.stdin, "{sql}\n\\echo {END}").ok()?;
        self.stdin.flush().ok()?;
        let mut rows = String::new();
        loop {
            let mut line = String::new();
            if self.stdout.read_line(&mut line).ok()? == 0 {
                return None;
            }
            if line.trim_end() == END {
                return Some(rows.trim_end().to_owned());
            }
            rows.push_str(&line);
        }
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Waits until `select 1` is answered.
pub fn answers<'a>(at: impl Into<At<'a>>) {
    let at = at.into();
    wait_until(&format!("select 1 at {at:?}"), PATIENCE, || query(at, "select 1").as_deref() == Ok("1"));
}

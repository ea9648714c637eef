//! The machine's own container engine, never stopped: one test of any process at a time uses it, and takes away what it
//! made. Its socket can be put behind a proxy that is cut and replaced.
use super::process::{Run, run};
use super::{PATIENCE, program, wait_for};
use fs4::fs_std::FileExt;
use std::fs::File;
use std::io::{Read, Write};
use std::net::Shutdown;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Arc, Mutex};

/// Where the engine listens.
pub const SOCKET: &str = "/var/run/docker.sock";
/// On everything that the tests make.
pub const LABEL: &str = "devmesh-it=container";

/// What is missing, if anything is.
pub fn usable() -> Result<(), String> {
    if program("docker").is_none() {
        return Err("no docker".into());
    }
    let answer = run(&mut command(&["version", "--format", "{{.Server.Version}}"]));
    if answer.code == 0 { Ok(()) } else { Err(format!("no engine: {}", answer.stderr.trim())) }
}

fn command(args: &[&str]) -> Command {
    let mut command = Command::new("docker");
    command.args(args).env("DOCKER_HOST", format!("unix://{SOCKET}")).env_remove("DOCKER_CONTEXT");
    command
}

/// Runs `docker`.
pub fn docker(args: &[&str]) -> Run {
    run(&mut command(args))
}

/// The engine, for one test.
pub struct Engine {
    _turn: File,
    image: String,
}

impl Engine {
    /// Waits for its turn, and makes the image unless it is there.
    pub fn take() -> Self {
        let path = std::env::temp_dir().join("stado-test-docker.lock");
        let turn = File::options().create(true).truncate(false).write(true).open(path).unwrap();
        turn.lock_exclusive().unwrap();
        remove_all();
        let script = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/images/postgres");
        let image = run(&mut Command::new(script)).ok().stdout.trim().to_owned();
        Self { _turn: turn, image }
    }

    /// The image with PostgreSQL.
    pub fn image(&self) -> &str {
        &self.image
    }

    /// Runs a container that serves a new database.
    pub fn database(&self, name: &str, options: &[&str]) -> String {
        self.run(name, options, &[])
    }

    /// Runs a container that does nothing.
    pub fn sleeper(&self, name: &str, options: &[&str]) -> String {
        self.run(name, options, &["sleep", "3000"])
    }

    /// Runs a container; `options` of the forms `key=value` are our labels, others are given as they are.
    fn run(&self, name: &str, options: &[&str], words: &[&str]) -> String {
        let labels: Vec<String> = options.iter().filter(|o| !o.starts_with('-')).map(|o| label(o)).collect();
        let mut args = vec!["run", "-d", "--name", name, "--stop-timeout", "0", "--label", LABEL];
        labels.iter().for_each(|label| args.extend(["--label", label]));
        args.extend(options.iter().filter(|option| option.starts_with('-')));
        args.push(&self.image);
        args.extend(words);
        docker(&args).ok().stdout.trim().to_owned()
    }
}

/// `name=x` is `io.devmesh.name=x`; a label with a prefix of its own stays.
fn label(option: &str) -> String {
    if option.starts_with("com.") { option.to_owned() } else { format!("io.devmesh.{option}") }
}

impl Drop for Engine {
    fn drop(&mut self) {
        remove_all();
    }
}

/// Removes every container that the tests made.
fn remove_all() {
    let listed = docker(&["ps", "-aq", "--filter", &format!("label={LABEL}")]).ok().stdout;
    let ids: Vec<&str> = listed.split_whitespace().collect();
    if !ids.is_empty() {
        docker(&[&["rm", "-f", "-v"], &ids[..]].concat());
    }
}

/// Removes a container.
pub fn remove(name: &str) {
    docker(&["rm", "-f", "-v", name]).ok();
}

/// `psql` as the image's user, at `host:port`.
pub fn select(address: &str, sql: &str) -> Option<String> {
    let (host, port) = address.rsplit_once(':')?;
    let mut command = Command::new("psql");
    command.args([
        "-X",
        "-q",
        "-A",
        "-t",
        "-v",
        "ON_ERROR_STOP=1",
        "-h",
        host,
        "-p",
        port,
        "-U",
        "dev",
        "app",
        "-c",
        sql,
    ]);
    let answer = run(command.env("PGCONNECT_TIMEOUT", "5"));
    (answer.code == 0).then(|| answer.stdout.trim().to_owned())
}

/// Waits for an answer of a database that is starting.
pub fn answer(address: &str, sql: &str) -> String {
    wait_for(&format!("{sql} at {address}"), PATIENCE, || select(address, sql))
}

/// The engine's socket under another path: it can be cut, as if the engine ended, and replaced by a new one.
pub struct Proxy {
    path: PathBuf,
    open: Arc<Mutex<Vec<UnixStream>>>,
    listener: Option<UnixListener>,
}

impl Proxy {
    pub fn start(path: &Path) -> Self {
        let mut proxy = Self { path: path.to_owned(), open: Arc::default(), listener: None };
        proxy.restore();
        proxy
    }

    /// Ends every connection and takes the socket away.
    pub fn cut(&mut self) {
        // The accepting thread ends at its next wake-up, by the connection that is made for it.
        self.listener = None;
        let _ = UnixStream::connect(&self.path);
        let _ = std::fs::remove_file(&self.path);
        for stream in self.open.lock().unwrap().drain(..) {
            let _ = stream.shutdown(Shutdown::Both);
        }
    }

    /// A new socket at the same path.
    pub fn restore(&mut self) {
        let listener = UnixListener::bind(&self.path).unwrap();
        let (accepting, open) = (listener.try_clone().unwrap(), self.open.clone());
        let here = self.path.clone();
        self.listener = Some(listener);
        std::thread::spawn(move || {
            while let Ok((client, _)) = accepting.accept() {
                let Ok(engine) = UnixStream::connect(SOCKET) else { continue };
                let mut open = open.lock().unwrap();
                if !here.exists() {
                    return;
                }
                open.extend([client.try_clone().unwrap(), engine.try_clone().unwrap()]);
                pump(client.try_clone().unwrap(), engine.try_clone().unwrap());
                pump(engine, client);
            }
        });
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        self.cut();
    }
}

fn pump(mut from: UnixStream, mut to: UnixStream) {
    std::thread::spawn(move || {
        let mut buffer = [0; 16 * 1024];
        while let Ok(count @ 1..) = from.read(&mut buffer) {
            if to.write_all(&buffer[..count]).is_err() {
                break;
            }
        }
        let _ = to.shutdown(Shutdown::Write);
    });
}

//! An S3 server that others made: moto, which `tests/python` installs.
use super::ports::{self, Lease};
use super::process::Process;
use super::s3::{KEY_ID, SECRET};
use super::{PATIENCE, wait_until};
use stado_fleet::store::http::Secret;
use stado_fleet::store::s3::{Keys, S3Config, S3Store};
use std::io::{Read, Write};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::time::Duration;

/// Serves one bucket until the test ends.
pub struct S3Server {
    port: Lease,
    process: Process,
    _dir: tempfile::TempDir,
}

fn installed() -> PathBuf {
    Path::new(env!("CARGO_TARGET_TMPDIR")).join("python")
}

/// Whether it can be started here.
pub fn usable() -> Result<(), String> {
    let place = installed();
    let whole = place.join("installed.txt").is_file();
    if whole { Ok(()) } else { Err(format!("nothing in {}; tests/python installs it", place.display())) }
}

impl S3Server {
    /// Starts it, with an empty bucket `fleet`.
    pub fn start() -> Self {
        let (port, dir) = (ports::one(), tempfile::tempdir().unwrap());
        let script = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/clients/s3_server.py");
        let mut command = Command::new(installed().join("bin/python"));
        command.args([script, &port.port().to_string()]).env_clear().current_dir(dir.path());
        let process = Process::start(&mut command, &dir.path().join("log"));
        let server = Self { port, process, _dir: dir };
        wait_until("the S3 server makes a bucket", PATIENCE, || server.bucket().is_some());
        server
    }

    /// Makes the bucket.
    fn bucket(&self) -> Option<()> {
        let mut stream = TcpStream::connect(("127.0.0.1", self.port.port())).ok()?;
        stream.set_read_timeout(Some(Duration::from_secs(10))).ok()?;
        write!(stream, "PUT /fleet HTTP/1.0\r\nContent-Length: 0\r\n\r\n").ok()?;
        let mut answer = String::new();
        stream.read_to_string(&mut answer).ok()?;
        (answer.split(' ').nth(1)? == "200").then_some(())
    }

    pub fn process(&self) -> &Process {
        &self.process
    }

    /// The URL of a store in it; `more` are further options, each with `&` before it.
    pub fn url(&self, prefix: &str, more: &str) -> String {
        format!("s3://fleet/{prefix}?endpoint=http://127.0.0.1:{}{more}", self.port.port())
    }

    /// A store in it.
    pub fn open(&self, prefix: &str, more: &str) -> Arc<S3Store> {
        let keys = Keys::Given { id: KEY_ID.into(), secret: Secret::new(SECRET), token: None };
        let store = S3Store::new(&S3Config::parse(&self.url(prefix, more), None).unwrap(), keys).unwrap();
        Arc::new(store.looking_every(Duration::from_millis(50)))
    }
}

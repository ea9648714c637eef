//! Real etcd: one member or several on loopback, each of which can be killed, frozen and started again; and a line to one that
//! can be cut.
use super::ports::{self, Lease};
use super::process::Process;
use super::{PATIENCE, program, wait_until};
use serde_json::{Value, json};
use std::io::{Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::path::Path;
use std::process::Command;
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

/// A cluster.
pub struct Etcd {
    dir: tempfile::TempDir,
    pub members: Vec<Member>,
}

/// One of its members.
pub struct Member {
    client: Lease,
    peer: Lease,
    process: Option<Process>,
}

impl Etcd {
    /// Starts a cluster of this many, and waits until it answers.
    pub fn start(count: usize) -> Self {
        // It syncs each write; memory is quick at that.
        let fast = Path::new("/dev/shm");
        let dir = if fast.is_dir() { tempfile::tempdir_in(fast) } else { tempfile::tempdir() }.unwrap();
        let member = |_| Member { client: ports::one(), peer: ports::one(), process: None };
        let mut etcd = Self { dir, members: (0..count).map(member).collect() };
        for n in 0..count {
            etcd.up(n);
        }
        for n in 0..count {
            etcd.answers(n);
        }
        etcd
    }

    /// Starts a member, with what it held before.
    pub fn up(&mut self, n: usize) {
        let url = |port: u16| format!("http://127.0.0.1:{port}");
        let all: Vec<String> =
            self.members.iter().enumerate().map(|(n, m)| format!("m{n}={}", url(m.peer.port()))).collect();
        let member = &self.members[n];
        let mut command = Command::new(program("etcd").unwrap());
        command.env_clear().env("PATH", "/usr/bin:/bin").current_dir(self.dir.path());
        command.args(["--name", &format!("m{n}"), "--data-dir", &format!("data{n}")]);
        command.args(["--listen-client-urls", &url(member.client.port())]);
        command.args(["--advertise-client-urls", &url(member.client.port())]);
        command.args(["--listen-peer-urls", &url(member.peer.port())]);
        command.args(["--initial-advertise-peer-urls", &url(member.peer.port())]);
        command.args(["--initial-cluster", &all.join(","), "--initial-cluster-state", "new"]);
        self.members[n].process = Some(Process::start(&mut command, &self.dir.path().join(format!("log{n}"))));
    }

    /// Waits until a member answers as the majority has it.
    pub fn answers(&self, n: usize) {
        wait_until("etcd answers", PATIENCE, || {
            post(self.members[n].port(), "/v3/kv/range", &json!({"key": "YQ=="}))
                .is_some_and(|(status, _)| status == 200)
        });
    }

    /// `etcd://…` of all members; `rest` is prefix and options.
    pub fn url(&self, rest: &str) -> String {
        let members: Vec<String> = self.members.iter().map(|m| format!("127.0.0.1:{}", m.port())).collect();
        format!("etcd://{}/{rest}", members.join(","))
    }
}

impl Member {
    pub fn port(&self) -> u16 {
        self.client.port()
    }

    /// SIGKILL.
    pub fn kill9(&mut self) {
        self.process.take().expect("the member runs").kill9();
    }

    pub fn process(&self) -> &Process {
        self.process.as_ref().expect("the member runs")
    }

    /// Asks its gateway; fails the test unless it is done.
    pub fn done(&self, path: &str, body: &Value) -> Value {
        match post(self.port(), path, body) {
            Some((200, answer)) => answer,
            other => panic!("{path} {body}: {other:?}"),
        }
    }
}

/// One request to etcd's gateway, without a line of ours in between.
fn post(port: u16, path: &str, body: &Value) -> Option<(u16, Value)> {
    let mut stream = TcpStream::connect(("127.0.0.1", port)).ok()?;
    stream.set_read_timeout(Some(Duration::from_secs(10))).ok()?;
    let body = body.to_string();
    // 1.0, so that the answer is not in chunks.
    write!(stream, "POST {path} HTTP/1.0\r\nContent-Length: {}\r\n\r\n{body}", body.len()).ok()?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer).ok()?;
    let status = answer.split(' ').nth(1)?.parse().ok()?;
    let (_, body) = answer.split_once("\r\n\r\n")?;
    Some((status, serde_json::from_str(body).unwrap_or(Value::Null)))
}

/// A line to a server that can be cut and mended.
pub struct Line {
    pub port: u16,
    state: Arc<Mutex<(bool, Vec<TcpStream>)>>,
}

impl Line {
    pub fn to(port: u16) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let own = listener.local_addr().unwrap().port();
        let state: Arc<Mutex<(bool, Vec<TcpStream>)>> = Arc::default();
        let shared = Arc::clone(&state);
        thread::spawn(move || {
            for near in listener.incoming().flatten() {
                let mut state = shared.lock().unwrap();
                if state.0 {
                    continue;
                }
                let Ok(far) = TcpStream::connect(("127.0.0.1", port)) else { continue };
                for (from, to) in [(&near, &far), (&far, &near)] {
                    let (mut from, mut to) = (from.try_clone().unwrap(), to.try_clone().unwrap());
                    state.1.push(from.try_clone().unwrap());
                    thread::spawn(move || {
                        let _ = std::io::copy(&mut from, &mut to);
                        let _ = to.shutdown(Shutdown::Write);
                    });
                }
            }
        });
        Self { port: own, state }
    }

    /// Ends every connection; new ones end at once.
    pub fn cut(&self) {
        let mut state = self.state.lock().unwrap();
        state.0 = true;
        for stream in state.1.drain(..) {
            let _ = stream.shutdown(Shutdown::Both);
        }
    }

    pub fn mend(&self) {
        self.state.lock().unwrap().0 = false;
    }

    /// Connections since the last cut.
    pub fn connections(&self) -> usize {
        self.state.lock().unwrap().1.len() / 2
    }
}

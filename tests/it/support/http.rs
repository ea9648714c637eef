//! What the stories of the HTTP router share: a server, a client that hides nothing, a daemon with a router.
use super::home::{DEVMESHD, Home};
use super::process::Process;
use super::{PATIENCE, wait_until};
use serde_json::Value;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::thread;

/// Answers every request with a word; on a port of the system's choice until the test ends.
pub fn http(word: &'static str) -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            thread::spawn(move || {
                let (mut reader, mut stream) = (BufReader::new(stream.try_clone().unwrap()), stream);
                let mut line = String::new();
                while reader.read_line(&mut line).unwrap_or(0) > 0 {
                    if line == "\r\n" {
                        let head = format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n", word.len());
                        if stream.write_all((head + word).as_bytes()).is_err() {
                            return;
                        }
                    }
                    line.clear();
                }
            });
        }
    });
    port
}

/// Status and body of one GET through the router.
pub fn get(port: u16, host: &str, more: &str) -> (u16, String) {
    try_get(port, host, more).unwrap()
}

/// [`get`], where the connection may be reset.
pub fn try_get(port: u16, host: &str, more: &str) -> std::io::Result<(u16, String)> {
    let mut stream = TcpStream::connect(("127.0.0.1", port)).unwrap();
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    write!(stream, "GET / HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n{more}\r\n").unwrap();
    let mut text = String::new();
    stream.read_to_string(&mut text)?;
    let (head, body) = text.split_once("\r\n\r\n").unwrap_or((&text, ""));
    Ok((head.split(' ').nth(1).unwrap_or("0").parse().unwrap(), body.to_owned()))
}

/// A mesh with a router on `port`, once it answers.
pub fn serve(home: &Home, port: u16, args: &[&str]) -> Process {
    let addr = format!("127.0.0.1:{port}");
    let all = [&["serve", "--docker-enabled=false", "--http-enabled", "--http-addr", &addr], args].concat();
    let mut daemon = home.start("devmeshd", DEVMESHD, &all);
    wait_until("the daemon answers", PATIENCE, || {
        assert!(daemon.ended().is_none(), "{}", daemon.log());
        home.devmesh(&["health"]).code == 0
    });
    daemon
}

/// Registers an http service, and stays away.
pub fn register(home: &Home, name: &str, backend: u16, more: &[&str]) {
    let backend = format!("127.0.0.1:{backend}");
    let args = ["register", "--name", name, "--kind", "http", "--backend", &backend, "--once", "--ttl", "600"];
    home.devmesh(&[&args, more].concat()).ok();
}

/// A service as `list` shows it; null when it is not there.
pub fn listed(home: &Home, name: &str) -> Value {
    let all = home.devmesh(&["services", "list", "--format", "json"]).ok().json();
    all.as_array().unwrap().iter().find(|row| row["name"] == name).cloned().unwrap_or_default()
}

/// A Python that has these modules.
pub fn python_with(modules: &str) -> Option<std::path::PathBuf> {
    let pythons = [Some("/usr/bin/python3".into()), super::program("python3")];
    pythons.into_iter().flatten().find(|python: &std::path::PathBuf| {
        let asked = std::process::Command::new(python).args(["-c", &format!("import {modules}")]).output();
        asked.is_ok_and(|asked| asked.status.success())
    })
}

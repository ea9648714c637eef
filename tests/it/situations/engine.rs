//! A container engine that runs nothing and tells of what it is said to run: the few calls of its API that are used.
use serde_json::{Value, json};
use std::io::{BufRead, BufReader, Write};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::thread;

/// Containers, as an inspection shows them.
#[derive(Clone, Default)]
pub struct Engine {
    containers: Arc<Mutex<Vec<Value>>>,
}

/// One container; the port inside is 80.
pub struct Container<'a> {
    pub name: &'a str,
    pub labels: &'a [(&'a str, &'a str)],
    pub state: &'a str,
    /// Where the port is published.
    pub ports: Value,
    pub network: &'a str,
    pub health: Option<&'a str>,
}

impl Engine {
    /// Listens at `path`, for as long as the test lives.
    pub fn start(path: &Path) -> Self {
        let engine = Self::default();
        let listener = UnixListener::bind(path).unwrap();
        let me = engine.clone();
        thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let me = me.clone();
                thread::spawn(move || me.serve(stream));
            }
        });
        engine
    }

    /// Runs one more.
    pub fn run(&self, container: &Container<'_>) {
        let Container { name, labels, state, ports, network, health } = container;
        let mut all = self.containers.lock().unwrap();
        let labels: serde_json::Map<String, Value> = labels
            .iter()
            .map(|(key, value)| {
                (key.strip_prefix('.').map_or((*key).to_owned(), |k| format!("io.devmesh.{k}")), json!(value))
            })
            .collect();
        let mut told = json!({"Status": state, "Running": *state == "running", "Paused": *state == "paused",
            "StartedAt": format!("2026-08-01T10:00:{:02}Z", all.len())});
        if let Some(health) = health {
            told["Health"] =
                json!({"Status": health, "FailingStreak": 3, "Log": [{"Output": "no answer from the program"}]});
        }
        let id = format!("{:064x}", all.len() + 1);
        all.push(json!({"Id": id, "Name": format!("/{name}"), "State": told, "Config": {"Labels": labels},
            "HostConfig": {"NetworkMode": network}, "NetworkSettings": {"Ports": ports}}));
    }

    /// Ends one.
    pub fn end(&self, name: &str) {
        self.containers.lock().unwrap().retain(|container| container["Name"] != format!("/{name}"));
    }

    /// Changes one's state.
    pub fn set(&self, name: &str, state: &str) {
        for container in self.containers.lock().unwrap().iter_mut().filter(|c| c["Name"] == format!("/{name}")) {
            container["State"]["Status"] = json!(state);
            container["State"]["Running"] = json!(state == "running");
            container["State"]["Paused"] = json!(state == "paused");
        }
    }

    fn serve(&self, stream: UnixStream) {
        let (mut reader, mut stream) = (BufReader::new(stream.try_clone().unwrap()), stream);
        loop {
            let mut first = String::new();
            if reader.read_line(&mut first).unwrap_or(0) == 0 {
                return;
            }
            let mut line = String::new();
            while reader.read_line(&mut line).unwrap_or(0) > 2 {
                line.clear();
            }
            let path = first.split(' ').nth(1).unwrap_or_default().split('?').next().unwrap_or_default().to_owned();
            if path.ends_with("/events") {
                let _ = stream.write_all(
                    b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n",
                );
                // Nothing ever happens; the daemon lists again by itself.
                let _ = reader.read_line(&mut line);
                return;
            }
            let (status, body) = self.answer(&path);
            let head = format!(
                "HTTP/1.1 {status}\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\r\n",
                body.len()
            );
            if stream.write_all((head + &body).as_bytes()).is_err() {
                return;
            }
        }
    }

    fn answer(&self, path: &str) -> (&'static str, String) {
        let all = self.containers.lock().unwrap();
        if path.ends_with("/version") {
            return ("200 OK", json!({"Version": "27.0.0", "ApiVersion": "1.46", "MinAPIVersion": "1.24"}).to_string());
        }
        if path.ends_with("/containers/json") {
            let running = all.iter().filter(|container| container["State"]["Status"] != "exited");
            let rows: Vec<Value> = running
                .map(|container| {
                    json!({"Id": container["Id"], "Names": [container["Name"]], "Labels": container["Config"]["Labels"],
                        "State": container["State"]["Status"], "Status": "Up", "Ports": []})
                })
                .collect();
            return ("200 OK", json!(rows).to_string());
        }
        let id = path.trim_end_matches("/json").rsplit('/').next().unwrap_or_default();
        match all.iter().find(|container| container["Id"] == id) {
            Some(container) => ("200 OK", container.to_string()),
            None => ("404 Not Found", json!({"message": "No such container"}).to_string()),
        }
    }
}

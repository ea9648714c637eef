//! A small object API over one registry, from the contract: versioned reads, conditional writes, a bearer token.
use sha2::{Digest, Sha256};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::thread;

pub const TOKEN: &str = "object-token";

#[derive(Default)]
struct State {
    object: Option<Vec<u8>>,
    requests: Vec<String>,
    closed: bool,
}

/// Serves until the test ends.
pub struct ObjectApi {
    pub port: u16,
    state: Arc<Mutex<State>>,
}

impl ObjectApi {
    pub fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let state = Arc::new(Mutex::new(State::default()));
        let shared = Arc::clone(&state);
        thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let _ = serve(stream, &shared);
            }
        });
        Self { port, state }
    }

    pub fn put(&self, object: &str) {
        self.state.lock().unwrap().object = Some(object.as_bytes().to_vec());
    }

    pub fn object(&self) -> String {
        String::from_utf8(self.state.lock().unwrap().object.clone().unwrap_or_default()).unwrap()
    }

    /// Its authorization boundary is shut: every request is refused.
    pub fn close(&self) {
        self.state.lock().unwrap().closed = true;
    }

    /// Request lines since the last call.
    pub fn requests(&self) -> Vec<String> {
        std::mem::take(&mut self.state.lock().unwrap().requests)
    }
}

fn version(bytes: &[u8]) -> String {
    hex::encode(Sha256::digest(bytes))
}

fn serve(stream: TcpStream, state: &Mutex<State>) -> std::io::Result<()> {
    let mut reader = BufReader::new(stream.try_clone()?);
    let (mut first, mut length, mut authorized) = (String::new(), 0, false);
    reader.read_line(&mut first)?;
    loop {
        let mut line = String::new();
        reader.read_line(&mut line)?;
        let line = line.trim();
        if line.is_empty() {
            break;
        }
        let (name, value) = line.split_once(": ").unwrap_or((line, ""));
        match name.to_lowercase().as_str() {
            "content-length" => length = value.parse().unwrap(),
            "authorization" => authorized = value == format!("Bearer {TOKEN}"),
            _ => {}
        }
    }
    let mut body = vec![0; length];
    reader.read_exact(&mut body)?;
    let mut state = state.lock().unwrap();
    state.requests.push(first.trim().to_owned());
    let (status, headers, body) = answer(&mut state, &first, authorized, body);
    let head = format!("HTTP/1.1 {status}\r\n{headers}Content-Length: {}\r\nConnection: close\r\n\r\n", body.len());
    (&stream).write_all(&[head.as_bytes(), &body].concat())
}

fn answer(state: &mut State, first: &str, authorized: bool, body: Vec<u8>) -> (&'static str, String, Vec<u8>) {
    let say = |status, text: &str| (status, String::new(), text.as_bytes().to_vec());
    if state.closed {
        return say("503 x", r#"{"error":"object authorization unavailable"}"#);
    }
    if !authorized {
        return say("401 x", r#"{"error":"unauthorized"}"#);
    }
    let held = state.object.as_deref().map(version);
    let query = |key: &str| {
        first.split(['?', '&', ' ']).find_map(|part| Some(part.strip_prefix(key)?.strip_prefix('=')?.to_owned()))
    };
    match (first.split(' ').next(), held) {
        (Some("PUT"), held) if query("if_version") == held || (query("if_absent").is_some() && held.is_none()) => {
            let version = version(&body);
            state.object = Some(body);
            say("200 x", &format!(r#"{{"state":"stored","version":"{version}"}}"#))
        }
        (Some("PUT"), None) => say("404 x", r#"{"state":"absent"}"#),
        (Some("PUT"), Some(_)) => say("409 x", r#"{"error":"object version changed"}"#),
        (_, None) => say("404 x", r#"{"state":"absent"}"#),
        (_, Some(held)) => ("200 x", format!("X-Stado-Version: {held}\r\n"), state.object.clone().unwrap_or_default()),
    }
}

//! A small server that speaks as much of the S3 interface as a registry needs, written from its public description, for
//! tests: objects with ETags, `If-Match` and `If-None-Match`, the errors that go with them, and whatever can go wrong. It
//! uses the standard library alone, so that the tests from outside build it too.
#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    dead_code,
    reason = "only tests build this module, and not all use all of it"
)]
use sha2::{Digest, Sha256};
use std::collections::{HashMap, VecDeque};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::thread;

/// The key that it knows.
pub(crate) const KEY_ID: &str = "AKIDEXAMPLE";
/// What belongs to it; the emulator looks at no signature but at whose it is.
pub(crate) const SECRET: &str = "wJalrXUtnFEMI-K7MDENG-bPxRfiCYEXAMPLEKEY";
/// Its only bucket.
pub(crate) const BUCKET: &str = "fleet";

/// What happens to the next write of the registry itself: not of a probe, nor of its history.
#[derive(Debug, Clone)]
pub(crate) enum Fault {
    /// This status with this code, and nothing is done.
    Say(u16, &'static str),
    /// The connection ends before anything is done.
    CutBefore,
    /// It is done, and the connection ends before the answer.
    CutAfter,
}

/// How it behaves towards everything.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) enum Manner {
    /// As it should.
    #[default]
    Good,
    /// It ignores `If-Match`.
    IgnoresMatch,
    /// It ignores `If-None-Match`.
    IgnoresNoneMatch,
    /// Nobody may write.
    ReadOnly,
    /// Its objects have no ETag.
    NoEtag,
}

#[derive(Default)]
struct State {
    objects: HashMap<String, (Vec<u8>, String)>,
    faults: VecDeque<Fault>,
    manner: Manner,
    /// Method and target of each request, and `!` for one that was refused.
    log: Vec<String>,
    writes: u64,
}

/// Serves until the test ends.
pub(crate) struct Emulator {
    pub(crate) port: u16,
    state: Arc<Mutex<State>>,
}

struct Request {
    method: String,
    target: String,
    headers: HashMap<String, String>,
    body: Vec<u8>,
}

struct Response {
    status: u16,
    etag: Option<String>,
    body: Vec<u8>,
}

impl Emulator {
    pub(crate) fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let state: Arc<Mutex<State>> = Arc::default();
        let shared = Arc::clone(&state);
        thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let shared = Arc::clone(&shared);
                thread::spawn(move || serve(stream, &shared));
            }
        });
        Self { port, state }
    }

    /// The URL of a store in it; `more` are further options, each with `&` before it.
    pub(crate) fn url(&self, prefix: &str, more: &str) -> String {
        format!("s3://{BUCKET}/{prefix}?endpoint=http://127.0.0.1:{}{more}", self.port)
    }

    pub(crate) fn manner(&self, manner: Manner) {
        self.state.lock().unwrap().manner = manner;
    }

    pub(crate) fn expect(&self, faults: impl IntoIterator<Item = Fault>) {
        self.state.lock().unwrap().faults.extend(faults);
    }

    pub(crate) fn object(&self, key: &str) -> Option<Vec<u8>> {
        self.state.lock().unwrap().objects.get(key).map(|(bytes, _)| bytes.clone())
    }

    pub(crate) fn keys(&self) -> Vec<String> {
        self.state.lock().unwrap().objects.keys().cloned().collect()
    }

    /// Requests since the last call.
    pub(crate) fn log(&self) -> Vec<String> {
        std::mem::take(&mut self.state.lock().unwrap().log)
    }
}

fn read(stream: &TcpStream) -> Option<Request> {
    let mut reader = BufReader::new(stream.try_clone().ok()?);
    let mut first = String::new();
    reader.read_line(&mut first).ok()?;
    let mut words = first.split_whitespace();
    let (method, target) = (words.next()?.to_owned(), words.next()?.to_owned());
    let mut headers = HashMap::new();
    loop {
        let mut line = String::new();
        reader.read_line(&mut line).ok()?;
        let Some((name, value)) = line.trim().split_once(':') else { break };
        headers.insert(name.to_lowercase(), value.trim().to_owned());
    }
    let length = headers.get("content-length").and_then(|l| l.parse().ok()).unwrap_or(0);
    let mut body = vec![0; length];
    reader.read_exact(&mut body).ok()?;
    Some(Request { method, target, headers, body })
}

fn serve(mut stream: TcpStream, shared: &Mutex<State>) {
    let Some(request) = read(&stream) else { return };
    let mut state = shared.lock().unwrap();
    let key = request.target.split('?').next().unwrap_or_default().strip_prefix(&format!("/{BUCKET}/"));
    let key = key.map(str::to_owned);
    let aside = |key: &str| key.contains(".stado-probe/") || key.contains(".history/");
    let the_registry = key.as_deref().is_some_and(|key| !aside(key));
    let fault = if request.method == "PUT" && the_registry { state.faults.pop_front() } else { None };
    let response = match &fault {
        Some(Fault::CutBefore) => return,
        Some(Fault::Say(status, code)) => error(*status, code),
        Some(Fault::CutAfter) | None => match authorized(&request) {
            Err(code) => error(403, code),
            Ok(()) => match key.filter(|key| !key.is_empty()) {
                None => error(404, "NoSuchBucket"),
                Some(key) => answer(&mut state, &request, key),
            },
        },
    };
    let refused = if response.status < 400 { "" } else { " !" };
    state.log.push(format!("{} {}{refused}", request.method, request.target));
    drop(state);
    if matches!(fault, Some(Fault::CutAfter)) {
        return;
    }
    let etag = response.etag.map(|etag| format!("ETag: {etag}\r\n")).unwrap_or_default();
    let head = format!(
        "HTTP/1.1 {} x\r\n{etag}Last-Modified: Mon, 30 Nov 2026 20:00:00 GMT\r\nContent-Length: {}\r\nConnection: close\r\n\r\n",
        response.status,
        response.body.len()
    );
    let _ = stream.write_all(head.as_bytes()).and_then(|()| stream.write_all(&response.body));
}

/// Whose request it is, and that its body is the one that was signed.
fn authorized(request: &Request) -> Result<(), &'static str> {
    let header = |name: &str| request.headers.get(name).map(String::as_str).unwrap_or_default();
    let authorization = header("authorization");
    if !authorization.starts_with(&format!("AWS4-HMAC-SHA256 Credential={KEY_ID}/")) {
        return Err("InvalidAccessKeyId");
    }
    let signed = authorization.contains("SignedHeaders=") && authorization.contains("host");
    let digest = hex::encode(Sha256::digest(&request.body));
    let whole = [digest.as_str(), "UNSIGNED-PAYLOAD"].contains(&header("x-amz-content-sha256"));
    if signed && whole && !header("host").is_empty() && !header("x-amz-date").is_empty() {
        Ok(())
    } else {
        Err("SignatureDoesNotMatch")
    }
}

fn error(status: u16, code: &str) -> Response {
    let body =
        format!("<?xml version=\"1.0\"?><Error><Code>{code}</Code><Message>the emulator says so</Message></Error>");
    Response { status, etag: None, body: body.into_bytes() }
}

fn answer(state: &mut State, request: &Request, key: String) -> Response {
    let held = state.objects.get(&key).cloned();
    let condition = |name: &str| request.headers.get(name).cloned();
    let shown = |state: &State, etag: &str| (state.manner != Manner::NoEtag).then(|| etag.to_owned());
    match request.method.as_str() {
        "GET" => match held {
            None => error(404, "NoSuchKey"),
            Some((_, etag)) if condition("if-none-match").as_ref() == Some(&etag) => {
                Response { status: 304, etag: shown(state, &etag), body: Vec::new() }
            }
            Some((bytes, etag)) => Response { status: 200, etag: shown(state, &etag), body: bytes },
        },
        "PUT" if state.manner == Manner::ReadOnly => error(403, "AccessDenied"),
        "PUT" => {
            let (matches, none) = (condition("if-match"), condition("if-none-match"));
            if none.is_some() && held.is_some() && state.manner != Manner::IgnoresNoneMatch {
                return error(412, "PreconditionFailed");
            }
            if let Some(expected) = matches.filter(|_| state.manner != Manner::IgnoresMatch) {
                match &held {
                    None => return error(404, "NoSuchKey"),
                    Some((_, etag)) if *etag != expected => return error(412, "PreconditionFailed"),
                    Some(_) => {}
                }
            }
            state.writes += 1;
            let etag = format!("\"{}\"", hex::encode(&Sha256::digest(&request.body)[..16]));
            state.objects.insert(key, (request.body.clone(), etag.clone()));
            Response { status: 200, etag: shown(state, &etag), body: Vec::new() }
        }
        "DELETE" => {
            state.objects.remove(&key);
            Response { status: 204, etag: None, body: Vec::new() }
        }
        _ => error(501, "NotImplemented"),
    }
}

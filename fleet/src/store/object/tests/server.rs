//! A small object API, written from the contract (§2.4) alone, over a local store. Faults can be scripted.
use crate::store::local::LocalStore;
use crate::store::{Expected, RegistryStore, Swap};
use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::TcpListener;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::pki_types::PrivateKeyDer;
use tokio_rustls::rustls::{ServerConfig, crypto::aws_lc_rs};

pub(super) const TOKEN: &str = "a-token";
const OBJECT: &str = "stado://probierz/registry.json";

/// What happens to one request instead of an answer.
#[derive(Debug, Clone)]
pub(super) enum Fault {
    /// These bytes are the answer.
    Say(String),
    /// It is done, and the connection ends without an answer.
    DoneUnanswered,
    /// It is read and not done, and the connection ends.
    Dropped,
    /// The answer ends in the middle.
    Cut,
    /// No version is named in a receipt, as older servers do for a creation.
    NoVersion,
}

pub(super) struct Server {
    pub(super) url: String,
    pub(super) store: LocalStore,
    faults: Arc<Mutex<VecDeque<Fault>>>,
    requests: Arc<Mutex<Vec<String>>>,
    _home: tempfile::TempDir,
}

impl Server {
    pub(super) async fn start() -> Self {
        Self::start_with(None).await
    }

    /// Over TLS, with a certificate of its own for `localhost`; its PEM.
    pub(super) async fn start_tls() -> (Self, String) {
        let issued = rcgen::generate_simple_self_signed(["localhost".to_owned()]).unwrap();
        let key = PrivateKeyDer::Pkcs8(issued.signing_key.serialize_der().into());
        let config = ServerConfig::builder_with_provider(Arc::new(aws_lc_rs::default_provider()))
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_no_client_auth()
            .with_single_cert(vec![issued.cert.der().clone()], key)
            .unwrap();
        let mut server = Self::start_with(Some(TlsAcceptor::from(Arc::new(config)))).await;
        server.url = server.url.replace("http://127.0.0.1", "https://localhost");
        (server, issued.cert.pem())
    }

    async fn start_with(tls: Option<TlsAcceptor>) -> Self {
        let home = tempfile::tempdir().unwrap();
        let store = LocalStore::open_at(home.path().join("store"), "ecosystem/probierz/registry.json").unwrap();
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let (faults, requests) = (Arc::<Mutex<VecDeque<Fault>>>::default(), Arc::<Mutex<Vec<String>>>::default());
        let (serving, script, log) = (store.clone(), Arc::clone(&faults), Arc::clone(&requests));
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let (store, script, log) = (serving.clone(), Arc::clone(&script), Arc::clone(&log));
                let tls = tls.clone();
                tokio::spawn(async move {
                    match tls {
                        None => serve(stream, store, script, log).await,
                        Some(tls) => {
                            let Ok(stream) = tls.accept(stream).await else { return };
                            serve(stream, store, script, log).await;
                        }
                    }
                });
            }
        });
        Self { url, store, faults, requests, _home: home }
    }

    pub(super) fn expect(&self, faults: impl IntoIterator<Item = Fault>) {
        *self.faults.lock().unwrap() = faults.into_iter().collect();
    }

    /// Request heads, in order.
    pub(super) fn requests(&self) -> Vec<String> {
        self.requests.lock().unwrap().clone()
    }
}

struct Asked {
    method: String,
    path: String,
    query: HashMap<String, String>,
    bearer: Option<String>,
    body: Vec<u8>,
}

struct Said {
    status: u16,
    headers: String,
    body: Vec<u8>,
}

fn json(status: u16, body: serde_json::Value) -> Said {
    Said { status, headers: String::new(), body: body.to_string().into_bytes() }
}

async fn serve(
    mut stream: impl AsyncRead + AsyncWrite + Unpin,
    store: LocalStore,
    script: Arc<Mutex<VecDeque<Fault>>>,
    log: Arc<Mutex<Vec<String>>>,
) {
    let Some((head, asked)) = read(&mut stream).await else { return };
    log.lock().unwrap().push(head);
    let fault = script.lock().unwrap().pop_front();
    match &fault {
        Some(Fault::Say(bytes)) => {
            let _ = stream.write_all(bytes.as_bytes()).await;
            return;
        }
        Some(Fault::Dropped) => return,
        _ => {}
    }
    let mut said = answer(&store, asked).await;
    if matches!(fault, Some(Fault::DoneUnanswered)) {
        return;
    }
    if matches!(fault, Some(Fault::NoVersion)) {
        let mut receipt: serde_json::Value = serde_json::from_slice(&said.body).unwrap();
        receipt.as_object_mut().unwrap().remove("version");
        said.body = receipt.to_string().into_bytes();
    }
    let Said { status, headers, mut body } = said;
    let head = format!("HTTP/1.1 {status} x\r\n{headers}Content-Length: {}\r\nConnection: close\r\n\r\n", body.len());
    if matches!(fault, Some(Fault::Cut)) {
        body.truncate(body.len() / 2);
    }
    let _ = stream.write_all(&[head.as_bytes(), &body].concat()).await;
    let _ = stream.shutdown().await;
}

/// A framing error ends the connection without an answer.
async fn read(stream: &mut (impl AsyncRead + Unpin)) -> Option<(String, Asked)> {
    let mut bytes = Vec::new();
    let end = loop {
        if let Some(at) = bytes.windows(4).position(|w| w == b"\r\n\r\n") {
            break at;
        }
        if bytes.len() > 64 << 10 || stream.read_buf(&mut bytes).await.ok()? == 0 {
            return None;
        }
    };
    let head = String::from_utf8(bytes[..end].to_vec()).ok()?;
    let mut lines = head.split("\r\n");
    let mut first = lines.next()?.split(' ');
    let (method, target) = (first.next()?.to_owned(), first.next()?);
    let headers: HashMap<String, String> =
        lines.filter_map(|l| l.split_once(": ")).map(|(k, v)| (k.to_lowercase(), v.to_owned())).collect();
    assert_eq!(headers.get("accept").map(String::as_str), Some("application/json"));
    assert!(headers["host"].starts_with("127.0.0.1:") || headers["host"].starts_with("localhost:"));
    if headers.contains_key("transfer-encoding") || (method == "PUT" && !headers.contains_key("content-length")) {
        return None;
    }
    let length = headers.get("content-length").map_or(0, |v| v.parse().unwrap());
    let mut body = bytes[end + 4..].to_vec();
    while body.len() < length {
        if stream.read_buf(&mut body).await.ok()? == 0 {
            return None;
        }
    }
    let (path, query) = target.split_once('?').unwrap_or((target, ""));
    let query = url::form_urlencoded::parse(query.as_bytes()).into_owned().collect();
    let bearer = headers.get("authorization").and_then(|v| v.strip_prefix("Bearer ")).map(str::to_owned);
    let asked = Asked { method, path: path.to_owned(), query, bearer, body };
    Some((head, asked))
}

async fn answer(store: &LocalStore, asked: Asked) -> Said {
    use serde_json::json as j;
    let Some(uri) = asked.query.get("uri") else { return json(400, j!({"error": "uri is required"})) };
    if asked.bearer.as_deref() != Some(TOKEN) {
        return json(401, j!({"error": "unauthorized"}));
    }
    let held = if uri == OBJECT { store.read().await.unwrap() } else { None };
    let absent = || json(404, j!({"state": "absent", "uri": uri}));
    match (asked.method.as_str(), asked.path.as_str(), held) {
        ("GET", _, None) => absent(),
        ("GET", "/api/object", Some(held)) => {
            let versioned = asked.query.get("versioned").map(String::as_str) == Some("true");
            let version = if versioned { format!("X-Stado-Version: {}\r\n", held.version) } else { String::new() };
            Said { status: 200, headers: version, body: held.bytes.to_vec() }
        }
        ("GET", "/api/object/stat", Some(held)) => json(
            200,
            j!({"state": "present", "uri": uri, "size": held.bytes.len(), "updated_at": held.version.as_str(), "metadata": {}}),
        ),
        ("PUT", "/api/object", _) => put(store, uri, &asked).await,
        _ => json(501, j!({"error": "not implemented"})),
    }
}

async fn put(store: &LocalStore, uri: &str, asked: &Asked) -> Said {
    use serde_json::json as j;
    let conditions = (asked.query.get("if_absent"), asked.query.get("if_version"));
    let expected = match conditions {
        (Some(_), Some(_)) => {
            return json(400, j!({"error": "if_absent, if_version, and metadata_only are mutually exclusive"}));
        }
        (Some(_), None) => Expected::Absent,
        (None, Some(version)) => Expected::Version(version.parse().unwrap()),
        (None, None) => panic!("a swap is always conditional"),
    };
    let exists = if expected == Expected::Absent { "object exists" } else { "object version changed" };
    match store.swap(expected, asked.body.clone()).await.unwrap() {
        Swap::Applied(version) => json(200, j!({"state": "stored", "uri": uri, "version": version})),
        Swap::Conflict { .. } => json(409, j!({"error": exists, "uri": uri})),
        Swap::Absent => json(404, j!({"state": "absent", "uri": uri})),
        Swap::Unknown(e) => json(500, j!({"error": e.sentence})),
    }
}

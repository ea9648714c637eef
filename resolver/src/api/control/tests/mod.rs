//! The API over a real socket, in raw bytes: what existing clients see (mesh contract §1).
mod bytes;

use super::*;
use crate::mesh::rig::Home;
use std::path::PathBuf;
use tokio::io::{AsyncReadExt, AsyncWriteExt};

/// A served mesh.
struct Server {
    home: Home,
    mesh: Arc<Mesh>,
    stop: CancellationToken,
    serving: tokio::task::JoinHandle<()>,
}

impl Server {
    fn start() -> Self {
        let home = Home::new();
        let mesh = home.start();
        let (socket, stop) = (bind_socket(&home.config().socket).unwrap(), CancellationToken::new());
        let serving = tokio::spawn(serve(socket, mesh.clone(), stop.clone(), None, None));
        Self { home, mesh, stop, serving }
    }

    fn path(&self) -> PathBuf {
        self.home.config().socket
    }

    /// Sends bytes as they are and reads until the server closes.
    async fn raw(&self, bytes: &[u8]) -> String {
        let mut stream = UnixStream::connect(self.path()).await.unwrap();
        stream.write_all(bytes).await.unwrap();
        stream.shutdown().await.unwrap();
        let mut back = Vec::new();
        stream.read_to_end(&mut back).await.unwrap();
        String::from_utf8(back).unwrap()
    }

    /// One request with headers of the caller's.
    async fn ask(&self, line: &str, headers: &str, body: &str) -> Reply {
        let length = body.len();
        let head = format!(
            "{line} HTTP/1.1\r\nHost: devmesh\r\nContent-Length: {length}\r\n{headers}Connection: close\r\n\r\n"
        );
        Reply::parse(&self.raw(format!("{head}{body}").as_bytes()).await)
    }

    async fn get(&self, path: &str) -> Reply {
        self.ask(&format!("GET {path}"), "", "").await
    }

    async fn post(&self, path: &str, body: &str) -> Reply {
        self.ask(&format!("POST {path}"), "", body).await
    }
}

#[derive(Debug)]
struct Reply {
    status: u16,
    headers: Vec<String>,
    body: String,
}

impl Reply {
    fn parse(text: &str) -> Self {
        let (head, body) = text.split_once("\r\n\r\n").unwrap_or_else(|| panic!("no head: {text:?}"));
        let mut lines = head.lines();
        let status = lines.next().unwrap().split(' ').nth(1).unwrap().parse().unwrap();
        Self { status, headers: lines.map(str::to_owned).collect(), body: body.to_owned() }
    }

    fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find_map(|line| line.strip_prefix(name)?.strip_prefix(": "))
    }

    fn json(&self) -> serde_json::Value {
        serde_json::from_str(&self.body).unwrap()
    }

    fn message(&self) -> String {
        self.json()["error"]["message"].as_str().unwrap().to_owned()
    }
}

#[test]
fn the_openapi_document_and_the_routes_agree() {
    let document: serde_json::Value = serde_json::from_str(openapi::DOCUMENT).unwrap();
    let mut described = Vec::new();
    for (path, item) in document["paths"].as_object().unwrap() {
        for (method, operation) in item.as_object().unwrap().iter().filter(|(method, _)| *method != "parameters") {
            assert!(operation["operationId"].is_string() && operation["responses"].is_object(), "{method} {path}");
            described.push(format!("{} {path}", method.to_uppercase()));
        }
    }
    let mut served: Vec<String> =
        routes::ROUTES.iter().map(|(method, pattern, _)| format!("{method} {pattern}")).collect();
    described.sort();
    served.sort();
    assert_eq!(described, served);
    let text = openapi::DOCUMENT;
    for reference in text.split("\"$ref\": \"#/components/schemas/").skip(1) {
        let name = reference.split('"').next().unwrap();
        assert!(document["components"]["schemas"][name].is_object(), "{name}");
    }
}

#[test]
fn the_owner_and_root_may_use_the_socket() {
    assert!(may_use(1000, 1000) && may_use(0, 1000) && !may_use(1001, 1000) && !may_use(1000, 0));
}

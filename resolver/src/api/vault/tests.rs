//! The server with the client of `fleet` on it, and the object API in front of both.
use super::*;
use crate::api::Security;
use crate::api::object::{Access, Action, Limits, Namespace, ObjectServer, Objects, Prefix, Served, Token, Verifying};
use crate::http::tls::PairFiles;
use serde_json::{Value, json};
use stado_fleet::store::object::{Address, NoRoutes};
use stado_fleet::vault::{Broker, BrokerConfig, Event, KeyPlace, Secret, Vault, given};
use std::collections::{BTreeMap, BTreeSet};
use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

const NOW: &str = "2026-11-30T20:00:00Z";
const VALUE: &str = "the-token-of-probierz";

struct Scene {
    dir: tempfile::TempDir,
    vault: Vault,
    server: VaultServer,
}

fn change(vault: &Vault, change: impl FnOnce(&mut stado_fleet::vault::Contents)) {
    let event = Event { action: "put", outcome: "done", consumer: "owner", ..Event::default() };
    let changed = vault.change(&event, |contents| {
        change(contents);
        Ok(())
    });
    changed.unwrap();
}

fn token(text: &str) -> BTreeMap<String, Secret> {
    BTreeMap::from([("token".to_owned(), Secret::new(text))])
}

async fn scene(security: Security) -> Scene {
    let dir = tempfile::tempdir().unwrap();
    let vault = Vault::create(&dir.path().join("vault"), Some(KeyPlace::File)).unwrap();
    let grant = Secret::random().unwrap();
    given(&dir.path().join("grant"), &grant).unwrap();
    change(&vault, |contents| {
        contents.put("probierz-object-api", token(VALUE), Some("token".into()), None, NOW);
        contents.put("other", token("other"), None, None, NOW);
        let items: BTreeSet<String> = ["probierz-object-api".to_owned(), "missing".to_owned()].into();
        contents.grant("stado-object-api-verifier", items, Some(&grant), NOW);
    });
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let server = VaultServer::start(listener, vault.clone(), security).unwrap();
    Scene { dir, vault, server }
}

impl Scene {
    fn broker(&self, url: &str) -> Broker {
        let config = BrokerConfig {
            address: Address::parse("Skarbiec URL", url).unwrap(),
            consumer: "stado-object-api-verifier".into(),
            token_file: self.dir.path().join("grant"),
            ca_file: Some(self.dir.path().join("cert.pem")).filter(|file| file.exists()),
        };
        Broker::new(config, Arc::new(NoRoutes))
    }

    fn audit(&self) -> Vec<Value> {
        let text = std::fs::read_to_string(self.vault.audit_log()).unwrap();
        text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    }
}

/// A certificate for `localhost` and its key.
fn pair(dir: &Path) -> PairFiles {
    let made = rcgen::generate_simple_self_signed(["localhost".to_owned()]).unwrap();
    let files = PairFiles { cert: dir.join("cert.pem"), key: dir.join("key.pem") };
    std::fs::write(&files.cert, made.cert.pem()).unwrap();
    std::fs::write(&files.key, made.signing_key.serialize_pem()).unwrap();
    files
}

async fn raw(at: SocketAddr, request: &str) -> (u16, Value) {
    let mut stream = TcpStream::connect(at).await.unwrap();
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut text = String::new();
    stream.read_to_string(&mut text).await.unwrap();
    let (head, body) = text.split_once("\r\n\r\n").unwrap();
    assert!(head.to_lowercase().contains("connection: close"), "{head}");
    (head.split(' ').nth(1).unwrap().parse().unwrap(), serde_json::from_str(body).unwrap())
}

#[tokio::test]
async fn a_consumer_reads_and_lists_what_it_was_granted_and_each_read_is_recorded() {
    let scene = scene(Security::plain()).await;
    let url = format!("http://{}", scene.server.bind());
    let broker = scene.broker(&url);
    assert_eq!(broker.read("probierz-object-api", "token").await.unwrap().reveal(), VALUE);
    let ids: Vec<_> = broker.list().await.unwrap().into_iter().map(|item| item.id).collect();
    assert_eq!(ids, ["probierz-object-api"]);
    let refused = broker.read("other", "token").await.unwrap_err();
    assert_eq!(refused.sentence, r#"Skarbiec returned HTTP 403: {"error":"this consumer has no grant for the item"}"#);
    let absent = broker.read("missing", "token").await.unwrap_err();
    assert!(absent.sentence.starts_with("Skarbiec returned HTTP 404: "), "{absent}");
    std::fs::write(scene.dir.path().join("grant"), "another-token").unwrap();
    let stranger = broker.read("probierz-object-api", "token").await.unwrap_err();
    assert_eq!(stranger.sentence, r#"Skarbiec returned HTTP 401: {"error":"unauthorized"}"#);

    let lines = scene.audit();
    let told: Vec<_> = lines
        .iter()
        .skip(1)
        .map(|line| (line["action"].as_str().unwrap(), line["outcome"].as_str().unwrap(), line["item"].as_str()))
        .collect();
    let wanted = [
        ("read", "given", Some("probierz-object-api")),
        ("list", "given", None),
        ("read", "not-granted", Some("other")),
        ("read", "absent", Some("missing")),
        ("read", "unauthorized", Some("probierz-object-api")),
    ];
    assert_eq!(told, wanted);
    assert!(lines[1]["from"].as_str().unwrap().starts_with("127.0.0.1:"), "{}", lines[1]);
    assert!(lines.iter().all(|line| !line.to_string().contains(VALUE)), "no value is recorded");
}

#[tokio::test]
async fn a_read_that_cannot_be_recorded_is_not_answered() {
    let scene = scene(Security::plain()).await;
    std::fs::remove_file(scene.vault.audit_log()).unwrap();
    std::fs::create_dir(scene.vault.audit_log()).unwrap();
    let broker = scene.broker(&format!("http://{}", scene.server.bind()));
    let refused = broker.read("probierz-object-api", "token").await.unwrap_err();
    assert!(refused.sentence.starts_with("Skarbiec returned HTTP 503: "), "{refused}");
}

#[tokio::test]
async fn what_another_process_changes_holds_at_the_next_request() {
    let scene = scene(Security::plain()).await;
    let broker = scene.broker(&format!("http://{}", scene.server.bind()));
    broker.list().await.unwrap();
    let other = Vault::open(&scene.dir.path().join("vault")).unwrap();
    change(&other, |contents| {
        contents.put("probierz-object-api", token("renewed"), None, None, NOW);
    });
    assert_eq!(broker.read("probierz-object-api", "token").await.unwrap().reveal(), "renewed");
    change(&other, |contents| {
        contents.revoke("stado-object-api-verifier", &BTreeSet::new(), NOW);
    });
    assert!(broker.list().await.unwrap_err().sentence.contains("HTTP 401"));
}

#[tokio::test]
async fn browsers_foreign_names_and_what_is_no_request_are_refused() {
    let scene = scene(Security::plain()).await;
    let at = scene.server.bind();
    let grant = std::fs::read_to_string(scene.dir.path().join("grant")).unwrap();
    let ask = |line: &str, headers: &str, body: &str| {
        let known = format!("X-Consumer: stado-object-api-verifier\r\nAuthorization: Bearer {}\r\n", grant.trim());
        format!("{line} HTTP/1.1\r\n{headers}{known}Content-Length: {}\r\n\r\n{body}", body.len())
    };
    let local = "Host: localhost\r\n";
    let read = r#"{"id":"probierz-object-api","field":"token"}"#;
    assert_eq!(raw(at, &ask("POST /v1/items/read", local, read)).await, (200, json!({"value": VALUE})));
    for foreign in ["", "Host: evil.example\r\n", "Host: localhost\r\nOrigin: http://localhost\r\n"] {
        assert_eq!(raw(at, &ask("POST /v1/items/read", foreign, read)).await.0, 403, "{foreign}");
    }
    assert_eq!(raw(at, &ask("POST /v1/items/read", local, "{}")).await.0, 400);
    assert_eq!(raw(at, &ask("GET /v1/items/list", local, "")).await.0, 405);
    assert_eq!(raw(at, &ask("POST /v1/items", local, "{}")).await.0, 404);
    assert_eq!(raw(at, &ask("GET /healthz", local, "")).await, (200, json!({"ok": true})));
    let nobody = "POST /v1/items/read HTTP/1.1\r\nHost: localhost\r\nContent-Length: 2\r\n\r\n{}";
    assert_eq!(raw(at, nobody).await, (401, json!({"error": "unauthorized"})));
}

#[tokio::test]
async fn without_tls_it_listens_on_loopback_alone_and_with_it_anywhere() {
    let dir = tempfile::tempdir().unwrap();
    let vault = Vault::create(&dir.path().join("vault"), Some(KeyPlace::File)).unwrap();
    let anywhere = || async { TcpListener::bind("0.0.0.0:0").await.unwrap() };
    let refused = VaultServer::start(anywhere().await, vault.clone(), Security::plain()).unwrap_err();
    assert!(refused.to_string().contains("the vault without TLS must bind a loopback address"), "{refused}");
    let security = Security::tls(pair(dir.path())).unwrap();
    assert!(VaultServer::start(anywhere().await, vault, security).is_ok());
    let none = PairFiles { cert: dir.path().join("none"), key: dir.path().join("none") };
    assert!(Security::tls(none).unwrap_err().to_string().contains("no such file"));
}

#[tokio::test]
async fn over_tls_it_is_asked_by_name_and_a_new_certificate_needs_no_restart() {
    let dir = tempfile::tempdir().unwrap();
    let files = pair(dir.path());
    let scene = scene(Security::tls(files.clone()).unwrap()).await;
    std::fs::copy(&files.cert, scene.dir.path().join("cert.pem")).unwrap();
    let url = format!("https://localhost:{}", scene.server.bind().port());
    assert_eq!(scene.broker(&url).read("probierz-object-api", "token").await.unwrap().reveal(), VALUE);
    let files = pair(dir.path());
    let stale = scene.broker(&url).list().await.unwrap_err();
    assert!(stale.sentence.contains("TLS with https://localhost"), "{stale}");
    std::fs::copy(&files.cert, scene.dir.path().join("cert.pem")).unwrap();
    assert_eq!(scene.broker(&url).list().await.unwrap().len(), 1);
}

/// An object API whose one namespace has its token in the vault at `url`, and one that has it in a file.
async fn objects(scene: &Scene, url: &str, recheck: Duration) -> ObjectServer {
    let prefixes = || vec![Prefix { prefix: String::new(), actions: vec![Action::Get, Action::Put] }];
    let file = scene.dir.path().join("file-token");
    let _ = given(&file, &Secret::new("file"));
    let namespaces = BTreeMap::from([
        (
            "probierz".to_owned(),
            Namespace { token: Token::Vault { item: "probierz-object-api".into() }, prefixes: prefixes() },
        ),
        ("notes".to_owned(), Namespace { token: Token::File(file), prefixes: prefixes() }),
    ]);
    let limits = Limits { recheck, ..Limits::default() };
    let verifying = Verifying { verifier: Arc::new(scene.broker(url)), limits };
    let access = Access::new(namespaces, Some(verifying)).unwrap();
    let objects = Objects::open(scene.dir.path().join("store")).unwrap();
    let served = Served { objects, access, security: Security::plain(), trust_proxy: false };
    let listener = Arc::new(TcpListener::bind("127.0.0.1:0").await.unwrap());
    ObjectServer::start(listener, served).unwrap()
}

async fn get(server: &ObjectServer, namespace: &str, token: &str) -> (u16, Value) {
    let line = format!("GET /api/object?uri=stado://{namespace}/x HTTP/1.1\r\nHost: localhost\r\n");
    raw(server.bind(), &format!("{line}Authorization: Bearer {token}\r\n\r\n")).await
}

#[tokio::test]
async fn the_object_api_believes_the_vault_and_answers_at_once_when_that_does_not() {
    let scene = scene(Security::plain()).await;
    // A vault that accepts and says nothing, in front of the real one until it is told to pass on.
    let (hang, _) = tokio::sync::watch::channel(false);
    let front = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", front.local_addr().unwrap());
    let (at, hangs) = (scene.server.bind(), hang.clone());
    tokio::spawn(async move {
        loop {
            let (mut client, _) = front.accept().await.unwrap();
            let hangs = *hangs.borrow();
            tokio::spawn(async move {
                if hangs {
                    std::future::pending::<()>().await;
                }
                let mut vault = TcpStream::connect(at).await.unwrap();
                let _ = tokio::io::copy_bidirectional(&mut client, &mut vault).await;
            });
        }
    });
    let server = objects(&scene, &url, Duration::from_secs(30)).await;
    // "missing" is granted but not there: the verifier sees exactly what is mapped.
    let absent = json!({"state": "absent", "uri": "stado://probierz/x"});
    assert_eq!(get(&server, "probierz", VALUE).await, (404, absent));
    assert_eq!(get(&server, "probierz", "wrong").await, (401, json!({"error": "unauthorized"})));

    hang.send_replace(true);
    let (status, body) = get(&server, "probierz", VALUE).await;
    assert_eq!((status, &body["error"]), (503, &json!("object authorization unavailable")));
    let cause = body["cause"].as_str().unwrap();
    assert!(cause.starts_with("czekam: POST /v1/items/read probierz-object-api; gdzie: Skarbiec http://"), "{cause}");
    assert!(!body.to_string().contains(VALUE));
    assert_eq!(get(&server, "probierz", "whoever").await.1["cause"], cause, "the same wait");
    assert_eq!(get(&server, "notes", "file").await.0, 404, "another namespace is unharmed");
    let health = raw(server.bind(), "GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n").await;
    let expected = json!({"ok": true, "degraded": true, "boundaries": {"object": false, "release": true}});
    assert_eq!(health, (200, expected));
    assert_eq!(server.closed().unwrap().borrow().keys().collect::<Vec<_>>(), ["probierz"]);
    server.close(Duration::from_secs(5)).await;
}

#[tokio::test]
async fn a_vault_that_is_away_is_named_and_believed_again_after_the_cool_down() {
    let scene = scene(Security::plain()).await;
    // A port that nobody listens on, and then somebody.
    let held = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let at = held.local_addr().unwrap();
    drop(held);
    let server = objects(&scene, &format!("http://{at}"), Duration::ZERO).await;
    let (status, body) = get(&server, "probierz", VALUE).await;
    assert_eq!(status, 503, "{body}");
    let back = VaultServer::start(TcpListener::bind(at).await.unwrap(), scene.vault.clone(), Security::plain());
    let wait = async {
        while get(&server, "probierz", VALUE).await.0 != 404 {
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(60), wait).await.unwrap();
    drop(back);
}

//! The server with the client of `fleet` on it, and raw requests for what that client does not ask.
use super::*;
use crate::api::Security;
use serde_json::{Value, json};
use stado_fleet::store::object::{Address, NoRoutes, ObjectApi, ObjectConfig, ObjectName, ObjectStore, STORAGE_URL};
use stado_fleet::store::{Expected, RegistryStore, Swap};
use std::net::SocketAddr;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::sync::Arc;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

const TOKEN: &str = "a-token";
const REGISTRY: &str = "stado://probierz/registry.json";

struct Scene {
    home: tempfile::TempDir,
    server: ObjectServer,
}

fn token(home: &tempfile::TempDir, name: &str, text: &str) -> PathBuf {
    let file = home.path().join(name);
    std::fs::write(&file, text).unwrap();
    std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o600)).unwrap();
    file
}

fn namespace(token_file: PathBuf, prefixes: &[(&str, &[Action])]) -> Namespace {
    let prefixes =
        prefixes.iter().map(|(prefix, actions)| Prefix { prefix: (*prefix).into(), actions: actions.to_vec() });
    Namespace { token: Token::File(token_file), prefixes: prefixes.collect() }
}

async fn scene() -> Scene {
    use Action::{Delete, Get, List, Put, Stat};
    let home = tempfile::tempdir().unwrap();
    let objects = Objects::open(home.path().join("store")).unwrap();
    let access = Access::new(
        [
            (
                "probierz".to_owned(),
                namespace(
                    token(&home, "token", TOKEN),
                    &[("registry.json", &[Get, Put, Stat]), ("queue/", &[Get, Put, List, Stat, Delete])],
                ),
            ),
            ("other".to_owned(), namespace(token(&home, "other-token", "another"), &[("", &[Get, Put])])),
            ("releases".to_owned(), namespace(token(&home, "release-token", "release"), &[("", &[Get, Put, Delete])])),
        ]
        .into(),
        None,
    );
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let served = Served { objects, access: access.unwrap(), security: Security::plain(), trust_proxy: false };
    let server = ObjectServer::start(Arc::new(listener), served).unwrap();
    Scene { home, server }
}

impl Scene {
    fn config(&self) -> ObjectConfig {
        let address = Address::parse(STORAGE_URL, &format!("http://{}", self.server.bind())).unwrap();
        ObjectConfig { address, token_file: self.home.path().join("token"), ca_file: None }
    }

    fn store(&self) -> Arc<ObjectStore> {
        Arc::new(ObjectStore::new(self.config(), Arc::new(NoRoutes)).unwrap())
    }

    /// One request with the token of `probierz`.
    async fn ask(&self, line: &str, headers: &str, body: &[u8]) -> Reply {
        self.ask_as(TOKEN, line, headers, body).await
    }

    async fn ask_as(&self, token: &str, line: &str, headers: &str, body: &[u8]) -> Reply {
        let length =
            if line.starts_with("PUT") { format!("Content-Length: {}\r\n", body.len()) } else { String::new() };
        let head =
            format!("{line} HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {token}\r\n{length}{headers}\r\n");
        raw(self.server.bind(), &[head.as_bytes(), body].concat()).await.unwrap()
    }
}

#[derive(Debug)]
struct Reply {
    status: u16,
    head: String,
    body: Vec<u8>,
}

impl Reply {
    fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap()
    }
    fn text(&self) -> &str {
        std::str::from_utf8(&self.body).unwrap()
    }
}

/// `None`: the connection was closed without an answer.
async fn raw(at: SocketAddr, request: &[u8]) -> Option<Reply> {
    let mut stream = TcpStream::connect(at).await.unwrap();
    // A server that has refused may have closed before it was sent everything.
    let _ = stream.write_all(request).await;
    let mut bytes = Vec::new();
    let _ = stream.read_to_end(&mut bytes).await;
    let end = bytes.windows(4).position(|w| w == b"\r\n\r\n")?;
    let head = String::from_utf8(bytes[..end].to_vec()).unwrap();
    assert!(head.contains("Connection: close"), "{head}");
    let status = head.split(' ').nth(1).unwrap().parse().unwrap();
    Some(Reply { status, head, body: bytes.split_off(end + 4) })
}

fn uri(key: &str) -> String {
    format!("/api/object?uri=stado://probierz/queue/{key}")
}

#[tokio::test(flavor = "multi_thread")]
async fn it_is_a_store_through_the_client() {
    use stado_fleet::store::conformance;
    conformance::a_swap_is_applied_conflicts_or_finds_nothing(scene().await.store().as_ref()).await;
    let s = scene().await;
    conformance::two_hundred_writers_at_once_lose_nothing(s.store()).await;
    let s = scene().await;
    conformance::exactly_one_creates(s.store()).await;
    let s = scene().await;
    conformance::a_watcher_sees_the_next_version(s.store()).await;
}

#[tokio::test]
async fn the_registry_is_the_file_that_local_commands_use_and_has_their_history() {
    let scene = scene().await;
    let store = scene.store();
    let Swap::Applied(one) = store.swap(Expected::Absent, b"{}".to_vec()).await.unwrap() else { panic!() };
    store.swap(Expected::Version(one), b"{\"a\":1}".to_vec()).await.unwrap();
    let root = scene.home.path().join("store");
    assert_eq!(std::fs::read(root.join("ecosystem/probierz/registry.json")).unwrap(), b"{\"a\":1}");
    let local = stado_fleet::store::local::LocalStore::open_at(&root, "ecosystem/probierz/registry.json").unwrap();
    assert_eq!(local.history().unwrap().versions().await.unwrap().len(), 2);
    // A write without a condition comes through the same lock and history.
    let line = format!("PUT /api/object?uri={REGISTRY}");
    assert_eq!(scene.ask(&line, "", b"{\"a\":2}").await.status, 200);
    assert_eq!(local.history().unwrap().versions().await.unwrap().len(), 3);
    assert_eq!(&*local.read().await.unwrap().unwrap().bytes, b"{\"a\":2}");
}

#[tokio::test]
async fn objects_are_stored_read_stated_listed_and_removed_in_the_contracts_words() {
    let scene = scene().await;
    let (put, get) = (format!("PUT {}", uri("a/b.txt")), format!("GET {}", uri("a/b.txt")));
    let object = "stado://probierz/queue/a/b.txt";
    let absent = scene.ask(&get, "", b"").await;
    assert_eq!((absent.status, absent.json()), (404, json!({"state": "absent", "uri": object})));
    let stored = scene
        .ask(&put, "Content-Type: text/plain\r\nx-stado-object-metadata: {\"stado-kind\":\"note\"}\r\n", b"hello")
        .await;
    let said = json!({"state": "stored", "uri": object, "content_type": "text/plain"});
    assert_eq!((stored.status, stored.json()), (200, said));
    let got = scene.ask(&get, "", b"").await;
    assert_eq!((got.status, got.text()), (200, "hello"));
    assert!(
        got.head.contains("Content-Type: text/plain\r\n") && got.head.contains("Accept-Ranges: bytes"),
        "{}",
        got.head
    );

    let stat = scene.ask(&get.replace("/api/object", "/api/object/stat"), "", b"").await.json();
    assert_eq!((&stat["state"], &stat["size"]), (&json!("present"), &json!(5)), "{stat}");
    assert_eq!(stat["metadata"], json!({"content_type": "text/plain", "stado-kind": "note"}));
    assert!(stat["updated_at"].as_str().unwrap().ends_with("+00:00"), "{stat}");

    scene.ask(&format!("PUT {}", uri("a.txt")), "", b"x").await;
    let list = scene.ask("GET /api/object/list?namespace=probierz&prefix=queue/", "", b"").await.json();
    let keys: Vec<_> = list["objects"].as_array().unwrap().iter().map(|o| o["key"].as_str().unwrap()).collect();
    assert_eq!(keys, ["queue/a.txt", "queue/a/b.txt"]);
    assert_eq!(list["objects"][1]["metadata"]["stado-kind"], "note", "{list}");
    assert_eq!(list["objects"][1]["uri"], object);

    let only = scene
        .ask(&format!("{put}&metadata_only=true"), "x-stado-object-metadata: {\"stado-kind\":\"x\"}\r\n", b"")
        .await;
    assert_eq!((only.status, only.json()), (200, json!({"state": "metadata-updated", "uri": object})));
    let got = scene.ask(&get, "", b"").await;
    assert_eq!((got.text(), got.head.contains("text/plain")), ("hello", true), "the bytes are untouched");

    let gone = json!({"state": "absent", "uri": object});
    for _ in 0..2 {
        let removed = scene.ask(&format!("DELETE {}", uri("a/b.txt")), "", b"").await;
        assert_eq!((removed.status, removed.json()), (200, gone.clone()));
    }
    assert_eq!(scene.ask(&get, "", b"").await.status, 404);
}

#[tokio::test]
async fn conditions_hold_and_exclude_each_other() {
    let scene = scene().await;
    let put = format!("PUT {}", uri("n"));
    let object = "stado://probierz/queue/n";
    let missing = scene.ask(&format!("{put}&if_version=abc"), "", b"1").await;
    assert_eq!((missing.status, missing.json()["state"].clone()), (404, json!("absent")));
    assert_eq!(scene.ask(&format!("{put}&if_absent=true"), "", b"1").await.status, 200);
    let again = scene.ask(&format!("{put}&if_absent=true"), "", b"2").await;
    assert_eq!((again.status, again.json()), (409, json!({"error": "object exists", "uri": object})));
    let read = scene.ask(&format!("GET {}&versioned=true", uri("n")), "", b"").await;
    let version = read.head.lines().find_map(|l| l.strip_prefix("X-Stado-Version: ")).unwrap().to_owned();
    let moved = scene.ask(&format!("{put}&if_version=abc"), "", b"2").await;
    assert_eq!((moved.status, moved.json()), (409, json!({"error": "object version changed", "uri": object})));
    let swapped = scene.ask(&format!("{put}&if_version={version}"), "", b"2").await.json();
    assert_eq!(swapped["state"], "stored");
    let read = scene.ask(&format!("GET {}&versioned=true", uri("n")), "", b"").await;
    assert!(read.head.contains(&format!("X-Stado-Version: {}", swapped["version"].as_str().unwrap())), "{}", read.head);
    assert_eq!(read.text(), "2");
    let both = scene.ask(&format!("{put}&if_absent=true&metadata_only=true"), "", b"").await;
    let error = json!({"error": "if_absent, if_version, and metadata_only are mutually exclusive"});
    assert_eq!((both.status, both.json()), (400, error));
}

#[tokio::test]
async fn ranges_are_parts_of_the_object() {
    let scene = scene().await;
    scene.ask(&format!("PUT {}", uri("r")), "", b"0123456789").await;
    let get = format!("GET {}", uri("r"));
    for (range, status, body, said) in [
        ("bytes=2-4", 206, "234", "Content-Range: bytes 2-4/10"),
        ("bytes=-3", 206, "789", "Content-Range: bytes 7-9/10"),
        ("bytes=10-", 416, "", "Content-Range: bytes */10"),
        ("bytes=1-2,4-5", 200, "0123456789", "Accept-Ranges: bytes"),
    ] {
        let reply = scene.ask(&get, &format!("Range: {range}\r\n"), b"").await;
        assert_eq!((reply.status, reply.text()), (status, body), "{range}");
        assert!(reply.head.contains(said), "{range}: {}", reply.head);
    }
}

#[tokio::test]
async fn a_large_body_goes_through_a_file_both_ways() {
    let scene = scene().await;
    let body: Vec<u8> = (0..5_000_000_u32).map(|n| n.to_le_bytes()[(n % 4) as usize]).collect();
    assert_eq!(scene.ask(&format!("PUT {}", uri("large")), "", &body).await.status, 200);
    let got = scene.ask(&format!("GET {}", uri("large")), "", b"").await;
    assert!(got.body == body, "{} bytes", got.body.len());
    let api = ObjectApi::new(scene.config(), Arc::new(NoRoutes));
    let name = ObjectName::parse("stado://probierz/queue/large").unwrap();
    assert_eq!(api.stat(&name).await.unwrap().unwrap().size, 5_000_000);
}

#[tokio::test]
async fn a_body_that_ends_early_changes_nothing() {
    let scene = scene().await;
    scene.ask(&format!("PUT {}", uri("n")), "", b"old").await;
    let head = format!(
        "PUT {} HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {TOKEN}\r\nContent-Length: 100\r\n\r\nhalf",
        uri("n")
    );
    let mut stream = TcpStream::connect(scene.server.bind()).await.unwrap();
    stream.write_all(head.as_bytes()).await.unwrap();
    stream.shutdown().await.unwrap();
    let mut rest = Vec::new();
    stream.read_to_end(&mut rest).await.unwrap();
    assert!(rest.is_empty(), "no answer");
    assert_eq!(scene.ask(&format!("GET {}", uri("n")), "", b"").await.text(), "old");
    let dir = scene.home.path().join("store/ecosystem/probierz/queue");
    let files = || std::fs::read_dir(&dir).unwrap().map(|e| e.unwrap().file_name()).collect::<Vec<_>>();
    // The end that the client sees comes before the file is taken away.
    let only_it = async {
        while files() != ["n"] {
            tokio::time::sleep(std::time::Duration::from_millis(5)).await;
        }
    };
    tokio::time::timeout(std::time::Duration::from_secs(30), only_it).await.expect("nothing is left of it");
}

#[tokio::test]
async fn a_stranger_is_told_nothing_but_unauthorized() {
    let scene = scene().await;
    let unauthorized = json!({"error": "unauthorized"});
    let not_covered = json!({"error": "unauthorized", "reason": "object_grant_does_not_cover_key"});
    for line in [
        "GET /api/object?uri=stado://probierz/secret",
        "DELETE /api/object?uri=stado://probierz/registry.json",
        "GET /api/object/list?namespace=probierz",
    ] {
        let reply = scene.ask(line, "", b"").await;
        assert_eq!((reply.status, reply.json()), (401, not_covered.clone()), "{line}: only its own bearer is told why");
    }
    for (token, line) in [
        ("wrong", format!("GET {}", uri("n"))),
        (TOKEN, "GET /api/object?uri=stado://other/n".to_owned()),
        (TOKEN, "GET /api/object?uri=stado://nowhere/n".to_owned()),
        ("another", "GET /api/object?uri=stado://probierz/secret".to_owned()),
        ("another", format!("GET {}", uri("n"))),
    ] {
        let reply = scene.ask_as(token, &line, "", b"").await;
        assert_eq!((reply.status, reply.json()), (401, unauthorized.clone()), "{line}");
    }
    let put = scene.ask_as("wrong", &format!("PUT {}", uri("n")), "", b"x").await;
    assert_eq!(put.json(), json!({"error": "unauthorized or non-immutable release write"}));
    std::fs::set_permissions(scene.home.path().join("token"), std::fs::Permissions::from_mode(0o644)).unwrap();
    let open = scene.ask(&format!("GET {}", uri("n")), "", b"").await;
    assert_eq!((open.status, open.json()["error"].clone()), (503, json!("object authorization unavailable")));
    assert!(open.json()["cause"].as_str().unwrap().contains("must be owner-only"), "{}", open.text());
    let health = raw(scene.server.bind(), b"GET /healthz HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n").await.unwrap();
    let expected = json!({"ok": true, "degraded": true, "boundaries": {"object": false, "release": true}});
    assert_eq!((health.status, health.json()), (200, expected));
    assert_eq!(scene.ask_as("another", "GET /api/object?uri=stado://other/n", "", b"").await.status, 404, "unharmed");
}

#[tokio::test]
async fn releases_are_written_once_and_read_by_anyone() {
    let scene = scene().await;
    let object = "/api/object?uri=stado://releases/stado/1";
    let put = format!("PUT {object}");
    let plain = scene.ask_as("release", &put, "", b"x").await;
    assert_eq!(
        (plain.status, plain.json()["error"].clone()),
        (401, json!("unauthorized or non-immutable release write"))
    );
    let once = format!("{put}&if_absent=true");
    assert_eq!(scene.ask_as("release", &once, "", b"one").await.status, 200);
    assert_eq!(scene.ask_as("release", &once, "", b"two").await.status, 409);
    let anyone = "GET /api/release/object?uri=stado://releases/stado/1";
    assert_eq!(scene.ask_as("nobody", anyone, "", b"").await.text(), "one");
    assert_eq!(scene.ask_as("release", &format!("DELETE {object}"), "", b"").await.status, 403);
    let other = "GET /api/release/object?uri=stado://probierz/registry.json";
    assert_eq!(scene.ask(other, "", b"").await.status, 403);
}

#[tokio::test]
async fn what_is_no_request_is_closed_on_and_strangers_are_forbidden() {
    let scene = scene().await;
    let at = scene.server.bind();
    let put = format!("PUT {} HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {TOKEN}\r\n", uri("n"));
    for closed in [
        format!("{put}\r\n"),
        format!("{put}Content-Length: 536870913\r\n\r\n"),
        format!("{put}Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n"),
        format!("{put}Content-Length: 1\r\nContent-Length: 2\r\n\r\nxx"),
        format!("{put}Content-Length: +1\r\n\r\nx"),
        format!("GET /livez HTTP/1.1\r\nHost: localhost\r\nX: {}\r\n\r\n", "x".repeat(64 << 10)),
        "nonsense\r\n\r\n".to_owned(),
    ] {
        assert!(raw(at, closed.as_bytes()).await.is_none(), "{:.120}", closed);
    }
    for foreign in ["Host: evil.example", "Host: localhost\r\nOrigin: http://localhost", "Accept: */*"] {
        let reply = raw(at, format!("GET /livez HTTP/1.1\r\n{foreign}\r\n\r\n").as_bytes()).await.unwrap();
        assert_eq!((reply.status, reply.json()), (403, json!({"error": "forbidden"})), "{foreign}");
    }
    for missing in ["", "?uri=", "?uri=&versioned=true"] {
        let missing = scene.ask(&format!("GET /api/object{missing}"), "", b"").await;
        assert_eq!((missing.status, missing.json()), (400, json!({"error": "uri is required"})));
    }
    for bad in ["stado://public/x", "stado://probierz/../x", "x", "stado://probierz/a//b"] {
        assert_eq!(scene.ask(&format!("GET /api/object?uri={bad}"), "", b"").await.status, 400, "{bad}");
    }
    assert_eq!(scene.ask("POST /api/object", "", b"").await.status, 501);
    assert_eq!(scene.ask("GET /elsewhere", "", b"").await.status, 404);
}

#[tokio::test]
async fn a_link_in_the_store_leads_nowhere() {
    let scene = scene().await;
    let dir = scene.home.path().join("store/ecosystem/probierz/queue");
    std::fs::create_dir_all(&dir).unwrap();
    std::fs::write(scene.home.path().join("secret"), "secret").unwrap();
    std::os::unix::fs::symlink(scene.home.path().join("secret"), dir.join("link")).unwrap();
    std::os::unix::fs::symlink(scene.home.path(), dir.join("out")).unwrap();
    for key in ["link", "out/secret", "out/token"] {
        let reply = scene.ask(&format!("GET {}", uri(key)), "", b"").await;
        assert!(matches!(reply.status, 404 | 500) && !reply.text().contains("secret"), "{key}: {}", reply.status);
    }
    let list = scene.ask("GET /api/object/list?namespace=probierz&prefix=queue/", "", b"").await.json();
    assert_eq!(list["objects"], json!([]));
}

#[tokio::test]
async fn behind_a_trusted_proxy_any_name_may_be_asked_for_and_a_browser_is_still_refused() {
    let home = tempfile::tempdir().unwrap();
    let served = Served {
        objects: Objects::open(home.path().join("store")).unwrap(),
        access: Access::new([].into(), None).unwrap(),
        security: Security::plain(),
        trust_proxy: true,
    };
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let server = ObjectServer::start(Arc::new(listener), served).unwrap();
    let asked = |headers: &'static str| {
        let at = server.bind();
        async move { raw(at, format!("GET /livez HTTP/1.1\r\n{headers}\r\n\r\n").as_bytes()).await.unwrap().status }
    };
    assert_eq!(asked("Host: store.example").await, 200);
    assert_eq!(asked("Host: store.example\r\nOrigin: https://store.example").await, 403);
}

//! The client against a server written from the contract.
mod server;

use super::*;
use crate::fault::Class;
use crate::store::{Expected, RegistryStore, StoreError, Swap, conformance};
use server::{Fault, Server, TOKEN};
use std::os::unix::fs::PermissionsExt;
use std::sync::Arc;
use std::time::Duration;

struct Scene {
    server: Server,
    store: Arc<ObjectStore>,
    home: tempfile::TempDir,
}

fn config(home: &tempfile::TempDir, url: &str, token: &str) -> ObjectConfig {
    let token_file = home.path().join("token");
    std::fs::write(&token_file, token).unwrap();
    std::fs::set_permissions(&token_file, std::fs::Permissions::from_mode(0o600)).unwrap();
    ObjectConfig { address: Address::parse(STORAGE_URL, url).unwrap(), token_file, ca_file: None }
}

fn client(config: ObjectConfig, routes: Arc<dyn Routes>) -> Arc<ObjectStore> {
    Arc::new(ObjectStore::new(config, routes).unwrap().looking_every(Duration::from_millis(5)))
}

async fn scene() -> Scene {
    let server = Server::start().await;
    let home = tempfile::tempdir().unwrap();
    let store = client(config(&home, &server.url, TOKEN), Arc::new(NoRoutes));
    Scene { server, store, home }
}

async fn refused(scene: &Scene) -> StoreError {
    scene.store.read().await.unwrap_err()
}

fn http(status: &str, body: &str) -> Fault {
    Fault::Say(format!("HTTP/1.1 {status}\r\nContent-Length: {}\r\n\r\n{body}", body.len()))
}

#[tokio::test(flavor = "multi_thread")]
async fn it_is_a_store() {
    conformance::a_swap_is_applied_conflicts_or_finds_nothing(scene().await.store.as_ref()).await;
    let s = scene().await;
    conformance::two_hundred_writers_at_once_lose_nothing(s.store.clone()).await;
    let s = scene().await;
    conformance::exactly_one_creates(s.store.clone()).await;
    let s = scene().await;
    conformance::a_watcher_sees_the_next_version(s.store.clone()).await;
    assert!(s.store.shared(), "other hosts read and write the same object");
    assert_eq!(s.store.location(), "stado://probierz/registry.json");
}

#[tokio::test]
async fn objects_are_read_and_stated() {
    let scene = scene().await;
    let api = ObjectApi::new(config(&scene.home, &scene.server.url, TOKEN), Arc::new(NoRoutes));
    let name = ObjectName::parse(REGISTRY_OBJECT).unwrap();
    assert_eq!(api.get(&name, 100).await.unwrap(), None);
    assert_eq!(api.stat(&name).await.unwrap(), None);
    scene.store.swap(Expected::Absent, b"{}\n".to_vec()).await.unwrap();
    assert_eq!(api.get(&name, 100).await.unwrap().as_deref(), Some(b"{}\n".as_slice()));
    assert_eq!(api.stat(&name).await.unwrap().unwrap().size, 3);
    let too_large = api.get(&name, 2).await.unwrap_err();
    assert!(too_large.sentence.ends_with("exceeds 2 bytes"), "{too_large}");

    let head = scene.server.requests().pop().unwrap();
    assert!(head.starts_with("GET /api/object?uri=stado%3A%2F%2Fprobierz%2Fregistry.json HTTP/1.1\r\n"), "{head}");
    assert!(head.to_lowercase().contains("connection: close"), "{head}");
}

#[tokio::test]
async fn what_the_server_refuses_is_said_in_its_words() {
    let scene = scene().await;
    let cases = [
        ("503 x", r#"{"error":"object authorization unavailable"}"#, Class::InfraDown),
        ("401 x", r#"{"error":"unauthorized"}"#, Class::Auth),
        ("403 x", r#"{"error":"forbidden"}"#, Class::Auth),
        ("429 x", "slower", Class::RateLimit),
        ("500 x", "dashboard error", Class::InfraDown),
        ("404 x", "no such page", Class::NotFound),
        ("400 x", r#"{"error":"uri is required"}"#, Class::Refused),
    ];
    for (status, body, class) in cases {
        scene.server.expect([http(status, body)]);
        let error = refused(&scene).await;
        assert_eq!(error.sentence, format!("Stado object API error HTTP {}: {body}", &status[..3]));
        assert_eq!(error.class, class);
    }
    // A wrong token, really.
    let wrong = client(config(&scene.home, &scene.server.url, "another"), Arc::new(NoRoutes));
    let error = wrong.read().await.unwrap_err();
    assert_eq!(error.sentence, r#"Stado object API error HTTP 401: {"error":"unauthorized"}"#);
}

#[tokio::test]
async fn a_redirect_is_not_followed() {
    let scene = scene().await;
    scene.server.expect([Fault::Say("HTTP/1.1 302 x\r\nLocation: /elsewhere\r\nContent-Length: 0\r\n\r\n".into())]);
    let error = refused(&scene).await;
    assert_eq!(error.sentence, "Stado object API error HTTP 302: ");
    assert_eq!(scene.server.requests().len(), 1);
}

#[tokio::test]
async fn a_read_that_ends_early_is_an_outage_and_never_a_short_document() {
    let scene = scene().await;
    scene.store.swap(Expected::Absent, b"a document".to_vec()).await.unwrap();
    for fault in [Fault::Cut, Fault::Dropped, Fault::Say("HTTP/1.1 2".into()), Fault::Say("nonsense\r\n\r\n".into())] {
        scene.server.expect([fault.clone()]);
        let error = refused(&scene).await;
        let location = "registry store unreachable (stado://probierz/registry.json): http://127.0.0.1:";
        assert!(error.sentence.starts_with(location), "{fault:?}: {error}");
        assert_eq!(error.class, Class::InfraDown);
    }
    scene.server.expect([http("200 x", "no version")]);
    assert!(refused(&scene).await.sentence.ends_with("answered without X-Stado-Version"));
}

#[tokio::test]
async fn a_server_that_is_not_there_is_an_outage() {
    let home = tempfile::tempdir().unwrap();
    let port = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap().local_addr().unwrap().port();
    let store = client(config(&home, &format!("http://127.0.0.1:{port}"), TOKEN), Arc::new(NoRoutes));
    for error in [store.read().await.unwrap_err(), store.swap(Expected::Absent, b"x".to_vec()).await.unwrap_err()] {
        assert_eq!(error.class, Class::InfraDown);
        assert!(error.sentence.contains(&format!("connect to http://127.0.0.1:{port} failed")), "{error}");
    }
}

#[tokio::test]
async fn the_end_of_a_write_is_told_truthfully() {
    let scene = scene().await;
    // Creation by a server that names no version is settled by what is there.
    scene.server.expect([Fault::NoVersion]);
    let Swap::Applied(one) = scene.store.swap(Expected::Absent, b"one".to_vec()).await.unwrap() else { panic!() };
    assert_eq!(scene.store.read().await.unwrap().unwrap().version, one);

    let expected = Expected::Version(one);
    for (fault, written) in [(Fault::Dropped, false), (http("500 x", "{}"), false), (Fault::DoneUnanswered, true)] {
        scene.server.expect([fault.clone()]);
        let end = scene.store.swap(expected.clone(), b"two".to_vec()).await.unwrap();
        assert!(matches!(end, Swap::Unknown(_)), "{fault:?}: {end:?}");
        let now = scene.store.read().await.unwrap().unwrap();
        assert_eq!(&*now.bytes == b"two", written, "{fault:?}");
    }
    for fault in [http("503 x", "{}"), http("401 x", "{}"), http("413 x", "{}")] {
        scene.server.expect([fault]);
        assert!(scene.store.swap(expected.clone(), b"two".to_vec()).await.is_err(), "nothing was written");
    }
}

/// A resolver that holds requests at one address.
#[derive(Debug)]
struct Holding(std::net::SocketAddr);

impl Routes for Holding {
    fn adapter(&self, service: &str, consumer: &str) -> Result<std::net::SocketAddr, String> {
        assert_eq!((service, consumer), ("stado-object-api", "agent"));
        Ok(self.0)
    }
    fn held(&self, addr: std::net::SocketAddr) -> Option<String> {
        (addr == self.0).then(|| "this host's resolver holds 2 connection(s) on that adapter".to_owned())
    }
}

#[tokio::test]
async fn a_request_that_would_stand_behind_held_ones_is_not_sent() {
    // Fleet contract §8, failure 17: a store that stopped answering held every read behind it.
    let scene = scene().await;
    let addr: std::net::SocketAddr = scene.server.url.strip_prefix("http://").unwrap().parse().unwrap();
    for url in [scene.server.url.as_str(), "stado://service/stado-object-api?consumer=agent"] {
        let store = client(config(&scene.home, url, TOKEN), Arc::new(Holding(addr)));
        let error = store.read().await.unwrap_err();
        assert_eq!(
            error.sentence,
            format!(
                "Stado object API not asked: GET {}/api/object?uri=stado%3A%2F%2Fprobierz%2Fregistry.json&versioned=true not \
                 sent: this host's resolver holds 2 connection(s) on that adapter",
                scene.server.url
            )
        );
        assert_eq!(error.class, Class::InfraDown);
    }
    assert!(scene.server.requests().is_empty());
}

#[tokio::test]
async fn a_token_that_others_can_read_is_not_sent() {
    let scene = scene().await;
    let token = scene.home.path().join("token");
    std::fs::set_permissions(&token, std::fs::Permissions::from_mode(0o644)).unwrap();
    let error = refused(&scene).await;
    assert_eq!(error.sentence, format!("Stado storage token file must be owner-only (chmod 600): {}", token.display()));
    assert!(scene.server.requests().is_empty());
}

#[tokio::test]
async fn over_tls_only_a_certificate_that_somebody_vouches_for_is_spoken_to() {
    let (server, pem) = Server::start_tls().await;
    let home = tempfile::tempdir().unwrap();
    server.store.swap(Expected::Absent, b"one".to_vec()).await.unwrap();
    let unknown = client(config(&home, &server.url, TOKEN), Arc::new(NoRoutes)).read().await.unwrap_err();
    assert!(unknown.sentence.contains(&format!("TLS with {} failed", server.url)), "{unknown}");
    assert_eq!(unknown.class, Class::Auth);
    assert!(server.requests().is_empty(), "not even the token was sent");

    let mut trusting = config(&home, &server.url, TOKEN);
    trusting.ca_file = Some(home.path().join("ca.pem"));
    let unusable = client(trusting.clone(), Arc::new(NoRoutes)).read().await.unwrap_err();
    assert!(unusable.sentence.contains("storage.stado.ca_file "), "{unusable}");
    std::fs::write(home.path().join("ca.pem"), pem).unwrap();
    let read = client(trusting, Arc::new(NoRoutes)).read().await.unwrap().unwrap();
    assert_eq!(&*read.bytes, b"one");
}

//! The library against a daemon written from the contract's wire descriptions; the real one is in `tests/it`.
use super::*;
use stado_fleet::wire::RegisterRequest;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{UnixListener, UnixStream};
use tokio::sync::watch;
use tokio::time::timeout;

/// What a daemon answers to the n-th request of a kind; `None` hangs up without an answer.
type Answer = Option<(u16, String)>;

/// Requests as text, in order of arrival.
#[derive(Clone, Default)]
struct Seen(Arc<Mutex<Vec<String>>>, Arc<watch::Sender<usize>>);

impl Seen {
    fn push(&self, request: String) {
        self.0.lock().unwrap().push(request);
        self.1.send_modify(|n| *n += 1);
    }

    fn of(&self, start: &str) -> Vec<String> {
        self.0.lock().unwrap().iter().filter(|r| r.starts_with(start)).cloned().collect()
    }

    async fn wait(&self, start: &str, count: usize) -> Vec<String> {
        let mut changes = self.1.subscribe();
        let enough = async {
            while self.of(start).len() < count {
                changes.changed().await.unwrap();
            }
        };
        let arrived = timeout(Duration::from_secs(20), enough).await;
        arrived.unwrap_or_else(|_| panic!("fewer than {count} × {start:?}: {:?}", self.0.lock().unwrap()));
        self.of(start)
    }
}

/// Serves until dropped; `answer` is given a request's first line and how many like it came before.
fn daemon(socket: &Path, answer: impl Fn(&str, usize) -> Answer + Send + Sync + 'static) -> Seen {
    let listener = UnixListener::bind(socket).unwrap();
    let (seen, answer) = (Seen::default(), Arc::new(answer));
    let record = seen.clone();
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            tokio::spawn(serve(stream, record.clone(), Arc::clone(&answer)));
        }
    });
    seen
}

async fn serve(mut stream: UnixStream, seen: Seen, answer: Arc<impl Fn(&str, usize) -> Answer>) {
    let mut request = Vec::new();
    while !complete(&request) {
        if stream.read_buf(&mut request).await.unwrap_or(0) == 0 {
            return;
        }
    }
    let text = String::from_utf8(request).unwrap();
    let line = text.lines().next().unwrap().trim_end_matches(" HTTP/1.1").to_owned();
    let before = seen.of(&format!("{line} HTTP")).len();
    seen.push(text);
    if let Some((status, body)) = answer(&line, before) {
        let head = format!("HTTP/1.1 {status} X\r\nContent-Length: {}\r\n\r\n", body.len());
        let _ = stream.write_all(format!("{head}{body}").as_bytes()).await;
    }
}

fn complete(request: &[u8]) -> bool {
    let text = String::from_utf8_lossy(request);
    let Some((head, body)) = text.split_once("\r\n\r\n") else { return false };
    let length = head.lines().find_map(|l| l.strip_prefix("Content-Length: ")).map_or(0, |n| n.parse().unwrap());
    body.len() >= length
}

fn registered(id: usize, ttl: u32) -> Answer {
    let body = format!(
        r#"{{"registration_id":"ID{id}","lease_token":"token{id}","name":"a","frontend":{{"host":"127.0.0.1","port":18080}},"expires_at":"2026-11-30T01:03:00Z","ttl_seconds":{ttl},"new":1}}"#
    );
    Some((201, body))
}

fn refused(status: u16, code: &str) -> Answer {
    Some((status, format!(r#"{{"error":{{"code":"{code}","message":"said so"}}}}"#)))
}

const POST: &str = "POST /v1/registrations";
const CREATE: &str = "POST /v1/registrations HTTP";

fn home() -> (tempfile::TempDir, PathBuf) {
    let dir = tempfile::tempdir().unwrap();
    let socket = dir.path().join("devmesh.sock");
    (dir, socket)
}

fn options(socket: &Path) -> RegistrationOptions {
    RegistrationOptions { socket: Some(socket.into()), ..RegistrationOptions::new("a", "127.0.0.1:49382") }
}

async fn until(handle: &Handle, wanted: impl Fn(&State) -> bool) {
    let mut changes = handle.changes();
    let state = timeout(Duration::from_secs(20), changes.wait_for(wanted)).await;
    state.expect("the state comes").unwrap();
}

#[tokio::test]
async fn a_registration_is_renewed_each_third_of_its_lease_and_deleted_by_close() {
    let (_dir, socket) = home();
    let seen = daemon(&socket, |line, _| match line {
        POST => registered(1, 3),
        "DELETE /v1/registrations/ID1" => Some((204, String::new())),
        _ => Some((200, r#"{"expires_at":"2026-11-30T01:04:00Z"}"#.into())),
    });
    let handle = register(options(&socket)).await.unwrap();
    assert_eq!(handle.endpoint(), "127.0.0.1:18080");
    assert_eq!(handle.info().ttl, Duration::from_secs(3));
    let beats = seen.wait("POST /v1/registrations/ID1/heartbeat", 2).await;
    assert!(beats[0].contains("\r\nAuthorization: Bearer token1\r\n"), "{}", beats[0]);
    assert!(beats[0].contains("\r\nContent-Length: 0\r\n"), "{}", beats[0]);
    assert!(matches!(handle.state(), State::Registered));
    handle.close().await;
    handle.close().await;
    assert_eq!(seen.of("DELETE ").len(), 1);
    assert!(matches!(handle.state(), State::Closed));
    assert_eq!(handle.info().expires_at.unwrap().to_string(), "2026-11-30T01:04:00Z");
}

#[tokio::test]
async fn a_forgotten_registration_and_a_refused_token_are_registered_again() {
    for status in [404, 401] {
        let (_dir, socket) = home();
        let seen = daemon(&socket, move |line, before| match line {
            POST => registered(before + 1, 3),
            // Not JSON: a 404 counts whatever its body is.
            "POST /v1/registrations/ID1/heartbeat" => Some((status, "404 page not found\n".into())),
            _ => Some((200, "{}".into())),
        });
        let handle = register(options(&socket)).await.unwrap();
        seen.wait("POST /v1/registrations/ID2/heartbeat", 1).await;
        assert_eq!(handle.info().registration_id, "ID2");
        handle.close().await;
        let made = seen.of(CREATE);
        let body = |r: &String| r.split_once("\r\n\r\n").unwrap().1.to_owned();
        assert_eq!(body(&made[0]), body(&made[1]));
        assert_eq!(seen.of("DELETE /v1/registrations/ID2").len(), 1);
    }
}

#[tokio::test]
async fn a_name_held_by_another_owner_is_a_conflict_that_the_application_sees_and_that_ends() {
    let (_dir, socket) = home();
    daemon(&socket, |line, before| match (line, before) {
        (POST, 0) => registered(1, 3),
        (POST, 1..3) => refused(409, "name_conflict"),
        (POST, _) => registered(2, 3),
        ("POST /v1/registrations/ID1/heartbeat", _) => refused(404, "registration_not_found"),
        _ => Some((200, "{}".into())),
    });
    let handle = register(options(&socket)).await.unwrap();
    until(&handle, |s| matches!(s, State::Conflict { error, .. } if error.code() == Some("name_conflict"))).await;
    until(&handle, |s| matches!(s, State::Registered)).await;
    assert_eq!(handle.info().registration_id, "ID2");
    handle.close().await;
}

#[tokio::test]
async fn a_daemon_that_goes_away_is_seen_by_the_application_and_close_stays_bounded() {
    let (_dir, socket) = home();
    daemon(&socket, |line, _| match line {
        POST => registered(1, 3),
        _ => None,
    });
    let handle = register(options(&socket)).await.unwrap();
    until(&handle, |s| matches!(s, State::Retrying { error, .. } if matches!(**error, Error::Unreachable { .. })))
        .await;
    timeout(Duration::from_secs(6), handle.close()).await.expect("bounded");
}

#[tokio::test]
async fn dropping_the_handle_ends_the_heartbeats_and_deletes_nothing() {
    let (_dir, socket) = home();
    let seen = daemon(&socket, |line, _| match line {
        POST => registered(1, 3),
        _ => Some((200, "{}".into())),
    });
    let handle = register(options(&socket)).await.unwrap();
    let mut changes = handle.changes();
    drop(handle);
    let closed = timeout(Duration::from_secs(5), changes.wait_for(|s| matches!(s, State::Closed))).await;
    assert!(closed.is_ok());
    assert!(seen.of("DELETE ").is_empty());
}

#[tokio::test]
async fn a_creation_whose_answer_was_lost_is_asked_for_again_under_the_same_key() {
    let (_dir, socket) = home();
    let seen = daemon(&socket, |line, before| match (line, before) {
        (POST, 0) => None,
        (POST, 1) => refused(503, "port_exhausted"),
        _ => registered(1, 15),
    });
    let first_attempt = FirstAttempt::RetryFor(Duration::from_secs(10));
    let handle = register(RegistrationOptions { first_attempt, ..options(&socket) }).await.unwrap();
    let key = |r: &String| r.lines().find_map(|l| l.strip_prefix("Idempotency-Key: ")).unwrap().to_owned();
    let keys: Vec<_> = seen.of(CREATE).iter().map(key).collect();
    assert_eq!(keys[0], keys[1], "a lost answer");
    assert_ne!(keys[1], keys[2], "an answer");
    handle.close().await;
}

#[tokio::test]
async fn a_daemon_that_says_nothing_is_not_called_one_that_is_not_there() {
    let (_dir, socket) = home();
    // The system takes connections for it.
    let _stopped = std::os::unix::net::UnixListener::bind(&socket).unwrap();
    let error = Api::new(&socket).with_timeout(Duration::from_millis(50)).health().await.unwrap_err().to_string();
    assert!(error.contains("; a daemon is there and says nothing: ") && !error.contains("start one"), "{error}");
}

#[tokio::test]
async fn a_first_registration_is_tried_once_unless_asked_and_never_again_when_it_cannot_succeed() {
    let (_dir, socket) = home();
    let error = register(options(&socket)).await.unwrap_err();
    assert!(error.to_string().starts_with(&format!("devmesh daemon unreachable at {}: ", socket.display())));
    let next = "; no daemon runs here, start one with `stado resolver serve` or `devmeshd serve`";
    assert!(error.to_string().ends_with(next), "{error}");
    let seen = daemon(&socket, |_, _| refused(400, "invalid_name"));
    let options = RegistrationOptions { first_attempt: FirstAttempt::RetryForever, ..options(&socket) };
    let error = register(options).await.unwrap_err();
    assert_eq!(error.to_string(), "invalid_name: said so");
    assert_eq!(seen.of(POST).len(), 1);
}

#[tokio::test]
async fn a_first_registration_waits_for_a_daemon_when_asked() {
    let (_dir, socket) = home();
    let late = RegistrationOptions { first_attempt: FirstAttempt::RetryForever, ..options(&socket) };
    let waiting = tokio::spawn(register(late));
    tokio::task::yield_now().await;
    daemon(&socket, |_, _| registered(1, 15));
    let handle = timeout(Duration::from_secs(20), waiting).await.unwrap().unwrap().unwrap();
    assert_eq!(handle.endpoint(), "127.0.0.1:18080");
    handle.close().await;
}

#[tokio::test]
async fn answers_that_are_not_the_envelope_are_internal_errors_with_the_raw_body() {
    let (_dir, socket) = home();
    daemon(&socket, |line, _| match line {
        "GET /v1/health" => Some((500, "boom\n".into())),
        "GET /v1/services/a%2Fb" => refused(404, "service_not_found"),
        _ => Some((200, "[]".into())),
    });
    let api = Api::new(&socket);
    assert_eq!(api.health().await.unwrap_err().to_string(), "internal_error: boom");
    assert_eq!(api.resolve("a/b").await.unwrap_err().code(), Some("service_not_found"));
    assert_eq!(api.list().await.unwrap_err().code(), Some("internal_error"));
}

#[tokio::test]
async fn a_daemon_that_accepts_and_says_nothing_is_left_after_the_limit() {
    let (_dir, socket) = home();
    let _held = UnixListener::bind(&socket).unwrap();
    let api = Api::new(&socket).with_timeout(Duration::from_millis(200));
    let error = api.register(&RegisterRequest::default(), None).await.unwrap_err();
    assert!(error.to_string().contains("gave no complete answer within 200ms"), "{error}");
}

#[tokio::test]
async fn a_listener_is_bound_before_it_is_published_and_freed_when_the_daemon_refuses() {
    let (_dir, socket) = home();
    let seen = daemon(&socket, |line, before| match (line, before) {
        (POST, 0) => refused(409, "name_conflict"),
        (POST, _) => registered(1, 15),
        _ => Some((204, String::new())),
    });
    let wanted = || RegistrationOptions { backend: String::new(), ..options(&socket) };
    assert!(listen(wanted()).await.unwrap_err().is_conflict());
    let listener = listen(wanted()).await.unwrap();
    let port = format!(r#""port":{}}}"#, listener.local_addr().port());
    assert!(seen.of(CREATE)[1].contains(&port));
    let (client, served) = tokio::join!(tokio::net::TcpStream::connect(listener.local_addr()), listener.accept());
    assert_eq!(client.unwrap().local_addr().unwrap(), served.unwrap().1);
    let address = listener.local_addr();
    listener.close().await;
    assert!(tokio::net::TcpStream::connect(address).await.is_err());
}

#[test]
fn the_blocking_library_registers_reports_changes_and_closes() {
    let (_dir, socket) = home();
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let guard = runtime.enter();
    let seen = daemon(&socket, |line, before| match (line, before) {
        (POST, 0) => registered(1, 3),
        (POST, _) => refused(409, "name_conflict"),
        ("GET /v1/services", _) => Some((200, r#"{"services":[]}"#.into())),
        ("POST /v1/registrations/ID1/heartbeat", _) => refused(404, "registration_not_found"),
        _ => Some((204, String::new())),
    });
    assert!(matches!(blocking::register(options(&socket)), Err(Error::Invalid(_))), "inside a runtime");
    drop(guard);
    assert!(blocking::Api::new(&socket).unwrap().list().unwrap().is_empty());
    let handle = blocking::register(options(&socket)).unwrap();
    assert_eq!(handle.endpoint(), "127.0.0.1:18080");
    assert!(matches!(handle.changes().next(Duration::from_secs(20)), Some(State::Conflict { .. })));
    handle.close();
    assert_eq!(seen.of("DELETE /v1/registrations/ID1").len(), 1);
}

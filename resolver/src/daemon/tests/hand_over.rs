//! Hand-over between two daemons of this process: what goes along, what is refused, and who is lost when somebody dies.
use super::super::handover::parcel::{Ask, Comer, Server};
use super::super::handover::take;
use super::super::handover::wire::Wire;
use super::support::*;
use crate::daemon::{Announcement, Config, DaemonError, TakeError};
use crate::http::HttpConfig;
use serde_json::{Value, json};
use std::path::Path;
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream, UnixListener, UnixStream};

const PATIENCE: Duration = Duration::from_secs(30);

fn alone(host: &Host) -> Config {
    let mut config = host.config();
    config.fleet = None;
    config
}

fn taking(config: Config) -> Running {
    Running::start(Config { take_over: true, ..config })
}

/// One request to the control socket: status and body.
pub(super) async fn api(config: &Config, line: &str, headers: &str, body: &str) -> (u16, Value) {
    let mut stream = UnixStream::connect(&config.mesh.socket).await.unwrap();
    let length = body.len();
    let text =
        format!("{line} HTTP/1.1\r\nHost: x\r\nConnection: close\r\nContent-Length: {length}\r\n{headers}\r\n{body}");
    stream.write_all(text.as_bytes()).await.unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await.unwrap();
    let (head, body) = answer.split_once("\r\n\r\n").unwrap();
    (head.split(' ').nth(1).unwrap().parse().unwrap(), serde_json::from_str(body).unwrap_or(Value::Null))
}

pub(super) async fn register(config: &Config, name: &str, backend: u16, key: &str) -> Value {
    let body = json!({"name": name, "backend": {"host": "127.0.0.1", "port": backend}, "ttl_seconds": 600}).to_string();
    let (status, answer) = api(config, "POST /v1/registrations", &format!("Idempotency-Key: {key}\r\n"), &body).await;
    assert_eq!(status, 201, "{answer}");
    answer
}

async fn heartbeat(config: &Config, registration: &Value) -> u16 {
    let id = registration["registration_id"].as_str().unwrap();
    let token = format!("Authorization: Bearer {}\r\n", registration["lease_token"].as_str().unwrap());
    api(config, &format!("POST /v1/registrations/{id}/heartbeat"), &token, "").await.0
}

pub(super) fn port_of(registration: &Value) -> u16 {
    registration["frontend"]["port"].as_u64().unwrap().try_into().unwrap()
}

async fn handed_over(daemon: &Running) {
    let said =
        || daemon.said.lock().unwrap().iter().any(|a| matches!(a, Announcement::HandedOver { .. })).then_some(());
    until("it was taken over", said).await;
}

#[tokio::test]
async fn names_leases_tokens_and_open_streams_survive_and_the_old_one_ends_with_its_last_stream() {
    let host = Host::new();
    let echo = Echo::start("db").await;
    let old = Running::start(alone(&host));
    let socket = old.up().await.socket.unwrap();
    let config = alone(&host);
    let db = register(&config, "db", echo.addr.port(), "k1").await;
    let idle = register(&config, "idle", 9, "k2").await;
    assert_eq!(heartbeat(&config, &db).await, 200);
    let mut open = Client::connect(port_of(&db)).await;
    assert_eq!(open.ask("1").await.as_deref(), Some("db 1"));
    let before = api(&config, "GET /v1/services", "", "").await;
    let mut events = UnixStream::connect(&config.mesh.socket).await.unwrap();
    events.write_all(b"GET /v1/events HTTP/1.1\r\nHost: x\r\n\r\n").await.unwrap();
    assert!(events.read(&mut [0; 4096]).await.unwrap() > 0);

    let new = taking(alone(&host));
    new.up().await;
    handed_over(&old).await;
    assert!(new.said.lock().unwrap().iter().any(|a| matches!(a, Announcement::TookOver { streams: 1, .. })));
    let mut rest = Vec::new();
    while !rest.ends_with(b"0\r\n\r\n") {
        assert!(events.read_buf(&mut rest).await.unwrap() > 0, "events end in order");
    }
    assert_eq!(api(&config, "GET /v1/services", "", "").await, before);
    assert_eq!((heartbeat(&config, &db).await, heartbeat(&config, &idle).await), (200, 200));
    assert_eq!(register(&config, "db", echo.addr.port(), "k1").await, db, "the key repeats the same registration");
    assert_eq!(open.ask("2").await.as_deref(), Some("db 2"));
    assert_eq!(ask_once(port_of(&db)).await.as_deref(), Some("db hi"));
    let leaving = || async { api(&config, "GET /v1/health", "", "").await.1["leaving"].clone() };
    let listed = leaving().await;
    assert_eq!((listed[0]["pid"].as_u64(), listed[0]["streams"].as_u64()), (Some(std::process::id().into()), Some(1)));

    drop(open);
    old.ended().await.unwrap();
    assert!(socket.exists());
    let deadline = tokio::time::Instant::now() + PATIENCE;
    while leaving().await != Value::Null {
        assert!(tokio::time::Instant::now() < deadline, "it is still listed");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    let fresh = register(&config, "fresh", echo.addr.port(), "k3").await;
    assert_eq!(ask_once(port_of(&fresh)).await.as_deref(), Some("db hi"));
    new.stop().await;
    assert!(!socket.exists());
}

#[tokio::test]
async fn both_say_the_same_number_of_streams_and_count_none_twice() {
    let host = Host::new();
    let echo = Echo::start("db").await;
    let mute = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let router = port();
    let with_router = || {
        let http = std::net::SocketAddr::from(([127, 0, 0, 1], router));
        Config { http: Some(HttpConfig { http: Some(http), ..HttpConfig::default() }), ..alone(&host) }
    };
    let config = with_router();
    let old = Running::start(with_router());
    old.up().await;
    let db = register(&config, "db", echo.addr.port(), "k1").await;
    let web = json!({"name": "web", "kind": "http", "backend": {"host": "127.0.0.1", "port": mute.local_addr().unwrap().port()}});
    assert_eq!(api(&config, "POST /v1/registrations", "", &web.to_string()).await.0, 201);
    let mut open = Client::connect(port_of(&db)).await;
    assert_eq!(open.ask("1").await.as_deref(), Some("db 1"));
    // One connection with a request that waits for its answer, and one that rests after an answer.
    let mut clients = Vec::new();
    for name in ["web", "unknown"] {
        let mut client = TcpStream::connect(("127.0.0.1", router)).await.unwrap();
        client.write_all(format!("GET / HTTP/1.1\r\nHost: {name}.localhost\r\n\r\n").as_bytes()).await.unwrap();
        clients.push(client);
    }
    let asked = mute.accept().await.unwrap();
    assert!(clients[1].read(&mut [0; 4096]).await.unwrap() > 0);

    let new = taking(with_router());
    new.up().await;
    handed_over(&old).await;
    let said = |daemon: &Running| {
        let said = daemon.said.lock().unwrap();
        said.iter().find_map(|announced| match announced {
            Announcement::TookOver { streams, .. } | Announcement::HandedOver { streams, .. } => Some(*streams),
            _ => None,
        })
    };
    assert_eq!((said(&old), said(&new)), (Some(3), Some(3)));
    drop((open, clients, asked));
    old.ended().await.unwrap();
    new.stop().await;
}

/// Speaks like a daemon that comes, and says the words so far; then it is gone.
async fn die_after(config: &Config, steps: usize) {
    let mut wire = take::connect(&config.mesh.socket).await.unwrap().unwrap();
    if steps == 0 {
        return;
    }
    let ask = Ask {
        pid: 1,
        version: "test".into(),
        mesh_state: config.mesh.state_path.clone(),
        frontend_host: config.mesh.frontend_host,
        fleet_home: config.fleet.as_ref().map(|fleet| fleet.home.clone()),
    };
    wire.send(&Comer::TakeOver(ask), &[]).await.unwrap();
    let hear = async |wire: &mut Wire| wire.receive::<Server>(PATIENCE).await.unwrap().0;
    assert!(matches!(hear(&mut wire).await, Server::Parcel(_)));
    if steps == 1 {
        return;
    }
    loop {
        match hear(&mut wire).await {
            Server::Batch { .. } if steps == 2 => return,
            Server::Batch { .. } => wire.send(&Comer::Got, &[]).await.unwrap(),
            Server::All => break,
            other => panic!("{other:?}"),
        }
    }
    match steps {
        3 => {}
        4 => wire.send(&Comer::Refused { why: "no room".into() }, &[]).await.unwrap(),
        5 => wire.send(&Comer::Ready, &[]).await.unwrap(),
        6 => {
            wire.send(&Comer::Ready, &[]).await.unwrap();
            assert!(matches!(hear(&mut wire).await, Server::Go { .. }));
        }
        _ => {
            wire.send(&Comer::Running, &[]).await.unwrap();
            // It is not its turn; the connection ends.
            assert!(wire.receive::<Server>(PATIENCE).await.is_err());
        }
    }
}

#[tokio::test]
async fn a_taker_that_dies_at_any_step_changes_nothing_and_the_next_one_takes_over() {
    let host = Host::new();
    let echo = Echo::start("db").await;
    let port = port();
    host.push(&host.registry(1, &[("db", "shop", Some(port))], &[("db", "me", format!("tcp://{}", echo.addr))])).await;
    let old = host.start();
    host.serving().await;
    let config = host.config();
    let mine = register(&config, "mine", echo.addr.port(), "k").await;
    let (mut stream, mut adapted) = (Client::connect(port_of(&mine)).await, Client::connect(port).await);
    for steps in 0..8 {
        die_after(&config, steps).await;
        assert_eq!(heartbeat(&config, &mine).await, 200, "{steps}");
        assert_eq!(ask_once(port_of(&mine)).await.as_deref(), Some("db hi"), "{steps}");
        assert_eq!(ask_once(port).await.as_deref(), Some("db hi"), "{steps}");
        assert_eq!(stream.ask("x").await.as_deref(), Some("db x"), "{steps}");
        assert_eq!(adapted.ask("x").await.as_deref(), Some("db x"), "{steps}");
        let generation = 2 + u64::try_from(steps).unwrap();
        let services = [("db", "me", format!("tcp://{}", echo.addr))];
        host.push(&host.registry(generation, &[("db", "shop", Some(port))], &services)).await;
        host.until_state("it still follows the registry", |s| s.generation == Some(generation)).await;
    }
    let new = taking(host.config());
    new.up().await;
    handed_over(&old).await;
    assert_eq!(heartbeat(&config, &mine).await, 200);
    assert_eq!(ask_once(port).await.as_deref(), Some("db hi"));
    assert_eq!(stream.ask("y").await.as_deref(), Some("db y"));
    drop((stream, adapted));
    old.ended().await.unwrap();
    assert_eq!(host.serving().await.adapters.len(), 1);
    new.stop().await;
}

/// Takes requests and never answers.
async fn mute() -> (std::net::SocketAddr, tokio::task::JoinHandle<()>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let addr = listener.local_addr().unwrap();
    let task = tokio::spawn(async move {
        let mut held = Vec::new();
        while let Ok((stream, _)) = listener.accept().await {
            held.push(stream);
        }
    });
    (addr, task)
}

fn waits(host: &Host) -> Vec<String> {
    let waits = stado_fleet::ledger::waits(&host.paths()).unwrap().unwrap_or_default();
    // Times are whole seconds: two of one second are in no order.
    let mut requests: Vec<String> = waits.into_iter().filter_map(|wait| wait.request).collect();
    requests.sort();
    requests
}

#[tokio::test]
async fn open_waits_stay_published_and_their_ends_too() {
    let host = Host::new();
    let (addr, _mute) = mute().await;
    let port = port();
    host.push(&host.registry(1, &[("db", "shop", Some(port))], &[("db", "me", format!("tcp://{addr}"))])).await;
    let old = host.start();
    host.serving().await;
    let ask = async |path: &str| {
        let mut stream = TcpStream::connect(("127.0.0.1", port)).await.unwrap();
        stream.write_all(format!("GET {path} HTTP/1.1\r\n\r\n").as_bytes()).await.unwrap();
        stream
    };
    let first = ask("/first").await;
    until("the wait", || (waits(&host) == ["GET /first HTTP/1.1"]).then_some(())).await;

    let new = taking(host.config());
    new.up().await;
    handed_over(&old).await;
    let second = ask("/second").await;
    until("both waits", || (waits(&host) == ["GET /first HTTP/1.1", "GET /second HTTP/1.1"]).then_some(())).await;
    host.until_state("the old one is listed", |s| s.leaving.len() == 1 && s.leaving[0].streams == 1).await;
    // The service never ends its half: only a reset ends the stream.
    socket2::SockRef::from(&first).set_linger(Some(Duration::ZERO)).unwrap();
    drop(first);
    old.ended().await.unwrap();
    until("the first is over", || (waits(&host) == ["GET /second HTTP/1.1"]).then_some(())).await;
    host.until_state("nobody leaves", |s| s.leaving.is_empty()).await;
    let unanswered = || {
        let answers = stado_fleet::ledger::answers(&host.paths()).ok()?;
        answers.get("db")?.last_unanswered_at.clone()
    };
    until("what went unanswered there is known here", unanswered).await;
    drop(second);
    new.stop().await;
}

#[tokio::test]
async fn a_daemon_that_leaves_is_listed_by_every_later_one() {
    let host = Host::new();
    let echo = Echo::start("db").await;
    let config = alone(&host);
    let first = Running::start(alone(&host));
    first.up().await;
    let db = register(&config, "db", echo.addr.port(), "k").await;
    let mut open = Client::connect(port_of(&db)).await;
    assert_eq!(open.ask("1").await.as_deref(), Some("db 1"));
    let second = taking(alone(&host));
    second.up().await;
    handed_over(&first).await;
    let third = taking(alone(&host));
    third.up().await;
    // The second one has no streams: it ends at once, and the first one does not go with it.
    second.ended().await.unwrap();
    let leaving = async || api(&config, "GET /v1/health", "", "").await.1["leaving"].as_array().map_or(0, Vec::len);
    assert_eq!(leaving().await, 1);
    third.stop().await;
    let fourth = Running::start(alone(&host));
    fourth.up().await;
    let deadline = tokio::time::Instant::now() + PATIENCE;
    while leaving().await != 1 {
        assert!(tokio::time::Instant::now() < deadline, "a daemon that was simply started hears of it");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    assert_eq!(open.ask("2").await.as_deref(), Some("db 2"));
    drop(open);
    first.ended().await.unwrap();
    fourth.stop().await;
}

#[tokio::test]
async fn a_signal_gives_the_old_one_a_deadline() {
    let host = Host::new();
    let echo = Echo::start("db").await;
    let mut config = alone(&host);
    config.mesh.shutdown_timeout = Duration::from_millis(100);
    let old = Running::start(Config { take_over: false, ..config.clone() });
    old.up().await;
    let db = register(&config, "db", echo.addr.port(), "k").await;
    let mut open = Client::connect(port_of(&db)).await;
    assert_eq!(open.ask("1").await.as_deref(), Some("db 1"));
    let new = taking(config.clone());
    new.up().await;
    handed_over(&old).await;
    old.shutdown.signal();
    old.ended().await.unwrap();
    assert_eq!(open.ask("2").await, None);
    assert_eq!(ask_once(port_of(&db)).await.as_deref(), Some("db hi"));
    new.stop().await;
}

#[tokio::test]
async fn with_nobody_to_take_over_it_simply_starts() {
    let host = Host::new();
    let daemon = taking(host.config());
    daemon.up().await;
    assert!(matches!(daemon.said.lock().unwrap()[0], Announcement::NobodyToTakeOver));
    daemon.stop().await;
}

async fn refused(config: Config) -> TakeError {
    match taking(config).ended().await {
        Err(DaemonError::TakeOver(error)) => error,
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn a_mesh_goes_to_a_daemon_with_a_fleet_and_a_fleet_to_none_without() {
    let host = Host::new();
    let echo = Echo::start("db").await;
    host.push(&host.registry(1, &[], &[("db", "me", format!("tcp://{}", echo.addr))])).await;
    let old = Running::start(alone(&host));
    old.up().await;
    let config = host.config();
    let mine = register(&config, "mine", echo.addr.port(), "k").await;
    let both = taking(host.config());
    both.up().await;
    old.ended().await.unwrap();
    host.serving().await;
    assert_eq!(heartbeat(&config, &mine).await, 200);
    let error = refused(alone(&host)).await.to_string();
    assert!(error.contains("serves the fleet too") && error.contains("it keeps serving"), "{error}");
    let mut elsewhere = host.config();
    elsewhere.mesh.state_path = host.dir.path().join("other/state.json");
    let error = refused(elsewhere).await.to_string();
    assert!(error.contains("other/state.json"), "{error}");
    assert_eq!(heartbeat(&config, &mine).await, 200);
    both.stop().await;
}

/// A daemon that answers every request with `answer`.
async fn other_daemon(socket: &Path, answer: &'static str) -> tokio::task::JoinHandle<()> {
    let listener = UnixListener::bind(socket).unwrap();
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            let mut head = [0; 4096];
            let _ = stream.read(&mut head).await;
            let _ = stream.write_all(answer.as_bytes()).await;
        }
    })
}

#[tokio::test]
async fn another_version_is_refused_by_either_side_with_a_sentence_that_says_what_to_do() {
    let host = Host::new();
    let daemon = Running::start(alone(&host));
    daemon.up().await;
    let config = alone(&host);
    for upgrade in ["Upgrade: stado-hand-over/99\r\n", "Upgrade: other/1\r\n", ""] {
        let (status, body) = api(&config, "POST /v1/hand-over", upgrade, "").await;
        assert_eq!(status, 426, "{upgrade}");
        assert!(body["error"]["message"].as_str().unwrap().contains("it keeps serving"), "{body}");
    }
    daemon.stop().await;
    for (answer, word) in [
        (
            "HTTP/1.1 426 Upgrade Required\r\nUpgrade: stado-hand-over/99\r\nContent-Length: 0\r\n\r\n",
            "hand-over version 99",
        ),
        ("HTTP/1.1 404 Not Found\r\nContent-Length: 19\r\n\r\n404 page not found\n", "knows no hand-over"),
        (
            "HTTP/1.1 403 Forbidden\r\nContent-Length: 48\r\n\r\n{\"error\":{\"code\":\"unauthorized\",\"message\":\"no\"}}",
            "no; it keeps serving",
        ),
    ] {
        let other = other_daemon(&config.mesh.socket, answer).await;
        let error = refused(alone(&host)).await.to_string();
        assert!(error.contains(word), "{error}");
        other.abort();
        let _ = other.await;
        std::fs::remove_file(&config.mesh.socket).unwrap();
    }
}

#[tokio::test]
async fn changes_that_come_during_a_hand_over_are_answered_by_the_one_that_serves_afterwards() {
    let host = Host::new();
    let config = alone(&host);
    let mut daemon = Running::start(alone(&host));
    daemon.up().await;
    let stop = tokio_util::sync::CancellationToken::new();
    let busy: Vec<_> = (0..4)
        .map(|n| {
            let (config, stop) = (config.clone(), stop.clone());
            tokio::spawn(async move {
                let mine = register(&config, &format!("s{n}"), 9, &format!("k{n}")).await;
                let mut beats = 0;
                while !stop.is_cancelled() {
                    assert_eq!(heartbeat(&config, &mine).await, 200);
                    beats += 1;
                }
                beats
            })
        })
        .collect();
    for _ in 0..5 {
        let new = taking(alone(&host));
        new.up().await;
        daemon.ended().await.unwrap();
        daemon = new;
    }
    stop.cancel();
    for worker in busy {
        assert!(worker.await.unwrap() > 0);
    }
    daemon.stop().await;
}

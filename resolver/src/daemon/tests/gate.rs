//! The gate's verbs over this host's own store, and what it lends to other hosts.
use super::super::gate_verbs::GateVerbs;
use super::hand_over::{port_of, register};
use super::support::*;
use crate::gate::Verbs;
use serde_json::{Value, json};
use stado_fleet::join;
use stado_fleet::link::{Link, LinkConfig, single_path};
use stado_fleet::name::ConnectionPath;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::sync::{Notify, watch};

fn verbs(host: &Host) -> GateVerbs {
    let link = stado_fleet::link::Link::new(Default::default());
    let bulletin = stado_fleet::authority::Bulletin::new(host.store.clone());
    let (held, holders) = (watch::channel(None).1, stado_fleet::authority::Holders::new(&host.home()));
    GateVerbs {
        store: host.store.clone(),
        link,
        held,
        bulletin,
        holders,
        own: Default::default(),
        ledger: Default::default(),
        wake: Arc::new(Notify::new()),
        shelf: stado_fleet::join::Shelf::new(&host.config().fleet.unwrap().home),
        joining: Default::default(),
        mesh: Default::default(),
    }
}
async fn verb(verbs: &GateVerbs, argv: &[&str], stdin: &Value) -> (u32, Value, String) {
    let argv: Vec<String> = argv.iter().map(|w| (*w).to_owned()).collect();
    let output = verbs.run(&argv, stdin.to_string().into_bytes()).await;
    let stdout = serde_json::from_slice(&output.stdout).unwrap_or(Value::Null);
    (output.status, stdout, String::from_utf8(output.stderr).unwrap())
}

#[tokio::test]
async fn snapshot_and_push_work_on_the_store_with_the_contracts_codes() {
    let host = Host::new();
    let verbs = verbs(&host);
    let (status, _, stderr) = verb(&verbs, &["resolver", "snapshot"], &Value::Null).await;
    assert_eq!((status, stderr.as_str()), (1, "Error: no registry document at local:registry.json\n"));
    host.push(&host.registry(1, &[], &[("db", "me", "tcp://127.0.0.1:1".into())])).await;
    let (status, snapshot, _) = verb(&verbs, &["resolver", "snapshot"], &Value::Null).await;
    assert_eq!((status, snapshot["document"]["service_directory"]["generation"].as_u64()), (0, Some(1)));
    let version = snapshot["store_version"].as_str().unwrap().to_owned();

    let next = host.registry(2, &[], &[("db", "me", "tcp://127.0.0.1:2".into())]);
    let flags = |version: &str| {
        ["registry", "push", "-", "--if-generation", version, "--force", "--allow-empty-fleet", "--json"]
            .map(str::to_owned)
    };
    let flags_now = flags(&version);
    let argv: Vec<&str> = flags_now.iter().map(String::as_str).collect();
    let (status, receipt, _) = verb(&verbs, &argv, &next).await;
    assert_eq!(
        (status, receipt["state"].as_str(), receipt["replaced"].as_str()),
        (0, Some("pushed"), Some(version.as_str()))
    );
    let (status, receipt, stderr) = verb(&verbs, &argv, &next).await;
    assert_eq!((status, receipt["state"].as_str()), (75, Some("conflict")));
    assert!(stderr.starts_with("Error: registry write refused: it is conditional on generation "), "{stderr}");
    assert_eq!(verb(&verbs, &["registry", "push", "-", "--wat"], &next).await.0, 2);
}

#[tokio::test]
async fn only_endpoints_that_the_directory_places_here_may_be_reached() {
    let host = Host::new();
    let none = verbs(&host);
    let nobody = russh::keys::ssh_key::private::Ed25519Keypair::from_seed(&[7; 32]);
    let nobody = russh::keys::PrivateKey::from(nobody).public_key().key_data().clone();
    let lends = |verbs: &GateVerbs, endpoint: &str| verbs.lend(&nobody, endpoint.parse().unwrap()).map(drop);
    assert!(lends(&none, "127.0.0.1:5").unwrap_err().contains("no service directory yet"));

    let services =
        [("db", "me", "tcp://127.0.0.1:54321".to_owned()), ("far", "far", "tcp://127.0.0.1:54322".to_owned())];
    host.push(&host.registry(3, &[], &services)).await;
    let mut config = host.config();
    config.fleet.as_mut().unwrap().gate = Some(crate::gate::Config {
        bind: "127.0.0.1:0".parse().unwrap(),
        host_key: host.home().join("gate/host_ed25519"),
        authorized_keys: host.home().join("gate/authorized_keys"),
    });
    let daemon = super::super::assemble::Daemon::start(config).await.unwrap();
    host.serving().await;
    assert!(daemon.served(None).gate.is_some());
    let fleet = daemon.fleet.as_ref().unwrap();
    let verbs = GateVerbs { held: fleet.held.clone(), ..none };
    assert_eq!(lends(&verbs, "127.0.0.1:54321"), Ok(()));
    for elsewhere in ["127.0.0.1:54322", "127.0.0.1:22", "127.0.0.2:54321"] {
        let why = lends(&verbs, elsewhere).unwrap_err();
        assert!(why.contains("generation 3 places no service at ") && why.contains(elsewhere), "{why}");
    }
    let shutdown = crate::daemon::Shutdown::new();
    super::super::drain::drain(daemon, None, &shutdown).await.unwrap();
}

/// A host of the fleet that obeys nobody: its key, and no daemon.
struct Member {
    dir: tempfile::TempDir,
    key: String,
    gate: u16,
}

impl Member {
    fn of(host: &mut Host) -> Self {
        let (dir, gate) = (tempfile::tempdir().unwrap(), port());
        let file = host.home().join("gate/host_ed25519");
        let host_key = join::public_key(&join::read_or_make(&file).unwrap());
        let known = format!("[127.0.0.1]:{gate} {host_key}\n");
        stado_fleet::disk::replace(&dir.path().join("known_hosts"), known.as_bytes()).unwrap();
        let key = join::public_key(&join::read_or_make(&dir.path().join("id")).unwrap());
        host.gate = Some(crate::gate::Config {
            bind: ([127, 0, 0, 1], gate).into(),
            host_key: file,
            authorized_keys: host.home().join("gate/authorized_keys"),
        });
        Self { dir, key, gate }
    }

    fn link(&self) -> Link {
        Link::new(LinkConfig {
            user: "u".into(),
            identity_files: vec![self.dir.path().join("id")],
            known_hosts: vec![self.dir.path().join("known_hosts")],
            ..LinkConfig::default()
        })
    }

    fn paths(&self) -> Vec<ConnectionPath> {
        single_path(format!("u@127.0.0.1:{}", self.gate).parse().unwrap())
    }

    /// Services of `me`; lap uses some of them as `shop`, and the others are for somebody else.
    fn registry(&self, host: &Host, generation: u64, services: &[(&str, SocketAddr)], uses: &[&str]) -> Value {
        let here: Vec<_> = services.iter().map(|(name, at)| (*name, "me", format!("tcp://{at}"))).collect();
        let mut registry = host.registry(generation, &[], &here);
        for (name, _) in services {
            let consumer = if uses.contains(name) { "shop" } else { "till" };
            registry["service_directory"]["services"][name]["consumers"] = json!({consumer: {"capabilities": []}});
        }
        let adapters: Vec<Value> = uses.iter().map(|name| json!({"service": name, "consumer": "shop"})).collect();
        let lap = json!({"name": "lap", "kind": "local", "release_platform": "linux-amd64", "resolver_keys": [self.key],
            "service_resolver": {"api_bind": "127.0.0.1:1", "refresh_seconds": 5, "max_stale_seconds": 15, "adapters": adapters}});
        registry["targets"].as_array_mut().unwrap().push(lap);
        registry
    }
}

/// A stream to an echo, which has answered.
type Stream = std::pin::Pin<Box<dyn stado_fleet::link::RemoteStream>>;

async fn echoes(stream: &mut Stream) -> std::io::Result<()> {
    stream.write_all(b"hi").await?;
    let mut answer = [0; 5];
    let read = tokio::time::timeout(DEADLINE, stream.read_exact(&mut answer)).await.expect("no answer and no end")?;
    assert_eq!((read, &answer), (5, b"db hi"));
    Ok(())
}

async fn ends(stream: &mut Stream) {
    let since = Instant::now();
    while echoes(stream).await.is_ok() {
        assert!(since.elapsed() < DEADLINE, "it goes on");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

#[tokio::test]
async fn the_publisher_ends_what_a_host_may_no_longer_use_and_opens_it_no_more() {
    let mut host = Host::new();
    let lap = Member::of(&mut host);
    let (db, other, moved) = (Echo::start("db").await, Echo::start("db").await, Echo::start("db").await);
    let both = [("db", db.addr), ("other", other.addr)];
    host.push(&lap.registry(&host, 1, &both, &["db", "other"])).await;
    let daemon = host.start();
    host.serving().await;
    let (link, me) = (lap.link(), "me".parse().unwrap());
    let relay = async |at| link.relay(&me, &lap.paths(), None, at, DEADLINE).await;
    let mut streams = [relay(db.addr).await.unwrap(), link.open(&me, &lap.paths(), db.addr, DEADLINE).await.unwrap()];
    let mut stays = relay(other.addr).await.unwrap();
    assert_eq!(link.roads()[0].carrier, "multiplex");
    for stream in streams.iter_mut().chain([&mut stays]) {
        echoes(stream).await.unwrap();
    }

    // The consumer is withdrawn from one of them.
    host.push(&lap.registry(&host, 2, &both, &["other"])).await;
    let since = Instant::now();
    for stream in &mut streams {
        ends(stream).await;
    }
    let took = since.elapsed();
    assert!(took < Duration::from_secs(1), "{took:?}");
    let refused = relay(db.addr).await.err().unwrap().causes().to_owned();
    let why = "does not let 127.0.0.1:";
    assert!(
        refused.contains(why) && refused.contains("lap has no adapter for db; `stado service use db` there"),
        "{refused}"
    );
    assert!(link.open(&me, &lap.paths(), db.addr, DEADLINE).await.is_err(), "nor without the multiplex");
    let metrics = answer_to(host.api, "GET /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n").await;
    let line = "stado_relay_streams_withdrawn_total{service=\"db\",host=\"lap\"} 2";
    assert!(metrics.contains(line), "{metrics}");

    // A changed endpoint ends nothing (proxy rule 8).
    echoes(&mut stays).await.unwrap();
    let elsewhere = [("other", moved.addr)];
    host.push(&lap.registry(&host, 3, &elsewhere, &["other"])).await;
    host.until_state("generation 3", |s| s.generation == Some(3)).await;
    echoes(&mut stays).await.unwrap();
    host.push(&lap.registry(&host, 4, &elsewhere, &[])).await;
    ends(&mut stays).await;
    // Allowed again, it opens again.
    host.push(&lap.registry(&host, 5, &elsewhere, &["other"])).await;
    let mut again = relay(moved.addr).await.unwrap();
    echoes(&mut again).await.unwrap();

    // The service itself goes.
    host.push(&lap.registry(&host, 6, &both[..1], &["db"])).await;
    ends(&mut again).await;
    daemon.stop().await;
}

#[tokio::test]
async fn a_gate_that_was_taken_over_ends_what_is_withdrawn_too() {
    let mut host = Host::new();
    let lap = Member::of(&mut host);
    let db = Echo::start("db").await;
    host.push(&lap.registry(&host, 1, &[("db", db.addr)], &["db"])).await;
    let old = host.start();
    host.serving().await;
    let link = lap.link();
    let mut stream = link.relay(&"me".parse().unwrap(), &lap.paths(), None, db.addr, DEADLINE).await.unwrap();
    echoes(&mut stream).await.unwrap();
    let new = Running::start(crate::daemon::Config { take_over: true, ..host.config() });
    new.up().await;
    echoes(&mut stream).await.unwrap();
    host.push(&lap.registry(&host, 2, &[("db", db.addr)], &[])).await;
    ends(&mut stream).await;
    old.ended().await.unwrap();
    new.stop().await;
}

#[tokio::test]
async fn a_member_asks_over_the_gate_whether_a_service_of_the_mesh_has_a_backend() {
    let mut host = Host::new();
    let lap = Member::of(&mut host);
    let db = Echo::start("db").await;
    host.push(&lap.registry(&host, 1, &[("db", db.addr)], &["db"])).await;
    let config = host.config();
    let daemon = host.start();
    host.serving().await;
    let (link, me) = (lap.link(), "me".parse().unwrap());
    let limits = stado_fleet::link::ExecLimits { stdout: 4096, deadline: DEADLINE };
    let asked = async |name: &str| {
        let line = format!("'/any/stado' service resolve '{name}' --raw");
        let output = link.exec(&me, &lap.paths(), &line, b"", limits).await.unwrap();
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        (output.status, text(&output.stdout), text(&output.stderr))
    };
    let (status, _, why) = asked("checkout.db").await;
    assert_eq!(status, Some(1));
    assert!(why.starts_with("Error: ") && why.contains("checkout.db"), "{why}");
    let frontend = port_of(&register(&config, "checkout.db", db.addr.port(), "k").await);
    assert_eq!(asked("checkout.db").await, (Some(0), format!("127.0.0.1:{frontend}\n"), String::new()));
    daemon.stop().await;
}

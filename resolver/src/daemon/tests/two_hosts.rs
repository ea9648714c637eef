//! An authority with a gate and a workstation, both daemons of this process, with SSH between them.
use super::support::*;
use russh::keys::ssh_key::LineEnding;
use russh::keys::{Algorithm, PrivateKey};
use serde_json::{Value, json};
use stado_fleet::admit::Snapshot;
use stado_fleet::authority::{Holders, Holding};
use stado_fleet::last_good::LastGood;
use stado_fleet::link::LinkConfig;
use std::path::Path;
use std::sync::Arc;

struct Fleet {
    authority: Host,
    /// A host that may become the authority, with a gate too.
    next: Host,
    desk: Host,
    gate: u16,
    next_gate: u16,
    adapter: u16,
}

fn key(file: &Path) -> String {
    let key = PrivateKey::random(&mut russh::keys::key::safe_rng(), Algorithm::Ed25519).unwrap();
    stado_fleet::disk::create_new(file, key.to_openssh(LineEnding::LF).unwrap().as_bytes()).unwrap();
    key.public_key().to_openssh().unwrap()
}

/// Gives a host a gate that admits one key; its line for a file of known hosts.
fn gate(host: &mut Host, ip: [u8; 4], port: u16, client_key: &str) -> String {
    let dir = host.home().join("gate");
    let host_key = key(&dir.join("host_ed25519"));
    stado_fleet::disk::replace(&dir.join("authorized_keys"), client_key.as_bytes()).unwrap();
    host.gate = Some(crate::gate::Config {
        bind: (ip, port).into(),
        host_key: dir.join("host_ed25519"),
        authorized_keys: dir.join("authorized_keys"),
    });
    format!("[{}]:{port} {host_key}\n", std::net::Ipv4Addr::from(ip))
}

impl Fleet {
    fn new() -> Self {
        let (mut authority, mut next, mut desk) = (Host::new(), Host::new(), Host::new());
        (next.target, desk.target) = (Some("next"), Some("desk"));
        let (first, second) = (port(), port());
        let client_key = key(&desk.home().join("id"));
        let known = gate(&mut authority, [127, 0, 0, 1], first, &client_key)
            + &gate(&mut next, [127, 0, 0, 2], second, &client_key);
        stado_fleet::disk::replace(&desk.home().join("known_hosts"), known.as_bytes()).unwrap();
        Self { authority, next, desk, gate: first, next_gate: second, adapter: port() }
    }

    /// Service `db` on the authority; the workstation reaches it through its adapter.
    fn registry(&self, generation: u64, db: &Echo) -> Value {
        let services = [("db", "me", format!("tcp://{}", db.addr))];
        let mut registry = self.authority.registry(generation, &[("db", "shop", None)], &services);
        registry["targets"][0]["ssh"] = json!(format!("u@127.0.0.1:{}", self.gate));
        registry["targets"][0]["service_resolver"]["adapters"] = json!([]);
        let desk = json!({"name": "desk", "kind": "local", "release_platform": "linux-amd64",
            "service_resolver": {"api_bind": format!("127.0.0.1:{}", self.desk.api), "refresh_seconds": 1, "max_stale_seconds": 2,
                "adapters": [{"service": "db", "consumer": "shop", "bind": format!("127.0.0.1:{}", self.adapter)}]}});
        let next = json!({"name": "next", "kind": "local", "release_platform": "linux-amd64",
            "ssh": format!("u@127.0.0.2:{}", self.next_gate),
            "service_resolver": {"api_bind": format!("127.0.0.1:{}", self.next.api), "refresh_seconds": 1, "max_stale_seconds": 2,
                "adapters": []}});
        registry["targets"].as_array_mut().unwrap().extend([desk, next]);
        registry
    }

    /// The same, with another authority.
    fn registry_of(&self, authority: &str, generation: u64, db: &Echo) -> Value {
        let mut registry = self.registry(generation, db);
        registry["service_directory"]["authority"]["target"] = json!(authority);
        registry
    }

    /// What the desk has told a host that it holds.
    fn heard(&self, by: &Host) -> Option<Holding> {
        let report = Holders::new(&by.home()).report(jiff::Timestamp::now());
        report.heard.into_iter().map(|heard| heard.holding).find(|holding| holding.target == "desk")
    }

    /// What `registry pull --from` leaves on a new host.
    fn give_copy(&self, registry: &Value) {
        let document = stado_fleet::document::Document::from_value(registry.clone());
        let valid = Arc::new(stado_fleet::validate::validate(document).unwrap());
        let snapshot = Snapshot { valid, store_version: "first".parse().unwrap() };
        LastGood::new(self.desk.home().join("cache")).record(&snapshot, jiff::Timestamp::now()).unwrap();
    }

    fn start_desk(&self) -> Running {
        let mut config = self.desk.config();
        let home = self.desk.home();
        config.fleet.as_mut().unwrap().link = LinkConfig {
            user: "u".into(),
            identity_files: vec![home.join("id")],
            known_hosts: vec![home.join("known_hosts")],
            ..LinkConfig::default()
        };
        Running::start(config)
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_change_on_the_authority_reaches_the_workstation_and_an_outage_stops_only_what_depends_on_it() {
    let fleet = Fleet::new();
    let (db, moved) = (Echo::start("db").await, Echo::start("moved").await);
    let first = fleet.registry(1, &db);
    fleet.authority.push(&first).await;
    fleet.give_copy(&first);
    let authority = fleet.authority.start();
    fleet.authority.serving().await;
    let desk = fleet.start_desk();
    let state = fleet.desk.serving().await;
    assert_ne!(state.store_version.as_deref(), Some("last-known-good"));
    assert_eq!(ask_once(fleet.adapter).await.as_deref(), Some("db hi"));

    // A move: the client's address stays, its open stream too.
    let mut open = Client::connect(fleet.adapter).await;
    assert_eq!(open.ask("1").await.as_deref(), Some("db 1"));
    fleet.authority.push(&fleet.registry(2, &moved)).await;
    fleet.desk.until_state("generation 2", |s| s.generation == Some(2) && s.state == "serving").await;
    assert_eq!(ask_once(fleet.adapter).await.as_deref(), Some("moved hi"));
    assert_eq!(open.ask("2").await.as_deref(), Some("db 2"));
    drop(open);

    // An outage: told, with the directory still held; a restart serves from the copy.
    authority.stop().await;
    let state = fleet.desk.until_state("backing off", |s| s.state == "backing_off").await;
    assert_eq!((state.generation, state.adapters.len()), (Some(2), 1));
    assert!(state.reason.unwrap().contains("primary"));
    desk.kill().await;
    let desk = fleet.start_desk();
    let from_copy = |s: &stado_fleet::ledger::ResolverState| s.store_version.as_deref() == Some("last-known-good");
    let state = fleet.desk.until_state("the copy", from_copy).await;
    assert_eq!(state.generation, Some(2));
    assert_eq!(http(fleet.desk.api, "/v1/resolve/service/db", Some("shop")).await.0, 200);

    let authority = fleet.authority.start();
    fleet.desk.until_state("recovered", |s| s.state == "serving" && !from_copy(s)).await;
    assert_eq!(ask_once(fleet.adapter).await.as_deref(), Some("moved hi"));
    desk.stop().await;
    authority.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_start_does_not_take_an_older_generation_than_its_copy() {
    let fleet = Fleet::new();
    let (db, wrong) = (Echo::start("db").await, Echo::start("wrong").await);
    fleet.authority.push(&fleet.registry(4, &wrong)).await;
    fleet.give_copy(&fleet.registry(5, &db));
    let authority = fleet.authority.start();
    fleet.authority.serving().await;
    let desk = fleet.start_desk();
    let sentence = "service directory rollback rejected: generation 4 < 5";
    let state = fleet.desk.until_state("the refusal", |s| s.reason.as_deref() == Some(sentence)).await;
    assert_eq!(state.generation, Some(5));
    fleet.authority.push(&fleet.registry(6, &db)).await;
    fleet.desk.until_state("generation 6", |s| s.state == "serving" && s.generation == Some(6)).await;
    assert_eq!(ask_once(fleet.adapter).await.as_deref(), Some("db hi"));
    desk.stop().await;
    authority.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_new_authority_is_followed_only_after_the_old_one_named_it() {
    let fleet = Fleet::new();
    let (db, wrong) = (Echo::start("db").await, Echo::start("wrong").await);
    let first = fleet.registry(1, &db);
    fleet.authority.push(&first).await;
    // It calls itself the authority, under a higher generation, and nobody has said so who counts.
    fleet.next.push(&fleet.registry_of("next", 5, &wrong)).await;
    fleet.give_copy(&first);
    let (authority, next) = (fleet.authority.start(), fleet.next.start());
    fleet.next.serving().await;
    let desk = fleet.start_desk();
    let before = fleet.desk.serving().await;
    fleet.desk.until_state("several reads", |s| s.loaded_at > before.loaded_at).await;
    assert_eq!(fleet.desk.state().unwrap().generation, Some(1));

    fleet.authority.push(&fleet.registry_of("next", 6, &db)).await;
    fleet.next.push(&fleet.registry_of("next", 7, &db)).await;
    let state = fleet.desk.until_state("the new one is followed", |s| s.generation == Some(7)).await;
    assert_eq!(state.state, "serving");
    // What the old one says from now on is heard by nobody; the new one may go back no more than the old one might.
    fleet.authority.push(&fleet.registry(9, &wrong)).await;
    fleet.next.push(&fleet.registry_of("next", 2, &wrong)).await;
    let sentence = "service directory rollback rejected: generation 2 < 7";
    let state = fleet.desk.until_state("the rollback", |s| s.reason.as_deref() == Some(sentence)).await;
    let refused = state.refused.unwrap();
    assert_eq!((refused.from.as_str(), refused.generation), ("next:registry.json", Some(2)));
    assert_eq!(ask_once(fleet.adapter).await.as_deref(), Some("db hi"));
    desk.stop().await;
    authority.stop().await;
    next.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_host_tells_its_authority_what_it_holds_and_what_it_refuses() {
    let fleet = Fleet::new();
    let (db, wrong) = (Echo::start("db").await, Echo::start("wrong").await);
    let first = fleet.registry(3, &db);
    fleet.authority.push(&first).await;
    fleet.give_copy(&first);
    let authority = fleet.authority.start();
    fleet.authority.serving().await;
    let desk = fleet.start_desk();
    let held = |generation: u64, refused: Option<u64>| {
        let said = fleet.heard(&fleet.authority)?;
        let same =
            said.generation == Some(generation) && said.refused.as_ref().map(|r| r.generation) == refused.map(Some);
        same.then_some(said)
    };
    until("what it holds", || held(3, None)).await;
    fleet.authority.push(&fleet.registry(2, &wrong)).await;
    let said = until("what it refuses", || held(3, Some(2))).await;
    let refused = said.refused.unwrap();
    assert_eq!(refused.reason, "service directory rollback rejected: generation 2 < 3");
    assert_eq!((said.state.as_str(), refused.from.as_str()), ("backing_off", "me:registry.json"));
    fleet.authority.push(&fleet.registry(4, &db)).await;
    let said = until("that it holds the next one", || held(4, None)).await;
    assert_eq!((said.state.as_str(), said.store_version), ("serving", fleet.desk.state().unwrap().store_version));
    desk.stop().await;
    authority.stop().await;
}

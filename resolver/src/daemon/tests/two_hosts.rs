//! An authority with a gate and a workstation, both daemons of this process, with SSH between them.
use super::support::*;
use russh::keys::ssh_key::LineEnding;
use russh::keys::{Algorithm, PrivateKey};
use serde_json::{Value, json};
use stado_fleet::admit::Snapshot;
use stado_fleet::last_good::LastGood;
use stado_fleet::link::LinkConfig;
use std::path::Path;
use std::sync::Arc;

struct Fleet {
    authority: Host,
    desk: Host,
    gate: u16,
    adapter: u16,
}

fn key(file: &Path) -> String {
    let key = PrivateKey::random(&mut russh::keys::key::safe_rng(), Algorithm::Ed25519).unwrap();
    stado_fleet::disk::create_new(file, key.to_openssh(LineEnding::LF).unwrap().as_bytes()).unwrap();
    key.public_key().to_openssh().unwrap()
}

impl Fleet {
    fn new() -> Self {
        let (mut authority, mut desk) = (Host::new(), Host::new());
        desk.target = Some("desk");
        let gate = port();
        let dir = authority.home().join("gate");
        let host_key = key(&dir.join("host_ed25519"));
        let client_key = key(&desk.home().join("id"));
        stado_fleet::disk::replace(&dir.join("authorized_keys"), client_key.as_bytes()).unwrap();
        stado_fleet::disk::replace(
            &desk.home().join("known_hosts"),
            format!("[127.0.0.1]:{gate} {host_key}\n").as_bytes(),
        )
        .unwrap();
        authority.gate = Some(crate::gate::Config {
            bind: ([127, 0, 0, 1], gate).into(),
            host_key: dir.join("host_ed25519"),
            authorized_keys: dir.join("authorized_keys"),
        });
        Self { authority, desk, gate, adapter: port() }
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
        registry["targets"].as_array_mut().unwrap().push(desk);
        registry
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

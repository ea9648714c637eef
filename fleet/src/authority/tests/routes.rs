//! Requests that would stand behind held ones, decided from the published files themselves (fleet contract §4.9).
use super::*;
use crate::disk::{Lock, LockAttempt, publish};
use crate::fault::Class;
use crate::ledger::{AdapterState, PublishedPaths, ResolverState, Wait};
use crate::store::object::{Address, Routes};
use crate::vault::{Broker, BrokerConfig};
use jiff::{Timestamp, ToSpan};
use std::net::SocketAddr;
use std::os::unix::fs::PermissionsExt;

const BIND: &str = "127.0.0.1:17601";

struct Desk {
    home: tempfile::TempDir,
    routes: PublishedRoutes,
}

impl Desk {
    /// A workstation with a copy that declares five seconds, and nothing published.
    fn new() -> Self {
        let home = tempfile::tempdir().unwrap();
        let last_good = LastGood::new(home.path().join("cache"));
        last_good.record(&snapshot_of(document(7, 5432), "old"), Timestamp::now()).unwrap();
        let published = PublishedPaths::beside(&home.path().join("resolver-state.json"));
        Self { home, routes: PublishedRoutes { published, last_good, me: None } }
    }

    fn state(&self, pid: u32) {
        let adapter = AdapterState { service: "db".into(), consumer: "shop".into(), bind: BIND.into() };
        let state = ResolverState {
            pid,
            state: "serving".into(),
            target: Some("desk".into()),
            updated_at: "2026-10-20T10:00:00+00:00".into(),
            adapters: vec![adapter],
            ..ResolverState::default()
        };
        publish(&self.routes.published.state, &serde_json::to_vec(&state).unwrap()).unwrap();
    }

    /// Lists waits at the adapter that have lasted so many seconds.
    fn waits(&self, seconds: &[i64]) {
        let wait = |ago: &i64| Wait {
            service: "db".into(),
            consumer: "shop".into(),
            bind: BIND.into(),
            active_host: "control".into(),
            endpoint: "127.0.0.1:5432".into(),
            since: (Timestamp::now() - ago.seconds()).to_string(),
            phase: "answer".into(),
            ..Wait::default()
        };
        let waits: Vec<Wait> = seconds.iter().map(wait).collect();
        publish(&self.routes.published.waiting, &serde_json::to_vec(&waits).unwrap()).unwrap();
    }

    fn lock(&self) -> Lock {
        match Lock::try_exclusive(&self.routes.published.lock, true).unwrap() {
            LockAttempt::Held(lock) => lock,
            LockAttempt::Busy { .. } => panic!("held"),
        }
    }

    fn held(&self) -> Option<String> {
        self.routes.held(BIND.parse().unwrap())
    }
}

#[test]
fn an_adapter_is_held_while_its_living_resolver_lists_long_waits_and_free_as_soon_as_they_are_answered() {
    let desk = Desk::new();
    assert_eq!(desk.held(), None, "nothing was ever published");
    desk.state(std::process::id());
    desk.waits(&[60, 30, 2]);
    assert_eq!(desk.held(), None, "a list whose publisher is gone holds nobody");
    let lock = desk.lock();
    let held = desk.held().unwrap();
    let start = "this host's resolver holds 2 connection(s) on that adapter unanswered longer than the 5s refresh interval it \
                 declares, so a request sent now would stand behind them: service db for consumer shop at 127.0.0.1:17601 has \
                 waited 60s for the first byte of an answer on an open channel to 127.0.0.1:5432 on control: ";
    assert!(held.starts_with(start), "{held}");
    assert!(held.ends_with("; `stado resolver status` lists every one"), "{held}");
    let other: SocketAddr = "127.0.0.1:17602".parse().unwrap();
    assert_eq!(desk.routes.held(other), None, "another address");
    desk.waits(&[2]);
    assert_eq!(desk.held(), None, "answered, or gone with their clients");
    publish(&desk.routes.published.waiting, b"{ torn").unwrap();
    let shown = desk.routes.published.waiting.display().to_string();
    let refusal = format!("the resolver's waiting list at {shown} is not the list this build writes: ");
    assert!(desk.held().unwrap().starts_with(&refusal), "a list that cannot be read is itself the refusal");
    drop(lock);
}

#[test]
fn a_host_without_a_copy_is_held_by_the_interval_that_the_contract_has_for_it() {
    let desk = Desk::new();
    std::fs::remove_dir_all(desk.home.path().join("cache")).unwrap();
    desk.state(std::process::id());
    let _lock = desk.lock();
    desk.waits(&[4]);
    assert_eq!(desk.held(), None, "it is young");
    desk.waits(&[9]);
    let held = desk.held().expect("a request sent now would stand behind it for as long as it stands");
    let start =
        "this host's resolver holds 1 connection(s) on that adapter unanswered longer than the 5s refresh interval";
    assert!(held.starts_with(start), "{held}");
}

#[tokio::test]
async fn a_vault_behind_a_held_adapter_is_not_asked() {
    let desk = Desk::new();
    desk.state(std::process::id());
    desk.waits(&[9]);
    let _lock = desk.lock();
    let token_file = desk.home.path().join("grant");
    std::fs::write(&token_file, "grant\n").unwrap();
    std::fs::set_permissions(&token_file, std::fs::Permissions::from_mode(0o600)).unwrap();
    for address in [format!("http://{BIND}"), "stado://service/db?consumer=shop".to_owned()] {
        let config = BrokerConfig {
            address: Address::parse("object_api.skarbiec.url", &address).unwrap(),
            consumer: "me".into(),
            token_file: token_file.clone(),
            ca_file: None,
        };
        let error = Broker::new(config, Arc::new(desk.routes.clone())).read("item", "field").await.unwrap_err();
        let start = format!(
            "Skarbiec not asked: POST http://{BIND}/v1/items/read not sent: this host's resolver holds 1 connection(s)"
        );
        assert!(error.sentence.starts_with(&start), "{error}");
        assert_eq!(error.class, Class::InfraDown, "exit 69");
    }
}

#[test]
fn an_adapter_that_is_not_served_is_explained_by_whoever_published_last() {
    let desk = Desk::new();
    let why = |consumer| desk.routes.adapter("db", consumer).unwrap_err();
    assert!(why("shop").contains("is an adapter's, and no resolver has published state at "), "{}", why("shop"));
    desk.state(std::process::id());
    assert!(why("shop").contains(" is not running, and no resolver has published since; its listeners went with it"));
    let _lock = desk.lock();
    assert_eq!(desk.routes.adapter("db", "shop").unwrap(), BIND.parse().unwrap());
    assert!(why("till").contains("this host's resolver publishes no such adapter; see `stado resolver status`"));
}

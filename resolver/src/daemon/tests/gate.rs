//! The gate's verbs over this host's own store, without the SSH in front.
use super::super::gate_verbs::GateVerbs;
use super::support::*;
use crate::gate::Verbs;
use serde_json::Value;
use std::sync::Arc;
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
        wake: Arc::new(Notify::new()),
        shelf: stado_fleet::join::Shelf::new(&host.config().fleet.unwrap().home),
        joining: Default::default(),
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
    assert!(none.allows("127.0.0.1:5".parse().unwrap()).unwrap_err().contains("no service directory yet"));

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
    assert_eq!(verbs.allows("127.0.0.1:54321".parse().unwrap()), Ok(()));
    for elsewhere in ["127.0.0.1:54322", "127.0.0.1:22", "127.0.0.2:54321"] {
        let why = verbs.allows(elsewhere.parse().unwrap()).unwrap_err();
        assert!(why.contains("generation 3 places no service at ") && why.contains(elsewhere), "{why}");
    }
    let shutdown = crate::daemon::Shutdown::new();
    super::super::drain::drain(daemon, None, &shutdown).await.unwrap();
}

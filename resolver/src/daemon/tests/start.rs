//! Starting: order, an empty home, identity, recovery.
use super::support::*;
use crate::daemon::{Announcement, DaemonError};
use stado_fleet::disk::{Lock, LockAttempt};

#[tokio::test]
async fn an_empty_home_serves_the_mesh_and_takes_up_a_first_registry_by_itself() {
    let mut host = Host::new();
    host.target = None;
    host.api_override = Some(([127, 0, 0, 1], host.api).into());
    let daemon = host.start();
    let served = daemon.up().await;
    let state = host.serving().await;
    assert_eq!((state.target, state.generation), (None, None));
    assert_eq!(state.api_bind, Some(format!("127.0.0.1:{}", host.api)));
    assert_eq!(http(host.api, "/health", None).await.0, 200);
    let lines = served.lines();
    assert!(lines[0].starts_with("mesh: 0 services known, control socket "), "{lines:?}");
    assert!(lines[1].starts_with("fleet: no registry yet at local:registry.json"), "{lines:?}");
    assert!(lines[2].contains("stado service register"), "{lines:?}");
    assert!(served.is_ready());

    let echo = Echo::start("db").await;
    let port = port();
    let mut registry = host.registry(1, &[("db", "shop", Some(port))], &[("db", "me", format!("tcp://{}", echo.addr))]);
    registry["targets"][0]["hostnames"] = serde_json::json!(["nobody.example"]);
    host.push(&registry).await;
    host.until_state("generation 1", |s| s.generation == Some(1)).await;
    assert_eq!(ask_once(port).await.as_deref(), Some("db hi"));
    daemon.stop().await;
}

#[tokio::test]
async fn the_default_api_address_in_use_is_said_and_an_empty_home_is_ready_without_it() {
    let mut host = Host::new();
    host.target = None;
    // Held by us or by anyone else on this machine: either way it is in use.
    let _holder = std::net::TcpListener::bind("127.0.0.1:17600");
    let daemon = host.start();
    let served = daemon.up().await;
    let fleet = served.fleet.clone().unwrap();
    assert!(fleet.unserved.is_empty() && served.is_ready(), "{fleet:?}");
    let said = fleet.warnings.join("\n");
    assert!(said.contains("lsof -nP -iTCP:17600 -sTCP:LISTEN") && said.contains("set `api_bind`"), "{said}");
    daemon.stop().await;
}

#[tokio::test]
async fn a_declared_api_address_in_use_stops_the_start_with_the_exact_sentence() {
    let host = Host::new();
    let holder = std::net::TcpListener::bind(("127.0.0.1", host.api)).unwrap();
    host.push(&host.registry(1, &[], &[("db", "me", "tcp://127.0.0.1:1".into())])).await;
    let error = host.start().ended().await.unwrap_err();
    assert!(matches!(error, DaemonError::Api(_)));
    let (api, cause) = (host.api, std::io::Error::from_raw_os_error(rustix::io::Errno::ADDRINUSE.raw_os_error()));
    assert_eq!(
        error.to_string(),
        format!(
            "could not bind 127.0.0.1:{api}: {cause}. Something else already holds this resolver port; find it with \
             `lsof -nP -iTCP:{api} -sTCP:LISTEN` and stop it before starting the resolver."
        )
    );
    let state: serde_json::Value = serde_json::from_slice(&std::fs::read(host.paths().state).unwrap()).unwrap();
    assert_eq!((state["state"].as_str(), state["reason"].as_str()), (Some("failed"), Some(error.to_string().as_str())));
    assert!(!host.dir.path().join("mesh.sock").exists());
    drop(holder);
    let daemon = host.start();
    host.serving().await;
    daemon.stop().await;
}

#[tokio::test]
async fn markers_are_written_before_serving_is_said_and_kept_on_every_refresh() {
    let host = Host::new();
    let (declared, api) = (port(), host.api);
    let services =
        [("db", "far", "tcp://127.0.0.1:5432".to_owned()), ("web", "me", "http://127.0.0.1:8080".to_owned())];
    host.push(&host.registry(1, &[("db", "shop", Some(declared))], &services)).await;
    let daemon = host.start();
    let mut marker_when_first_seen_serving = None;
    until("serving", || {
        let state = host.state().filter(|s| s.state == "serving")?;
        marker_when_first_seen_serving = Some(host.marker("db"));
        Some(state)
    })
    .await;
    assert_eq!(marker_when_first_seen_serving.unwrap(), Some(format!("tcp://127.0.0.1:{declared}\n")));
    assert_eq!(host.marker("web").as_deref(), Some("http://127.0.0.1:8080\n"));
    std::fs::remove_file(host.home().join("forwards/db.local")).unwrap();
    until("the marker again", || host.marker("db")).await;
    assert_eq!(http(api, "/health", None).await.0, 200);
    daemon.stop().await;
}

#[tokio::test]
async fn a_host_that_is_not_in_the_registry_backs_off_with_the_sentence_while_its_mesh_serves_and_heals() {
    let mut host = Host::new();
    host.target = None;
    let mut registry = host.registry(1, &[], &[("db", "me", "tcp://127.0.0.1:1".into())]);
    host.push(&registry).await;
    let daemon = host.start();
    let served = daemon.up().await;
    let state = host.until_state("backing off", |s| s.state == "backing_off").await;
    assert_eq!(state.reason.as_deref(), Some("resolver host \"nobody.example\" has no registry target identity"));
    assert!(state.attempt >= 1 && state.next_attempt_at.is_some());
    assert!(served.socket.unwrap().exists());
    registry["targets"][0]["hostnames"] = serde_json::json!(["nobody.example"]);
    host.push(&registry).await;
    let state = host.serving().await;
    assert_eq!(state.target.as_deref(), Some("me"));
    until("the second announcement", || {
        daemon.said.lock().unwrap().iter().any(|a| matches!(a, Announcement::Serving(_))).then_some(())
    })
    .await;
    daemon.stop().await;
}

#[tokio::test]
async fn an_unreachable_authority_leaves_the_copy_serving_after_a_start() {
    let host = Host::new();
    let echo = Echo::start("db").await;
    let port = port();
    let mut registry = host.registry(4, &[("db", "shop", Some(port))], &[("db", "me", format!("tcp://{}", echo.addr))]);
    registry["service_directory"]["authority"]["target"] = serde_json::json!("far");
    let document = stado_fleet::document::Document::from_value(registry);
    let valid = std::sync::Arc::new(stado_fleet::validate::validate(document).unwrap());
    let snapshot = stado_fleet::admit::Snapshot { valid, store_version: "abc".parse().unwrap() };
    let read_at = jiff::Timestamp::now() - jiff::SignedDuration::from_secs(600);
    stado_fleet::last_good::LastGood::new(host.home().join("cache")).record(&snapshot, read_at).unwrap();

    let daemon = host.start();
    // The authority is `u@127.0.0.3` port 22 without a known host key: it never answers us.
    let state = host.until_state("generation 4 from the copy", |s| s.generation == Some(4)).await;
    assert_eq!(state.store_version.as_deref(), Some("last-known-good"));
    let loaded: jiff::Timestamp = state.loaded_at.unwrap().parse().unwrap();
    assert!(jiff::Timestamp::now().duration_since(loaded).as_secs() >= 600);
    assert_eq!(ask_once(port).await.as_deref(), Some("db hi"));
    let (status, body) = http(host.api, "/health", None).await;
    assert_eq!((status, body), (503, serde_json::json!({"status": "stale"})));
    let (status, body) = http(host.api, "/v1/resolve/service/db", Some("shop")).await;
    assert_eq!((status, body["generation"].as_u64()), (200, Some(4)));
    host.until_state("backing off, still at generation 4", |s| s.state == "backing_off" && s.generation == Some(4))
        .await;
    assert_eq!(ask_once(port).await.as_deref(), Some("db hi"));
    daemon.stop().await;
}

#[tokio::test]
async fn a_second_daemon_on_one_home_is_refused_with_the_holder() {
    let host = Host::new();
    let LockAttempt::Held(_held) = Lock::try_exclusive(&host.paths().lock, true).unwrap() else { panic!("busy") };
    let error = host.start().ended().await.unwrap_err().to_string();
    assert!(error.contains(&format!("pid {}", std::process::id())), "{error}");
}

#[tokio::test]
async fn a_mesh_that_another_daemon_serves_is_unserved_and_the_fleet_is_served() {
    let host = Host::new();
    let mut alone = host.config();
    alone.fleet = None;
    let other = Running::start(alone);
    other.up().await;
    let echo = Echo::start("db").await;
    let port = port();
    host.push(&host.registry(
        1,
        &[("db", "shop", Some(port)), ("db", "free", None)],
        &[("db", "me", format!("tcp://{}", echo.addr))],
    ))
    .await;
    let daemon = host.start();
    let state = host.until_state("the mesh named", |s| s.state == "serving" && !s.unserved.is_empty()).await;
    assert_eq!(state.unserved[0].service, "mesh");
    assert!(state.unserved[0].reason.contains("another"), "{}", state.unserved[0].reason);
    assert_eq!(state.adapters.len(), 2);
    assert_eq!(ask_once(port).await.as_deref(), Some("db hi"));
    daemon.stop().await;
    assert!(host.dir.path().join("mesh.sock").exists());
    other.stop().await;
    assert!(!host.dir.path().join("mesh.sock").exists());
}

#[tokio::test]
async fn a_mesh_alone_never_touches_the_fleets_home_and_refuses_a_taken_socket() {
    let host = Host::new();
    std::fs::remove_dir_all(host.home()).unwrap();
    let config = || {
        let mut config = host.config();
        config.fleet = None;
        config
    };
    let daemon = Running::start(config());
    assert!(daemon.up().await.lines()[1].contains("the mesh of this host alone"));
    let error = Running::start(config()).ended().await.unwrap_err();
    assert!(matches!(error, DaemonError::Socket(_)), "{error}");
    daemon.stop().await;
    assert!(!host.home().exists());
}

#[tokio::test]
async fn a_named_host_without_a_registry_and_one_that_lost_its_copy_are_no_empty_homes() {
    for (target, half) in [(Some("me"), false), (None, true)] {
        let mut host = Host::new();
        host.target = target;
        if half {
            let cache = host.home().join("cache");
            std::fs::create_dir_all(&cache).unwrap();
            std::fs::write(cache.join("registry-last-good.json"), "{}").unwrap();
        }
        let daemon = host.start();
        let state = host.until_state("backing off", |s| s.state == "backing_off").await;
        let reason = state.reason.unwrap();
        assert!(reason.contains("no registry document at local:registry.json"), "{reason}");
        assert_eq!(reason.contains("registry-last-good.meta.json is missing"), half, "{reason}");
        daemon.stop().await;
    }
}

#[tokio::test]
async fn a_target_that_was_asked_for_and_is_another_host_is_not_served_and_says_who_this_is() {
    let mut host = Host::new();
    host.target = None;
    let mut registry = host.registry(1, &[], &[("db", "me", "tcp://127.0.0.1:1".into())]);
    registry["targets"][0]["hostnames"] = serde_json::json!(["nobody.example"]);
    host.push(&registry).await;
    let asking = |asked: &str| {
        let mut config = host.config();
        config.fleet.as_mut().unwrap().asked = Some(asked.parse().unwrap());
        Running::start(config)
    };
    let daemon = asking("far");
    let state = host.until_state("backing off", |s| s.state == "backing_off").await;
    assert_eq!(state.reason.as_deref(), Some("resolver target \"far\" does not match this host (\"me\")"));
    daemon.stop().await;
    let daemon = asking("me");
    assert_eq!(host.serving().await.target.as_deref(), Some("me"));
    daemon.stop().await;
}

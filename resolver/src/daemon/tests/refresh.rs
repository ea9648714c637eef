//! The refresh loop: what is refused leaves what is held in force.
use super::support::*;
use serde_json::{Value, json};

/// Pushes something that has to be refused, and checks that the old route serves on.
async fn refused(host: &Host, port: u16, registry: &Value, reason: &str) {
    let version = host.push(registry).await;
    let given = registry["service_directory"]["generation"].as_u64();
    let state = host
        .until_state(reason, |s| {
            let given = s.refused.as_ref().and_then(|given| given.store_version.as_deref());
            s.state == "backing_off" && given == Some(version.as_str())
        })
        .await;
    let refused = state.refused.as_ref().unwrap();
    assert_eq!((refused.from.as_str(), refused.generation), ("local:registry.json", given));
    assert!(refused.reason.contains(reason), "{}", refused.reason);
    assert_eq!(state.reason.as_ref(), Some(&refused.reason));
    assert_eq!(state.generation, Some(5));
    assert_eq!(state.adapters.len(), 1);
    assert!(state.attempt >= 1 && state.next_attempt_at.is_some() && state.listening);
    assert_eq!(ask_once(port).await.as_deref(), Some("db hi"));
}

#[tokio::test]
async fn rollbacks_silent_changes_empty_fleets_and_broken_documents_are_refused_and_recovered_from() {
    let host = Host::new();
    let (echo, wrong) = (Echo::start("db").await, Echo::start("wrong").await);
    let port = port();
    let at = |generation: u64, echo: &Echo| {
        host.registry(generation, &[("db", "shop", Some(port))], &[("db", "me", format!("tcp://{}", echo.addr))])
    };
    host.push(&at(5, &echo)).await;
    let daemon = host.start();
    host.serving().await;
    refused(&host, port, &at(4, &wrong), "service directory rollback rejected: generation 4 < 5").await;
    refused(&host, port, &at(5, &wrong), "service directory changed without advancing generation 5").await;
    let empty = json!({"schema_version": 2, "targets": [], "coordinators": []});
    refused(&host, port, &empty, "").await;
    let mut malformed = at(6, &wrong);
    malformed["targets"] = json!("gone");
    refused(&host, port, &malformed, "registry.targets: must be an array").await;
    let mut no_policy = at(6, &wrong);
    no_policy["targets"][0].as_object_mut().unwrap().remove("service_resolver");
    refused(&host, port, &no_policy, "registry target has no service_resolver configuration").await;

    std::fs::remove_file(host.store.root().join("registry.json")).unwrap();
    host.until_state("the missing document", |s| {
        s.reason.as_deref() == Some("no registry document at local:registry.json")
    })
    .await;
    assert_eq!(ask_once(port).await.as_deref(), Some("db hi"));

    host.push(&at(6, &wrong)).await;
    let state = host.until_state("generation 6", |s| s.state == "serving" && s.generation == Some(6)).await;
    assert_eq!((state.reason, state.attempt, state.next_attempt_at, state.refused), (None, 0, None, None));
    assert_eq!(ask_once(port).await.as_deref(), Some("wrong hi"));
    daemon.stop().await;
}

#[tokio::test]
async fn a_push_on_the_authority_is_applied_at_once_and_not_at_the_next_tick() {
    let host = Host::new();
    let (first, second) = (Echo::start("first").await, Echo::start("second").await);
    let port = port();
    let at = |generation: u64, echo: &Echo| {
        let services = [("db", "me", format!("tcp://{}", echo.addr))];
        let mut registry = host.registry(generation, &[("db", "shop", Some(port))], &services);
        let policy = &mut registry["targets"][0]["service_resolver"];
        (policy["refresh_seconds"], policy["max_stale_seconds"]) = (json!(86_400), json!(86_400));
        registry
    };
    let daemon = host.start();
    // Also the first registry of a host that had none, which until then is read every few seconds.
    host.push(&at(1, &first)).await;
    host.until_state("the first registry", |s| s.generation == Some(1)).await;
    assert_eq!(ask_once(port).await.as_deref(), Some("first hi"));
    for (generation, echo, answer) in [(2, &second, "second hi"), (3, &first, "first hi")] {
        host.push(&at(generation, echo)).await;
        host.until_state("the push", |s| s.generation == Some(generation)).await;
        assert_eq!(ask_once(port).await.as_deref(), Some(answer));
    }
    // A version that is refused is looked at once, and the one after it at once.
    host.push(&at(2, &second)).await;
    host.until_state("the refusal", |s| s.state == "backing_off").await;
    for _ in 0..100 {
        assert_eq!(ask_once(port).await.as_deref(), Some("first hi"));
    }
    assert_eq!(host.state().unwrap().attempt, 1, "not over and over");
    host.push(&at(4, &second)).await;
    host.until_state("the repair", |s| s.state == "serving" && s.generation == Some(4)).await;
    daemon.stop().await;
}

#[tokio::test]
async fn changes_outside_the_directory_need_no_new_generation() {
    let host = Host::new();
    let echo = Echo::start("db").await;
    let (first, second) = (port(), port());
    let services = [("db", "me", format!("tcp://{}", echo.addr))];
    let mut registry = host.registry(1, &[("db", "shop", Some(first))], &services);
    host.push(&registry).await;
    let daemon = host.start();
    let before = host.serving().await;
    registry["targets"][0]["service_resolver"]["adapters"][0]["bind"] = json!(format!("127.0.0.1:{second}"));
    host.push(&registry).await;
    let after =
        host.until_state("the new bind", |s| s.adapters.iter().any(|a| a.bind.ends_with(&second.to_string()))).await;
    assert_eq!((after.state.as_str(), after.generation), ("serving", before.generation));
    assert_eq!(ask_once(second).await.as_deref(), Some("db hi"));
    assert!(tokio::net::TcpStream::connect(("127.0.0.1", first)).await.is_err());
    daemon.stop().await;
}

#[tokio::test]
async fn a_restart_after_a_kill_serves_the_same_addresses_without_any_clean_up() {
    let host = Host::new();
    let echo = Echo::start("db").await;
    let port = port();
    host.push(&host.registry(
        1,
        &[("db", "shop", Some(port)), ("db", "free", None)],
        &[("db", "me", format!("tcp://{}", echo.addr))],
    ))
    .await;
    let daemon = host.start();
    let before = host.serving().await;
    daemon.kill().await;
    assert!(host.state().is_none());
    let daemon = host.start();
    let after = host.serving_after(&before).await;
    assert_eq!(after.adapters, before.adapters);
    assert_eq!(ask_once(port).await.as_deref(), Some("db hi"));
    daemon.stop().await;
}

#[tokio::test]
async fn a_directory_that_is_not_confirmed_past_its_window_serves_on_and_leaves_a_record_whatever_the_cause() {
    let host = Host::new();
    let echo = Echo::start("db").await;
    let port = port();
    let at = |generation: u64| {
        host.registry(generation, &[("db", "shop", Some(port))], &[("db", "me", format!("tcp://{}", echo.addr))])
    };
    host.push(&at(5)).await;
    let mut config = host.config();
    config.fleet.as_mut().unwrap().refusals = Some(stado_fleet::authority::Refusals::new(host.store.root()));
    let daemon = Running::start(config);
    host.serving().await;
    host.push(&at(4)).await;
    let dir = host.store.root().join("state/reader_refusals/me");
    let record = until("the record", || {
        let file = std::fs::read_dir(&dir)
            .ok()?
            .flatten()
            .map(|entry| entry.path())
            .find(|path| path.extension().is_some())?;
        serde_json::from_slice::<Value>(&std::fs::read(file).ok()?).ok()
    })
    .await;
    assert_eq!(
        (record["reason"].as_str(), record["reader"].as_str()),
        (Some("directory_cache_stale"), Some("resolver"))
    );
    let detail = record["detail"].as_str().unwrap();
    assert!(detail.starts_with("service directory cache is stale (store generation "), "{detail}");
    assert_eq!(http(host.api, "/health", None).await, (503, json!({"status": "stale"})));
    assert_eq!(http(host.api, "/v1/resolve/service/db", Some("shop")).await.0, 200);
    assert_eq!(ask_once(port).await.as_deref(), Some("db hi"));
    daemon.stop().await;
}

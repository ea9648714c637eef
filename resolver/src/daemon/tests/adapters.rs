//! Adapters: served, unserved, healed, moved, kept.
use super::support::*;
use serde_json::json;

#[tokio::test]
async fn two_adapters_reach_two_services_and_a_move_leaves_the_others_streams_alone() {
    let host = Host::new();
    let (db, web, moved) = (Echo::start("db").await, Echo::start("web").await, Echo::start("moved").await);
    let (db_port, web_port) = (port(), port());
    let adapters = [("db", "shop", Some(db_port)), ("web", "shop", Some(web_port))];
    let services =
        |web: &Echo| [("db", "me", format!("tcp://{}", db.addr)), ("web", "me", format!("tcp://{}", web.addr))];
    host.push(&host.registry(1, &adapters, &services(&web))).await;
    let daemon = host.start();
    let state = host.serving().await;
    assert_eq!((state.adapters.len(), state.unserved.len(), state.listening), (2, 0, true));
    let (mut to_db, mut to_web) = (Client::connect(db_port).await, Client::connect(web_port).await);
    assert_eq!(to_db.ask("1").await.as_deref(), Some("db 1"));
    assert_eq!(to_web.ask("1").await.as_deref(), Some("web 1"));

    host.push(&host.registry(2, &adapters, &services(&moved))).await;
    host.until_state("generation 2", |s| s.generation == Some(2)).await;
    assert_eq!(ask_once(web_port).await.as_deref(), Some("moved hi"));
    assert_eq!(to_db.ask("2").await.as_deref(), Some("db 2"));
    assert_eq!(to_web.ask("2").await.as_deref(), Some("web 2"));
    drop((to_db, to_web));
    daemon.stop().await;
}

#[tokio::test]
async fn a_port_that_someone_else_holds_is_unserved_with_its_reason_and_heals_without_a_change() {
    let host = Host::new();
    let echo = Echo::start("db").await;
    let (held, free) = (port(), port());
    let holder = std::net::TcpListener::bind(("127.0.0.1", held)).unwrap();
    let services = [("db", "me", format!("tcp://{}", echo.addr))];
    host.push(&host.registry(1, &[("db", "a", Some(held)), ("db", "b", Some(free))], &services)).await;
    let daemon = host.start();
    let state = host.serving().await;
    assert_eq!(state.adapters.len(), 1);
    assert_eq!(ask_once(free).await.as_deref(), Some("db hi"));
    let unserved = &state.unserved[0];
    assert_eq!((unserved.service.as_str(), unserved.consumer.as_str()), ("db", "a"));
    assert_eq!(unserved.bind, format!("127.0.0.1:{held}"));
    assert!(unserved.reason.starts_with(&format!("could not bind 127.0.0.1:{held}: ")), "{}", unserved.reason);
    assert!(unserved.reason.contains(&format!("`lsof -nP -iTCP:{held} -sTCP:LISTEN`")), "{}", unserved.reason);
    let since = unserved.since.clone().unwrap();
    let later = host.until_state("a later refresh", |s| s.loaded_at != state.loaded_at).await;
    assert_eq!(later.unserved[0].since.as_ref(), Some(&since));
    drop(holder);
    host.until_state("healed", |s| s.adapters.len() == 2 && s.unserved.is_empty()).await;
    assert_eq!(ask_once(held).await.as_deref(), Some("db hi"));
    daemon.stop().await;
}

#[tokio::test]
async fn an_adapter_on_the_stores_own_address_is_the_only_one_unserved() {
    let mut host = Host::new();
    let echo = Echo::start("db").await;
    let (store, free) = (port(), port());
    host.store_url = Some(format!("http://localhost:{store}"));
    let services = [("db", "me", format!("tcp://{}", echo.addr))];
    host.push(&host.registry(1, &[("db", "a", Some(store)), ("db", "b", Some(free))], &services)).await;
    let daemon = host.start();
    let state = host.serving().await;
    assert_eq!((state.adapters.len(), state.unserved.len()), (1, 1));
    let expected = format!(
        "this resolver is declared to serve 127.0.0.1:{store} for service \"db\", and the registry it must read first is \
         configured at storage.stado.url = http://localhost:{store}"
    );
    assert!(state.unserved[0].reason.starts_with(&expected), "{}", state.unserved[0].reason);
    assert!(tokio::net::TcpStream::connect(("127.0.0.1", store)).await.is_err());
    assert_eq!(ask_once(free).await.as_deref(), Some("db hi"));
    daemon.stop().await;
}

#[tokio::test]
async fn a_removed_adapter_is_closed_and_its_open_stream_goes_on() {
    let host = Host::new();
    let echo = Echo::start("db").await;
    let (stays, goes) = (port(), port());
    let services = [("db", "me", format!("tcp://{}", echo.addr))];
    host.push(&host.registry(1, &[("db", "a", Some(stays)), ("db", "b", Some(goes))], &services)).await;
    let daemon = host.start();
    host.serving().await;
    let mut open = Client::connect(goes).await;
    assert_eq!(open.ask("1").await.as_deref(), Some("db 1"));
    // Still allowed: only its address is taken away.
    let allowed = |generation: u64, adapters: &[(&str, &str, Option<u16>)]| {
        let mut registry = host.registry(generation, adapters, &services);
        registry["service_directory"]["services"]["db"]["consumers"]["b"] = json!({"capabilities": []});
        registry
    };
    host.push(&allowed(2, &[("db", "a", Some(stays))])).await;
    host.until_state("generation 2", |s| s.generation == Some(2) && s.adapters.len() == 1).await;
    assert!(tokio::net::TcpStream::connect(("127.0.0.1", goes)).await.is_err());
    assert_eq!(open.ask("2").await.as_deref(), Some("db 2"));
    // The port changes hands in one step.
    host.push(&allowed(3, &[("db", "c", Some(stays))])).await;
    host.until_state("generation 3", |s| s.generation == Some(3) && s.adapters.iter().any(|a| a.consumer == "c")).await;
    assert_eq!(ask_once(stays).await.as_deref(), Some("db hi"));
    drop(open);
    daemon.stop().await;
}

#[tokio::test]
async fn an_adapter_without_a_bind_keeps_its_port_over_restarts_and_its_marker_says_it() {
    let host = Host::new();
    let echo = Echo::start("db").await;
    host.push(&host.registry(1, &[("db", "shop", None)], &[("db", "far", format!("http://{}", echo.addr))])).await;
    let daemon = host.start();
    let before = host.serving().await;
    let first = before.adapters[0].bind.clone();
    until("its marker", || host.marker("db").filter(|m| *m == format!("http://{first}\n"))).await;
    daemon.kill().await;
    let daemon = host.start();
    assert_eq!(host.serving_after(&before).await.adapters[0].bind, first);
    let (status, body) = http(host.api, "/v1/resolve/service/db", Some("shop")).await;
    assert_eq!((status, body["gateway_url"].as_str()), (200, Some(format!("http://{first}").as_str())));
    daemon.stop().await;
}

#[tokio::test]
async fn a_service_in_a_placement_transaction_is_refused_on_its_bound_adapter_and_back_afterwards() {
    let host = Host::new();
    let echo = Echo::start("db").await;
    let port = port();
    let plain = host.registry(1, &[("db", "shop", Some(port))], &[("db", "me", format!("tcp://{}", echo.addr))]);
    let mut placed = plain.clone();
    let unit = json!({"name": "db", "unit": "db.service", "kind": "systemd", "path": "/etc/systemd/system/db.service"});
    let on = |host: &str| json!({"units": {"db": unit}, "probes": [{"service": "db", "url": "http://127.0.0.1:1/"}], "host": host});
    placed["placement_profiles"] = json!([{
        "name": "gateway", "services": ["db"], "stop_order": ["db"], "start_order": ["db"],
        "state": [{"path": "state.json", "required": false}], "hosts": {"me": on("me"), "far": on("far")}, "routing": []
    }]);
    let service = placed["service_directory"]["services"]["db"].as_object_mut().unwrap();
    service.remove("managed_service");
    service.insert("placement_profile".into(), json!("gateway"));
    service.insert("standby".into(), json!({"far": {"url": "tcp://127.0.0.1:1"}}));
    placed["targets"][1]["services"] = json!([]);
    let mut moving = placed.clone();
    moving["placement_transactions"] = json!([{"id": "6f2b0c3e-8a3f-4a51-9a7e-1f3c5d7e9b11", "profile": "gateway", "from_host": "me",
        "to_host": "far", "started_at": "2026-08-20T10:00:00Z"}]);
    host.push(&placed).await;
    let daemon = host.start();
    let before = host.serving().await;
    assert_eq!(ask_once(port).await.as_deref(), Some("db hi"));
    host.push(&moving).await;
    let sentence = "service \"db\" is unavailable during placement transaction for \"gateway\"";
    let state = host.until_state("the transaction", |s| s.unserved.iter().any(|u| u.reason == sentence)).await;
    assert_eq!(state.adapters, before.adapters);
    assert_eq!(
        (state.unserved[0].service.as_str(), state.unserved[0].bind.as_str()),
        ("db", before.adapters[0].bind.as_str())
    );
    assert_eq!(ask_once(port).await, None);
    let refused =
        "HTTP/1.1 502 Bad Gateway\r\nContent-Type: text/plain\r\nContent-Length: 21\r\n\r\nupstream unavailable\n";
    assert_eq!(answer_to(port, "GET / HTTP/1.1\r\n\r\n").await, refused);
    let (status, body) = http(host.api, "/v1/resolve/service/db", Some("shop")).await;
    assert_eq!((status, body["error"].as_str()), (503, Some(sentence)));
    host.push(&placed).await;
    host.until_state("its end", |s| s.unserved.is_empty()).await;
    assert_eq!(ask_once(port).await.as_deref(), Some("db hi"));
    daemon.stop().await;
}

#[tokio::test]
async fn a_marker_that_cannot_be_written_is_named_and_comes_back_by_itself() {
    let host = Host::new();
    let echo = Echo::start("db").await;
    let services = [("db", "far", format!("http://{}", echo.addr))];
    host.push(&host.registry(1, &[("db", "shop", Some(port()))], &services)).await;
    let daemon = host.start();
    host.serving().await;
    let marker = host.home().join("forwards/db.local");
    std::fs::remove_file(&marker).unwrap();
    std::fs::create_dir(&marker).unwrap();
    let state = host.until_state("the marker is named", |s| !s.unserved.is_empty()).await;
    let row = &state.unserved[0];
    assert_eq!((row.service.as_str(), row.consumer.as_str()), ("forward marker of db", ""));
    assert_eq!(row.bind, marker.display().to_string());
    assert!(row.reason.starts_with("it could not be written: "), "{}", row.reason);
    std::fs::remove_dir(&marker).unwrap();
    host.until_state("it is written", |s| s.unserved.is_empty()).await;
    assert!(host.marker("db").is_some());
    daemon.stop().await;
}

#[tokio::test]
async fn ignored_and_half_bound_things_are_warnings_and_are_served() {
    let host = Host::new();
    let echo = Echo::start("db").await;
    let port = port();
    let _half = std::net::TcpListener::bind(("::1", port));
    let mut registry = host.registry(1, &[("db", "shop", Some(port))], &[("db", "me", format!("tcp://{}", echo.addr))]);
    registry["targets"][0]["service_resolver"]["adapters"][0]["idle_seconds"] = json!(330);
    host.push(&registry).await;
    let daemon = host.start();
    let state = host.serving().await;
    assert!(state.unserved.is_empty());
    assert!(state.warnings.iter().any(|w| w.starts_with("idle_seconds of db/shop is ignored")), "{:?}", state.warnings);
    if _half.is_ok() {
        assert!(state.warnings.iter().any(|w| w.contains(&format!("[::1]:{port}"))), "{:?}", state.warnings);
    }
    assert_eq!(ask_once(port).await.as_deref(), Some("db hi"));
    daemon.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_adapter_with_another_budget_or_consumer_goes_on_with_its_listener_and_refuses_nobody() {
    let host = Host::new();
    let echo = Echo::start("db").await;
    let port = port();
    let at = |generation: u64, consumer: &str, seconds: u64| {
        let services = [("db", "me", format!("tcp://{}", echo.addr))];
        let mut registry = host.registry(generation, &[("db", consumer, Some(port))], &services);
        registry["targets"][0]["service_resolver"]["adapters"][0]["connect_seconds"] = json!(seconds);
        registry
    };
    host.push(&at(1, "shop", 5)).await;
    let daemon = host.start();
    host.serving().await;
    let over = std::sync::Arc::new(std::sync::atomic::AtomicBool::new(false));
    let asking = tokio::spawn({
        let over = over.clone();
        async move {
            let mut asked = 0_u32;
            while !over.load(std::sync::atomic::Ordering::Relaxed) {
                assert_eq!(Client::connect(port).await.ask("hi").await.as_deref(), Some("db hi"));
                asked += 1;
            }
            asked
        }
    });
    let mut open = Client::connect(port).await;
    let change = async |generation: u64, consumer: &str| {
        host.push(&at(generation, consumer, generation)).await;
        let taken = |s: &stado_fleet::ledger::ResolverState| {
            s.generation == Some(generation) && s.adapters.len() == 1 && s.adapters[0].consumer == consumer
        };
        host.until_state("the change", taken).await;
    };
    for generation in 2..10 {
        change(generation, "shop").await;
        assert_eq!(open.ask("1").await.as_deref(), Some("db 1"));
    }
    over.store(true, std::sync::atomic::Ordering::Relaxed);
    assert!(asking.await.unwrap() > 10);
    // Another consumer is another right: what the old one held ends, and the port still refuses nobody.
    change(10, "till").await;
    assert_eq!(ask_once(port).await.as_deref(), Some("db hi"));
    let ends = async { while open.ask("1").await.is_some() {} };
    tokio::time::timeout(super::support::DEADLINE, ends).await.expect("the withdrawn consumer's connection ends");
    daemon.stop().await;
}

#[tokio::test]
async fn remembered_ports_that_cannot_be_read_are_set_aside_and_said_and_stop_nothing() {
    let host = Host::new();
    let echo = Echo::start("db").await;
    let declared = port();
    let services = [("db", "me", format!("tcp://{}", echo.addr))];
    host.push(&host.registry(1, &[("db", "a", Some(declared)), ("db", "b", None)], &services)).await;
    std::fs::create_dir(host.home().join("adapter-ports.json")).unwrap();
    let daemon = host.start();
    let state = host.serving().await;
    assert_eq!((state.adapters.len(), state.unserved.len()), (2, 0));
    let said = state.warnings.iter().find(|w| w.contains("adapter-ports.json could not be read and was set aside as"));
    assert!(said.is_some(), "{:?}", state.warnings);
    daemon.kill().await;

    // What a newer daemon wrote stays as it is, and costs only the adapters that it is about.
    let newer = r#"{"version": 9, "ports": {}}"#;
    let file = host.home().join("adapter-ports.json");
    std::fs::write(&file, newer).unwrap();
    let daemon = host.start();
    let state = host.serving_after(&state).await;
    assert_eq!((state.adapters.len(), state.unserved.len()), (1, 1));
    let reason = &state.unserved[0].reason;
    assert!(reason.contains("unsupported version 9") && reason.contains("move that file away"), "{reason}");
    assert_eq!(ask_once(declared).await.as_deref(), Some("db hi"));
    assert_eq!(std::fs::read_to_string(&file).unwrap(), newer);
    std::fs::remove_file(&file).unwrap();
    host.until_state("healed", |s| s.adapters.len() == 2 && s.unserved.is_empty()).await;
    daemon.stop().await;
}

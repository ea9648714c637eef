//! The resolution API over a held directory.
use super::support::*;
use serde_json::json;
use tokio::net::TcpStream;

#[tokio::test]
async fn resolving_gives_the_gateway_and_never_the_endpoint() {
    let host = Host::new();
    let (tcp, web) = (port(), port());
    let services =
        [("db", "far", "tcp://127.0.0.1:54321".to_owned()), ("web", "far", "http://127.0.0.1:54322".to_owned())];
    host.push(&host.registry(7, &[("db", "shop", Some(tcp)), ("web", "shop", Some(web))], &services)).await;
    let daemon = host.start();
    host.serving().await;
    let api = host.api;
    let resolved = |service: &str, gateway: Option<String>, capabilities: &[&str]| json!({"service": format!("stado://service/{service}"), "generation": 7, "gateway_url": gateway, "capabilities": capabilities});
    let ask = async |service: &str, consumer: &str| {
        http(api, &format!("/v1/resolve/service/{service}"), Some(consumer)).await
    };
    assert_eq!(ask("db", "shop").await, (200, resolved("db", Some(format!("tcp://127.0.0.1:{tcp}")), &["use"])));
    assert_eq!(ask("web", "shop").await, (200, resolved("web", Some(format!("http://127.0.0.1:{web}")), &["use"])));
    assert_eq!(ask("web", "other").await, (200, resolved("web", None, &[])));
    assert_eq!(ask("nope", "shop").await, (503, json!({"error": "unknown logical service \"nope\""})));
    assert_eq!(
        ask("db", "thief").await,
        (503, json!({"error": "consumer \"thief\" is not authorized for service \"db\""}))
    );
    assert_eq!(
        http(api, "/health", None).await,
        (200, json!({"status": "ok", "service": "stado-resolver", "generation": 7}))
    );
    daemon.stop().await;
}

#[tokio::test]
async fn a_wait_is_answered_by_the_change_that_makes_it_good() {
    let host = Host::new();
    let known = [("db", "far", "tcp://127.0.0.1:54321".to_owned())];
    host.push(&host.registry(1, &[], &known)).await;
    let daemon = host.start();
    host.serving().await;
    let api = host.api;
    let waiting = tokio::spawn(async move { http(api, "/v1/resolve/service/new?wait=30s", Some("other")).await });
    let both = [known[0].clone(), ("new", "far", "tcp://127.0.0.1:54322".to_owned())];
    host.push(&host.registry(2, &[], &both)).await;
    let (status, body) = waiting.await.unwrap();
    assert_eq!((status, body["generation"].as_u64()), (200, Some(2)));
    assert_eq!(http(api, "/v1/resolve/service/none?wait=10ms", Some("other")).await.0, 503);
    daemon.stop().await;
}

#[tokio::test]
async fn a_moved_api_address_is_bound_before_the_old_one_closes_and_a_held_one_leaves_the_old_one() {
    let mut host = Host::new();
    let services = [("db", "far", "tcp://127.0.0.1:54321".to_owned())];
    host.push(&host.registry(1, &[], &services)).await;
    let daemon = host.start();
    host.serving().await;
    let (old, new, held) = (host.api, port(), port());
    host.api = new;
    host.push(&host.registry(2, &[], &services)).await;
    host.until_state("the new address", |s| s.api_bind == Some(format!("127.0.0.1:{new}"))).await;
    assert_eq!(http(new, "/health", None).await.0, 200);
    until("the old address closed", || std::net::TcpStream::connect(("127.0.0.1", old)).is_err().then_some(())).await;

    let holder = std::net::TcpListener::bind(("127.0.0.1", held)).unwrap();
    host.api = held;
    host.push(&host.registry(3, &[], &services)).await;
    let state = host.until_state("the held address", |s| s.generation == Some(3) && !s.unserved.is_empty()).await;
    assert_eq!(state.unserved[0].service, "resolution-api");
    assert_eq!(state.api_bind, Some(format!("127.0.0.1:{new}")));
    assert_eq!(http(new, "/health", None).await.1["generation"], json!(3));
    drop(holder);
    host.until_state("healed", |s| s.api_bind == Some(format!("127.0.0.1:{held}")) && s.unserved.is_empty()).await;
    daemon.stop().await;
    assert!(TcpStream::connect(("127.0.0.1", held)).await.is_err());
}

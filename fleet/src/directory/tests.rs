use super::*;
use crate::fixture::{example, fleet, valid};
use proptest::prelude::*;
use serde_json::{Value, json};

fn directory(value: Value, host: &str) -> Directory {
    Directory::build(valid(value).registry, host.parse().unwrap())
}

fn typical(host: &str) -> Directory {
    directory(example("typical").value().clone(), host)
}

#[test]
fn a_route_to_another_host_says_how_to_reach_it() {
    let route = typical("control-host").resolve("orders", "shop").unwrap();
    assert_eq!((route.active_host.as_str(), route.local), ("gpu-box", false));
    assert_eq!(route.endpoint.to_string(), "tcp://127.0.0.1:5433");
    assert_eq!(route.capabilities, ["read", "write"]);
    let paths: Vec<String> = route.paths.iter().map(|p| format!("{} {}", p.name, p.destination)).collect();
    assert_eq!(paths, ["primary ops@gpu.example"]);
    assert_eq!(route.stado_command.as_deref(), Some("/opt/stado/bin/stado"));
}

#[test]
fn a_route_to_this_host_is_local_and_needs_no_path() {
    let route = typical("gpu-box").resolve("orders", "reports").unwrap();
    assert!(route.local && route.paths.is_empty());
    assert_eq!(route.capabilities, ["read"]);
}

#[test]
fn refusals_are_the_sentences_of_the_contract() {
    let directory = typical("gpu-box");
    let sentence = |service: &str, consumer: &str| directory.resolve(service, consumer).unwrap_err().to_string();
    assert_eq!(sentence("none", "shop"), "unknown logical service \"none\"");
    assert_eq!(sentence("orders", "lem"), "consumer \"lem\" is not authorized for service \"orders\"");
}

#[test]
fn a_placement_transaction_withholds_its_services_from_authorized_consumers() {
    let mut value = example("typical").value().clone();
    value["placement_transactions"] = json!([{"id": "67e55044-10b1-426f-9247-bb680e5fe0c8", "profile": "gateway",
        "from_host": "control-host", "to_host": "gpu-box", "started_at": "2026-08-20T10:00:00Z"}]);
    let directory = directory(value, "gpu-box");
    let held = directory.resolve("brama", "lem").unwrap_err();
    assert_eq!(held.to_string(), "service \"brama\" is unavailable during placement transaction for \"gateway\"");
    assert!(held.class().retry_helps());
    assert!(matches!(directory.resolve("brama", "shop"), Err(NoRoute::NotAuthorized { .. })));
    assert!(directory.resolve("orders", "shop").is_ok());
}

#[test]
fn a_service_without_an_endpoint_on_its_active_host_has_no_route() {
    let mut registry = (*valid(example("typical").value().clone()).registry).clone();
    let services = &mut registry.directory.as_mut().unwrap().services;
    services.get_mut("orders").unwrap().endpoints.clear();
    let directory = Directory::build(Arc::new(registry), "gpu-box".parse().unwrap());
    let sentence = directory.resolve("orders", "shop").unwrap_err().to_string();
    assert_eq!(sentence, "service \"orders\" has no endpoint on its active host");
}

#[test]
fn a_registry_without_a_directory_has_no_services() {
    let directory = directory(json!({"schema_version": 2, "targets": []}), "anyone");
    assert_eq!(directory.generation(), None);
    assert_eq!(directory.resolve("a", "b").unwrap_err(), NoRoute::UnknownService("a".into()));
}

#[test]
fn only_endpoints_of_this_host_are_placed_here() {
    let here = |host: &str, endpoint: &str| typical(host).lend_to_anybody(endpoint.parse().unwrap()).is_some();
    assert!(here("gpu-box", "127.0.0.1:5433") && !here("control-host", "127.0.0.1:5433"));
    assert!(!here("gpu-box", "127.0.0.1:8080"), "a standby address is never dialled");
    assert!(!here("gpu-box", "127.0.0.1:22"));
}

proptest! {
    /// The index answers as a walk through the document does.
    #[test]
    fn the_index_agrees_with_the_document(hosts in 1_usize..6, services in 1_usize..20, host in 0_usize..6, asked in 0_usize..24, consumer in "web|jobs|other") {
        let value = fleet(hosts, services);
        let directory = directory(value.clone(), &format!("host-{host}"));
        let name = format!("service-{asked}");
        let entry = value["service_directory"]["services"].get(&name);
        match directory.resolve(&name, &consumer) {
            Ok(route) => {
                let active = entry.unwrap()["active_host"].as_str().unwrap();
                prop_assert_eq!(route.active_host.as_str(), active);
                prop_assert_eq!(route.endpoint.to_string(), entry.unwrap()["endpoints"][active]["url"].as_str().unwrap());
                prop_assert_eq!(route.local, active == format!("host-{host}"));
                prop_assert_eq!(route.paths.is_empty(), route.local);
                prop_assert_eq!(json!(route.capabilities), entry.unwrap()["consumers"][&consumer]["capabilities"].clone());
            }
            Err(NoRoute::UnknownService(_)) => prop_assert!(entry.is_none()),
            Err(NoRoute::NotAuthorized { .. }) => prop_assert!(entry.unwrap()["consumers"].get(&consumer).is_none()),
            Err(other) => prop_assert!(false, "{}", other),
        }
    }
}

//! Documents for tests: the example registries, and fleets of any size.
use crate::document::Document;
use crate::validate::{Valid, validate};
use proptest::prelude::*;
use serde_json::{Map, Value, json};

/// Names of the files in `examples/registries`.
pub(crate) const EXAMPLES: [&str; 4] = ["small", "typical", "large", "future"];

/// Where an example is.
pub(crate) fn example_path(name: &str) -> std::path::PathBuf {
    std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("../examples/registries/{name}.json"))
}

/// An example registry.
pub(crate) fn example(name: &str) -> Document {
    Document::parse(std::fs::read(example_path(name)).unwrap()).unwrap()
}

/// A value that is expected to be a valid registry.
pub(crate) fn valid(value: Value) -> Valid {
    validate(Document::from_value(value)).unwrap()
}

/// A fleet of `hosts` targets and `services` services, each with two consumers; service `s` runs on host `s % hosts`, and each
/// host has an adapter for the service of the next host. `examples/registries/large.json` is `fleet(50, 250)`.
pub(crate) fn fleet(hosts: usize, services: usize) -> Value {
    let targets: Vec<Value> = (0..hosts).map(|host| target(host, hosts, services)).collect();
    let entries: Map<String, Value> = (0..services).map(|s| (format!("service-{s}"), service(s, hosts))).collect();
    json!({
        "schema_version": 2,
        "targets": targets,
        "coordinators": [],
        "service_directory": {
            "authority": {"target": "host-0", "command": "/opt/stado/bin/stado"},
            "generation": 1,
            "services": entries,
        },
    })
}

fn target(host: usize, hosts: usize, services: usize) -> Value {
    let units: Vec<Value> = (0..services)
        .filter(|service| service % hosts == host)
        .map(|service| json!({"name": format!("service-{service}"), "kind": "systemd", "unit": format!("service-{service}.service")}))
        .collect();
    let next = (host + 1) % hosts;
    let adapters = if next < services {
        json!([{"service": format!("service-{next}"), "consumer": "web", "bind": "127.0.0.1:18000"}])
    } else {
        json!([])
    };
    json!({
        "name": format!("host-{host}"),
        "kind": "local",
        "release_platform": "linux-amd64",
        "ssh": format!("ops@host-{host}.example"),
        "hostnames": [format!("host-{host}.local")],
        "services": units,
        "service_resolver": {"api_bind": "127.0.0.1:17600", "refresh_seconds": 5, "max_stale_seconds": 15, "adapters": adapters},
    })
}

fn service(service: usize, hosts: usize) -> Value {
    let host = format!("host-{}", service % hosts);
    let port = 20_000 + service % 10_000;
    let scheme = if service.is_multiple_of(2) { "http" } else { "tcp" };
    json!({
        "managed_service": format!("service-{service}"),
        "active_host": &host,
        "endpoints": {&host: {"url": format!("{scheme}://127.0.0.1:{port}")}},
        "consumers": {"web": {"capabilities": ["read"]}, "jobs": {"capabilities": ["read", "write"]}},
    })
}

/// Any JSON value, with numbers whose text a float would not keep.
pub(crate) fn any_json() -> impl Strategy<Value = Value> {
    let number = prop_oneof![
        any::<i64>().prop_map(|n| n.to_string()),
        "-?(0|[1-9][0-9]{0,30})(\\.[0-9]{1,20})?([eE][+-]?[0-9]{1,3})?",
    ];
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        number.prop_map(|text| serde_json::from_str(&text).unwrap()),
        any::<String>().prop_map(Value::from),
    ];
    leaf.prop_recursive(5, 60, 6, |inner| {
        prop_oneof![
            proptest::collection::vec(inner.clone(), 0..6).prop_map(Value::from),
            any_object(inner, 0..6).prop_map(Value::from),
        ]
    })
}

/// Any JSON object.
pub(crate) fn any_document() -> impl Strategy<Value = Value> {
    any_object(any_json(), 0..8).prop_map(Value::from)
}

fn any_object(
    values: impl Strategy<Value = Value>,
    size: std::ops::Range<usize>,
) -> impl Strategy<Value = Map<String, Value>> {
    let key = prop_oneof!["[a-z_.]{1,8}", any::<String>()];
    proptest::collection::vec((key, values), size).prop_map(|pairs| pairs.into_iter().collect())
}

use super::*;
use crate::fixture::{EXAMPLES, example, fleet};
use crate::name::{ConsumerId, LogicalName};
use serde_json::{Value, json};

/// Findings of the typical example after changes: the place at a JSON pointer gets a value; a leading `-` removes the key.
fn after(changes: &[(&str, Value)]) -> Vec<String> {
    let mut value = example("typical").value().clone();
    for (pointer, new) in changes {
        let (outer, key) = pointer.rsplit_once('/').unwrap();
        let (remove, outer) = outer.strip_prefix('-').map_or((false, outer), |o| (true, o));
        match value.pointer_mut(outer).unwrap_or_else(|| panic!("no {outer}")) {
            Value::Object(map) if remove => drop(map.shift_remove(key).unwrap()),
            Value::Object(map) => drop(map.insert(key.replace("~1", "/"), new.clone())),
            Value::Array(list) if key == "-" => list.push(new.clone()),
            Value::Array(list) => list[key.parse::<usize>().unwrap()] = new.clone(),
            other => panic!("{pointer} is in {other}"),
        }
    }
    match validate(Document::from_value(value)) {
        Ok(_) => Vec::new(),
        Err(invalid) => invalid.0.iter().map(Finding::to_string).collect(),
    }
}

#[track_caller]
fn first(pointer: &str, value: Value, expected: &str) {
    assert_eq!(after(&[(pointer, value)]).first().map(String::as_str), Some(expected), "{pointer}");
}

#[track_caller]
fn fine(pointer: &str, value: Value) {
    assert_eq!(after(&[(pointer, value)]), Vec::<String>::new(), "{pointer}");
}

#[test]
fn the_examples_are_valid() {
    for name in EXAMPLES {
        let valid = validate(example(name)).unwrap_or_else(|e| panic!("{name}: {e}"));
        assert_eq!(valid.registry.targets.len(), valid.document.target_count());
    }
}

#[test]
fn an_empty_fleet_and_a_missing_directory_are_valid() {
    let registry = validate(Document::from_value(json!({"schema_version": 2, "targets": []}))).unwrap().registry;
    assert!(registry.directory.is_none() && registry.targets.is_empty());
    let mut one = example("small").value().clone();
    one.as_object_mut().unwrap().shift_remove("service_directory");
    assert!(validate(Document::from_value(one)).is_ok(), "adapters of a registry without a directory");
}

#[test]
fn sentences_of_the_document() {
    first("/schema_version", json!(1), "registry.schema_version: must be 2");
    first("-/schema_version", json!(null), "registry.schema_version: must be 2");
    first("/targets", json!("none"), "registry.targets: must be an array");
    first("-/targets", json!(null), "registry.targets: must be an array");
    first("/targets/-", json!(7), "registry.targets[3]: must be an object");
    first("/coordinators", json!({}), "registry.coordinators: must be an array");
    let twice = Document::parse(br#"{"schema_version":2,"targets":[],"targets":[]}"#.as_slice()).unwrap();
    assert_eq!(validate(twice).unwrap_err().to_string(), "registry: duplicate key 'targets'; keep one of them");
}

#[test]
fn sentences_of_a_target() {
    let identifier = "must be a lowercase target identifier";
    first("/targets/0/name", json!("Control"), &format!("registry.targets[0].name: {identifier}"));
    first("/targets/0/name", json!(null), &format!("registry.targets[0].name: {identifier}"));
    first("/targets/1/name", json!("control-host"), "registry.targets[1].name: duplicate target name 'control-host'");
    first("/targets/0/kind", json!("aws"), "registry.targets[0].kind: must be one of ['gcp', 'local', 'vast']");
    first(
        "/targets/0/release_platform",
        json!("linux-arm64"),
        "registry.targets[0].release_platform: must be one of ['darwin-arm64', 'linux-amd64'] and must be confirmed by host inventory",
    );
    first("/targets/0/role", json!("A B"), &format!("registry.targets[0].role: {identifier}"));
    first(
        "/targets/0/host_heuristic",
        json!("sometimes"),
        "registry.targets[0].host_heuristic: must be the supported selector 'always-on'",
    );
    first(
        "/targets/1/stado_command",
        json!("stado"),
        "registry.targets[1].stado_command: must be an absolute path without '..'",
    );
    fine("/targets/0/tags", json!({"any": "thing"}));
}

#[test]
fn sentences_of_hostnames() {
    first("/targets/0/hostnames", json!("a"), "registry.targets[0].hostnames: must be an array");
    let one = |name: Value, sentence: &str| {
        first("/targets/0/hostnames", json!([name]), &format!("registry.targets[0].hostnames[0]: {sentence}"));
    };
    one(json!(7), "must be a string");
    one(json!(""), "must not be empty");
    one(json!(" . "), "must not be empty");
    one(json!("Control.Local."), "must be normalized as 'control.local'");
    one(json!("alice@Laptop"), "must be normalized as 'alice@laptop'");
    let strange = "must be a hostname, not a URL or SSH destination";
    for name in ["http://control", "a b", "@host", "a@b@c", "ops@"] {
        one(json!(name), strange);
    }
    fine("/targets/0/hostnames", json!(["Alice@devbox"]));
}

#[test]
fn sentences_of_connection_paths() {
    first("/targets/0/ssh", json!(7), "registry.targets[0].ssh: must be a string or null");
    first("/targets/0/ssh", json!("ops@"), "registry.targets[0].ssh: must include a host");
    first("/targets/0/ssh_fallbacks", json!({}), "registry.targets[0].ssh_fallbacks: must be an array");
    let many: Vec<Value> =
        (0..17).map(|i| json!({"name": format!("p{i}"), "destination": format!("h{i}.example")})).collect();
    first("/targets/0/ssh_fallbacks", json!(many), "registry.targets[0].ssh_fallbacks: must contain at most 16 paths");
    first("/targets/0/ssh_fallbacks/0", json!("x"), "registry.targets[0].ssh_fallbacks[0]: must be an object");
    let name = "registry.targets[0].ssh_fallbacks[1].name";
    let identifier = "must be a lowercase path identifier other than 'primary'";
    first("/targets/0/ssh_fallbacks/1/name", json!("primary"), &format!("{name}: {identifier}"));
    first("/targets/0/ssh_fallbacks/1/name", json!("LAN"), &format!("{name}: {identifier}"));
    first("/targets/0/ssh_fallbacks/1/name", json!("overlay"), &format!("{name}: duplicate SSH path name 'overlay'"));
    let destination = "registry.targets[0].ssh_fallbacks[1].destination";
    first("/targets/0/ssh_fallbacks/1/destination", json!(""), &format!("{destination}: must include a host"));
    for ip in ["192.168.1.7", "10.0.0.1", "172.16.9.9", "169.254.3.4"] {
        first(
            "/targets/0/ssh_fallbacks/1/destination",
            json!(format!("ops@{ip}:2222")),
            &format!(
                "{destination}: names the lease-assigned address {ip}, which the local network reassigns; name the host by its network name (for example its .local name)"
            ),
        );
    }
    fine("/targets/0/ssh_fallbacks/1/destination", json!("ops@198.51.100.7"));
    fine("/targets/0/ssh", json!("ops@192.168.1.7"));
    fine("/targets/0/ssh_fallbacks/1/cost", json!(10));
}

#[test]
fn one_identity_belongs_to_one_target() {
    let declared = |place: &str, identity: &str, by: &str| {
        format!("registry.targets{place}: host identity '{identity}' is already declared by registry.targets{by}")
    };
    first(
        "/targets/1/hostnames",
        json!(["control-host.local"]),
        &declared("[1].hostnames[0]", "control-host.local", "[0].hostnames[0]"),
    );
    first(
        "/targets/1/hostnames",
        json!(["x", "control-host"]),
        &declared("[1].hostnames[1]", "control-host", "[0].name"),
    );
    first("/targets/1/ssh", json!("me@control.example:2222"), &declared("[1].ssh", "control.example", "[0].ssh"));
    first(
        "/targets/1/ssh",
        json!("CONTROL.overlay.example"),
        &declared("[1].ssh", "control.overlay.example", "[0].ssh_fallbacks[0].destination"),
    );
    first(
        "/targets/2/ssh_fallbacks/0/destination",
        json!("control.example"),
        &declared("[2].ssh_fallbacks[0].destination", "control.example", "[0].ssh"),
    );
    fine("/targets/0/hostnames", json!(["control-host.local", "control-host"]));
}

#[test]
fn a_user_part_makes_an_identity_of_its_own() {
    let host = |name: &str, user: &str| {
        json!({"name": name, "kind": "local", "release_platform": "linux-amd64",
               "ssh": format!("{user}@devbox"), "hostnames": [format!("{user}@devbox")]})
    };
    let fleet = |a: Value, b: Value| validate(Document::from_value(json!({"schema_version": 2, "targets": [a, b]})));
    assert!(fleet(host("a", "alice"), host("b", "bob")).is_ok());
    let same = fleet(host("a", "alice"), host("b", "alice")).unwrap_err();
    assert_eq!(
        same.0[0].to_string(),
        "registry.targets[1].hostnames[0]: host identity 'alice@devbox' is already declared by registry.targets[0].hostnames[0]"
    );
}

const ORDERS: &str = "/service_directory/services/orders";

#[track_caller]
fn orders(key: &str, value: Value, at: &str, sentence: &str) {
    first(&format!("{ORDERS}/{key}"), value, &format!("registry.service_directory.services.orders{at}: {sentence}"));
}

#[test]
fn sentences_of_the_directory() {
    let sd = "registry.service_directory";
    first("/service_directory", json!([]), &format!("{sd}: must be an object"));
    first("/service_directory", json!(null), &format!("{sd}: must be an object"));
    for generation in [json!(0), json!(-1), json!("7"), json!(1.5), json!(null)] {
        first("/service_directory/generation", generation, &format!("{sd}.generation: must be positive"));
    }
    first("/service_directory/services", json!({}), &format!("{sd}.services: must not be empty"));
    first("/service_directory/services", json!([]), &format!("{sd}.services: must be an object"));
    first(
        "/service_directory/authority/target",
        json!("x"),
        &format!("{sd}.authority.target: unknown registry target"),
    );
    for command in ["stado", "/opt/../stado", ""] {
        let sentence = format!("{sd}.authority.command: must be an absolute path without '..'");
        first("/service_directory/authority/command", json!(command), &sentence);
    }
    let unreachable =
        [("/service_directory/authority/target", json!("alice-laptop")), ("-/targets/2/ssh_fallbacks", json!(null))];
    assert_eq!(after(&unreachable)[0], format!("{sd}.authority.target: must declare an SSH connection path"));
    let service = json!({"managed_service": "orders", "active_host": "gpu-box",
        "endpoints": {"gpu-box": {"url": "tcp://127.0.0.1:1"}}, "consumers": {"c": {}}});
    first(
        "/service_directory/services/.orders",
        service.clone(),
        &format!("{sd}.services..orders: must be a lowercase identifier without empty edges"),
    );
    fine("/service_directory/services/orders.eu_1", service);
}

#[test]
fn sentences_of_a_service() {
    orders("active_host", json!("nowhere"), ".active_host", "unknown registry target");
    orders("active_host", json!("control-host"), ".active_host", "has no declared endpoint");
    orders("endpoints", json!({}), ".endpoints", "must not be empty");
    orders("endpoints/nowhere", json!({"url": "tcp://127.0.0.1:1"}), ".endpoints.nowhere", "unknown registry target");
    orders(
        "standby",
        json!({"gpu-box": {"url": "tcp://127.0.0.1:1"}}),
        ".standby.gpu-box",
        "is the active host, which serves rather than stands by",
    );
    orders("standby", json!({"nowhere": {"url": "tcp://127.0.0.1:1"}}), ".standby.nowhere", "unknown registry target");
    orders("consumers", json!({}), ".consumers", "must not be empty");
    orders(
        "consumers/shop/capabilities",
        json!(["read", "write", "read"]),
        ".consumers.shop.capabilities[2]",
        "duplicate capability",
    );
    orders("managed_service", json!(null), ".managed_service", "fixed routes must name their managed service");
    orders("managed_service", json!(""), ".managed_service", "fixed routes must name their managed service");
    orders("managed_service", json!("brama"), ".managed_service", "is not declared on the active host");
    orders(
        "declaration",
        json!({"source": {"artifact": "a", "sha256": "F0"}}),
        ".declaration.source.sha256",
        "must be 64 lowercase hex",
    );
    fine(&format!("{ORDERS}/managed_service"), json!("orders"));
    let no_way = [
        ("/service_directory/services/orders/endpoints/alice-laptop", json!({"url": "tcp://127.0.0.1:1"})),
        ("-/targets/2/ssh_fallbacks", json!(null)),
    ];
    assert_eq!(
        after(&no_way)[0],
        "registry.service_directory.services.orders.endpoints.alice-laptop: remote resolution requires targets[].ssh"
    );
}

#[test]
fn sentences_of_an_endpoint() {
    let url =
        |url: &str, sentence: &str| orders("endpoints/gpu-box/url", json!(url), ".endpoints.gpu-box.url", sentence);
    url("127.0.0.1", "invalid URL: relative URL without a base");
    url("https://127.0.0.1:1", "must use host-relative loopback HTTP");
    let extras = "must not contain credentials, query, or fragment";
    url("http://u@127.0.0.1:1", extras);
    url("http://127.0.0.1:1?q", extras);
    url("tcp://127.0.0.1:1#f", extras);
    url("http://127.0.0.1:1/api", "must be an origin without a path");
    url("tcp://127.0.0.1:1/api", "must be an origin without a path");
    let loopback = "must use host-relative loopback with a known port";
    for outside in [
        "http://10.0.0.1:80",
        "tcp://db.example:5432",
        "tcp://127.0.0.1",
        "http://127.0.0.1:0",
        "tcp://[2001:db8::1]:1",
    ] {
        url(outside, loopback);
    }
    orders(
        "endpoints/gpu-box/base_path",
        json!("/api/"),
        ".endpoints.gpu-box.base_path",
        "must be an absolute path with no trailing slash",
    );
}

#[test]
fn endpoints_are_read_as_they_are_meant() {
    let read = |url: &str| endpoint::parse(url).map(|e| e.to_string());
    for (url, meant) in [
        ("http://127.0.0.1:8080", "http://127.0.0.1:8080"),
        ("http://127.0.0.1:8080/", "http://127.0.0.1:8080"),
        ("http://localhost", "http://localhost:80"),
        ("HTTP://LOCALHOST:9", "http://localhost:9"),
        ("tcp://[::1]:5432", "tcp://[::1]:5432"),
        ("tcp://127.0.0.2:5432", "tcp://127.0.0.2:5432"),
        ("tcp://localhost:5432", "tcp://localhost:5432"),
    ] {
        assert_eq!(read(url).as_deref(), Ok(meant), "{url}");
    }
}

#[test]
fn sentences_of_a_resolver_name_the_target() {
    let at = "registry.targets[gpu-box].service_resolver";
    let sentence = |key: &str, value: Value, place: &str, sentence: &str| {
        first(&format!("/targets/1/service_resolver/{key}"), value, &format!("{at}{place}: {sentence}"));
    };
    sentence("refresh_seconds", json!(0), ".refresh_seconds", "must be positive");
    sentence("max_stale_seconds", json!(4), ".max_stale_seconds", "must not be shorter than refresh_seconds");
    sentence("api_bind", json!("localhost:1"), ".api_bind", "must be an IP socket address");
    sentence("api_bind", json!("0.0.0.0:17600"), ".api_bind", "must be loopback");
    sentence("adapters/1/bind", json!("127.0.0.1"), ".adapters[1].bind", "must be an IP socket address");
    sentence("adapters/1/bind", json!("192.0.2.1:9"), ".adapters[1].bind", "must be loopback");
    sentence("adapters/1/bind", json!("127.0.0.1:18776"), ".adapters[1].bind", "duplicate resolver bind");
    sentence("adapters/1/bind", json!("127.0.0.1:17600"), ".adapters[1].bind", "duplicate resolver bind");
    sentence("adapters/1/service", json!("nothing"), ".adapters[1].service", "unknown logical service");
    sentence("adapters/1/consumer", json!("shop"), ".adapters[1].consumer", "is not authorized by the service route");
}

#[test]
fn a_resolver_is_read_with_the_defaults_of_older_documents() {
    let mut value = example("typical").value().clone();
    let resolver = value.pointer_mut("/targets/1/service_resolver").unwrap().as_object_mut().unwrap();
    resolver.shift_remove("refresh_seconds");
    resolver.shift_remove("max_stale_seconds");
    resolver["adapters"][0]["bind"] = json!("127.0.0.1:0");
    resolver["adapters"][0]["connect_seconds"] = json!(0);
    resolver["adapters"][0]["idle_seconds"] = json!("long");
    let registry = validate(Document::from_value(value)).unwrap().registry;
    let policy = registry.targets["gpu-box"].resolver.clone().unwrap();
    assert_eq!((policy.refresh_seconds, policy.max_stale_seconds), (5, 60));
    let read = |i: usize| {
        (policy.adapters[i].bind.is_some(), policy.adapters[i].connect_seconds, policy.adapters[i].idle_seconds)
    };
    assert_eq!((read(0), read(1)), ((false, None, Some(0)), (true, Some(20), Some(330))));
    assert_eq!(registry.targets["alice-laptop"].resolver.as_ref().unwrap().adapters[1].bind, None);
}

#[test]
fn one_loopback_port_has_one_owner() {
    let products = |hosts: Value| json!({"products": {"brama": hosts}});
    let sentence = |who: &str, port: u16, what: &str| {
        format!(
            "registry.targets[gpu-box].service_resolver: {who} claims 127.0.0.1:{port}, which registry.release_control.products.brama declares as its {what} on this host; one loopback port has one owner"
        )
    };
    first(
        "/release_control",
        products(json!({"stable_bind": "127.0.0.1:17601", "targets": ["gpu-box"]})),
        &sentence("resolver adapter brama", 17601, "stable_bind"),
    );
    first(
        "/release_control",
        products(json!({"hosts": {"gpu-box": {"candidate_port": 17600}}})),
        &sentence("resolver api_bind", 17600, "candidate port"),
    );
    fine("/release_control", products(json!({"stable_bind": "127.0.0.1:17601", "targets": ["elsewhere"]})));
    fine("/release_control", json!("anything"));
}

#[test]
fn sentences_of_placement_profiles() {
    let profile = |key: &str, value: Value, place: &str, sentence: &str| {
        let at = format!("registry.placement_profiles[0]{place}: {sentence}");
        let found = after(&[(&format!("/placement_profiles/0/{key}"), value)]);
        assert!(found.contains(&at), "{at} is not in {found:#?}");
    };
    let copy = example("typical").value().pointer("/placement_profiles/0").unwrap().clone();
    first(
        "/placement_profiles/-",
        copy,
        "registry.placement_profiles[1].name: duplicate placement profile \"gateway\"",
    );
    profile("services", json!([]), ".services", "must not be empty");
    profile("stop_order", json!(["brama"]), ".stop_order", "must contain every profile service exactly once");
    profile(
        "start_order",
        json!(["brama", "brama"]),
        ".start_order",
        "must contain every profile service exactly once",
    );
    profile("hosts", json!({"control-host": {}}), ".hosts", "must contain at least two destinations");
    profile("hosts/nowhere", json!({}), ".hosts.nowhere", "host is not a registry target");
    profile(
        "hosts/gpu-box/units",
        json!({"brama": {}}),
        ".hosts.gpu-box.units",
        "must define every profile service exactly once",
    );
    profile("hosts/gpu-box/probes", json!([]), ".hosts.gpu-box.probes", "must probe every profile service");
    for url in ["http://127.0.0.1/health", "http://gpu.example:80/", "?"] {
        profile(
            "hosts/gpu-box/probes/0/url",
            json!(url),
            ".hosts.gpu-box.probes[0].url",
            "must use a loopback address and explicit port",
        );
    }
    profile("state", json!([]), ".state", "must not be empty");
    for path in ["/etc", "../x", "a//b", ""] {
        profile(
            "state/0/path",
            json!(path),
            ".state[0].path",
            "must be a clean path relative to its root ($HOME, or the host's work_root with root: work)",
        );
    }
    fine("/placement_profiles/0/hosts/gpu-box/probes/0/url", json!("http://127.0.0.1:80/health"));
    fine("/placement_profiles/0/hosts/gpu-box/probes/0/url", json!("tcp://127.0.0.1:5432"));
    fine("/placement_profiles/0/hosts/gpu-box/probes/0/url", json!("tcp://[::1]:5432"));
}

#[test]
fn sentences_of_placed_services() {
    let brama = "registry.service_directory.services.brama";
    let at = "/service_directory/services/brama";
    first(
        &format!("{at}/placement_profile"),
        json!("none"),
        &format!("{brama}.placement_profile: unknown placement profile"),
    );
    first(
        &format!("{ORDERS}/placement_profile"),
        json!("gateway"),
        "registry.service_directory.services.orders.managed_service: placement-backed routes derive their managed unit from the profile",
    );
    let fixed = [
        ("/service_directory/services/brama/managed_service", json!("brama")),
        ("-/service_directory/services/brama/placement_profile", json!(null)),
    ];
    assert_eq!(after(&fixed)[0], format!("{brama}.placement_profile: must be \"gateway\""));
    let other = [
        ("/service_directory/services/orders/placement_profile", json!("gateway")),
        ("-/service_directory/services/orders/managed_service", json!(null)),
    ];
    assert_eq!(
        after(&other)[0],
        "registry.service_directory.services.orders.placement_profile: profile does not contain this service"
    );
    first(
        &format!("{at}/standby"),
        json!({}),
        &format!("{brama}: endpoints and standby together must name every placement host exactly once"),
    );
    let subject = "placement profile \"gateway\" service \"brama\"";
    first("/targets/0/services/1", json!({"name": "x"}), &format!("{subject} has no active managed unit"));
    let unit = json!({"name": "brama", "unit": "brama.service"});
    first(
        "/targets/1/services/-",
        unit,
        &format!("{subject} has multiple active managed units: control-host, gpu-box"),
    );
    let moved = [
        ("/service_directory/services/brama/active_host", json!("gpu-box")),
        ("/service_directory/services/brama/endpoints", json!({"gpu-box": {"url": "http://127.0.0.1:8080"}})),
        ("/service_directory/services/brama/standby", json!({"control-host": {"url": "http://127.0.0.1:8080"}})),
    ];
    assert_eq!(after(&moved), [format!("{brama}.active_host: must match the managed unit on \"control-host\"")]);
}

#[test]
fn sentences_of_placement_transactions() {
    let good = json!({"id": "67e55044-10b1-426f-9247-bb680e5fe0c8", "profile": "gateway", "from_host": "control-host",
                      "to_host": "gpu-box", "started_at": "2026-08-20T10:00:00Z"});
    fine("/placement_transactions", json!([good]));
    let bad = |key: &str, value: Value, place: &str, sentence: &str| {
        let mut one = good.clone();
        one[key] = value;
        first(
            "/placement_transactions",
            json!([one]),
            &format!("registry.placement_transactions[0]{place}: {sentence}"),
        );
    };
    bad("id", json!("7"), ".id", "must be a UUID");
    bad("profile", json!("none"), ".profile", "references an unknown placement profile");
    bad("to_host", json!("control-host"), "", "must reference two different registry targets");
    bad("from_host", json!("nowhere"), "", "must reference two different registry targets");
    bad("started_at", json!("yesterday"), ".started_at", "must be RFC3339");
    first(
        "/placement_transactions",
        json!([good, good]),
        "registry.placement_transactions[1].profile: another transaction already owns this profile",
    );
}

#[test]
fn sentences_of_fleets_enrollment_and_channels() {
    first("/fleets", json!({}), "registry.fleets: must be an array");
    first("/fleets/-", json!({"name": "A"}), "registry.fleets[2].name: must be a lowercase fleet identifier");
    first("/fleets/-", json!({"name": "lab"}), "registry.fleets[2].name: duplicate fleet 'lab'");
    first("/targets/0/fleet", json!(7), "registry.targets[0].fleet: must be a string");
    first(
        "/targets/0/fleet",
        json!("dev"),
        "registry.targets[0].fleet: target 'control-host' points at undeclared fleet 'dev'",
    );
    first("/enrollment", json!([]), "registry.enrollment: must be an object");
    first("/enrollment/allow_join", json!("yes"), "registry.enrollment.allow_join: must be a boolean");
    first("/enrollment/key_custody", json!("me"), "registry.enrollment.key_custody: must be 'skarbiec' or 'openssh'");
    first("/channels", json!([]), "registry.channels: must be an object");
    first("/channels/control_plane", json!("loopback"), "registry.channels.control_plane: must be an array");
    first("/channels/control_plane/0", json!(1), "registry.channels.control_plane[0]: must be a string");
}

#[test]
fn all_findings_come_at_once_in_the_order_of_the_contract() {
    let found = after(&[
        ("/channels", json!([])),
        ("/service_directory/generation", json!(0)),
        ("/placement_profiles/0/state", json!([])),
        ("/targets/1/service_resolver/refresh_seconds", json!(0)),
        ("/targets/0/kind", json!("x")),
        ("/coordinators", json!({})),
    ]);
    let places: Vec<&str> = found.iter().filter_map(|f| f.split_once(": ").map(|(place, _)| place)).collect();
    assert_eq!(
        places,
        [
            "registry.targets[0].kind",
            "registry.coordinators",
            "registry.service_directory.generation",
            "registry.targets[gpu-box].service_resolver.refresh_seconds",
            "registry.placement_profiles[0].state",
            "registry.channels",
        ]
    );
    let invalid = Invalid(vec![
        Finding { location: "registry.a".into(), sentence: "must be b".into() },
        Finding { location: String::new(), sentence: "x".into() },
        Finding { location: String::new(), sentence: "y".into() },
    ]);
    assert_eq!(invalid.to_string(), "registry.a: must be b (and 2 more findings)");
}

#[test]
fn one_fault_is_one_finding() {
    for (pointer, value) in [
        ("/targets/0/kind", json!("x")),
        ("/targets/1/ssh_fallbacks", json!(7)),
        ("/service_directory/services/orders/endpoints/gpu-box/url", json!(7)),
        ("/service_directory/services/orders/consumers", json!({})),
        ("/service_directory/authority/command", json!("x")),
    ] {
        let found = after(&[(pointer, value)]);
        let about_adapters = found.iter().filter(|f| f.contains("is not authorized")).count();
        assert_eq!(found.len() - about_adapters, 1, "{pointer}: {found:#?}");
    }
}

#[test]
fn a_thousand_hosts_with_ten_thousand_services_validate_and_resolve() {
    let valid = validate(Document::from_value(fleet(1_000, 10_000))).unwrap();
    let directory = crate::directory::Directory::build(valid.registry.clone(), "host-7".parse().unwrap());
    for service in [0, 7, 9_999] {
        let route = directory.resolve(&format!("service-{service}"), "jobs").unwrap();
        assert_eq!(route.active_host.as_str(), format!("host-{}", service % 1_000));
        assert_eq!(route.local, service == 7);
    }
    assert_eq!(valid.registry.directory.as_ref().unwrap().services.len(), 10_000);
}

#[test]
fn the_typed_view_holds_what_the_document_says() {
    let registry = validate(example("typical")).unwrap().registry;
    let control = &registry.targets["control-host"];
    let names: Vec<&str> = control.paths.iter().map(|p| p.name.as_str()).collect();
    assert_eq!(names, ["primary", "overlay", "lan"]);
    assert_eq!(control.paths[0].destination.to_string(), "ops@control.example:22");
    assert_eq!(registry.targets["gpu-box"].stado_command.as_deref(), Some("/opt/stado/bin/stado"));
    assert_eq!(registry.targets["alice-laptop"].paths[0].name, "mdns");
    let directory = registry.directory.as_ref().unwrap();
    assert_eq!((directory.authority_target.as_str(), directory.generation.0), ("control-host", 7));
    let order: Vec<&str> = directory.services.keys().map(LogicalName::as_str).collect();
    assert_eq!(order, ["stado-object-api", "orders", "brama", "skarbiec"]);
    let orders = &directory.services["orders"];
    assert_eq!(orders.endpoints["gpu-box"].to_string(), "tcp://127.0.0.1:5433");
    let consumers: Vec<&str> = orders.consumers.keys().map(ConsumerId::as_str).collect();
    assert_eq!(consumers, ["shop", "reports"]);
    assert_eq!(directory.services["brama"].placement_profile.as_deref(), Some("gateway"));
    assert_eq!(registry.profiles["gateway"].len(), 2);
}

use super::*;
use serde_json::json;
use stado_fleet::validate::validate;

/// One host with one service, and whatever `change` makes of it.
fn registry(change: impl Fn(&mut Value)) -> (Document, std::sync::Arc<Registry>) {
    let mut value = json!({
        "schema_version": 2,
        "targets": [{
            "name": "control", "kind": "local", "release_platform": "linux-amd64", "ssh": "ops@192.0.2.10",
            "services": [{"name": "web", "path": "/nonexistent/web.service"}],
            "service_resolver": {
                "api_bind": "127.0.0.1:17600", "refresh_seconds": 5, "max_stale_seconds": 15,
                "adapters": [{"service": "web", "consumer": "shop", "bind": "127.0.0.1:17601"}]
            }
        }],
        "service_directory": {
            "authority": {"target": "control", "command": "/opt/stado"}, "generation": 1,
            "services": {"web": {
                "managed_service": "web", "active_host": "control",
                "endpoints": {"control": {"url": "http://127.0.0.1:8080"}},
                "consumers": {"shop": {"capabilities": ["read"]}}
            }}
        }
    });
    change(&mut value);
    let valid = validate(Document::from_value(value)).unwrap();
    (valid.document, valid.registry)
}

fn me() -> TargetName {
    "control".parse().unwrap()
}

/// Kind and subject of everything that the document shows by itself.
fn shown(change: impl Fn(&mut Value)) -> Vec<(&'static str, String)> {
    let (document, registry) = registry(change);
    let found = of_document(&document, &registry);
    assert!(found.iter().all(|f| !f.remedy.is_empty() && !f.detail.is_empty()), "{found:?}");
    found.into_iter().map(|f| (f.finding, f.subject)).collect()
}

#[test]
fn a_registry_that_agrees_with_itself_has_no_finding() {
    assert_eq!(shown(|_| {}), []);
}

#[test]
fn an_endpoint_that_is_the_hosts_own_resolver_is_found() {
    // Fleet contract §8, failure 25: an adapter on a service's own port.
    let details = |port: u16| {
        let (document, registry) = registry(|value| {
            let url = format!("http://127.0.0.1:{port}");
            value["service_directory"]["services"]["web"]["endpoints"]["control"]["url"] = url.into();
        });
        sockets::self_references(&document, &registry).into_iter().map(|d| d.detail).collect::<Vec<_>>()
    };
    let tail = "on that same target: the adapter would proxy to itself";
    let place = "service_directory.services.web.endpoints.control is 127.0.0.1";
    assert_eq!(details(17601), [format!("{place}:17601, which is adapter for web {tail}")]);
    assert_eq!(details(17600), [format!("{place}:17600, which is the resolver's own API {tail}")]);
    assert!(details(8080).is_empty());
}

#[test]
fn a_unit_without_its_file_is_found_on_its_host() {
    let (document, _) = registry(|_| {});
    let found = units::missing(&document, &me());
    assert_eq!((found[0].finding, found[0].subject.as_str()), ("missing-plist", "web"));
    assert!(units::missing(&document, &"other".parse().unwrap()).is_empty());
}

#[test]
fn a_unit_that_its_host_cannot_run_is_misdeclared() {
    let unit = |kind: &'static str, path: &'static str| {
        move |value: &mut Value| value["targets"][0]["services"][0] = json!({"name": "web", "kind": kind, "path": path})
    };
    let misdeclared = [("misdeclared-domain", "web".to_owned())];
    assert_eq!(shown(unit("launchd", "/Library/LaunchDaemons/web.plist")), misdeclared, "on Linux");
    assert_eq!(shown(unit("systemd", "/Library/LaunchDaemons/web.plist")), misdeclared);
    assert_eq!(shown(unit("systemd", "/etc/systemd/system/web.service")), []);
    let mac = |kind, path| {
        move |value: &mut Value| {
            unit(kind, path)(value);
            value["targets"][0]["release_platform"] = "darwin-arm64".into();
        }
    };
    assert_eq!(shown(mac("systemd", "")), misdeclared);
    assert_eq!(shown(mac("launchd", "/etc/web.plist")), misdeclared);
    assert_eq!(shown(mac("launchd", "/Library/LaunchDaemons/web.plist")), []);
}

#[test]
fn keys_that_nobody_reads_are_found_where_they_cost_something() {
    let found = shown(|value| {
        value["future"] = 1.into();
        value["targets"][0]["rack"] = 7.into();
        value["targets"][0]["service_resolver"]["udp"] = true.into();
        value["targets"][0]["service_resolver"]["adapters"][0]["idle_seconds"] = 120.into();
        value["service_directory"]["services"]["web"]["weight"] = 3.into();
    });
    let subjects: Vec<&str> = found
        .iter()
        .map(|(finding, subject)| {
            assert_eq!(*finding, "unread-declaration");
            subject.as_str()
        })
        .collect();
    assert_eq!(
        subjects,
        [
            "targets[control].service_resolver.udp",
            "service_directory.services.web.weight",
            "targets[control].service_resolver.adapters[0].idle_seconds"
        ]
    );
}

#[test]
fn a_grant_of_what_its_consumer_does_not_have_is_found() {
    let found = shown(|value| {
        value["service_directory"]["services"]["web"]["consumers"]["shop"]["grants"] =
            json!([{"consumer": "till", "capabilities": ["read", "write"], "token_file": "/t"}]);
    });
    assert_eq!(found, [("capability-unsatisfied", "web".to_owned())]);
}

#[test]
fn a_coordinator_that_no_host_runs_is_found() {
    let coordinator = |extra: Value| {
        move |value: &mut Value| {
            let mut coordinator = json!({"name": "main", "host": null, "host_heuristic": "always-on", "active": true});
            coordinator.as_object_mut().unwrap().extend(extra.as_object().unwrap().clone());
            value["coordinators"] = json!([coordinator]);
        }
    };
    let unplaced = [("job-unplaced", "main".to_owned())];
    assert_eq!(shown(coordinator(json!({}))), unplaced);
    assert_eq!(shown(coordinator(json!({"host": "gone"}))), unplaced);
    assert_eq!(shown(coordinator(json!({"host": "control"}))), []);
    assert_eq!(shown(coordinator(json!({"active": false}))), []);
    assert_eq!(
        shown(|value| {
            coordinator(json!({}))(value);
            value["targets"][0]["host_heuristic"] = "always-on".into();
        }),
        []
    );
}

#[test]
fn a_unit_of_stado_that_nobody_declares_is_found() {
    let home = tempfile::tempdir().unwrap();
    let dir = home.path().join(".config/systemd/user");
    std::fs::create_dir_all(&dir).unwrap();
    for file in ["stado-agent.service", "stado-declared.service", "stado-resolver.service", "web.service"] {
        std::fs::write(dir.join(file), "").unwrap();
    }
    let (document, _) = registry(|value| {
        value["targets"][0]["services"][0] = json!({"name": "web"});
        let declared = json!({"name": "d", "unit": "stado-declared.service"});
        value["targets"][0]["services"].as_array_mut().unwrap().push(declared);
    });
    let found = host::unmanaged_agents(&document, &me(), home.path());
    let own: Vec<_> = found.iter().filter(|f| f.detail.contains(home.path().to_str().unwrap())).collect();
    assert_eq!(own.len(), 1, "{found:?}");
    assert_eq!((own[0].finding, own[0].subject.as_str()), ("unmanaged-agent", "stado-agent"));
}

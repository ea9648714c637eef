//! `registry doctor` with what only the host itself shows, and `stado doctor`.
use crate::support::fleet::Fleet;
use crate::support::home::{Home, STADO};
use crate::support::tcp::echo;
use crate::support::{PATIENCE, ports, wait_for};
use serde_json::{Value, json};

/// Kind and subject of each finding, and that each says what to do.
fn findings(report: &Value) -> Vec<(String, String)> {
    let text = |finding: &Value, key: &str| finding[key].as_str().unwrap().to_owned();
    let findings = report["findings"].as_array().unwrap().iter();
    let mut found: Vec<_> = findings
        .map(|finding| {
            assert!(!text(finding, "remedy").is_empty() && !text(finding, "detail").is_empty(), "{finding}");
            (text(finding, "finding"), text(finding, "subject"))
        })
        .collect();
    found.sort();
    found
}

#[test]
fn what_this_host_shows_is_compared_with_what_is_declared() {
    let mut fleet = Fleet::on_loopback_without_sshd(&["authority"]);
    fleet.service("orders", "authority", "tcp", 5432, "shop");
    let home = fleet.hosts[0].home.path().to_owned();
    fleet.registry["targets"][0]["services"] = json!([
        {"name": "orders", "kind": "systemd", "unit": "orders.service"},
        {"name": "web", "kind": "systemd", "unit": "web.service", "path": home.join("systemd/user/web.service")},
        {"name": "gone", "kind": "systemd", "unit": "gone.service", "path": "/nonexistent/gone.service"},
    ]);
    let host = &mut fleet.hosts[0].home;
    host.write("systemd/user/web.service", "");
    host.write(".config/systemd/user/stado-left-over.service", "");
    // A service manager: orders has failed, web is active for the user, and nobody knows the third.
    let manager = "#!/bin/sh\ncase \"$1 $4\" in\n'--system orders.service') echo failed; exit 3 ;;\n\
                   '--user web.service') echo active ;;\n*) echo unknown; exit 4 ;;\nesac\n";
    host.program("bin/systemctl", manager);
    host.set("PATH", format!("{}:/usr/bin:/bin", home.join("bin").display()));
    fleet.push("authority").ok();

    let host = &mut fleet.hosts[0].home;
    let run = host.stado(&["registry", "doctor", "--json"]).exits(1);
    let report = run.json();
    let found = findings(&report);
    let expected = [("missing-plist", "gone"), ("unit-not-active", "orders"), ("unmanaged-agent", "stado-left-over")];
    assert_eq!(found, expected.map(|(finding, subject)| (finding.to_owned(), subject.to_owned())), "{report}");
    assert_eq!(report["ok"], false);
    assert!(run.stderr.contains("3 divergence(s) between local:registry.json and live host state"), "{}", run.stderr);
    let text = host.stado(&["registry", "doctor"]).exits(1).stdout;
    assert!(
        text.contains("unit-not-active orders: authority declares the unit orders.service, and systemd says"),
        "{text}"
    );

    // A host that the registry does not know.
    host.unset("STADO_TARGET");
    let report = host.stado(&["registry", "doctor", "--json"]).exits(1).json();
    assert_eq!(findings(&report)[0].0, "unmanaged-host", "{report}");
}

/// Id, status and detail of every row of `stado doctor`; a row says what to do exactly when something is to be done.
fn rows(report: &Value) -> Vec<(&str, &str, &str)> {
    let row = |check| {
        fn text<'c>(check: &'c Value, key: &str) -> &'c str {
            check[key].as_str().unwrap()
        }
        let (status, remedy) = (text(check, "status"), text(check, "remedy"));
        assert_eq!(!remedy.is_empty(), status == "fail" || status == "warn", "{check}");
        assert!(!text(check, "title").is_empty() && !text(check, "detail").is_empty(), "{check}");
        (text(check, "id"), status, text(check, "detail"))
    };
    report["checks"].as_array().unwrap().iter().map(row).collect()
}

#[test]
fn the_doctor_of_a_host_names_what_is_placed_wrongly() {
    let mut fleet = Fleet::on_loopback_without_sshd(&["authority", "other"]);
    fleet.service("echo", "authority", "tcp", echo("echo").port(), "shop");
    let (gone, twin) = (ports::one(), echo("twin").port());
    fleet.service("gone", "authority", "tcp", gone.port(), "shop");
    fleet.service("twin", "other", "tcp", twin, "shop");
    fleet.registry["targets"][1]["ssh"] = json!("ops@127.0.1.9:1");
    fleet.registry["service_directory"]["services"]["twin"]["standby"] =
        json!({"authority": {"url": format!("tcp://127.0.0.1:{twin}")}});
    fleet.registry["targets"][0]["managed_versions"] = json!({"stado": "99.0.0"});
    fleet.push("authority").ok();
    let host = fleet.host("authority");
    host.serve();
    host.ready();
    let home = &host.home;
    let run = home.stado(&["doctor", "--json"]).exits(1);
    let report = run.json();
    let found = rows(&report);
    let placement: Vec<_> = found.iter().filter(|row| row.0 == "placement").collect();
    let missing = format!("gone is placed here and nothing answers port {}", gone.port());
    let second = format!("twin is placed on other, and port {twin} answers here");
    assert_eq!(
        placement,
        [&("placement", "fail", missing.as_str()), &("placement", "fail", second.as_str())],
        "{report}"
    );
    assert!(
        found
            .iter()
            .any(|row| row.0 == "registry" && row.1 == "ok" && row.2.starts_with("local:registry.json generation "))
    );
    for skipped in ["object-auth", "queue-control", "databases"] {
        assert!(found.iter().any(|row| row.0 == skipped && row.1 == "skip"), "{skipped}: {report}");
    }
    assert!(found.iter().any(|row| row.0 == "resolver" && row.1 == "ok"), "{report}");
    assert_eq!((&report["status"], &report["failed"]), (&"fail".into(), &2.into()));
    let all = found.len();
    let told =
        format!("Error: 2 of {all} checks FAILED; first blocking failure is placement (Placement). Start gone here, ");
    assert!(run.stderr.starts_with(&told), "{}", run.stderr);
    let table = home.stado(&["doctor", "--fix-hints"]).exits(1).stdout;
    assert!(table.contains("| remedy") && table.contains("Stop twin here"), "{table}");
    assert!(!home.stado(&["doctor"]).exits(1).stdout.contains("remedy"));

    let before = home.stado(&["doctor", "--json", "--deployment-preflight", "--release-verification"]).exits(1).json();
    let found = rows(&before);
    assert!(found.contains(&("placement-transaction", "ok", "nothing is being moved")), "{before}");
    assert!(
        found.iter().any(|row| row.0 == "hosts" && row.1 == "fail" && row.2.contains("of other answered (primary: "))
    );
    let drift = found.iter().find(|row| row.0 == "managed-versions").unwrap();
    assert!(drift.1 == "fail" && drift.2.starts_with("stado 99.0.0 is declared, and here is "), "{drift:?}");

    // A copy that could answer is no registry: the doctor says what the store says.
    home.write(".stado/local-storage/registry.json", "{\"schema_version\": 2, \"targets\": 7}");
    let broken = home.stado(&["doctor", "--json"]).exits(1).json();
    let found = rows(&broken);
    let registry = found.iter().find(|row| row.0 == "registry").unwrap();
    assert!(registry.1 == "fail" && registry.2.contains("registry.targets: must be an array"), "{registry:?}");
    assert!(found.contains(&("placement", "skip", "the registry could not be read")), "{broken}");
}

#[test]
fn the_doctor_of_a_host_that_is_the_mesh_alone_asks_for_no_registry() {
    let home = Home::new();
    let mut daemon = home.start("resolver", STADO, &["resolver", "serve"]);
    let report = wait_for("a sound host", PATIENCE, || {
        assert!(daemon.ended().is_none());
        Some(home.stado(&["doctor", "--json"])).filter(|run| run.code == 0)
    });
    let report = report.json();
    let found = rows(&report);
    assert!(
        found
            .iter()
            .any(|row| row.0 == "registry" && row.1 == "skip" && row.2.ends_with("this host is the mesh alone"))
    );
    assert!(found.iter().any(|row| row.0 == "daemon-reachable" && row.1 == "ok"), "{report}");
    assert_eq!(report["status"], "ok");
}

#[test]
fn the_doctor_looks_at_the_tokens_of_the_object_api() {
    let home = Home::new();
    let policies = json!([{"prefix": "registry.json", "actions": ["get"]}]);
    let space = |file: &str| json!({"token_file": file, "prefix_policies": policies});
    let spaces = json!({"one": space("~/.stado/one"), "two": space("~/.stado/two")});
    home.write(".stado/config.json", json!({"object_api": {"namespaces": spaces}}).to_string());
    home.write(".stado/one", "token-one");
    let detail = || {
        let report = home.stado(&["doctor", "--json"]).json();
        let found = rows(&report);
        let row = found.iter().find(|row| row.0 == "object-auth").unwrap();
        (row.1.to_owned(), row.2.to_owned())
    };
    assert!(detail().0 == "fail" && detail().1.starts_with("namespace two: "), "{:?}", detail());
    home.write(".stado/two", "token-one");
    assert!(detail().0 == "fail" && detail().1.contains("is that of another one"), "{:?}", detail());
    home.write(".stado/two", "token-two");
    assert_eq!(detail(), ("ok".into(), "serves 2 namespace(s); 2 token file(s) can be used".into()));
    let printed = home.stado(&["doctor", "--json"]).stdout;
    home.write(".stado/config.json", "{ no configuration");
    let run = home.stado(&["doctor", "--json", "--deployment-preflight", "--release-verification"]).exits(1);
    let report = run.json();
    let found = rows(&report);
    assert!(
        found.iter().any(|row| row.0 == "registry" && row.1 == "fail" && row.2.contains("invalid stado config file"))
    );
    for id in [
        "placement",
        "object-auth",
        "queue-control",
        "resolver",
        "databases",
        "placement-transaction",
        "hosts",
        "managed-versions",
    ] {
        assert!(found.contains(&(id, "skip", "this host's configuration could not be read")), "{id}: {report}");
    }
    assert!(!printed.contains("token-one") && !printed.contains("token-two"));
}

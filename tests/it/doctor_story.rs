//! `registry doctor` with what only the host itself shows.
use crate::support::fleet::Fleet;
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

//! `host inventory` and `registry beacon-age` of real hosts with real daemons.
use crate::support::fleet::Fleet;
use crate::support::home::STADO;
use crate::support::tcp::echo;
use crate::support::{PATIENCE, ports, wait_for, wait_until};
use serde_json::{Value, json};
use std::os::unix::fs::symlink;

const VERSION: &str = env!("CARGO_PKG_VERSION");

fn strings(value: &Value) -> Vec<&str> {
    value.as_array().unwrap().iter().map(|text| text.as_str().unwrap()).collect()
}

fn forward<'r>(report: &'r Value, file: &str) -> (&'r str, &'r str, &'r str) {
    let forwards = report["forwards"].as_array().unwrap();
    let found = forwards.iter().find(|f| f["file"] == file).unwrap_or_else(|| panic!("no {file} in {report}"));
    let text = |key: &str| found[key].as_str().unwrap();
    (text("state"), text("reconciliation"), text("declaration_verdict"))
}

fn inventory(fleet: &mut Fleet) -> Value {
    let report = fleet.host("authority").home.stado(&["host", "inventory", "worker", "--json"]).ok().json();
    assert_eq!((&report["status"], &report["exit_code"]), (&"inventory".into(), &0.into()), "{report}");
    report
}

#[test]
fn a_host_is_compared_on_axes_that_know_nothing_of_each_other() {
    needs!("sshd");
    let mut fleet = Fleet::on_loopback(&["authority", "worker"]);
    fleet.service("echo", "authority", "http", echo("echo").port(), "shop");
    fleet.service("other", "authority", "http", echo("other").port(), "shop");
    let at = fleet.adapter("worker", "echo", "shop");
    let other_at = fleet.adapter("worker", "other", "shop");
    fleet.declare("worker", "stado_command", json!(STADO));
    let versions = json!({"stado": VERSION, "brama": "9.9.9", "weles": "1.0.0", "skarbiec": "2.0.0"});
    fleet.declare("worker", "managed_versions", versions);
    fleet.up();
    let closed = ports::one().port();
    let worker = &fleet.host("worker").home;
    worker.program(".stado/bin/brama", "#!/bin/sh\necho brama 1.2.3\n");
    worker.program(".stado/bin/weles", "#!/bin/sh\nexec sleep 1000\n");
    // One that somebody listens behind, and the directory declares another.
    worker.write(".stado/forwards/other.url", format!("http://127.0.0.1:{at}\n"));
    worker.write(".stado/forwards/fossil.local", format!("http://127.0.0.1:{closed}\n"));
    worker.write(".stado/forwards/empty.local", "\n");
    worker.write(".stado/forwards/evil\u{1b}[2J.local", "http://127.0.0.1:1/\u{1b}]0;title\u{7}\n");
    symlink("echo.local", worker.file(".stado/forwards/link.local")).unwrap();
    std::fs::create_dir(worker.file(".stado/forwards/dir.local")).unwrap();
    worker.write(".stado/vault.json", "{\"secret\":\"never told\"}");

    let report = inventory(&mut fleet);
    assert_eq!(forward(&report, "echo.local"), ("read", "matched", "matched"));
    assert_eq!(forward(&report, "other.local"), ("read", "matched", "matched"));
    assert_eq!(forward(&report, "other.url"), ("read", "matched", "disagrees"));
    assert_eq!(forward(&report, "fossil.local"), ("read", "stale", "undeclared"));
    assert_eq!(forward(&report, "empty.local"), ("read_empty", "unreadable", "undeclared"));
    assert_eq!(forward(&report, "link.local"), ("refused_symlink", "unreadable", "undeclared"));
    assert_eq!(forward(&report, "dir.local"), ("refused_not_regular", "unreadable", "undeclared"));
    let all = &report["reconciliation"];
    assert_eq!((&all["markers"], &all["matched"], &all["unknown"]), (&8.into(), &3.into(), &0.into()), "{all}");
    assert_eq!(strings(&all["disagreeing_markers"]), ["other"]);
    assert!(strings(&all["stale_markers"]).contains(&"fossil"));
    let listeners = report["listeners"].as_array().unwrap();
    let daemon = fleet.host("worker").daemon().pid();
    for port in [at, other_at] {
        let held = |l: &&Value| l["port"] == port && l["pid"] == daemon && l["address"] == "127.0.0.1";
        assert!(listeners.iter().any(|l| held(&l)), "{port} of {daemon} in {listeners:?}");
    }
    assert_eq!((&report["listeners_state"], &report["sanitizer_state"]), (&"read".into(), &"sanitized".into()));
    assert_eq!(report["release_platform_verdict"], if cfg!(target_arch = "x86_64") { "matched" } else { "mismatched" });
    let binaries: Vec<_> = report["managed_binaries"]
        .as_array()
        .unwrap()
        .iter()
        .map(|b| (b["name"].as_str().unwrap(), b["verdict"].as_str().unwrap()))
        .collect();
    assert_eq!(binaries, [("brama", "behind"), ("skarbiec", "unknown"), ("stado", "matched"), ("weles", "unknown")]);
    assert!(strings(&report["subcommands"]).contains(&"registry"));
    assert_eq!((&report["resolver"]["state"], &report["resolver"]["pid"]), (&"serving".into(), &daemon.into()));
    assert_eq!(report["vaults"][0]["bytes"], 23);
    let printed = report.to_string();
    assert!(
        !printed.contains("never told") && !printed.contains("\\u001b") && !printed.contains('\u{1b}'),
        "{printed}"
    );
    let text = fleet.host("authority").home.stado(&["host", "inventory", "worker"]).ok().stdout;
    assert!(
        text.contains("reconciliation: 3 of 8 forward markers matched, 2 stale, 3 unreadable, 0 unjudged\n"),
        "{text}"
    );
    assert!(
        text.contains("declaration:    2 of 8 forward markers agree with the registry, 1 disagree, 5 undeclared\n"),
        "{text}"
    );
    assert!(!text.contains('\u{1b}'), "{text}");

    // The daemon ends: nobody listens any more, and the markers still say what is declared.
    fleet.host("worker").stop();
    let report = inventory(&mut fleet);
    assert_eq!(forward(&report, "echo.local"), ("read", "stale", "matched"));
    std::fs::remove_file(fleet.host("worker").home.file(".stado/forwards/echo.local")).unwrap();
    assert_eq!(strings(&inventory(&mut fleet)["reconciliation"]["missing_markers"]), ["echo"]);

    fleet.host("worker").sshd.as_mut().unwrap().down();
    let run = fleet.host("authority").home.stado(&["host", "inventory", "worker", "--json"]).exits(69);
    let report = run.json();
    assert_eq!((&report["status"], &report["listeners_state"]), (&"failed".into(), &"failed".into()));
    assert!(report["error"].as_str().unwrap().contains("primary: "), "{report}");
}

#[test]
fn a_host_that_answers_with_something_else_has_no_inventory() {
    needs!("sshd");
    let mut fleet = Fleet::on_loopback(&["authority", "worker"]);
    fleet.service("web", "authority", "http", 9, "shop");
    fleet.push("authority").ok();
    // Whoever logs in is given a menu instead of a shell.
    let worker = &fleet.host("worker").home;
    let menu = worker.program("menu", "#!/bin/sh\nprintf '\\033[2Jchoose:\\n'\n");
    let sshd = fleet.host("worker").sshd.as_mut().unwrap();
    sshd.down();
    let worker = &fleet.host("worker").home;
    let config = worker.read("sshd/config");
    worker.write("sshd/config", format!("{config}ForceCommand {menu}\n"));
    let host = fleet.host("worker");
    host.sshd.as_mut().unwrap().up(&host.home);
    let run = fleet.host("authority").home.stado(&["host", "inventory", "worker", "--json"]).exits(1);
    let report = run.json();
    assert_eq!((&report["status"], &report["exit_code"]), (&"failed".into(), &0.into()), "{report}");
    assert!(report["error"].as_str().unwrap().contains("is no inventory; it begins with"), "{report}");
    assert!(!run.stdout.contains('\u{1b}') && !run.stderr.contains('\u{1b}'), "{}", run.stderr);
}

fn beacon(fleet: &mut Fleet, host: &str) -> Value {
    let report = fleet.host("authority").home.stado(&["registry", "beacon-age", "--json"]).ok().json();
    let hosts = report["hosts"].as_array().unwrap();
    hosts.iter().find(|h| h["host"] == host).unwrap_or_else(|| panic!("no {host} in {report}")).clone()
}

#[test]
fn a_beacon_grows_old_with_its_daemon_and_is_remembered_when_the_host_is_gone() {
    needs!("sshd");
    let mut fleet = Fleet::on_loopback(&["authority", "worker"]);
    fleet.service("web", "authority", "http", 9, "shop");
    let mut window = fleet.registry["targets"][1]["service_resolver"].clone();
    window["max_stale_seconds"] = json!(3);
    fleet.declare("worker", "service_resolver", window);
    // Neither a machine nor a resolver.
    let more = [
        json!({"name": "rented", "kind": "gcp", "release_platform": "linux-amd64", "ssh": null}),
        json!({"name": "plain", "kind": "local", "release_platform": "linux-amd64", "ssh": "ops@127.0.1.3:1"}),
    ];
    fleet.registry["targets"].as_array_mut().unwrap().extend(more);
    fleet.up();
    for host in ["authority", "worker"] {
        let row =
            wait_for("a beacon", PATIENCE, || Some(beacon(&mut fleet, host)).filter(|row| row["status"] == "fresh"));
        assert!(row["age_seconds"].as_u64().unwrap() <= 3600, "{row}");
        assert!(row["beacon"].as_str().unwrap().ends_with("/.stado/resolver-state.json"), "{row}");
        assert_eq!(
            (&row["kind"], row["reported_at"].is_string(), row["observed_at"].is_string()),
            (&"local".into(), true, true)
        );
    }
    for host in ["rented", "plain"] {
        let row = beacon(&mut fleet, host);
        assert_eq!((&row["status"], &row["age_seconds"]), (&"undeclared".into(), &Value::Null), "{row}");
    }
    fleet.host("worker").kill9();
    let worker = &fleet.host("worker").home;
    let state = worker.read(".stado/resolver-state.json");
    worker.write(".stado/resolver-state.json", &state[..state.len() / 2]);
    let damaged = beacon(&mut fleet, "worker");
    assert_eq!(damaged["status"], "unread", "{damaged}");
    assert!(
        damaged["detail"].as_str().unwrap().contains("resolver-state.json says nothing: it is damaged: "),
        "{damaged}"
    );
    fleet.host("worker").home.write(".stado/resolver-state.json", &state);
    wait_until("the beacon is stale", PATIENCE, || beacon(&mut fleet, "worker")["status"] == "stale");
    let last = beacon(&mut fleet, "worker");
    fleet.host("worker").sshd.as_mut().unwrap().down();
    let row = beacon(&mut fleet, "worker");
    assert_eq!((&row["status"], &row["observed_at"].is_string()), (&"unreachable".into(), &true), "{row}");
    assert_eq!(row["reported_at"], last["reported_at"], "the one that was seen last");
    assert!(row["age_seconds"].as_u64() >= last["age_seconds"].as_u64(), "{row} after {last}");
    let text = fleet.host("authority").home.stado(&["registry", "beacon-age"]).ok().stdout;
    assert!(text.contains("worker  local  unreachable  age="), "{text}");
}

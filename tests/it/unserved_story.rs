//! What a host serves, what it does not and why, and what it holds of the registry: three hosts, each with its daemon.
use crate::support::fleet::Fleet;
use crate::support::tcp::{ask, echo};
use crate::support::{PATIENCE, wait_for, wait_until};
use serde_json::{Value, json};
use std::net::TcpListener;

const STORE: &str = ".stado/local-storage/registry.json";

/// A placement profile over a service that runs on `worker` and is being moved.
fn moving(fleet: &mut Fleet) {
    let unit = json!({"name": "moving", "kind": "systemd", "unit": "moving.service"});
    let placed = json!({"units": {"moving": {"name": "moving", "kind": "systemd", "unit": "moving.service",
        "path": "/etc/systemd/system/moving.service"}}, "probes": [{"service": "moving", "url": "http://127.0.0.1:1/"}]});
    let services = fleet.registry["targets"][1]["services"].as_array_mut().unwrap();
    services.retain(|service| service["name"] != "moving");
    services.push(unit);
    fleet.registry["placement_profiles"] = json!([{
        "name": "gateway", "services": ["moving"], "stop_order": ["moving"], "start_order": ["moving"],
        "state": [{"path": "state.json", "required": false}], "hosts": {"worker": placed, "authority": placed}, "routing": []
    }]);
    let service = fleet.registry["service_directory"]["services"]["moving"].as_object_mut().unwrap();
    service.remove("managed_service");
    service.insert("placement_profile".into(), json!("gateway"));
    service.insert("standby".into(), json!({"authority": {"url": "tcp://127.0.0.1:1"}}));
    fleet.registry["placement_transactions"] = json!([{"id": "6f2b0c3e-8a3f-4a51-9a7e-1f3c5d7e9b11", "profile": "gateway",
        "from_host": "worker", "to_host": "authority", "started_at": "2026-08-20T10:00:00Z"}]);
}

/// The sentences of what the desk does not serve, once there are `count` of them.
fn unserved(fleet: &mut Fleet, count: usize) -> Vec<String> {
    wait_for(&format!("{count} adapters are unserved"), PATIENCE, || {
        let (code, status) = fleet.host("desk").status();
        let blockers = status["blockers"].as_array().cloned().unwrap_or_default();
        let said = blockers.iter().filter_map(Value::as_str).filter(|text| text.contains("does not serve the "));
        let said: Vec<String> = said.map(str::to_owned).collect();
        (status["state"] == "serving" && said.len() == count && (code == 0) == (count == 0)).then_some(said)
    })
}

#[test]
fn seven_of_ten_services_are_served_and_each_of_the_others_says_why_until_it_is_mended() {
    needs!("sshd");
    let mut fleet = Fleet::on_loopback(&["authority", "worker", "desk"]);
    let mut served: Vec<(String, u16)> = Vec::new();
    for n in 1..=7 {
        let (name, host) = (format!("s{n}"), if n % 2 == 0 { "authority" } else { "worker" });
        fleet.service(&name, host, "tcp", echo(&name).port(), "shop");
        let at = fleet.adapter("desk", &name, "shop");
        served.push((name, at));
    }
    // The port of one is somebody else's; one is declared to be where its own adapter is; one is being moved.
    fleet.service("held", "worker", "tcp", echo("held").port(), "shop");
    let held_at = fleet.adapter("desk", "held", "shop");
    let stranger = TcpListener::bind(("127.0.0.1", held_at)).unwrap();
    let looped_at = fleet.adapter("desk", "looped", "shop");
    fleet.service("looped", "desk", "tcp", looped_at, "shop");
    fleet.service("moving", "worker", "tcp", echo("moving").port(), "shop");
    let moving_at = fleet.adapter("desk", "moving", "shop");
    moving(&mut fleet);
    fleet.push("authority").ok();
    fleet.copies();
    for host in ["authority", "worker", "desk"] {
        fleet.host(host).serve();
    }

    let said = unserved(&mut fleet, 3);
    let pid = fleet.host("desk").status().1["pid"].clone();
    let reasons = [
        ("held", held_at, format!("could not bind 127.0.0.1:{held_at}: ")),
        (
            "looped",
            looped_at,
            format!("service looped resolves to 127.0.0.1:{looped_at}, which is this adapter's own bind"),
        ),
        (
            "moving",
            moving_at,
            "service \"moving\" is unavailable during placement transaction for \"gateway\"".to_owned(),
        ),
    ];
    let connect = |fleet: &mut Fleet, name: &str| {
        fleet.host("desk").home.stado(&["service", "directory", "connect", name, "--consumer", "shop"])
    };
    for (name, at, reason) in &reasons {
        let sentence =
            format!("the resolver does not serve the {name} adapter for consumer shop at 127.0.0.1:{at}: {reason}");
        assert!(said.iter().any(|text| text.starts_with(&sentence)), "{sentence}\n{said:#?}");
        let refused = connect(&mut fleet, name);
        assert!(refused.code != 0 && refused.stderr.contains(reason), "{name}: {} {}", refused.code, refused.stderr);
    }
    for (name, at) in &served {
        assert_eq!(ask(("127.0.0.1", *at), "x"), Some(format!("{name}:x")));
    }
    assert_eq!(connect(&mut fleet, "s1").ok().stdout.trim(), format!("tcp://127.0.0.1:{}", served[0].1));

    // Each is mended by itself, and the daemon runs on.
    drop(stranger);
    assert!(unserved(&mut fleet, 2).iter().all(|text| !text.contains(" held ")));
    assert_eq!(ask(("127.0.0.1", held_at), "x").as_deref(), Some("held:x"));
    fleet.moved("looped", echo("looped").port());
    fleet.push("desk").ok();
    assert!(unserved(&mut fleet, 1)[0].contains(" moving "));
    assert_eq!(ask(("127.0.0.1", looped_at), "x").as_deref(), Some("looped:x"));
    fleet.registry["placement_transactions"] = json!([]);
    fleet.push("desk").ok();
    unserved(&mut fleet, 0);
    assert_eq!(ask(("127.0.0.1", moving_at), "x").as_deref(), Some("moving:x"));
    for name in ["held", "looped", "moving"] {
        connect(&mut fleet, name).ok();
    }
    assert_eq!(fleet.host("desk").ready()["pid"], pid);
    fleet.host("desk").stop();
}

/// The rows of `registry holders`, as `on` prints them.
fn holders(fleet: &mut Fleet, on: &str) -> Vec<Value> {
    let printed = fleet.host(on).home.stado(&["registry", "holders", "--json"]).ok().json();
    printed["hosts"].as_array().unwrap().clone()
}

#[test]
fn the_fleet_lists_who_holds_which_generation_and_who_refuses_one_and_why() {
    needs!("sshd");
    let mut fleet = Fleet::on_loopback(&["authority", "worker", "desk"]);
    fleet.service("db", "worker", "tcp", echo("db").port(), "shop");
    fleet.adapter("desk", "db", "shop");
    fleet.up();
    let first = fleet.host("authority").home.read(STORE);
    let each = |rows: &[Value], status: &str, generation: u64| {
        rows.len() == 3 && rows.iter().all(|row| row["status"] == status && row["generation"] == generation)
    };
    for on in ["authority", "desk"] {
        wait_until("everybody holds the first one, by its own word", PATIENCE, || {
            let rows = holders(&mut fleet, on);
            let told = |name: &str| rows.iter().any(|row| row["host"] == name && row["heard"] == "told");
            let here = rows.iter().any(|row| row["host"] == on && row["heard"] == "here");
            each(&rows, "current", 1) && here && told("worker") && (on == "desk" || told("desk"))
        });
    }

    // An older registry comes back on the authority's disk: nobody takes it, and everybody says so.
    fleet.moved("db", echo("db").port());
    fleet.push("desk").ok();
    for host in ["authority", "worker", "desk"] {
        fleet.host(host).holds(2);
    }
    fleet.host("authority").home.write(STORE, &first);
    let rows = wait_for("everybody refuses it", PATIENCE, || {
        let rows = holders(&mut fleet, "authority");
        each(&rows, "refuses", 2).then_some(rows)
    });
    for row in &rows {
        assert_eq!(row["refused"]["generation"], 1, "{row}");
        assert_eq!(row["refused"]["reason"], "service directory rollback rejected: generation 1 < 2", "{row}");
    }
    let text = fleet.host("authority").home.stado(&["registry", "holders"]).ok().stdout;
    assert!(text.starts_with("registry local:registry.json generation=1 version="), "{text}");
    assert!(text.contains("\ndesk  refuses  generation=2  state=backing_off  told "), "{text}");
    assert!(text.contains("    refuses generation 1 of authority:registry.json (version "), "{text}");

    // One that was killed is not said to do what it said last.
    let rows = wait_for("the worker refuses what it is given", PATIENCE, || {
        let rows = holders(&mut fleet, "authority");
        rows.iter().any(|row| row["host"] == "worker" && row["state"] == "backing_off").then_some(rows)
    });
    drop(rows);
    fleet.host("worker").kill9();
    let worker = wait_for("nothing is heard of it", PATIENCE, || {
        let rows = holders(&mut fleet, "authority");
        rows.into_iter().find(|row| row["host"] == "worker" && row["status"] == "silent")
    });
    assert_eq!((&worker["state"], &worker["last_state"]), (&Value::Null, &json!("backing_off")), "{worker}");
    assert_eq!((&worker["generation"], &worker["refused"]["generation"]), (&json!(2), &json!(1)), "{worker}");
    let since = worker["silent_since"].as_str().unwrap().to_owned();
    let text = fleet.host("authority").home.stado(&["registry", "holders"]).ok().stdout;
    let line = text.lines().find(|line| line.starts_with("worker  silent  generation=2  state=-  ")).unwrap();
    assert!(line.contains(&format!("nothing heard since {}", &since[..16])), "{since}: {line}");

    // A host that has told nothing is asked for what it has published.
    std::fs::remove_dir_all(fleet.host("authority").home.file(".stado/holders")).unwrap();
    let rows = holders(&mut fleet, "authority");
    let desk = rows.iter().find(|row| row["host"] == "desk").unwrap();
    assert_eq!((&desk["heard"], &desk["status"], &desk["generation"]), (&json!("asked"), &json!("refuses"), &json!(2)));
    fleet.host("desk").kill9();
    // And one that can neither tell nor be asked is not made up.
    std::fs::remove_dir_all(fleet.host("authority").home.file(".stado/holders")).ok();
    fleet.host("desk").sshd.as_mut().unwrap().down();
    let rows = holders(&mut fleet, "authority");
    let desk = rows.iter().find(|row| row["host"] == "desk").unwrap();
    assert_eq!((&desk["status"], &desk["generation"]), (&json!("unknown"), &Value::Null), "{desk}");
    assert!(desk["detail"].as_str().unwrap().contains("primary"), "{desk}");
}

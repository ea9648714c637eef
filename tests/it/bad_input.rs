//! What is wrong is said in one sentence with the thing, the cause and the next step, and nothing is lost.
use crate::support::fleet::Fleet;
use crate::support::home::{Home, STADO};
use crate::support::process::{Run, run, run_with};
use crate::support::sshd::{Sshd, keygen};
use crate::support::tcp::{ask, echo};
use crate::support::{PATIENCE, ports, wait_for, wait_until};
use serde_json::Value;
use std::net::TcpListener;

/// The one sentence of a refused command.
#[track_caller]
fn sentence(run: &Run) -> String {
    let lines: Vec<_> = run.stderr.lines().filter(|line| line.starts_with("Error: ")).collect();
    assert_eq!(lines.len(), 1, "one error in:\n{}", run.stderr);
    assert!(!run.stderr.contains("panicked"), "{}", run.stderr);
    lines[0].trim_start_matches("Error: ").to_owned()
}

fn refused(home: &Home, code: i32, args: &[&str]) -> String {
    sentence(&home.stado(args).exits(code))
}

#[track_caller]
fn has(sentence: &str, parts: &[&str]) {
    assert!(parts.iter().all(|part| sentence.contains(part)), "{parts:?} in {sentence:?}");
}

#[test]
fn a_registry_that_is_missing_or_malformed_is_named_and_left_alone() {
    let home = Home::new();
    has(&refused(&home, 1, &["registry", "pull"]), &["no registry document at local:registry.json"]);
    let absent = home.file("absent.json");
    has(&refused(&home, 1, &["registry", "validate", absent.to_str().unwrap()]), &["absent.json", "No such file"]);

    let registry = ".stado/local-storage/registry.json";
    for (text, parts) in [
        ("{\"schema_version\": 2, \"targets\": [", &["local:registry.json", "line 1"][..]),
        ("{\"schema_version\": 2, \"targets\": \"none\"}", &["registry.targets", "must be an array"]),
    ] {
        home.write(registry, text);
        let file = home.file(registry);
        refused(&home, 1, &["registry", "validate", file.to_str().unwrap()]);
        has(&refused(&home, 1, &["service", "directory", "show"]), parts);
        assert_eq!(home.read(registry), text, "left alone");
    }
}

#[test]
fn a_push_that_is_refused_changes_nothing() {
    let mut fleet = Fleet::on_loopback_without_sshd(&["authority"]);
    fleet.service("echo", "authority", "tcp", 9, "shop");
    fleet.push("authority").ok();
    let stored = fleet.host("authority").home.read(".stado/local-storage/registry.json");
    let push = |fleet: &mut Fleet, change: &dyn Fn(&mut Value), args: &[&str]| {
        let mut document = fleet.registry.clone();
        change(&mut document);
        fleet.host("authority").push_stdin(&document, args)
    };
    type Refusal<'a> = (&'a dyn Fn(&mut Value), &'a str);
    let refusals: [Refusal<'_>; 4] = [
        (&|d| d["targets"] = serde_json::json!("x"), "must be an array"),
        (&|d| d["service_directory"]["generation"] = 0.into(), "must be positive"),
        (&|d| drop(d.as_object_mut().unwrap().remove("channels")), "it would delete the top-level key(s) channels"),
        (
            &|d| {
                d["service_directory"]["services"]["echo"]["endpoints"]["authority"]["url"] =
                    "tcp://127.0.0.1:10".into()
            },
            "leaves its generation at 1",
        ),
    ];
    for (change, part) in refusals {
        has(&sentence(&push(&mut fleet, change, &[]).exits(1)), &[part]);
    }
    let moved = push(&mut fleet, &|_| {}, &["--if-generation", "0123", "--json"]).exits(75);
    assert_eq!(moved.json()["state"], "conflict", "{}", moved.stdout);
    has(&sentence(&moved), &["registry write refused: it is conditional on generation 0123"]);
    fleet.host("authority").home.stado(&["registry", "push"]).exits(2);
    let garbage = run_with(&mut fleet.host("authority").home.command(STADO, &["registry", "push", "-"]), b"not json");
    sentence(&garbage.exits(1));
    assert_eq!(fleet.host("authority").home.read(".stado/local-storage/registry.json"), stored);
}

#[test]
fn a_host_that_is_unknown_refuses_us_or_does_not_answer_is_named_with_the_next_step() {
    needs!("sshd");
    let (authority, mut client) = (Home::new(), Home::new());
    client.set("STADO_TARGET", "workstation");
    let mut sshd = Sshd::start(&authority, "127.0.0.9".parse().unwrap());
    let destination = sshd.destination();
    let pull = ["registry", "pull", "--from", &destination, "--command", STADO];
    keygen(&client.file("key"));
    client.write(".stado/resolver-ssh-key", client.read("key"));
    let at = sshd.at().to_string();

    has(&refused(&client, 1, &pull), &["127.0.0.9", "host key", "known_hosts"]);
    client.write(".ssh/known_hosts", sshd.known_host());
    has(&refused(&client, 1, &pull), &["127.0.0.9", "resolver-ssh-key"]);
    sshd.down();
    has(&refused(&client, 69, &pull), &[&at[..9], "refused"]);
    assert!(!client.file(".stado/cache/registry-last-good.json").exists());
}

#[test]
fn a_port_held_by_someone_else_leaves_the_other_adapters_serving_and_is_taken_when_it_is_free() {
    let mut fleet = Fleet::on_loopback_without_sshd(&["authority"]);
    fleet.service("one", "authority", "tcp", echo("one").port(), "shop");
    fleet.service("two", "authority", "tcp", echo("two").port(), "shop");
    let one = fleet.adapter("authority", "one", "shop");
    let two = fleet.adapter("authority", "two", "shop");
    let held = TcpListener::bind(("127.0.0.1", one)).unwrap();
    fleet.push("authority").ok();
    let authority = fleet.host("authority");
    authority.serve();
    let status = wait_for("degraded", PATIENCE, || {
        let (code, status) = authority.status();
        (code == 1 && status["verdict"] == "degraded" && status["state"] == "serving").then_some(status)
    });
    let blockers = status["blockers"].to_string();
    let unserved =
        format!("the resolver does not serve the one adapter for consumer shop at 127.0.0.1:{one}: could not bind");
    assert!(blockers.contains(&unserved) && blockers.contains("lsof"), "{blockers}");
    assert_eq!(ask(("127.0.0.1", two), "x").as_deref(), Some("two:x"));
    drop(held);
    fleet.moved("two", echo("two").port());
    fleet.push("authority").ok();
    fleet.host("authority").ready();
    assert_eq!(ask(("127.0.0.1", one), "x").as_deref(), Some("one:x"));
}

#[test]
fn only_a_resolution_api_that_cannot_bind_stops_the_daemon() {
    let home = Home::new();
    let mut fleet = Fleet::on_loopback_without_sshd(&["authority"]);
    fleet.service("one", "authority", "tcp", 9, "shop");
    let api = ports::one();
    fleet.registry["targets"][0]["service_resolver"]["api_bind"] = format!("127.0.0.1:{}", api.port()).into();
    let _held = TcpListener::bind(("127.0.0.1", api.port())).unwrap();
    fleet.push("authority").ok();
    let stopped = fleet.host("authority").home.stado(&["resolver", "serve"]);
    assert!(matches!(stopped.code, 1 | 69), "{}: {}", stopped.code, stopped.stderr);
    has(&sentence(&stopped), &[&format!("could not bind 127.0.0.1:{}", api.port()), "lsof"]);
    drop(home);
}

#[test]
fn a_second_daemon_on_the_same_home_is_refused_with_the_holder() {
    let mut fleet = Fleet::on_loopback_without_sshd(&["authority"]);
    fleet.service("one", "authority", "tcp", echo("one").port(), "shop");
    let at = fleet.adapter("authority", "one", "shop");
    fleet.push("authority").ok();
    let authority = fleet.host("authority");
    authority.serve();
    authority.ready();
    let pid = authority.daemon().pid().to_string();
    let second = run(&mut authority.home.command(STADO, &["resolver", "serve"])).exits(1);
    has(&sentence(&second), &["resolver-state.lock", &pid]);
    assert_eq!(authority.published()["pid"].to_string(), pid);
    assert_eq!(ask(("127.0.0.1", at), "x").as_deref(), Some("one:x"));
}

#[test]
fn a_corrupt_copy_is_set_aside_reported_and_replaced() {
    needs!("sshd");
    let mut fleet = Fleet::on_loopback(&["authority", "workstation"]);
    fleet.service("echo", "authority", "tcp", echo("echo").port(), "shop");
    let at = fleet.adapter("workstation", "echo", "shop");
    fleet.up();
    let from = fleet.host("authority").sshd.as_ref().unwrap().destination();
    let workstation = fleet.host("workstation");
    workstation.stop();
    let copy = ".stado/cache/registry-last-good.json";
    workstation.home.write(copy, "{ this is not a registry");
    workstation.serve();
    wait_until("the daemon says what is wrong with its copy", PATIENCE, || {
        assert!(workstation.daemon().ended().is_none(), "{}", workstation.daemon().log());
        workstation.daemon().log().contains("registry-last-good")
    });
    let kept = std::fs::read_dir(workstation.home.file(".stado/cache")).unwrap().flatten();
    let texts: Vec<_> = kept.map(|entry| std::fs::read_to_string(entry.path()).unwrap()).collect();
    assert!(texts.iter().any(|text| text == "{ this is not a registry"), "kept under some name: {texts:?}");
    // The documented way back.
    workstation.home.stado(&["registry", "pull", "--from", &from, "--command", STADO]).ok();
    workstation.ready();
    assert_eq!(ask(("127.0.0.1", at), "x").as_deref(), Some("echo:x"));
}

#[test]
fn usage_errors_end_with_2_and_say_what_is_allowed() {
    let home = Home::new();
    for args in [&["registry", "puhs"][..], &["resolver", "resolve", "a/b", "--consumer", "c"], &["no-such-verb"]] {
        let run = home.stado(args).exits(2);
        assert!(!run.stderr.is_empty() && run.stdout.is_empty(), "{args:?}: {}", run.stderr);
    }
}

#[test]
fn a_line_that_ends_before_its_verb_is_given_the_help_and_no_error() {
    let home = Home::new();
    for (run, code, usage) in [
        (home.stado(&[]), 2, "Usage: stado "),
        (home.stado(&["service"]), 2, "Usage: stado service "),
        (home.devmesh(&[]), 1, "Usage: devmesh "),
    ] {
        let run = run.exits(code);
        assert!(run.stdout.contains(usage), "{}", run.stdout);
        assert_eq!(run.stderr, "");
    }
    assert!(
        home.stado(&["resolver", "serve", "--help"])
            .ok()
            .stdout
            .contains("The resolution API has no flag: it listens at ")
    );
}

#[test]
fn a_name_or_a_backend_with_a_slip_is_refused_with_what_was_meant() {
    let home = Home::new();
    let port_alone = refused(&home, 2, &["service", "register", "--name", "web", "--backend", "3000"]);
    has(&port_alone, &["invalid Backend \"3000\"", "host:port on loopback, such as --backend 127.0.0.1:3000"]);
    let _daemon = home.start("devmeshd", crate::support::home::DEVMESHD, &["serve"]);
    wait_until("the daemon answers", PATIENCE, || home.devmesh(&["health"]).code == 0);
    let backend = echo("x").to_string();
    let register = ["register", "--name", "checkout.db", "--backend", &backend, "--once", "--ttl", "3"];
    home.devmesh(&register).ok();
    for args in [
        &["service", "resolve", "chekout.db"] as &[&str],
        &["service", "inspect", "chekout.db"],
        &["service", "connections", "chekout.db"],
        &["service", "forget", "chekout.db"],
        &["service", "pin", "chekout.db", "--port", "1"],
    ] {
        let told = refused(&home, 1, args);
        has(&told, &["service_not_found: service chekout.db is unknown; did you mean checkout.db? "]);
        has(&told, &["`stado service directory connect chekout.db` finds one of the fleet"]);
    }

    // Whoever waits for its producer is not told that waiting is of no use.
    wait_until("its lease has run out", PATIENCE, || {
        home.stado(&["service", "resolve", "checkout.db", "--raw"]).code == 1
    });
    for args in [&["service", "resolve", "checkout.db", "--raw"], &["service", "resolve", "later", "--raw"]] {
        let run = home.stado(args).exits(1);
        assert!(run.stderr.trim_end().ends_with("; retry later"), "{}", run.stderr);
    }
}

//! The verbs from outside: what they print, and how they end.
use crate::support::fleet::Fleet;
use crate::support::home::{Home, STADO};
use crate::support::process::run;
use crate::support::tcp::{ask, echo};
use crate::support::{PATIENCE, ports, wait_until};
use rustix::process::Signal;

/// An authority alone, with a service that listens and one that does not.
fn fleet() -> Fleet {
    let mut fleet = Fleet::on_loopback_without_sshd(&["authority", "other"]);
    fleet.service("echo", "authority", "tcp", echo("echo").port(), "shop");
    fleet.service("gone", "authority", "tcp", ports::one().port(), "shop");
    fleet.registry["targets"][1]["ssh"] = "ops@127.0.0.10".into();
    fleet.push("authority").ok();
    fleet
}

#[test]
fn connect_tries_what_it_hands_out_and_remembers_what_it_saw() {
    let mut fleet = fleet();
    let home = &fleet.host("authority").home;
    let connect = |name| ["service", "directory", "connect", name, "--json"];
    let seen = home.stado(&connect("echo")).ok().json();
    assert_eq!((&seen["verified"], &seen["observed"]), (&true.into(), &"just now".into()), "{seen}");
    let refused = home.stado(&connect("gone")).exits(69);
    assert!(refused.stderr.starts_with("Error: gone is placed on authority and did not answer at tcp://127.0.0.1:"));
    assert!(refused.stdout.is_empty());
    let rows = home.read(".stado/observations.json");
    assert!(rows.contains("service:echo@authority") && rows.contains("unreachable"), "{rows}");
    let elsewhere = home.stado(&["service", "directory", "connect", "echo", "--target", "other"]).exits(1);
    assert!(elsewhere.stderr.contains("other declares no resolver adapter for echo"), "{}", elsewhere.stderr);
}

#[test]
fn publish_writes_what_is_declared_and_removes_only_when_asked() {
    let mut fleet = fleet();
    let home = &fleet.host("authority").home;
    let fossil = home.write(".stado/forwards/old.local", "http://127.0.0.1:9\n");
    let publish = |more: &[&str]| home.stado(&[&["service", "directory", "publish"], more].concat());
    let report = publish(&["--json"]).ok().json();
    assert_eq!(report["published"].as_array().unwrap().len(), 2, "{report}");
    assert_eq!((&report["fossil"][0]["service"], report.get("pruned")), (&"old".into(), None));
    assert!(home.read(".stado/forwards/echo.local").starts_with("tcp://127.0.0.1:") && fossil.exists());
    publish(&["--prune", "--service", "echo"]).exits(2);
    assert!(fossil.exists());
    assert_eq!(publish(&["--prune", "--json"]).ok().json()["pruned"][0]["status"], "removed");
    assert!(!fossil.exists());
}

#[test]
fn one_field_is_changed_and_the_directory_advances() {
    let mut fleet = fleet();
    let home = &fleet.host("authority").home;
    let path = "service_directory.services.gone.endpoints.authority.url";
    let set = |value: &str| home.stado(&["registry", "set", "--path", path, "--value", value, "--json"]);
    let receipt = set("tcp://127.0.0.1:9").ok().json();
    assert_eq!(receipt["state"], "set", "{receipt}");
    assert_eq!(set("tcp://127.0.0.1:9").ok().json()["state"], "unchanged");
    let pull = |path| home.stado(&["registry", "pull", "--path", path]).ok().stdout;
    assert_eq!((pull(path), pull("service_directory.generation")), ("tcp://127.0.0.1:9\n".into(), "2\n".into()));
    let before = pull("service_directory");
    let refused = set("https://example.org:1").exits(1);
    assert!(refused.stderr.contains("endpoints.authority.url: must"), "{}", refused.stderr);
    assert_eq!(pull("service_directory"), before);
}

#[test]
fn status_of_another_host_is_not_made_up_from_what_is_here() {
    let mut fleet = fleet();
    let authority = fleet.host("authority");
    authority.serve();
    authority.ready();
    let other = authority.home.stado(&["resolver", "status", "--target", "other", "--json"]);
    let other = other.exits(1).json();
    assert_eq!((&other["state"], &other["verdict"]), (&"unpublished".into(), &"degraded".into()), "{other}");
    assert!(other["api"]["listening"].is_null() && other["bind_probe"].as_str().unwrap().starts_with("not probed:"));
}

#[test]
fn a_program_that_is_run_is_registered_while_it_listens_and_its_end_is_passed_on() {
    needs!("python3");
    let home = Home::new();
    let daemon = home.start("resolver", STADO, &["resolver", "serve"]);
    wait_until("the daemon answers", PATIENCE, || home.devmesh(&["health"]).code == 0);
    let backend = echo("dependency").to_string();
    home.stado(&["service", "register", "--name", "a.dep", "--backend", &backend, "--once"]).ok();
    let program = "import os,signal,socket\n\
        signal.signal(signal.SIGTERM, lambda *a: os._exit(7))\n\
        l = socket.create_server(('127.0.0.1', int(os.environ['LISTEN'])))\n\
        while True:\n    c, _ = l.accept(); c.recv(9); c.sendall(os.environ['A_DEP_ADDR'].encode()); c.close()\n";
    let python = crate::support::program("python3").unwrap();
    let args = ["service", "run", "web.api", "--with", "a.dep", "--port-env", "LISTEN", "--"];
    let mut service = home.start("run", STADO, &[&args[..], &[python.to_str().unwrap(), "-c", program]].concat());
    home.stado(&["service", "wait", "web.api", "--for", "20s"]).ok();
    let raw = |name| home.stado(&["service", "resolve", name, "--raw"]);
    let address = raw("web.api").ok().stdout.trim().to_owned();
    assert_eq!(ask(&address, "x").as_deref(), Some(raw("a.dep").ok().stdout.trim()));
    service.signal(Signal::TERM);
    assert_eq!(service.wait().code(), Some(7));
    raw("web.api").exits(1);
    home.stado(&["service", "forget", "web.api"]).ok();
    raw("web.api").exits(1);
    drop(daemon);
}

#[test]
fn what_clap_refuses_ends_with_2_in_the_voice_of_the_contract_and_1_for_devmesh() {
    let home = Home::new();
    let stado = run(&mut home.command(STADO, &["registry", "push"])).exits(2);
    assert!(stado.stderr.starts_with("Error: ") && stado.stderr.contains("[refused]"), "{}", stado.stderr);
    let devmesh = home.devmesh(&["services", "list", "--max-output-rows", "-1"]).exits(1);
    assert!(devmesh.stderr.starts_with("error: "), "{}", devmesh.stderr);
    assert!(home.devmesh(&["--help"]).ok().stdout.contains("services"));
}

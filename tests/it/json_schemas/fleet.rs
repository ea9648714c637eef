//! Two hosts over a real sshd: published and used, asked and looked at.
use super::samples::Samples;
use crate::support::fleet::Fleet;
use crate::support::home::STADO;
use crate::support::mute::Mute;
use crate::support::process::Run;
use crate::support::tcp::{Client, ask, echo};
use crate::support::{PATIENCE, wait_until};
use serde_json::{Value, json};

pub const SHOWN: &[&str] = &[
    "database-list",
    "database-resolve",
    "doctor",
    "host-exec",
    "host-inventory",
    "host-ping",
    "registry-beacon-age",
    "registry-holders",
    "registry-self",
    "resolver-status",
    "service-directory-connect",
    "service-env",
    "service-move",
    "service-publish",
    "service-unpublish",
    "service-unuse",
    "service-use",
    "status",
];

/// A fleet in which a service waits, one fails, and one is published and used.
fn fleet(mute: &Mute) -> (Fleet, [u16; 2]) {
    let mut fleet = Fleet::on_loopback(&["desk", "lap"]);
    fleet.declare("lap", "stado_command", STADO.into());
    fleet.declare("lap", "managed_versions", json!({"stado": env!("CARGO_PKG_VERSION"), "brama": "9.9.9"}));
    fleet.service("silent", "desk", "http", mute.at.port(), "shop");
    let gone = fleet.reserve();
    fleet.service("gone", "desk", "tcp", gone, "shop");
    let adapters = ["silent", "gone"].map(|service| fleet.adapter("lap", service, "shop"));
    fleet.up();
    (fleet, adapters)
}

#[test]
fn what_two_hosts_print_of_each_other_is_what_their_schemas_say() {
    needs!("python3-jsonschema", "sshd");
    let mute = Mute::start();
    let (mut fleet, [silent, gone]) = fleet(&mute);
    let mut all = Samples::default();
    let backend = echo("x").to_string();
    for name in ["desk", "lap"] {
        let register = ["service", "register", "--name", "orders", "--once", "--ttl", "3600", "--backend", &backend];
        fleet.host(name).home.stado(&register).ok();
    }
    let (desk, lap) = (&fleet.hosts[0].home, &fleet.hosts[1].home);
    for home in [desk, lap] {
        all.stado(home, 0, "registry self --json");
    }
    all.stado(desk, 0, "service publish orders --as sales --json");
    let used = all.stado(lap, 0, "service use sales --json");
    let url = used["url"].as_str().unwrap().trim_start_matches("tcp://").to_owned();
    assert_eq!(ask(&url, "1").as_deref(), Some("x:1"));
    all.stado(lap, 0, "service use --all --json");
    all.stado(lap, 0, "service directory connect sales --json");
    all.stado(lap, 0, "service env --format json");
    all.stado(lap, 0, "service publish orders --as sales --standby --json");

    // One who waits, and one who was not carried.
    let waiting =
        std::thread::spawn(move || Client::connect(("127.0.0.1", silent)).unwrap().ask("GET / HTTP/1.1\r\n\r"));
    assert_eq!(ask(("127.0.0.1", gone), "x"), None);
    let status = || lap.stado(&["resolver", "status", "--json"]);
    let seen = |run: &Run| {
        let report: Value = run.json();
        let failed = |route: &Value| route["last_failure"].is_object();
        report["waiting_opens"].as_array().is_some_and(|all| !all.is_empty())
            && report["routes"].as_array().is_some_and(|all| all.iter().any(failed))
    };
    wait_until("both are told", PATIENCE, || seen(&status()));
    all.ran("resolver status --json", &status());
    let report = all.ran("status --json", &lap.stado(&["status", "--json"]));
    assert!(report["fleet"].is_object() && report["waits"].as_array().is_some_and(|all| !all.is_empty()), "{report}");
    all.ran("doctor --json", &lap.stado(&["doctor", "--json", "--deployment-preflight", "--release-verification"]));
    mute.speak();
    drop(waiting.join());

    looked_at(&mut all, &mut fleet);
    let (desk, lap) = (&fleet.hosts[0].home, &fleet.hosts[1].home);
    all.stado(desk, 0, "service move sales --to lap --json");
    all.stado(desk, 0, "service move sales --to lap --json");
    all.stado(lap, 0, "service unuse sales --json");
    all.stado(lap, 0, "service unuse --all --json");
    all.stado(desk, 0, "service unpublish sales --json");
    all.stado(lap, 0, "service unpublish sales --json");
    all.hold(desk, SHOWN);
}

/// What one host is asked about another, which answers, and then does not.
fn looked_at(all: &mut Samples, fleet: &mut Fleet) {
    let lap = &fleet.hosts[1].home;
    lap.write(".stado/forwards/fossil.local", "http://127.0.0.1:1\n");
    lap.write(".stado/vault.json", "{}");
    let declare = "database declare sales --engine sqlite --scope read --consumer lap";
    lap.stado(&declare.split(' ').collect::<Vec<_>>()).ok();
    all.stado(lap, 0, "database list --json");
    let placed = all.stado(lap, 0, "database resolve sales --consumer lap --json");
    assert_eq!(placed["placed"], true, "{placed}");
    asked(all, fleet);
    let desk = &fleet.hosts[0].home;
    all.stado(desk, 7, "host exec lap --json -- exit 7");
    all.stado(desk, 0, "host exec desk --json -- true");
    let flood = ["host", "exec", "lap", "--json", "--max-output", "10", "--", "yes"];
    let cut = all.ran("host exec lap --json", &desk.stado(&flood));
    assert_eq!(cut["cut"], true, "{cut}");
    fleet.host("lap").sshd.as_mut().unwrap().down();
    asked(all, fleet);
    let lap = fleet.host("lap");
    lap.sshd.as_mut().unwrap().up(&lap.home);
}

/// What one host learns of itself and of another, whether or not that one answers.
fn asked(all: &mut Samples, fleet: &Fleet) {
    let desk = &fleet.hosts[0].home;
    for line in [
        "registry holders --timeout 5s --json",
        "registry beacon-age --timeout 5s --json",
        "host ping lap --json",
        "host ping desk --json",
        "host inventory lap --json",
        "host inventory desk --json",
    ] {
        all.ran(line, &desk.stado(&line.split(' ').collect::<Vec<_>>()));
    }
}

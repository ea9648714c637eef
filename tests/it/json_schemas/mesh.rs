//! One host and its mesh, from no daemon to services in use.
use super::samples::Samples;
use crate::support::docker::Engine;
use crate::support::home::{Home, STADO};
use crate::support::http::{get, http, python_with};
use crate::support::process::{Run, run, run_with};
use crate::support::tcp::{Client, ask, echo};
use crate::support::{PATIENCE, ports, wait_until};
use std::path::Path;

pub const SHOWN: &[&str] = &[
    "database-declare",
    "database-grant",
    "database-list",
    "database-remove",
    "database-resolve",
    "database-revoke",
    "devmesh-doctor",
    "devmesh-health",
    "devmesh-register",
    "devmesh-services-inspect",
    "devmesh-services-list",
    "devmesh-services-resolve",
    "doctor",
    "doctor.rows",
    "resolver-status",
    "service-connections",
    "service-connections.rows",
    "service-env",
    "service-health",
    "service-inspect",
    "service-list",
    "service-pin",
    "service-register",
    "service-rename",
    "service-resolve",
    "status",
    "tls-init",
    "tls-status",
    "tls-trust",
    "vault-list",
];

#[test]
fn what_a_host_alone_prints_is_what_its_schemas_say() {
    needs!("python3-jsonschema");
    let (home, api, port) = (Home::new(), ports::one(), ports::one());
    home.write(".stado/config.json", format!(r#"{{"api_bind": "127.0.0.1:{}"}}"#, api.port()));
    let mut all = Samples::default();
    // Nobody is there.
    all.stado(&home, 1, "status --json");
    all.stado(&home, 1, "resolver status --json");
    all.stado(&home, 1, "doctor --json");
    all.stado(&home, 1, "doctor --format json");
    all.devmesh(&home, 1, "doctor --format json");
    all.stado(&home, 0, "tls status --json");
    databases(&mut all, &home);
    vault(&mut all, &home);

    let at = format!("127.0.0.1:{}", port.port());
    let _daemon = home.start("resolver", STADO, &["resolver", "serve", "--http-enabled", "--http-addr", &at]);
    wait_until("nothing to put right", PATIENCE, || home.stado(&["status"]).code == 0);
    looked_at(&mut all, &home);
    certificates(&mut all, &home);
    used(&mut all, &home, port.port());
    looked_at(&mut all, &home);
    as_the_page_says(&home);
    all.hold(&home, SHOWN);
}

/// The commands of docs/json.md, in a folder like this repository's.
fn as_the_page_says(home: &Home) {
    const PAGE: &str = include_str!(concat!(env!("CARGO_MANIFEST_DIR"), "/docs/json.md"));
    let commands = PAGE.split("\n```").nth(1).unwrap();
    std::os::unix::fs::symlink(concat!(env!("CARGO_MANIFEST_DIR"), "/docs"), home.file("docs")).unwrap();
    let python = python_with("jsonschema").unwrap();
    let programs = [Path::new(STADO), &python].map(|program| program.parent().unwrap().display().to_string());
    let script = format!("PATH={}:$PATH\n{commands}", programs.join(":"));
    let checked = run(&mut home.command("/bin/sh", &["-ec", &script])).ok();
    assert_eq!(checked.stdout, "");
    assert!(home.read("status.out").starts_with("{\n  \"host\""), "{}", home.read("status.out"));
}

/// What can be asked at any time, with or without services.
fn looked_at(all: &mut Samples, home: &Home) {
    for line in ["status --json", "resolver status --json", "doctor --json", "doctor --format json --fix-hints"] {
        all.stado(home, 0, line);
    }
    for line in ["service list --format json", "service list --refused --format json", "service env --format json"] {
        all.stado(home, 0, line);
    }
    all.stado(home, 0, "service health --format json");
    for line in ["doctor --format json", "health --format json", "services list --format json"] {
        all.devmesh(home, 0, line);
    }
}

fn used(all: &mut Samples, home: &Home, router: u16) {
    let (tcp, web) = (echo("x"), http("here"));
    let lasting = "--once --ttl 600 --format json";
    all.stado(home, 0, &format!("service register --name db --app-protocol pg --backend {tcp} {lasting}"));
    all.devmesh(home, 0, &format!("register --name web --kind http --backend 127.0.0.1:{web} {lasting}"));
    for name in ["db", "web"] {
        all.stado(home, 0, &format!("service resolve {name} --format json"));
        all.stado(home, 0, &format!("service inspect {name} --format json"));
        all.devmesh(home, 0, &format!("services resolve {name} --format json"));
        all.devmesh(home, 0, &format!("services inspect {name} --format json"));
    }
    assert_eq!(get(router, "web.localhost", ""), (200, "here".into()));
    let address = home.stado(&["service", "resolve", "db", "--raw"]).ok().stdout.trim().to_owned();
    assert_eq!(ask(&address, "1").as_deref(), Some("x:1"));
    let mut open = Client::connect(&address).unwrap();
    assert_eq!(open.ask("2").as_deref(), Some("x:2"));
    // A backend where nobody listens, and a connection to it.
    let nowhere = format!("127.0.0.1:{}", ports::one().port());
    all.stado(home, 0, &format!("service register --name gone --backend {nowhere} {lasting}"));
    let gone = home.stado(&["service", "resolve", "gone", "--raw"]).ok().stdout.trim().to_owned();
    assert_eq!(ask(&gone, "1"), None);
    for name in ["db", "web", "gone"] {
        all.stado(home, 0, &format!("service connections {name} --json"));
        all.stado(home, 0, &format!("service connections {name} --format json"));
    }
    home.stado(&["service", "forget", "gone", "--force"]).ok();
    let (_, last) = home.frontends();
    all.stado(home, 0, &format!("service pin db --port {last} --format json"));
    all.stado(home, 0, "service rename web shop --format json");
    drop(open);
}

fn databases(all: &mut Samples, home: &Home) {
    all.stado(home, 0, "database list --json");
    let declare = "database declare orders --engine postgres --scope read --scope write --json";
    all.stado(home, 0, declare);
    all.stado(home, 0, declare);
    all.stado(home, 0, "database grant orders shop --json");
    all.stado(home, 0, "database resolve orders --consumer shop --json");
    all.stado(home, 0, "database list --json");
    all.stado(home, 0, "database revoke orders shop --json");
    all.stado(home, 0, "database remove orders --json");
}

fn vault(all: &mut Samples, home: &Home) {
    home.stado(&["vault", "init", "--key", "file"]).ok();
    all.stado(home, 0, "vault list --json");
    let put = |item: &str| -> Run {
        let args = ["vault", "put", item, "--field", "password", "--type", "login", "--tag", "prod"];
        run_with(&mut home.command(STADO, &args), b"s3cret\n")
    };
    put("db").ok();
    put("old").ok();
    home.stado(&["vault", "remove", "old"]).ok();
    home.stado(&["vault", "grant", "shop", "db", "--token-file", "token"]).ok();
    all.stado(home, 0, "vault list --json");
    all.stado(home, 0, "vault list --removed --json");
}

/// Never the machine's own stores: those of this home alone.
fn certificates(all: &mut Samples, home: &Home) {
    all.stado(home, 0, "tls init --json");
    all.stado(home, 0, "tls init --json");
    // A certificate that cannot be read, and a store that needs hands or is not there.
    std::fs::create_dir_all(home.file(".pki/nssdb")).unwrap();
    let run = home.stado(&["tls", "trust", "--store", "nss", "--json"]);
    all.ran("tls trust --store nss --json", &run);
    all.stado(home, 0, "tls status --store nss --json");
}

#[test]
fn what_a_container_is_refused_is_what_the_schema_says() {
    needs!("python3-jsonschema", "docker");
    let (engine, mut home, api) = (Engine::take(), Home::new(), ports::one());
    home.unset("DEVMESH_DOCKER_ENABLED");
    home.write(".stado/config.json", format!(r#"{{"api_bind": "127.0.0.1:{}"}}"#, api.port()));
    engine.sleeper("it-no-port", &["enable=true", "name=it.no-port", "container-port=80"]);
    let _daemon = home.start("resolver", STADO, &["resolver", "serve"]);
    let refused = ["service", "list", "--refused", "--format", "json"];
    wait_until("it is refused", PATIENCE, || home.stado(&refused).stdout.contains("it-no-port"));
    let mut all = Samples::default();
    all.stado(&home, 0, "service list --refused --format json");
    all.stado(&home, 0, "service health --format json");
    let run = home.stado(&["status", "--json"]);
    assert!(all.ran("status --json", &run)["docker"].is_object());
    all.hold(&home, &["service-list", "service-health", "status"]);
}

//! The clients in other languages under `examples`: each registers a service, finds it, survives a daemon that was killed, and
//! lets go of it.
use crate::support::home::{Home, STADO};
use crate::support::process::{Process, run};
use crate::support::tcp::{ask, echo};
use crate::support::{PATIENCE, program, wait_for, wait_until};

/// What starts a client, before its own words.
type Client<'c> = &'c [&'c str];

fn serve(home: &Home) -> Process {
    let daemon = home.start("resolver", STADO, &["resolver", "serve"]);
    wait_until("the daemon answers", PATIENCE, || home.devmesh(&["health"]).code == 0);
    daemon
}

fn a_client_does_what_a_service_needs(home: &Home, client: Client<'_>) {
    let call = |words: &[&str]| run(&mut home.command(client[0], &[&client[1..], words].concat()));
    let absent = call(&["list"]).exits(1);
    assert!(absent.stderr.starts_with("error: "), "{}", absent.stderr);
    let daemon = serve(home);
    assert!(call(&["resolve", "web"]).exits(1).stderr.contains("service_not_found"));

    let port = echo("from behind").port().to_string();
    let words = [&client[1..], &["register", "web", &port]].concat();
    let producer = home.start("producer", client[0], &words);
    let address = wait_for("the service is found", PATIENCE, || {
        Some(call(&["resolve", "web"])).filter(|run| run.code == 0).map(|run| run.stdout.trim().to_owned())
    });
    assert!(ask(&address, "x").is_some(), "nobody answers at {address}");
    assert_eq!(call(&["list"]).ok().stdout, format!("web ready {address}\n"));

    // A killed daemon comes back; the client is back by itself, behind the same address.
    daemon.kill9();
    let _daemon = serve(home);
    let again = wait_for("the service is back", PATIENCE, || {
        Some(call(&["resolve", "web"])).filter(|run| run.code == 0).map(|run| run.stdout.trim().to_owned())
    });
    assert_eq!(again, address);
    assert!(producer.stop().success());
    let gone = call(&["resolve", "web"]).exits(1);
    assert!(gone.stderr.contains("deregistered"), "{}", gone.stderr);
}

#[test]
fn the_python_client_registers_finds_and_survives_the_daemon() {
    needs!("python3");
    let python = program("python3").unwrap();
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/examples/python/stado_client.py");
    a_client_does_what_a_service_needs(&Home::new(), &[python.to_str().unwrap(), script]);
}

#[test]
fn the_go_client_registers_finds_and_survives_the_daemon() {
    needs!("go");
    let home = Home::new();
    let binary = home.file("go-client");
    let mut build = home.command(program("go").unwrap(), &["build", "-o", binary.to_str().unwrap(), "."]);
    build.current_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/examples/go"));
    // Nothing is fetched, and nothing is left in the account's own cache but what the toolchain compiles of itself.
    build.env("GOCACHE", std::env::temp_dir().join("stado-go-cache")).env("GOFLAGS", "-mod=mod").env("GOPROXY", "off");
    run(&mut build).ok();
    a_client_does_what_a_service_needs(&home, &[binary.to_str().unwrap()]);
}

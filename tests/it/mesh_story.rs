//! The first specification's own stories, through its own commands.
use crate::support::home::{DEVMESHD, Home};
use crate::support::process::{Process, run};
use crate::support::tcp::{Client, ask, echo};
use crate::support::{PATIENCE, ports, wait_for, wait_until};
use rustix::process::Signal;
use serde_json::Value;
use std::os::unix::fs::PermissionsExt;

fn serve(home: &Home, args: &[&str]) -> Process {
    let mut daemon = home.start("devmeshd", DEVMESHD, &[&["serve", "--docker-enabled=false"], args].concat());
    wait_until("the daemon answers", PATIENCE, || {
        assert!(daemon.ended().is_none(), "{}", daemon.log());
        home.devmesh(&["health"]).code == 0
    });
    daemon
}

fn socket(home: &Home) -> String {
    home.file(".devmesh/run/devmesh.sock").to_str().unwrap().to_owned()
}

/// `--raw` prints the endpoint alone, and fails while nothing is behind it.
fn endpoint(home: &Home, name: &str) -> Option<String> {
    let run = home.devmesh(&["services", "resolve", name, "--raw"]);
    (run.code == 0).then(|| run.stdout.strip_suffix('\n').unwrap().to_owned())
}

#[test]
fn an_existing_client_registers_renews_survives_a_killed_daemon_and_deregisters() {
    needs!("python3");
    let home = Home::new();
    let daemon = serve(&home, &[]);
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/clients/mesh_client.py");
    let preferred = ports::one();
    let port = preferred.port().to_string();
    let args = [script, "--socket", &socket(&home), "--name", "checkout.api", "--ttl", "3", "--preferred-port", &port];
    let python = crate::support::program("python3").unwrap();
    let mut client = home.start("client", python, &args);
    let address = format!("127.0.0.1:{port}");
    client.expect(&format!("registered {address} "));
    client.expect("renewed ");
    assert_eq!(ask(&address, "hello").as_deref(), Some("ECHO:hello"));
    assert_eq!(endpoint(&home, "checkout.api").as_deref(), Some(address.as_str()));

    daemon.kill9();
    client.expect("lost ");
    assert!(ask(&address, "hello").is_none());
    let _daemon = serve(&home, &[]);
    let again = format!("registered {address} ");
    wait_until("registered again at the same address", PATIENCE, || client.log().matches(&again).count() == 2);
    assert_eq!(ask(&address, "hello").as_deref(), Some("ECHO:hello"));

    client.signal(Signal::TERM);
    assert!(client.wait().success());
    assert!(client.log().ends_with("deregistered 204\n"), "{}", client.log());
    assert_eq!(endpoint(&home, "checkout.api"), None);
    let inspected = home.devmesh(&["services", "inspect", "checkout.api", "--format", "json"]).ok().json();
    assert_eq!((&inspected[0]["status"], &inspected[0]["frontend"]), (&"unavailable".into(), &address.into()));
}

#[test]
fn the_story_of_the_specification_echo_restart_and_a_reused_frontend() {
    let home = Home::new();
    let daemon = serve(&home, &[]);
    let (backend, preferred) = (echo("ECHO"), ports::one());
    let port = preferred.port().to_string();
    let register =
        ["register", "--name", "test.echo", "--backend", &backend.to_string(), "--preferred-port", &port, "--once"];
    home.devmesh(&register).ok();
    let address = format!("127.0.0.1:{port}");
    let table = home.devmesh(&["services", "resolve", "test.echo"]).ok().stdout;
    assert!(table.contains(&format!("| {address}")), "{table}");
    assert_eq!(ask(&address, "hello-devmesh").as_deref(), Some("ECHO:hello-devmesh"));
    assert!(daemon.stop().success());
    assert!(!home.file(".devmesh/run/devmesh.sock").exists(), "an orderly stop removes the socket");

    let mut daemon = serve(&home, &[]);
    let listed = home.devmesh(&["services", "list", "--format", "json"]).ok().json();
    assert_eq!((&listed[0]["name"], &listed[0]["status"]), (&"test.echo".into(), &"unavailable".into()), "{listed}");
    let elsewhere = echo("AGAIN");
    home.devmesh(&["register", "--name", "test.echo", "--backend", &elsewhere.to_string(), "--once"]).ok();
    daemon.expect(&format!("frontend_reused service=test.echo frontend={address}"));
    assert_eq!(ask(&address, "x").as_deref(), Some("AGAIN:x"));
}

#[test]
fn defaults_yield_to_the_file_the_file_to_the_environment_and_all_to_flags() {
    let ranges = [ports::block(8), ports::block(8), ports::block(8)];
    let range = |n: usize| (ranges[n].port().to_string(), ranges[n].last().to_string());
    let [(file, file_end), (env, env_end), (flag, flag_end)] = [range(0), range(1), range(2)];
    let mut home = Home::new();
    let config = format!(r#"{{"tcp_frontend_min":{file},"tcp_frontend_max":{file_end},"docker":{{"enabled":false}}}}"#);
    let config = home.write("mesh.json", config);
    let config = config.to_str().unwrap();
    let set = |home: &mut Home, values: Option<(&str, &str)>| {
        home.unset("DEVMESH_TCP_FRONTEND_MIN");
        home.unset("DEVMESH_TCP_FRONTEND_MAX");
        if let Some((min, max)) = values {
            home.set("DEVMESH_TCP_FRONTEND_MIN", min);
            home.set("DEVMESH_TCP_FRONTEND_MAX", max);
        }
    };
    let allocated = |home: &Home, name: &str, args: &[&str]| {
        let daemon = serve(home, args);
        home.devmesh(&["register", "--name", name, "--backend", &echo("x").to_string(), "--once"]).ok();
        let port: u16 = endpoint(home, name).unwrap().rsplit_once(':').unwrap().1.parse().unwrap();
        daemon.stop();
        ranges.iter().position(|r| (r.port()..=r.last()).contains(&port))
    };
    let flags = ["--tcp-frontend-min", flag.as_str(), "--tcp-frontend-max", flag_end.as_str()];
    set(&mut home, None);
    assert_eq!(allocated(&home, "of.file", &["--config", config]), Some(0));
    set(&mut home, Some((&env, &env_end)));
    assert_eq!(allocated(&home, "of.environment", &["--config", config]), Some(1));
    assert_eq!(allocated(&home, "of.flags", &[&["--config", config], &flags[..]].concat()), Some(2));
    let print = [&["serve", "--config", config, "--print-parsed-fields"], &flags[..]].concat();
    let fields = run(&mut home.command(DEVMESHD, &print)).ok().stdout;
    for value in ["15000", file.as_str(), env.as_str(), flag.as_str()] {
        assert!(fields.contains(value), "{value} in {fields}");
    }
    set(&mut home, None);
    home.set("DEVMESH_CONFIG", config);
    assert_eq!(allocated(&home, "of.file.by.environment", &[]), Some(0));
}

#[test]
fn a_second_daemon_is_refused_and_the_first_is_not_disturbed() {
    let home = Home::new();
    let mut daemon = serve(&home, &[]);
    home.devmesh(&["register", "--name", "a", "--backend", &echo("x").to_string(), "--once"]).ok();
    let address = endpoint(&home, "a").unwrap();
    let second = run(&mut home.command(DEVMESHD, &["serve", "--docker-enabled=false"])).exits(1);
    let sentence = format!("another devmeshd is already listening on {}", socket(&home));
    assert!(second.stderr.contains(&sentence), "{}", second.stderr);
    assert!(daemon.ended().is_none());
    assert_eq!(ask(&address, "1").as_deref(), Some("x:1"));
}

#[test]
fn a_socket_left_by_a_killed_daemon_is_taken_over_and_anything_else_is_left_alone() {
    let home = Home::new();
    serve(&home, &[]).kill9();
    assert!(home.file(".devmesh/run/devmesh.sock").exists());
    let daemon = serve(&home, &[]);
    let mode = |file: &str| home.file(file).metadata().unwrap().permissions().mode() & 0o777;
    assert_eq!((mode(".devmesh/run/devmesh.sock"), mode(".devmesh/run")), (0o600, 0o700));
    daemon.stop();

    let file = home.write(".devmesh/run/devmesh.sock", "precious");
    let refused = run(&mut home.command(DEVMESHD, &["serve", "--docker-enabled=false"])).exits(1);
    let sentence = format!("refusing to replace {}: existing path is not a Unix socket", file.display());
    assert!(refused.stderr.contains(&sentence), "{}", refused.stderr);
    assert_eq!(home.read(".devmesh/run/devmesh.sock"), "precious");
}

#[test]
fn a_lease_that_is_not_renewed_ends_and_the_address_stays() {
    let home = Home::new();
    let _daemon = serve(&home, &[]);
    home.devmesh(&["register", "--name", "a.b", "--backend", &echo("x").to_string(), "--ttl", "3", "--once"]).ok();
    let before = endpoint(&home, "a.b").unwrap();
    wait_until("the lease ends", PATIENCE, || endpoint(&home, "a.b").is_none());
    let service: Value = wait_for("listed, unavailable", PATIENCE, || {
        let listed = home.devmesh(&["services", "list", "--status", "unavailable", "--format", "json"]).json();
        listed.get(0).cloned()
    });
    assert_eq!(service["endpoint"], before.as_str());
    home.devmesh(&["register", "--name", "a.b", "--backend", &echo("y").to_string(), "--once"]).ok();
    assert_eq!(endpoint(&home, "a.b"), Some(before.clone()));
    assert_eq!(ask(&before, "1").as_deref(), Some("y:1"));
}

#[test]
fn a_backend_that_does_not_answer_is_named_in_the_log() {
    let home = Home::new();
    let mut daemon = serve(&home, &[]);
    let gone = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    home.devmesh(&["register", "--name", "a.b", "--backend", &gone.to_string(), "--once"]).ok();
    let address = endpoint(&home, "a.b").unwrap();
    assert_eq!(ask(&address, "1"), None);
    daemon.expect(&format!("msg=tcp_dial_failed service=a.b frontend={address} backend={gone} error="));
}

#[test]
fn connections_of_a_service_are_shown_open_and_ended_with_who_is_to_blame() {
    let home = Home::new();
    let _daemon = serve(&home, &[]);
    home.devmesh(&["register", "--name", "a.b", "--backend", &echo("x").to_string(), "--once"]).ok();
    let address = endpoint(&home, "a.b").unwrap();
    let mut client = Client::connect(&*address).unwrap();
    assert_eq!(client.ask("1").as_deref(), Some("x:1"));
    let list = |args: &[&str]| home.stado(&[&["service", "connections", "a.b"], args].concat()).ok();
    let now = list(&["--json"]).json();
    assert_eq!((&now["counters"]["opened"], &now["counters"]["bytes_up"]), (&1.into(), &2.into()), "{now}");
    assert_eq!((&now["open"][0]["outcome"], &now["open"][0]["bytes_down"]), (&"open".into(), &4.into()), "{now}");
    drop(client);
    let ended: Value = wait_for("the connection ends", PATIENCE, || {
        let rows = list(&["--format", "json"]).json();
        (rows[0]["outcome"] == "done").then(|| rows[0].clone())
    });
    assert_eq!((&ended["bytes_up"], &ended["blame"]), (&"2".into(), &"".into()), "{ended}");

    let gone = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    home.devmesh(&["register", "--name", "a.c", "--backend", &gone.to_string(), "--once"]).ok();
    assert_eq!(ask(endpoint(&home, "a.c").unwrap(), "1"), None);
    wait_until("the refusal is shown", PATIENCE, || {
        let shown = home.stado(&["service", "connections", "a.c"]).ok();
        shown.stdout.contains(&format!("local upstream connect failed: {gone}"))
            && shown
                .stderr
                .starts_with("a.c: 0 open, 0 opened, refused 1 (no backend 0, limit 0, unreachable 1, loop 0)")
    });
    let unknown = home.stado(&["service", "connections", "nobody"]);
    assert!(unknown.code != 0 && unknown.stderr.contains("nobody"), "{}", unknown.stderr);
}

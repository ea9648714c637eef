//! A daemon's life: reload, restart, stop, and its log.
use crate::support::home::{DEVMESHD, Home, STADO};
use crate::support::process::{Process, run};
use crate::support::tcp::echo;
use crate::support::{PATIENCE, wait_until};
use rustix::process::Signal;
use stado::client::Api;
use stado::client::wire::{BackendAddr, RegisterRequest};

fn start(home: &Home, name: &str, program: &str, args: &[&str]) -> Process {
    let mut daemon = home.start(name, program, args);
    wait_until("the daemon answers", PATIENCE, || {
        assert!(daemon.ended().is_none(), "{}", daemon.log());
        home.devmesh(&["health"]).code == 0
    });
    daemon
}

/// Lease that a registration gets that asks for none.
fn lease(home: &Home, name: &str) -> i64 {
    let api = Api::new(home.file(".devmesh/run/devmesh.sock"));
    let backend = BackendAddr { host: "127.0.0.1".into(), port: 9 };
    let request = RegisterRequest { name: name.into(), backend, ..Default::default() };
    let runtime = tokio::runtime::Runtime::new().unwrap();
    runtime.block_on(api.register(&request, None)).unwrap().ttl_seconds
}

#[test]
fn a_hangup_reads_the_configuration_again_applies_what_can_change_and_names_the_rest() {
    let home = Home::new();
    let config = home.write("mesh.json", r#"{"lease_ttl":"20s","docker":{"enabled":false}}"#);
    let mut daemon = start(&home, "devmeshd", DEVMESHD, &["serve", "--config", config.to_str().unwrap()]);
    assert_eq!(lease(&home, "before"), 20);
    home.write(
        "mesh.json",
        r#"{"lease_ttl":"30s","http":{"http_addr":"127.0.0.1:1"},"leese_ttl":"1s","docker":{"enabled":false}}"#,
    );
    daemon.signal(Signal::HUP);
    daemon.expect("msg=config_reloaded applied=lease-ttl needs_restart=http-addr");
    daemon.expect("unknown key leese_ttl is ignored; did you mean lease_ttl?");
    wait_until("the new lease is in force", PATIENCE, || {
        let name = format!("after-{}", daemon.log().len());
        let seconds = lease(&home, &name);
        home.stado(&["service", "forget", &name, "--force"]).ok();
        seconds == 30
    });
    home.write("mesh.json", "{");
    daemon.signal(Signal::HUP);
    daemon.expect("msg=config_reload_failed");
    assert_eq!(lease(&home, "still"), 30);
    assert!(daemon.stop().success());
}

#[test]
fn a_restart_keeps_pid_and_ports_and_a_stop_ends_the_resolver() {
    let home = Home::new();
    let config = home.write(".config/mesh.json", "{}");
    let args = ["resolver", "serve", "--docker-enabled=false", "--config", config.to_str().unwrap()];
    let mut daemon = start(&home, "resolver", STADO, &args);
    let backend = echo("x").to_string();
    home.devmesh(&["register", "--name", "a", "--backend", &backend, "--ttl", "600", "--once"]).ok();
    let row = |home: &Home| home.devmesh(&["services", "list", "--format", "json"]).ok().json()[0].clone();
    let before = row(&home);
    let restarted = home.stado(&["resolver", "restart"]).ok().stdout;
    assert_eq!(restarted, format!("restarted the resolver (pid {})\n", daemon.pid()));
    assert!(daemon.ended().is_none());
    let after = row(&home);
    assert_eq!((&after["endpoint"], &after["status"]), (&before["endpoint"], &"unavailable".into()));
    assert_eq!(before["status"], "ready");

    home.write(".config/mesh.json", r#"{"lease_ttl":"1s"}"#);
    let refused = home.stado(&["resolver", "restart", "--for", "1s"]).exits(69);
    assert!(refused.stderr.contains("has not started again within 1s"), "{}", refused.stderr);
    daemon.expect("msg=restart_refused");
    assert_eq!(row(&home)["name"], "a", "it serves on");

    let stopped = home.stado(&["resolver", "stop"]).ok().stdout;
    assert_eq!(stopped, format!("stopped the resolver (pid {})\n", daemon.pid()));
    assert!(daemon.wait().success());
    assert_eq!(home.stado(&["resolver", "stop"]).ok().stdout, "no resolver runs for this home\n");
    let none = home.stado(&["resolver", "restart"]).exits(1);
    assert!(none.stderr.contains("start one with `stado resolver serve`"), "{}", none.stderr);
}

#[test]
fn the_log_goes_to_a_file_as_lines_or_json_and_old_files_are_bounded() {
    let home = Home::new();
    let log = home.file("logs/mesh.log");
    let serve = |more: &[&str]| {
        let args = ["serve", "--docker-enabled=false", "--log-file", log.to_str().unwrap()];
        start(&home, "devmeshd", DEVMESHD, &[&args[..], more].concat()).stop();
    };
    serve(&["--log-rotate", "never"]);
    let text = home.read("logs/mesh.log");
    let has = |event: &str| text.lines().any(|line| line.contains(" level=INFO ") && line.contains(event));
    assert!(has("msg=listening") && has("msg=daemon_started") && has("msg=daemon_stopped"), "{text}");

    for old in ["2020-01-01", "2020-01-02", "2020-01-03"] {
        home.write(&format!("logs/mesh.log.{old}"), "old\n");
    }
    std::fs::remove_file(&log).unwrap();
    serve(&["--log-rotate", "daily", "--log-keep", "2", "--log-format", "json"]);
    let files: Vec<_> = log.parent().unwrap().read_dir().unwrap().flatten().map(|entry| entry.path()).collect();
    assert_eq!(files.len(), 2, "{files:?}");
    let texts: Vec<_> = files.iter().map(|file| std::fs::read_to_string(file).unwrap()).collect();
    let current = texts.iter().find(|text| *text != "old\n").unwrap();
    let first: serde_json::Value = serde_json::from_str(current.lines().next().unwrap()).unwrap();
    assert!(first["msg"].is_string() && first["level"].is_string() && first["time"].is_string(), "{first}");
    let refused = run(&mut home.command(DEVMESHD, &["serve", "--log-keep", "2"])).exits(1);
    assert!(refused.stderr.contains("--log-file"), "{}", refused.stderr);
}

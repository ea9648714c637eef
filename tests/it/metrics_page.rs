//! The metrics: on the control socket, on a loopback port when asked, and as the page in docs/ describes them.
use crate::support::home::{DEVMESHD, Home, STADO};
use crate::support::process::{Process, run};
use crate::support::tcp::{ask, echo};
use crate::support::{PATIENCE, ports, wait_until};
use stado_resolver::mesh::metric_names::{ALL, Metric};
use std::io::{Read, Write};
use std::net::TcpStream;

fn get(bind: &str, host: &str) -> String {
    let mut stream = TcpStream::connect(bind).unwrap();
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    write!(stream, "GET /metrics HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n").unwrap();
    let mut text = String::new();
    stream.read_to_string(&mut text).unwrap();
    text
}

fn start(home: &Home, program: &str, args: &[&str]) -> Process {
    let daemon = home.start("daemon", program, args);
    wait_until("the daemon answers", PATIENCE, || home.devmesh(&["health"]).code == 0);
    daemon
}

#[test]
fn the_page_is_served_on_loopback_when_asked_and_says_what_each_number_is() {
    let (home, port) = (Home::new(), ports::one());
    let bind = format!("127.0.0.1:{}", port.port());
    let _daemon = start(&home, DEVMESHD, &["serve", "--docker-enabled=false", "--metrics-bind", &bind]);
    home.devmesh(&["register", "--name", "a", "--backend", &echo("x").to_string(), "--once"]).ok();
    let address = home.devmesh(&["services", "resolve", "a", "--raw"]).ok().stdout;
    assert_eq!(ask(address.trim(), "1").as_deref(), Some("x:1"));
    wait_until("the connection is counted", PATIENCE, || {
        get(&bind, &bind).contains(r#"stado_connections_opened_total{service="a",consumer=""} 1"#)
    });
    let page = get(&bind, "localhost");
    assert!(page.contains(r#"stado_mesh_services{status="ready"} 1"#), "{page}");
    assert!(get(&bind, "evil.example").starts_with("HTTP/1.1 403"));

    // What is served is described, with the same words.
    for line in page.lines().filter_map(|line| line.strip_prefix("# HELP stado_")) {
        let (name, help) = line.split_once(' ').unwrap();
        assert!(ALL.iter().any(|metric| metric.name == name && metric.help == help.trim_end_matches('.')), "{line}");
    }
}

#[test]
fn the_table_of_the_documentation_is_the_table_of_the_code() {
    let document = include_str!(concat!(env!("CARGO_MANIFEST_DIR"), "/docs/metrics.md"));
    let documented: Vec<&str> = document.lines().filter(|line| line.starts_with("| `stado_")).collect();
    let row = |m: &Metric| format!("| `stado_{}` | {} | {} | {} |", m.name, m.kind, m.help, m.labels.join(", "));
    assert_eq!(documented, ALL.iter().map(row).collect::<Vec<_>>());
}

#[test]
fn a_page_that_cannot_be_served_stops_nothing_and_is_named_and_one_for_others_is_refused() {
    let (home, port) = (Home::new(), ports::one());
    let taken = std::net::TcpListener::bind(("127.0.0.1", port.port())).unwrap();
    let bind = taken.local_addr().unwrap().to_string();
    let mut daemon = start(&home, STADO, &["resolver", "serve", "--docker-enabled=false", "--metrics-bind", &bind]);
    daemon.expect("msg=metrics_not_served");
    let mut unserved = serde_json::Value::Null;
    wait_until("the reason is published", PATIENCE, || {
        let state = std::fs::read_to_string(home.file(".stado/resolver-state.json")).unwrap_or_default();
        let state: serde_json::Value = serde_json::from_str(&state).unwrap_or_default();
        let rows = state["unserved"].as_array().cloned().unwrap_or_default();
        unserved = rows.into_iter().find(|row| row["service"] == "metrics").unwrap_or_default();
        unserved["service"] == "metrics"
    });
    let holder = format!("{bind} is held by pid {}", std::process::id());
    assert!(unserved["reason"].as_str().unwrap().contains(&holder), "{unserved}");
    let refused = run(&mut home.command(DEVMESHD, &["serve", "--metrics-bind", "0.0.0.0:9100"])).exits(1);
    assert!(refused.stderr.contains("metrics_bind 0.0.0.0:9100 is not a loopback address"), "{}", refused.stderr);
}

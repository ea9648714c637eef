//! HTTP services by hostname, through the built daemon.
use crate::support::home::{DEVMESHD, Home, STADO};
use crate::support::http::{get, http, listed, python_with, register, serve};
use crate::support::process::{Process, run};
use crate::support::{PATIENCE, ports, program, wait_until};
use serde_json::Value;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::os::fd::AsRawFd;

#[test]
fn two_hostnames_reach_two_backends_and_the_rest_is_told_why_not() {
    let (home, lease) = (Home::new(), ports::one());
    let port = lease.port();
    let daemon = serve(&home, port, &[]);
    register(&home, "a", http("A"), &["--http-host", "a.test"]);
    register(&home, "checkout.api", http("B"), &[]);
    assert_eq!(get(port, "a.test", ""), (200, "A".into()));
    assert_eq!(get(port, &format!("CHECKOUT-api.localhost.:{port}"), ""), (200, "B".into()));
    let (status, text) = get(port, "c.test", "");
    assert_eq!(status, 404);
    assert!(text.starts_with("404 Not Found\n") && text.contains("a.test, checkout-api.localhost"), "{text}");
    assert!(text.contains(&format!("listed at http://stado.localhost:{port}/")), "{text}");
    assert_eq!(listed(&home, "checkout.api")["endpoint"], format!("http://checkout-api.localhost:{port}"));

    // Known and not back yet: after a kill the name is still known.
    daemon.kill9();
    let _daemon = serve(&home, port, &[]);
    let (status, text) = get(port, "a.test", "");
    assert_eq!(status, 503);
    assert!(text.starts_with("503 Service Unavailable\n"), "{text}");
    assert!(text.contains("producer not back since restart\nsince "), "{text}");
    let (status, json) = get(port, "a.test", "Accept: application/json\r\n");
    let json: Value = serde_json::from_str(&json).unwrap();
    assert_eq!((status, &json["error"]["service"]), (503, &"a".into()));
    register(&home, "a", http("A again"), &["--http-host", "a.test"]);
    assert_eq!(get(port, "a.test", ""), (200, "A again".into()));
    let gone = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    register(&home, "down", gone, &[]);
    let (status, text) = get(port, "down.localhost", "");
    assert_eq!(status, 502);
    assert!(text.contains(&format!("127.0.0.1:{gone}")), "{text}");
}

#[test]
fn a_taken_port_is_named_with_its_holder_and_served_when_it_is_free() {
    let (home, lease) = (Home::new(), ports::one());
    let port = lease.port();
    let thief = TcpListener::bind(("127.0.0.1", port)).unwrap();
    let mut daemon = serve(&home, port, &[]);
    daemon.expect("msg=http_not_served");
    register(&home, "web", http("W"), &[]);
    let list = home.devmesh(&["services", "list", "--format", "json"]).ok();
    assert!(list.stderr.contains(&format!("held by pid {}", std::process::id())), "{}", list.stderr);
    assert_eq!(listed(&home, "web")["endpoint"], "");
    let raw = home.devmesh(&["services", "resolve", "web", "--raw"]);
    assert!(raw.code == 1 && raw.stderr.contains("no address"), "{}", raw.stderr);
    drop(thief);
    wait_until("the URL is there", PATIENCE, || listed(&home, "web")["endpoint"] != "");
    assert_eq!(get(port, "web.localhost", ""), (200, "W".into()));
}

#[test]
fn the_index_lists_what_is_served_and_follows_it() {
    let (home, lease) = (Home::new(), ports::one());
    let port = lease.port();
    let _daemon = serve(&home, port, &[]);
    let host = format!("stado.localhost:{port}");
    register(&home, "web", http("W"), &[]);
    let (status, page) = get(port, &host, "Accept: text/html\r\n");
    assert_eq!(status, 200);
    assert!(page.contains(&format!("href=\"http://web.localhost:{port}\"")), "{page}");
    assert_eq!(get(port, &host, "Origin: http://evil.example\r\n").0, 403);
    let mut stream = TcpStream::connect(("127.0.0.1", port)).unwrap();
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    write!(stream, "GET /events HTTP/1.1\r\nHost: {host}\r\n\r\n").unwrap();
    let mut lines = BufReader::new(stream).lines().map_while(Result::ok);
    assert!(lines.any(|line| line.contains("\"whole\":true") && line.contains("\"mesh/web\"")));
    register(&home, "other", http("O"), &[]);
    assert!(lines.any(|line| line.contains("\"mesh/other\"") && line.contains("\"ready\"")));
    home.devmesh(&["services", "forget", "other", "--force"]);
    home.stado(&["service", "forget", "other", "--force"]);
    assert!(lines.any(|line| line.contains("\"gone\":[\"mesh/other\"]")));
}

#[test]
fn requests_are_counted_and_written_down() {
    let (home, lease) = (Home::new(), ports::one());
    let port = lease.port();
    let log = home.file("access.log");
    let config = home.file("mesh.json");
    std::fs::write(&config, r#"{"http":{"access_log_rotate":"never"}}"#).unwrap();
    let args = ["--http-access-log", log.to_str().unwrap(), "--config", config.to_str().unwrap()];
    let _daemon = serve(&home, port, &args);
    register(&home, "web", http("W"), &[]);
    assert_eq!(get(port, "web.localhost", "User-Agent: probe\r\n").0, 200);
    let written = || std::fs::read_to_string(&log).unwrap_or_default();
    wait_until("the request is written down", PATIENCE, || written().contains("\"probe\""));
    let line: Value = serde_json::from_str(written().lines().next().unwrap()).unwrap();
    assert_eq!((&line["service"], &line["status"], &line["path"]), (&"web".into(), &200.into(), &"/".into()));
    let mut metrics = String::new();
    wait_until("the request is counted", PATIENCE, || {
        let mut socket = std::os::unix::net::UnixStream::connect(home.file(".devmesh/run/devmesh.sock")).unwrap();
        socket.write_all(b"GET /metrics HTTP/1.1\r\nHost: devmesh\r\nConnection: close\r\n\r\n").unwrap();
        metrics.clear();
        socket.read_to_string(&mut metrics).unwrap();
        metrics.contains(r#"stado_http_requests_total{service="web",consumer="",class="2xx"} 1"#)
    });
}

#[test]
fn a_router_port_that_is_taken_is_unserved_in_the_published_state() {
    let (home, lease) = (Home::new(), ports::one());
    let thief = TcpListener::bind(("127.0.0.1", lease.port())).unwrap();
    let bind = thief.local_addr().unwrap().to_string();
    let args = ["resolver", "serve", "--docker-enabled=false", "--http-enabled", "--http-addr", &bind];
    let _daemon = home.start("stado", STADO, &args);
    let mut row = Value::Null;
    let unserved = || {
        let state = std::fs::read_to_string(home.file(".stado/resolver-state.json")).unwrap_or_default();
        let state: Value = serde_json::from_str(&state).unwrap_or_default();
        state["unserved"].as_array().cloned().unwrap_or_default().into_iter().find(|row| row["service"] == "http")
    };
    wait_until("the reason is published", PATIENCE, || {
        row = unserved().unwrap_or_default();
        row["bind"] == bind.as_str()
    });
    assert!(row["reason"].as_str().unwrap().contains(&format!("held by pid {}", std::process::id())), "{row}");
    drop(thief);
    wait_until("it is served", PATIENCE, || unserved().is_none());
}

#[test]
fn a_socket_that_a_service_manager_opened_is_served() {
    let home = Home::new();
    let socket = TcpListener::bind("127.0.0.1:0").unwrap();
    let at = socket.local_addr().unwrap();
    // What a manager does: the socket stays open, and its number and the process are in the environment. (The first one is
    // 3 unless said otherwise; a plain shell cannot move a descriptor of two digits there.)
    rustix::io::fcntl_setfd(&socket, rustix::io::FdFlags::empty()).unwrap();
    let script = format!(
        "LISTEN_FDS=1 LISTEN_FDS_FIRST_FD={} LISTEN_PID=$$ exec {DEVMESHD} serve --docker-enabled=false --http-enabled --http-addr {at}",
        socket.as_raw_fd()
    );
    let mut daemon = home.start("daemon", "/bin/sh", &["-c", &script]);
    drop(socket);
    daemon.expect("msg=http_listening");
    register(&home, "web", http("W"), &[]);
    assert_eq!(get(at.port(), "web.localhost", ""), (200, "W".into()));
    assert_eq!(listed(&home, "web")["endpoint"], format!("http://web.localhost:{}", at.port()));
}

#[test]
fn the_running_daemon_says_which_certificates_it_serves_and_why_a_new_one_was_not_taken() {
    needs!("openssl");
    let (home, lease) = (Home::new(), ports::one());
    let (cert, key) = pair(&home, "a.test");
    let bind = format!("127.0.0.1:{}", lease.port());
    let args =
        ["serve", "--docker-enabled=false", "--https-addr", &bind, "--http-cert-file", &cert, "--http-key-file", &key];
    let daemon = home.start("daemon", DEVMESHD, &args);
    wait_until("the daemon answers", PATIENCE, || home.devmesh(&["health"]).code == 0);
    let status = |more: &[&str]| home.stado(&[&["tls", "status", "--store", "java"], more].concat());
    let served = status(&["--json"]).ok().json();
    assert_eq!(
        (&served["from"], &served["certificates"][0]["names"][0]),
        (&"daemon".into(), &"a.test".into()),
        "{served}"
    );
    assert!(served["certificates"][0]["not_after"].is_string(), "{served}");
    std::fs::write(&cert, "no certificate").unwrap();
    let broken = status(&["--json"]).exits(1).json();
    let problem = broken["certificates"][0]["problem"].as_str().unwrap();
    assert!(problem.ends_with("; the one that was loaded before is served"), "{broken}");
    assert!(broken["certificates"][0]["since"].is_string(), "{broken}");
    assert!(status(&[]).stdout.contains("served by the running daemon:"), "{}", status(&[]).stdout);
    assert!(daemon.stop().success());
    assert_eq!(status(&["--json"]).json()["from"], "files");
}

#[test]
fn a_websocket_client_that_people_use_talks_through_the_router_in_clear_and_over_tls() {
    needs!("python3-websocket");
    let (home, lease) = (Home::new(), ports::block(4));
    home.stado(&["tls", "init"]).ok();
    let [secure, first, second] = [1, 2, 3].map(|n| lease.port() + n);
    let https = format!("127.0.0.1:{secure}");
    let _daemon = serve(&home, lease.port(), &["--https-addr", &https]);
    let python = python_with("websocket").unwrap();
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/clients/websocket_client.py");
    let authority = Some(".config/devmesh/tls/ca.pem");
    for (name, router, backend, more) in [("clear", lease.port(), first, None), ("tls", secure, second, authority)] {
        register(&home, name, backend, &[]);
        let (router, backend, host) = (router.to_string(), backend.to_string(), format!("{name}.localhost"));
        let args = [script, &router, &backend, &host].into_iter().chain(more);
        let said = run(&mut home.command(&python, &args.collect::<Vec<_>>())).ok();
        assert_eq!(said.stdout, "ok\n", "{}", said.stderr);
    }
}

/// A self-signed certificate for `name` and its key, made by openssl.
fn pair(home: &Home, name: &str) -> (String, String) {
    let file = |what: &str| home.file(&format!("{name}.{what}")).to_str().unwrap().to_owned();
    let (cert, key, alt) = (file("crt"), file("key"), format!("subjectAltName=DNS:{name}"));
    let args = ["req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "2"];
    let rest = ["-subj", "/CN=test", "-addext", &alt, "-keyout", &key, "-out", &cert];
    run(&mut home.command(program("openssl").unwrap(), &[&args[..], &rest[..]].concat())).ok();
    (cert, key)
}

#[test]
fn a_pair_alone_opens_https_and_one_that_does_not_fit_stops_the_start() {
    needs!("openssl", "curl");
    let (home, lease) = (Home::new(), ports::one());
    let ((cert, key), (_, other)) = (pair(&home, "a.test"), pair(&home, "b.test"));
    let bind = format!("127.0.0.1:{}", lease.port());
    let serve = |more: &[&str]| {
        let args = ["serve", "--docker-enabled=false", "--https-addr", &bind];
        home.command(DEVMESHD, &[&args[..], more].concat())
    };
    let mismatch = run(&mut serve(&["--http-cert-file", &cert, "--http-key-file", &other])).exits(1);
    assert!(mismatch.stderr.contains("load TLS certificate/key: "), "{}", mismatch.stderr);
    let half = run(&mut serve(&["--http-cert-file", &cert])).exits(1);
    assert!(half.stderr.contains("both http.cert_file and http.key_file are required for TLS"), "{}", half.stderr);
    assert!(!home.file(".devmesh/run/devmesh.sock").exists(), "refused before there is a socket");

    let mut command = serve(&["--http-cert-file", &cert, "--http-key-file", &key]);
    let _daemon = Process::start(&mut command, &home.file("daemon.log"));
    wait_until("the daemon answers", PATIENCE, || home.devmesh(&["health"]).code == 0);
    register(&home, "a", http("A"), &["--http-host", "a.test"]);
    let url = format!("https://a.test:{}", lease.port());
    assert_eq!(listed(&home, "a")["endpoint"], url.as_str());
    let resolve = format!("a.test:{}:127.0.0.1", lease.port());
    let curl = program("curl").unwrap();
    let args = ["--silent", "--show-error", "--resolve", &resolve, "--cacert", &cert, &url];
    assert_eq!(run(&mut home.command(curl, &args)).ok().stdout, "A");
}

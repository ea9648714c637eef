//! Containers, other people, and the first specification's own daemon, beside ours.
use crate::support::home::{DEVMESHD, Home, STADO};
use crate::support::netns::Network;
use crate::support::process::{Process, run};
use crate::support::tcp::{ask, echo, serve};
use crate::support::{PATIENCE, ports, wait_until};
use std::io::{BufRead, BufReader, Write};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixListener;
use std::process::Command;

fn start(home: &Home, args: &[&str]) -> Process {
    let mut daemon = home.start("devmeshd", DEVMESHD, &[&["serve", "--docker-enabled=false"], args].concat());
    wait_until("the daemon answers", PATIENCE, || {
        assert!(daemon.ended().is_none(), "{}", daemon.log());
        home.devmesh(&["health"]).code == 0
    });
    daemon
}

#[test]
fn a_container_reaches_a_service_at_the_bridge_and_nobody_else_does_unless_it_was_said_twice() {
    needs!("netns");
    let mut network = Network::new(1);
    let mut home = Home::new();
    home.enter(network.namespace(0));
    let serve_in = |args: &[&str]| run(&mut home.command(DEVMESHD, &[&["serve"], args].concat()));
    let card = network.address(0).to_string();
    for setting in ["--also-bind", "--tcp-frontend-host"] {
        let refused = serve_in(&[setting, &card]).exits(1).stderr;
        assert!(refused.contains(&format!("{card} is on eth0")), "{refused}");
        assert!(refused.contains(&format!("say it twice: --allow-beyond-this-machine {card}")), "{refused}");
    }
    let every = serve_in(&["--also-bind", "0.0.0.0"]).exits(1).stderr;
    assert!(every.contains("also-bind 0.0.0.0 is every interface of this machine"), "{every}");

    // The bridge comes after the daemon, as it does when the machine starts.
    let mut daemon =
        start(&home, &["--also-bind", "172.31.0.1", "--also-bind", &card, "--allow-beyond-this-machine", &card]);
    daemon.expect("also-bind 172.31.0.1 is on no bridge of this machine now");
    let backend = network.inside(0, || {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        serve(listener, "db");
        address
    });
    home.devmesh(&["register", "--name", "checkout.db", "--backend", &backend.to_string(), "--ttl", "600", "--once"])
        .ok();
    let port = home.devmesh(&["services", "resolve", "checkout.db", "--raw"]).ok().stdout;
    let port = port.trim().rsplit_once(':').unwrap().1.to_owned();
    let container = network.contain(0);
    let at_bridge = format!("172.31.0.1:{port}");
    wait_until("the container reaches the service", PATIENCE, || {
        network.inside(container, || ask(&at_bridge, "1")).as_deref() == Some("db:1")
    });
    assert_eq!(network.inside(0, || ask(format!("{card}:{port}"), "2")).as_deref(), Some("db:2"), "said twice");
}

#[test]
fn without_ipv6_the_other_loopback_half_is_neither_bound_nor_missed() {
    needs!("netns");
    let network = Network::new(1);
    let mut home = Home::new();
    home.enter(network.namespace(0));
    let off = "echo 1 >/proc/sys/net/ipv6/conf/all/disable_ipv6";
    run(Command::new("ip").args(["netns", "exec", network.namespace(0), "sh", "-c", off])).ok();
    let mut daemon = start(&home, &[]);
    let backend = network.inside(0, || {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        serve(listener, "db");
        address
    });
    home.devmesh(&["register", "--name", "a.b", "--backend", &backend.to_string(), "--ttl", "600", "--once"]).ok();
    let address = home.devmesh(&["services", "resolve", "a.b", "--raw"]).ok().stdout;
    assert_eq!(network.inside(0, || ask(address.trim(), "1")).as_deref(), Some("db:1"));
    let inspected = home.devmesh(&["services", "inspect", "a.b"]).ok();
    assert_eq!(inspected.stderr, "", "nothing is missed");
    assert!(!daemon.log().contains("::1") && daemon.ended().is_none(), "{}", daemon.log());
}

#[test]
fn the_holder_of_a_taken_port_is_named_and_another_port_is_given() {
    let home = Home::new();
    let daemon = start(&home, &[]);
    let register = |home: &Home| {
        home.devmesh(&["register", "--name", "a", "--backend", &echo("x").to_string(), "--once"]).ok();
        home.devmesh(&["services", "resolve", "a", "--raw"]).ok().stdout.trim().to_owned()
    };
    let before = register(&home);
    daemon.kill9();
    let thief = std::net::TcpListener::bind(&before).unwrap();
    let mut daemon = start(&home, &[]);
    let holder = format!("{before} is held by pid {}", std::process::id());
    daemon.expect("msg=frontend_remembered_unavailable");
    assert!(daemon.log().contains(&holder), "{}", daemon.log());
    let listed = home.stado(&["service", "inspect", "a"]).ok();
    assert!(listed.stderr.contains(&holder), "{}", listed.stderr);
    assert_ne!(register(&home), before);
    drop(thief);
}

#[test]
fn another_account_is_refused_even_where_the_files_would_let_it_in() {
    needs!("root", "curl", "setpriv");
    let home = Home::new();
    let _daemon = start(&home, &[]);
    let socket = home.file(".devmesh/run/devmesh.sock");
    let open = |path: &std::path::Path, mode| std::fs::set_permissions(path, PermissionsExt::from_mode(mode)).unwrap();
    for dir in ["", ".devmesh", ".devmesh/run"] {
        open(&home.file(dir), 0o755);
    }
    open(&socket, 0o666);
    let health = |command: &mut Command| {
        let url = "http://devmesh/v1/health";
        run(command.args(["-s", "--max-time", "20", "--unix-socket"]).arg(&socket).args(["-w", " %{http_code}", url]))
            .ok()
            .stdout
    };
    let mut stranger = Command::new("setpriv");
    stranger.args(["--reuid", "65534", "--regid", "65534", "--clear-groups", "curl"]);
    let answer = health(&mut stranger);
    assert!(answer.contains(r#""code":"unauthorized""#) && answer.ends_with(" 403"), "{answer}");
    let answer = health(&mut Command::new("curl"));
    assert!(answer.contains(r#""status":"ok""#) && answer.ends_with(" 200"), "{answer}");
}

#[test]
fn another_account_is_handed_nothing_even_where_the_files_would_let_it_in() {
    needs!("root", "curl", "setpriv");
    let home = Home::new();
    let mut daemon = start(&home, &[]);
    home.devmesh(&["register", "--name", "a", "--backend", &echo("x").to_string(), "--once"]).ok();
    let socket = home.file(".devmesh/run/devmesh.sock");
    let open = |path: &std::path::Path, mode| std::fs::set_permissions(path, PermissionsExt::from_mode(mode)).unwrap();
    for dir in ["", ".devmesh", ".devmesh/run"] {
        open(&home.file(dir), 0o755);
    }
    open(&socket, 0o666);
    let ask = |command: &mut Command| {
        let upgrade = ["-H", "Connection: Upgrade", "-H", "Upgrade: stado-hand-over/0", "-w", " %{http_code}"];
        let url = "http://stado/v1/hand-over";
        run(command.args(["-s", "--max-time", "20", "-X", "POST", "--unix-socket"]).arg(&socket).args(upgrade).arg(url))
            .ok()
            .stdout
    };
    let mut stranger = Command::new("setpriv");
    stranger.args(["--reuid", "65534", "--regid", "65534", "--clear-groups", "curl"]);
    let answer = ask(&mut stranger);
    assert!(answer.contains(r#""code":"unauthorized""#) && answer.ends_with(" 403"), "{answer}");
    // Its own account gets further: only the version of the words is not understood.
    let answer = ask(&mut Command::new("curl"));
    assert!(answer.ends_with(" 426"), "{answer}");
    assert!(daemon.ended().is_none());
    assert_eq!(home.devmesh(&["health"]).code, 0);
}

#[test]
fn services_are_listed_by_owner() {
    let home = Home::new();
    let _daemon = start(&home, &[]);
    for name in ["a", "b"] {
        home.devmesh(&["register", "--name", name, "--backend", &echo("x").to_string(), "--once"]).ok();
    }
    let owned = |owner: &str| {
        let rows = home.stado(&["service", "list", "--owner", owner, "--format", "json"]).ok().json();
        rows.as_array().unwrap().iter().map(|row| row["name"].as_str().unwrap().to_owned()).collect::<Vec<_>>()
    };
    assert_eq!(owned("manual"), ["a", "b"]);
    assert!(owned("process").is_empty() && owned("man").is_empty());
    let key = home.devmesh(&["services", "inspect", "b", "--format", "json"]).ok().json()[0]["owner_key"].clone();
    assert_eq!(owned(key.as_str().unwrap()), ["b"]);
}

/// Answers health as the first specification's daemon does, and has nothing that came later.
fn first_daemon(home: &Home) {
    let socket = home.file(".devmesh/run/devmesh.sock");
    std::fs::create_dir_all(socket.parent().unwrap()).unwrap();
    let listener = UnixListener::bind(socket).unwrap();
    std::thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            let mut lines = BufReader::new(&stream).lines();
            let Some(Ok(request)) = lines.next() else { continue };
            for line in lines.map_while(Result::ok) {
                if line.is_empty() {
                    break;
                }
            }
            let (status, kind, body) = match request.split(' ').nth(1) {
                Some("/v1/health") => {
                    ("200 OK", "application/json", r#"{"status":"ok","version":"0.1.0","docker":"disabled"}"#)
                }
                Some(path) if path.starts_with("/v1/services?") || path == "/v1/services" => {
                    ("200 OK", "application/json", r#"{"services":[]}"#)
                }
                _ => ("404 Not Found", "text/plain; charset=utf-8", "404 page not found"),
            };
            let length = body.len() + 1;
            let head = format!("HTTP/1.1 {status}\r\nContent-Type: {kind}\r\nContent-Length: {length}\r\n");
            let _ = (&stream).write_all(format!("{head}Connection: close\r\n\r\n{body}\n").as_bytes());
        }
    });
}

#[test]
fn the_first_specifications_daemon_is_named_with_how_to_change_over() {
    let home = Home::new();
    first_daemon(&home);
    let state = home.file(".config/devmesh/state.json");
    let (me, state) = (format!("`kill -TERM {}`", std::process::id()), state.to_str().unwrap().to_owned());
    let told = |log: &str| {
        log.contains("is the first specification's own devmeshd") && log.contains(&me) && log.contains(&state)
    };
    let refused = run(&mut home.command(DEVMESHD, &["serve", "--docker-enabled=false"])).exits(1).stderr;
    assert!(told(&refused) && refused.contains("another devmeshd is already listening on "), "{refused}");
    // A resolver goes on with the fleet, and says the same of its mesh.
    let mut resolver = home.start("resolver", STADO, &["resolver", "serve", "--docker-enabled=false"]);
    resolver.expect("mesh: not served by this daemon: another devmeshd is already listening on ");
    assert!(told(&resolver.log()), "{}", resolver.log());
    let cannot = home.stado(&["service", "forget", "a"]).exits(1).stderr;
    assert!(cannot.contains("the first specification's own, which cannot do this"), "{cannot}");
    let cannot = home.stado(&["service", "list", "--owner", "x"]).stderr;
    assert!(cannot.contains("this daemon cannot list by owner"), "{cannot}");
}

#[test]
fn two_people_on_one_machine_have_daemons_and_ports_of_their_own() {
    let (ann, bo) = (Home::new(), Home::new());
    let shared = ports::one();
    let port = shared.port().to_string();
    let (_first, _second) = (start(&ann, &[]), start(&bo, &[]));
    let register = |home: &Home, word: &str| {
        let backend = echo(word).to_string();
        home.devmesh(&["register", "--name", "web", "--backend", &backend, "--preferred-port", &port, "--once"]).ok();
        home.devmesh(&["services", "resolve", "web", "--raw"]).ok().stdout.trim().to_owned()
    };
    let (hers, his) = (register(&ann, "ann"), register(&bo, "bo"));
    assert_eq!(hers, format!("127.0.0.1:{port}"));
    assert_ne!(hers, his, "a wished port that is taken is advice");
    assert_eq!((ask(&hers, "1").as_deref(), ask(&his, "1").as_deref()), (Some("ann:1"), Some("bo:1")));
}

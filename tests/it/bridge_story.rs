//! From a service on one host to an address on another: published, used, recreated, moved, taken back.
use crate::joining_story::Machine;
use crate::support::fleet::Fleet;
use crate::support::home::{Home, STADO};
use crate::support::http::{get, http, try_get};
use crate::support::process::Process;
use crate::support::tcp::{Client, ask, echo};
use crate::support::{PATIENCE, ports, wait_for, wait_until};
use serde_json::Value;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// A producer that registers `checkout.db` for as long as it lives.
fn producer(home: &Home, word: &str) -> Process {
    let backend = echo(word).to_string();
    let process = home.start(
        &format!("producer-{word}"),
        STADO,
        &["service", "register", "--name", "checkout.db", "--backend", &backend],
    );
    let ready = || home.stado(&["service", "resolve", "checkout.db", "--raw"]).code == 0;
    wait_until(&format!("{word} is registered"), PATIENCE, ready);
    process
}

fn generation(fleet: &mut Fleet, host: &str) -> u64 {
    fleet.host(host).published()["generation"].as_u64().unwrap()
}

fn port_of(used: &Value) -> u16 {
    used["url"].as_str().unwrap().rsplit_once(':').unwrap().1.parse().unwrap()
}

/// Whether the service itself answers `word` at a port; it keeps the connection open.
fn says(port: u16, host: &str, word: &str) -> bool {
    let mut stream = TcpStream::connect(("127.0.0.1", port)).unwrap();
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    write!(stream, "GET / HTTP/1.1\r\nHost: {host}\r\n\r\n").unwrap();
    let mut answer = Vec::new();
    let mut some = [0; 256];
    while let Ok(n @ 1..) = stream.read(&mut some) {
        answer.extend_from_slice(&some[..n]);
        if answer.ends_with(word.as_bytes()) {
            return answer.starts_with(b"HTTP/1.1 200");
        }
    }
    eprintln!("{}", String::from_utf8_lossy(&answer));
    false
}

/// Asks until `word` answers.
fn answers(port: u16, word: &str) {
    wait_until(&format!("{word} answers"), PATIENCE, || ask(("127.0.0.1", port), "x") == Some(format!("{word}:x")));
}

#[test]
fn a_published_service_has_one_address_elsewhere_through_recreations_kills_and_moves() {
    needs!("sshd");
    let mut fleet = Fleet::on_loopback(&["desk", "lap"]);
    fleet.declare("lap", "stado_command", STADO.into());
    // A fleet in which nobody publishes anything yet.
    fleet.up();
    let first = producer(&fleet.host("desk").home, "first");
    let publish = ["service", "publish", "checkout.db", "--as", "orders", "--json"];
    let published = fleet.host("desk").home.stado(&publish).ok().json();
    assert_eq!((&published["role"], &published["consumers"]), (&"active".into(), &serde_json::json!(["fleet"])));
    let used = fleet.host("lap").home.stado(&["service", "use", "orders", "--json"]).ok().json();
    let at = port_of(&used);
    assert_eq!(ask(("127.0.0.1", at), "x").as_deref(), Some("first:x"), "it is served when it is told");
    let marker = fleet.host("lap").home.read(".stado/forwards/orders.local");
    assert_eq!(marker, format!("tcp://127.0.0.1:{at}\n"));
    let again = fleet.host("lap").home.stado(&["service", "use", "orders"]).ok();
    assert_eq!(again.stdout, format!("orders -> tcp://127.0.0.1:{at}\n"));
    let held = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let (taken, before) = (held.local_addr().unwrap().port().to_string(), generation(&mut fleet, "lap"));
    let refused = fleet.host("lap").home.stado(&["service", "use", "orders", "--port", &taken]).exits(69);
    assert!(refused.stderr.contains("cannot be taken for orders") && refused.stderr.contains("nothing was changed"));
    assert_eq!(generation(&mut fleet, "lap"), before);
    assert_eq!(ask(("127.0.0.1", at), "x").as_deref(), Some("first:x"), "what works is not given up for it");

    // Recreated, and both daemons killed: nothing is written.
    let before = generation(&mut fleet, "lap");
    first.stop();
    wait_until("nobody answers", PATIENCE, || ask(("127.0.0.1", at), "x").is_none());
    let second = producer(&fleet.host("desk").home, "second");
    answers(at, "second");
    for name in ["desk", "lap"] {
        fleet.host(name).kill9();
    }
    for name in ["desk", "lap"] {
        fleet.host(name).serve();
    }
    answers(at, "second");
    for name in ["desk", "lap"] {
        fleet.host(name).ready();
    }
    assert_eq!(generation(&mut fleet, "lap"), before);

    // It runs on both, and moves under a client that is connected.
    let third = producer(&fleet.host("lap").home, "third");
    let refused = fleet.host("lap").home.stado(&publish).exits(1);
    assert!(refused.stderr.contains("orders is published by desk; "), "{}", refused.stderr);
    fleet.host("lap").home.stado(&[&publish[..], &["--standby"]].concat()).ok();
    third.stop();
    let unready =
        |fleet: &mut Fleet| fleet.host("lap").home.stado(&["service", "resolve", "checkout.db", "--raw"]).code != 0;
    wait_until("it is gone there", PATIENCE, || unready(&mut fleet));
    let refused = fleet.host("desk").home.stado(&["service", "move", "orders", "--to", "lap"]).exits(69);
    assert!(refused.stderr.contains("orders is not ready on lap: "), "{}", refused.stderr);
    let _third = producer(&fleet.host("lap").home, "third");
    let mut client = Client::connect(("127.0.0.1", at)).unwrap();
    assert_eq!(client.ask("1").as_deref(), Some("second:1"));
    let moved = fleet.host("desk").home.stado(&["service", "move", "orders", "--to", "lap", "--json"]).ok().json();
    assert_eq!((&moved["from_host"], &moved["to_host"]), (&"desk".into(), &"lap".into()));
    answers(at, "third");
    assert_eq!(client.ask("2").as_deref(), Some("second:2"), "what is open stays where it is");
    second.stop();
    assert_eq!(client.ask("3").as_deref(), Some("second:3"), "the echo itself goes on");
    drop(client);
    for _ in 0..5 {
        assert_eq!(ask(("127.0.0.1", at), "x").as_deref(), Some("third:x"), "never the other host again");
    }

    // Taken back: what is open ends, and nothing is left behind.
    let mut client = Client::connect(("127.0.0.1", at)).unwrap();
    assert_eq!(client.ask("1").as_deref(), Some("third:1"));
    let unpublish = ["service", "unpublish", "orders"];
    let refused = fleet.host("lap").home.stado(&unpublish).exits(1);
    assert!(refused.stderr.contains("desk can take it over"), "{}", refused.stderr);
    fleet.host("desk").home.stado(&unpublish).ok();
    fleet.host("lap").home.stado(&unpublish).ok();
    let since = Instant::now();
    while client.ask("2").is_some() {
        assert!(since.elapsed() < Duration::from_secs(1), "it goes on");
    }
    let registry = fleet.host("desk").home.stado(&["registry", "pull"]).ok();
    assert!(!registry.stdout.contains("orders"), "{}", registry.stdout);
    let list = fleet.host("lap").home.stado(&["service", "connections", "orders", "--json"]).ok().json();
    assert_eq!(list["counters"]["withdrawn"], 1, "{list}");
}

#[test]
fn an_http_service_has_the_same_hostname_on_the_host_that_takes_everything() {
    needs!("sshd");
    let mut fleet = Fleet::on_loopback(&["desk", "lap"]);
    let routers = ["desk", "lap"].map(|name| {
        let lease = ports::one();
        let home = &mut fleet.host(name).home;
        home.set("DEVMESH_HTTP_ENABLED", "true");
        home.set("DEVMESH_HTTP_ADDR", format!("127.0.0.1:{}", lease.port()));
        lease
    });
    fleet.up();
    fleet.host("lap").home.stado(&["service", "use", "--all"]).ok();
    let backend = format!("127.0.0.1:{}", http("here"));
    let register = ["service", "register", "--name", "shop.api", "--kind", "http", "--http-host", "api.shop.localhost"];
    let lasting = ["--backend", &backend, "--once", "--ttl", "3600"];
    fleet.host("desk").home.stado(&[&register[..], &lasting].concat()).ok();
    let published = fleet.host("desk").home.stado(&["service", "publish", "shop.api", "--json"]).ok().json();
    assert_eq!(published["given"], serde_json::json!(["lap"]), "who takes everything is given it");
    let used = fleet.host("lap").home.stado(&["service", "use", "shop.api", "--json"]).ok().json();
    let router = routers[1].port();
    assert_eq!(used["hostname_url"], format!("http://api.shop.localhost:{router}/"));
    let by_name = || (get(router, "api.shop.localhost", "") == (200, "here".into())).then_some(());
    wait_for("the hostname is served", PATIENCE, by_name);
    let at = port_of(&used);
    let here = |host: &str| says(at, host, "here");
    assert!(here(&format!("127.0.0.1:{at}")), "whatever the request calls it");
    assert_eq!(get(routers[0].port(), "api.shop.localhost", ""), (200, "here".into()));

    fleet.host("desk").kill9();
    fleet.host("desk").serve();
    fleet.host("desk").ready();
    fleet.host("desk").home.stado(&[&register[..], &lasting].concat()).ok();
    assert!(here("whatever"), "it is back on its port");
    fleet.host("desk").home.stado(&["service", "unpublish", "shop.api"]).ok();
    // A request that is on its way then ends with a reset.
    let gone = || try_get(router, "api.shop.localhost", "").is_ok_and(|(status, _)| status == 404);
    wait_until("the hostname is gone", PATIENCE, gone);
}

/// Connects again and again until it is told to end; who answered each time.
fn connecting(at: u16, ends: &AtomicBool) -> Vec<Option<String>> {
    let mut answers = Vec::new();
    while !ends.load(Ordering::Relaxed) {
        answers.push(ask(("127.0.0.1", at), "x"));
    }
    answers
}

#[test]
fn a_service_moves_over_gates_alone_and_no_new_connection_reaches_the_host_that_was_left() {
    let [tower, desk, lap] = [Machine::new(), Machine::new(), Machine::new()];
    tower.init(40).ok();
    let gate = desk.gate(41);
    desk.join("desk", &tower.invite(&[]), &["--address", &gate, "--gate", &gate]).ok();
    lap.join("lap", &tower.invite(&[]), &[]).ok();
    let _first = producer(&desk.home, "first");
    let publish = ["service", "publish", "checkout.db", "--as", "orders"];
    desk.home.stado(&publish).ok();
    let at = port_of(&lap.home.stado(&["service", "use", "orders", "--json"]).ok().json());
    answers(at, "first");

    let second = producer(&tower.home, "second");
    tower.home.stado(&[&publish[..], &["--standby"]].concat()).ok();
    second.stop();
    let known = || tower.home.stado(&["service", "resolve", "checkout.db", "--raw"]).code == 0;
    wait_until("it is gone there", PATIENCE, || !known());
    let to_tower = ["service", "move", "orders", "--to", "tower"];
    let refused = lap.home.stado(&to_tower).exits(69).stderr;
    assert!(
        refused.contains("orders is not ready on tower: ") && refused.contains("has no registered backend"),
        "{refused}"
    );
    let _second = producer(&tower.home, "second");

    let mut open: Vec<Client> = (0..8).map(|_| Client::connect(("127.0.0.1", at)).unwrap()).collect();
    open.iter_mut().for_each(|client| assert_eq!(client.ask("1").as_deref(), Some("first:1")));
    let ends = AtomicBool::new(false);
    let told = std::thread::scope(|scope| {
        let clients: Vec<_> = (0..3).map(|_| scope.spawn(|| connecting(at, &ends))).collect();
        let moved = lap.home.stado(&to_tower);
        let followed = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            moved.ok();
            answers(at, "second");
            // And back: the host that is asked is behind its own gate.
            lap.home.stado(&["service", "move", "orders", "--to", "desk"]).ok();
            answers(at, "first");
            lap.home.stado(&to_tower).ok();
            answers(at, "second");
        }));
        ends.store(true, Ordering::Relaxed);
        followed.unwrap();
        clients.into_iter().map(|client| client.join().unwrap()).collect::<Vec<_>>()
    });
    for all in told {
        assert!(all.len() > 10, "{all:?}");
        let none = all.iter().filter(|answer| answer.is_none()).count();
        assert_eq!(none, 0, "a new connection is served all the time: {all:?}");
        // Each move is seen once: first, second, first, second.
        let mut turns: Vec<&str> = all.iter().flatten().map(String::as_str).collect();
        turns.dedup();
        assert!(["first:x", "second:x", "first:x", "second:x"].starts_with(&turns), "{turns:?}");
    }
    for client in &mut open {
        assert_eq!(client.ask("2").as_deref(), Some("first:2"), "what is open stays where it is");
    }
    let mut client = Client::connect(("127.0.0.1", at)).unwrap();
    assert_eq!(client.ask("3").as_deref(), Some("second:3"), "one connection anew, and it is there");
}

#[test]
fn a_dead_backend_behind_another_hosts_frontend_is_told_where_it_is_used() {
    needs!("sshd");
    let mut fleet = Fleet::on_loopback(&["desk", "lap"]);
    fleet.declare("desk", "stado_command", STADO.into());
    fleet.up();
    // What a crash leaves: the producer still holds its lease, and nobody listens.
    let gone = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().to_string();
    let register = ["service", "register", "--name", "checkout.db", "--backend", &gone];
    let dead = fleet.host("desk").home.start("producer-dead", STADO, &register);
    let resolved = |fleet: &mut Fleet| fleet.host("desk").home.stado(&["service", "resolve", "checkout.db", "--raw"]);
    wait_until("it is registered", PATIENCE, || resolved(&mut fleet).code == 0);
    fleet.host("desk").home.stado(&["service", "publish", "checkout.db", "--as", "orders"]).ok();
    let used = fleet.host("lap").home.stado(&["service", "use", "orders", "--json"]).ok().json();
    let at = port_of(&used);

    let told = |fleet: &mut Fleet, cause: &str| {
        let trouble = wait_for(&format!("the user of it is told: {cause}"), PATIENCE, || {
            assert_eq!(ask(("127.0.0.1", at), "x"), None);
            let status = fleet.host("lap").status().1;
            Some(status["routes"][0]["trouble"].clone()).filter(|t| t["cause"].to_string().contains(cause))
        });
        assert_eq!(trouble["hop"], "service", "{trouble}");
        let refused = fleet.host("lap").home.stado(&["service", "directory", "connect", "orders"]).exits(69).stderr;
        assert!(
            refused.contains("did not reach the service: the service failed: ") && refused.contains(cause),
            "{refused}"
        );
    };
    told(&mut fleet, &format!("local upstream connect failed: {gone}: Connection refused"));
    let row = fleet.host("lap").status().1["routes"][0].clone();
    assert!(row["last_success_at"].is_null(), "nothing succeeded: {row}");
    let carried = || fleet.host("lap").status().1["links"][0]["carrier"] == "multiplex";
    wait_until("the multiplex is told", PATIENCE, carried);
    let list = fleet.host("desk").home.stado(&["service", "connections", "checkout.db", "--json"]).ok().json();
    assert!(list["ended"][0]["reason"].as_str().unwrap().contains(&gone), "as its publisher has it: {list}");
    dead.stop();
    wait_until("it is unavailable", PATIENCE, || resolved(&mut fleet).code != 0);
    told(&mut fleet, "no backend: ");

    let _alive = producer(&fleet.host("desk").home, "alive");
    answers(at, "alive");
    let healed = || fleet.host("lap").status().1["routes"][0]["trouble"].is_null();
    wait_until("nothing is said of it any more", PATIENCE, healed);
}

//! What a resolver publishes and what `resolver status` and `connect` make of it, while it lives, hangs, dies and is
//! replaced. A program in another language, written from the contract alone, reads the same files (`../clients`).
use crate::support::fleet::{Fleet, REFRESH};
use crate::support::home::Home;
use crate::support::mute::Mute;
use crate::support::process::signal_pid;
use crate::support::python::client;
use crate::support::tcp::{ask, echo};
use crate::support::{PATIENCE, wait_for, wait_until};
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};
use rustix::process::Signal;
use serde_json::{Value, json};
use std::io::{Read, Write};
use std::net::TcpStream;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::thread;
use std::time::Duration;

/// A host that is its own authority and reaches its own service through an adapter, whose port this is.
fn alone(scheme: &str, port: u16) -> (Fleet, u16) {
    let mut fleet = Fleet::on_loopback_without_sshd(&["desk"]);
    fleet.service("brama", "desk", scheme, port, "lem");
    let at = fleet.adapter("desk", "brama", "lem");
    fleet.push("desk").ok();
    (fleet, at)
}

/// What the reader in another language makes of the files.
fn read(home: &Home) -> Value {
    let state = home.file(".stado/resolver-state.json");
    client(home, "published_reader.py", &[state.to_str().unwrap(), &REFRESH.to_string()]).ok().json()
}

fn blockers(status: &Value) -> Vec<String> {
    status["blockers"].as_array().into_iter().flatten().map(|b| b.as_str().unwrap().to_owned()).collect()
}

fn get(at: u16, path: &str) -> TcpStream {
    let mut stream = TcpStream::connect(("127.0.0.1", at)).unwrap();
    stream.write_all(format!("GET {path} HTTP/1.1\r\nHost: brama\r\n\r\n").as_bytes()).unwrap();
    stream
}

#[test]
fn the_published_files_mean_what_the_contract_says_to_a_reader_in_another_language() {
    needs!("python3");
    let mute = Mute::start();
    let (mut fleet, at) = alone("http", mute.at.port());
    let bind = format!("127.0.0.1:{at}");
    let desk = fleet.host("desk");
    let never = read(&desk.home);
    assert_eq!((&never["publisher"], &never["waits"]), (&"never".into(), &Value::Null));
    let (code, status) = desk.status();
    assert_eq!((code, &status["verdict"], &status["state"]), (1, &"down".into(), &"unpublished".into()));
    assert!(blockers(&status)[0].starts_with("no resolver has published state at "), "{status}");

    // Readers probe the lock all the while a daemon starts.
    desk.serve();
    let pid = desk.daemon().pid();
    wait_until("the reader finds it alive", PATIENCE, || read(&desk.home)["state"] == "serving");
    desk.ready();
    let alive = read(&desk.home);
    assert_eq!((&alive["publisher"], &alive["pid"], &alive["holder"]), (&"alive".into(), &pid.into(), &pid.into()));
    assert_eq!((&alive["waits"], &alive["listening"], &alive["generation"]), (&json!([]), &json!([bind]), &1.into()));

    let held = get(at, "/v1/models");
    let local = held.local_addr().unwrap().to_string();
    let waiting = wait_for("the wait is long", PATIENCE, || {
        let read = read(&desk.home);
        (read["held"][&bind] == 1).then_some(read)
    });
    let wait = &waiting["waits"][0];
    let expected = json!({
        "service": "brama", "consumer": "lem", "bind": bind, "active_host": "desk", "endpoint": mute.at.to_string(),
        "since": wait["since"], "phase": "answer", "client": local, "request": "GET /v1/models HTTP/1.1"
    });
    assert_eq!(wait, &expected);
    let told = wait_for("status tells it", PATIENCE, || blockers(&desk.status().1).into_iter().next());
    assert!(told.starts_with(&format!("service brama for consumer lem at {bind} has waited ")), "{told}");
    assert!(told.ends_with("names the process still holding it") && told.contains(&local), "{told}");

    drop(held);
    wait_until("it is gone with its client", PATIENCE, || read(&desk.home)["waits"] == json!([]));
    wait_until("it went unanswered", PATIENCE, || read(&desk.home)["unanswered"]["brama"].is_string());
    mute.speak();
    let mut answered = [0; 12];
    get(at, "/again").read_exact(&mut answered).unwrap();
    wait_until("the first answer clears it", PATIENCE, || {
        let read = read(&desk.home);
        read["unanswered"] == json!({}) && read["answered"] == json!(["brama"])
    });
    let route = desk.ready()["routes"][0].clone();
    assert_eq!((&route["carrier"], &route["trouble"]), (&"local".into(), &Value::Null), "{route}");
    assert!(route["last_success_at"].is_string() && route["last_answered_at"].is_string(), "{route}");

    // Stopped is not dead: the lock is held, and nobody answers.
    signal_pid(pid, Signal::STOP);
    assert_eq!(read(&desk.home)["publisher"], "alive");
    let (code, status) = desk.status();
    assert_eq!((code, &status["pid"], &status["daemon"]["stopped"]), (1, &pid.into(), &true.into()), "{status}");
    let told = blockers(&status);
    assert!(told[0].starts_with(&format!("the resolver (pid {pid}) is not dead and does not answer: ")), "{told:?}");
    assert!(told[0].ends_with(&format!("`kill -CONT {pid}` lets it go on")), "{told:?}");
    assert_eq!(status["routes"][0]["trouble"]["hop"], "adapter");
    signal_pid(pid, Signal::CONT);
    desk.ready();

    desk.kill9();
    let dead = read(&desk.home);
    assert_eq!((&dead["publisher"], &dead["holder"], &dead["listening"]), (&"dead".into(), &Value::Null, &json!([])));
    let (code, status) = desk.status();
    assert_eq!((code, &status["verdict"], &status["pid"]), (1, &"down".into(), &Value::Null), "{status}");
    let last = blockers(&status).pop().unwrap();
    assert!(last.starts_with(&format!("the resolver that published this host's state (pid {pid}, state serving at ")));

    // Another process has the lock and has said nothing yet.
    let lock = std::fs::File::options().write(true).open(desk.home.file(".stado/resolver-state.lock")).unwrap();
    lock.try_lock().unwrap();
    (&lock).write_all(format!("{}\n", std::process::id()).as_bytes()).unwrap();
    let replaced = read(&desk.home);
    assert_eq!((&replaced["publisher"], &replaced["holder"]), (&"replaced".into(), &std::process::id().into()));
    let told = blockers(&desk.status().1).pop().unwrap();
    assert!(told.starts_with(&format!("another resolver (pid {}) holds the lock", std::process::id())), "{told}");
    drop(lock);

    // A state that nobody can read is a verdict too.
    desk.home.write(".stado/resolver-state.json", "{ torn");
    let (code, status) = desk.status();
    assert_eq!((code, &status["verdict"]), (1, &"down".into()), "{status}");
    let told = blockers(&status);
    assert!(told[0].starts_with("the resolver's state at ") && told[0].ends_with("; no resolver runs"), "{told:?}");
    desk.serve();
    desk.ready();
}

#[test]
fn a_silent_service_with_500_waiting_clients_is_one_blocker_and_nothing_more_is_sent_to_it() {
    needs!("sshd", "python3");
    const CLIENTS: usize = 500;
    let mute = Mute::start();
    let mut fleet = Fleet::on_loopback(&["tower", "desk"]);
    fleet.service("brama", "tower", "http", mute.at.port(), "lem");
    let at = fleet.adapter("desk", "brama", "lem");
    fleet.up();
    let bind = format!("127.0.0.1:{at}");
    let clients: Vec<TcpStream> = (0..CLIENTS).map(|n| get(at, &format!("/{n}"))).collect();
    let first = clients[0].local_addr().unwrap();
    let desk = fleet.host("desk");
    let (told, status) = wait_for("one blocker", PATIENCE, || {
        let status = desk.status().1;
        let told = blockers(&status);
        (told.len() == 1 && told[0].starts_with(&format!("{CLIENTS} connections on one route")))
            .then_some((told, status))
    });
    let start =
        format!("{CLIENTS} connections on one route, the oldest: service brama for consumer lem at {bind} has waited ");
    let end = format!(
        "s for the first byte of an answer on an open channel to {} on tower: the client holds an accepted connection that \
         receives nothing; ask that host what answers on {} held by the client at {first}: lsof -nP -i :{} names the \
         process still holding it",
        mute.at,
        mute.at,
        first.port()
    );
    assert!(told[0].starts_with(&start) && told[0].ends_with(&end), "{told:?}");
    let waits = status["waiting_opens"].as_array().unwrap();
    assert_eq!((waits.len(), &waits[0]["request"]), (CLIENTS, &"GET /0 HTTP/1.1".into()));
    let route = &status["routes"][0];
    assert_eq!((&route["waiting"], &route["trouble"]["hop"]), (&CLIENTS.into(), &"service".into()), "{route}");
    assert!(route["carrier"].is_string() && route["path"] == "primary" && route["rtt_us"].is_u64(), "{route}");

    let held = format!(
        "this host's resolver holds {CLIENTS} connection(s) on that adapter unanswered longer than the {REFRESH}s refresh \
         interval it declares, so a request sent now would stand behind them: service brama for consumer lem at {bind}"
    );
    let connect = ["service", "directory", "connect", "brama"];
    let refused = desk.home.stado(&connect).exits(69);
    let wanted = format!("brama is placed on tower and did not answer at http://{bind}: {held}");
    assert!(refused.stderr.contains(&wanted), "{}", refused.stderr);
    let objects = object_home(&desk.home, at);
    let refused = objects.stado(&["registry", "pull"]).exits(69);
    let wanted = format!("Stado object API not asked: GET http://{bind}/api/object?uri=");
    assert!(refused.stderr.contains(&wanted) && refused.stderr.contains(&held), "{}", refused.stderr);
    // A host that has no copy yet knows no interval of its own: five seconds, as the contract has it.
    std::fs::remove_dir_all(objects.file(".stado/cache")).unwrap();
    wait_until("the waits are older than that", PATIENCE, || {
        let since = read(&desk.home)["waits"][0]["since"].as_str().map(str::to_owned);
        let since: Option<jiff::Timestamp> = since.and_then(|since| since.parse().ok());
        since.is_some_and(|since| jiff::Timestamp::now().duration_since(since).as_secs() > 6)
    });
    let refused = objects.stado(&["registry", "pull"]).exits(69);
    assert!(refused.stderr.contains(&wanted) && refused.stderr.contains("the 5s refresh"), "{}", refused.stderr);
    assert_eq!(mute.asked(), CLIENTS, "none of them was sent");

    // Stopped in the midst of it, the daemon itself is what is wrong.
    let pid = desk.daemon().pid();
    mute.speak();
    wait_until("the answers clear all", PATIENCE, || desk.status().0 == 0);
    signal_pid(pid, Signal::STOP);
    let stopped = desk.home.stado(&connect).exits(69);
    assert!(stopped.stderr.contains(&format!("`kill -CONT {pid}` lets it go on")), "{}", stopped.stderr);
    signal_pid(pid, Signal::CONT);
    desk.ready();
    let given = desk.home.stado(&connect).ok();
    assert_eq!(given.stdout.trim(), format!("http://{bind}"));
    drop(clients);
}

/// A home of the same host whose registry is behind the adapter at `at`.
fn object_home(desk: &Home, at: u16) -> Home {
    let mut home = Home::new();
    home.set("STADO_TARGET", "desk");
    home.set("STADO_RESOLVER_STATE_FILE", desk.file(".stado/resolver-state.json").to_str().unwrap());
    let mut copy: Value = serde_json::from_str(&desk.read(".stado/cache/registry-last-good.json")).unwrap();
    // The authority reads its store.
    copy["service_directory"]["authority"]["target"] = json!("desk");
    home.write(".stado/cache/registry-last-good.json", copy.to_string());
    home.write(
        ".stado/cache/registry-last-good.meta.json",
        r#"{"read_at":"2026-11-30T20:00:00Z","generation":"first"}"#,
    );
    home.write(".stado/storage-token", "token");
    let stado = json!({"url": format!("http://127.0.0.1:{at}"), "token_file": "~/.stado/storage-token"});
    home.write(".stado/config.json", json!({"storage": {"backend": "stado", "stado": stado}}).to_string());
    home
}

#[test]
fn a_route_that_fails_names_its_hop_in_status_and_in_connect() {
    needs!("sshd");
    let mute = Mute::start();
    let closed = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let nobody = closed.local_addr().unwrap().port();
    drop(closed);
    let mut fleet = Fleet::on_loopback(&["tower", "desk"]);
    fleet.service("web", "tower", "http", nobody, "lem");
    fleet.service("db", "tower", "tcp", nobody, "lem");
    fleet.service("good", "tower", "tcp", mute.at.port(), "lem");
    let at = ["web", "db", "good"].map(|service| fleet.adapter("desk", service, "lem"))[2];
    fleet.up();
    let desk = fleet.host("desk");
    let connect = |desk: &Home, name: &str| desk.stado(&["service", "directory", "connect", name]);
    connect(&desk.home, "good").ok();
    for (name, said) in
        [("web", "the adapter answered 502 upstream unavailable"), ("db", "the connection was closed without a byte")]
    {
        let refused = connect(&desk.home, name).exits(69).stderr;
        let wanted = format!(
            "{said}; this host's resolver (pid {}) did not reach the service: the service failed: active host \"tower\": SSH \
             destination ",
            desk.daemon().pid()
        );
        assert!(refused.contains(&wanted) && refused.contains("Connection refused"), "{refused}");
    }
    let routes = |status: &Value, name: &str| {
        let rows = status["routes"].as_array().unwrap();
        rows.iter().find(|row| row["service"] == name).unwrap().clone()
    };
    let status = desk.ready();
    for name in ["web", "db"] {
        let row = routes(&status, name);
        assert_eq!(
            (&row["trouble"]["hop"], &row["last_failure"]["blame"]),
            (&"service".into(), &"service".into()),
            "{row}"
        );
    }
    // What `connect` tries is no traffic, and no client's success; what `status` tries does not even reach the service.
    let good = routes(&status, "good");
    assert!(good["trouble"].is_null() && good["last_probe_at"].is_string() && good["rtt_us"].is_u64(), "{good}");
    let counted = |row: &Value| ["opened", "active", "bytes_up"].map(|key| row[key].as_u64().unwrap());
    assert_eq!((counted(&good), &good["last_success_at"]), ([0, 0, 0], &Value::Null), "{good}");
    let before = good["last_probe_at"].clone();
    let client = TcpStream::connect(("127.0.0.1", at)).unwrap();
    let good = wait_for("a client's success", PATIENCE, || {
        Some(routes(&desk.status().1, "good")).filter(|row| row["last_success_at"].is_string())
    });
    assert_eq!((counted(&good), &good["last_probe_at"]), ([1, 1, 0], &before), "{good}");
    drop(client);
    let warned = status["warnings"].to_string();
    assert!(
        warned.contains("the web adapter for consumer lem at ") && warned.contains("the service failed: "),
        "{warned}"
    );

    // Nobody logs in any more: the same service fails at the session.
    fleet.host("tower").sshd.as_mut().unwrap().down();
    let desk = fleet.host("desk");
    let refused = connect(&desk.home, "good").exits(69).stderr;
    assert!(refused.contains("did not reach the service: the session failed: active host \"tower\""), "{refused}");
    let (_, status) = desk.status();
    assert_eq!(routes(&status, "good")["trouble"]["hop"], "session", "{status}");
    assert!(routes(&status, "good")["last_success_at"].is_string(), "{status}");
}

#[test]
fn a_stopped_service_is_told_from_a_stopped_resolver() {
    needs!("python3");
    let lease = crate::support::ports::one();
    let (mut fleet, at) = alone("http", lease.port());
    let desk = fleet.host("desk");
    let python = crate::support::program("python3").unwrap();
    let port = lease.port().to_string();
    let service = desk.home.start("service", python, &["-m", "http.server", &port, "--bind", "127.0.0.1"]);
    desk.serve();
    desk.ready();
    let mut answer = [0; 8];
    // Until it listens, the adapter answers for it.
    wait_until("it answers", PATIENCE, || get(at, "/").read_exact(&mut answer).is_ok() && &answer == b"HTTP/1.0");
    service.signal(Signal::STOP);
    let mut held = get(at, "/");
    let status = wait_for("the wait is a blocker", PATIENCE, || {
        let (code, status) = desk.status();
        (code == 1 && status["routes"][0]["waiting"] == 1).then_some(status)
    });
    assert!(blockers(&status)[0].contains(" for the first byte of an answer on an open channel to "), "{status}");
    assert_eq!(
        (&status["routes"][0]["trouble"]["hop"], &status["daemon"]["answering"]),
        (&"service".into(), &true.into())
    );
    service.signal(Signal::CONT);
    held.read_exact(&mut answer).unwrap();
    let status = desk.ready();
    assert_eq!((&answer, &status["routes"][0]["trouble"]), (b"HTTP/1.0", &Value::Null));
}

#[test]
fn status_watches_until_its_reader_leaves() {
    let (mut fleet, _) = alone("tcp", echo("brama").port());
    let desk = fleet.host("desk");
    desk.serve();
    desk.ready();
    let args = ["resolver", "status", "--watch=1", "--json"];
    let mut command = desk.home.command(crate::support::home::STADO, &args);
    command.stdin(std::process::Stdio::null()).stdout(std::process::Stdio::piped());
    let mut watching = command.spawn().unwrap();
    let mut lines = std::io::BufRead::lines(std::io::BufReader::new(watching.stdout.take().unwrap()));
    let mut next = || serde_json::from_str::<Value>(&lines.next().unwrap().unwrap()).unwrap();
    assert_eq!(next()["verdict"], "ready");
    desk.kill9();
    wait_until("the view follows", PATIENCE, || next()["verdict"] == "down");
    desk.serve();
    wait_until("the view follows back", PATIENCE, || next()["verdict"] == "ready");
    drop(lines);
    wait_until("it ends with its reader", PATIENCE, || watching.try_wait().unwrap().is_some());
}

/// `STADO_KILL_ROUNDS=100` runs more of them.
#[test]
fn status_tells_the_truth_after_each_kill_at_a_random_moment_under_load() {
    needs!("python3");
    let seed: u64 = std::env::var("STADO_TEST_SEED").map_or_else(|_| rand::random(), |seed| seed.parse().unwrap());
    let rounds: u32 = std::env::var("STADO_KILL_ROUNDS").map_or(5, |rounds| rounds.parse().unwrap());
    eprintln!("STADO_TEST_SEED={seed} STADO_KILL_ROUNDS={rounds}");
    let mut random = StdRng::seed_from_u64(seed);
    let (mut fleet, at) = alone("tcp", echo("brama").port());
    let desk = fleet.host("desk");
    let over = Arc::new(AtomicBool::new(false));
    let load: Vec<_> = (0..4)
        .map(|_| {
            let over = Arc::clone(&over);
            thread::spawn(move || {
                let mut answered = 0_u64;
                while !over.load(Relaxed) {
                    match ask(("127.0.0.1", at), "x") {
                        Some(_) => answered += 1,
                        None => thread::sleep(Duration::from_millis(5)),
                    }
                }
                answered
            })
        })
        .collect();
    let (mut known, mut early) = (Vec::new(), 0);
    for round in 0..rounds {
        desk.serve();
        known.push(desk.daemon().pid());
        // Some are killed while they start.
        if random.random_bool(0.7) {
            desk.ready();
        }
        thread::sleep(Duration::from_micros(random.random_range(0..200_000)));
        desk.kill9();
        let (code, status) = desk.status();
        assert_eq!(
            (code, &status["verdict"], &status["state"]),
            (1, &"down".into(), &"unpublished".into()),
            "{status}"
        );
        assert_eq!(
            (&status["api"]["listening"], &status["pid"]),
            (&false.into(), &Value::Null),
            "round {round}: {status}"
        );
        assert_eq!(status["waiting_opens"], json!([]), "round {round}");
        let told = blockers(&status);
        let read = read(&desk.home);
        if read["publisher"] == "never" {
            early += 1;
            assert!(told[0].starts_with("no resolver has published state at "), "round {round}: {told:?}");
        } else {
            assert_eq!(read["publisher"], "dead", "round {round}");
            let pid = read["pid"].as_u64().unwrap();
            assert!(known.iter().any(|known| u64::from(*known) == pid), "round {round}: {pid} of {known:?}");
            let dead = format!("the resolver that published this host's state (pid {pid}, state ");
            assert!(told.last().unwrap().starts_with(&dead), "round {round}: {told:?}");
        }
        assert_eq!(status["routes"][0]["trouble"]["hop"], "adapter", "round {round}: {status}");
    }
    desk.serve();
    let status = desk.ready();
    assert!(status["blockers"] == json!([]) && status["generation"] == 1, "{status}");
    over.store(true, Relaxed);
    let answered: u64 = load.into_iter().map(|load| load.join().unwrap()).sum();
    eprintln!("{answered} answers beside {rounds} kills, {early} before the first word");
    assert!(answered > 0);
}

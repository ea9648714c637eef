//! One daemon after another takes over under load: nobody is refused, no stream is cut, and readers see one publisher.
use crate::support::fleet::Fleet;
use crate::support::home::{DEVMESHD, Home, STADO};
use crate::support::process::Process;
use crate::support::tcp::{Client, echo};
use crate::support::{PATIENCE, ports, wait_for, wait_until};
use fs4::fs_std::FileExt;
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};
use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::Relaxed};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

const MESH: [&str; 4] = ["serve", "--docker-enabled=false", "--log-level", "info"];

/// Opens connections to `port` one after the other, and keeps some open; every answer must come.
struct Load {
    stop: Arc<AtomicBool>,
    opened: Arc<AtomicUsize>,
    workers: Vec<JoinHandle<Vec<String>>>,
}

impl Load {
    fn start(ports: &[u16], word: &'static str) -> Self {
        let (stop, opened) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicUsize::new(0)));
        let mut workers = Vec::new();
        for &port in ports {
            let (over, count) = (stop.clone(), opened.clone());
            workers.push(thread::spawn(move || open_and_ask(port, word, &over, &count)));
            let over = stop.clone();
            workers.push(thread::spawn(move || ask_on_one(port, word, &over)));
        }
        Self { stop, opened, workers }
    }

    /// Waits until `more` further connections were opened.
    fn flows(&self, more: usize) {
        let before = self.opened.load(Relaxed);
        wait_until("connections are opened", PATIENCE, || self.opened.load(Relaxed) >= before + more);
    }

    /// Everything that went wrong.
    fn end(self) -> Vec<String> {
        self.stop.store(true, Relaxed);
        self.workers.into_iter().flat_map(|worker| worker.join().unwrap()).collect()
    }
}

fn open_and_ask(port: u16, word: &str, over: &AtomicBool, opened: &AtomicUsize) -> Vec<String> {
    let mut wrong = Vec::new();
    while !over.load(Relaxed) {
        match Client::connect(("127.0.0.1", port)) {
            Err(error) => wrong.push(format!("connect to {port}: {error}")),
            Ok(mut client) => match client.ask("short") {
                Some(answer) if answer == format!("{word}:short") => {
                    opened.fetch_add(1, Relaxed);
                }
                other => wrong.push(format!("answer on {port}: {other:?}")),
            },
        }
    }
    wrong
}

/// One stream that lives as long as the load, asked all the time.
fn ask_on_one(port: u16, word: &str, over: &AtomicBool) -> Vec<String> {
    let mut client = Client::connect(("127.0.0.1", port)).unwrap();
    let mut n = 0;
    while !over.load(Relaxed) {
        n += 1;
        let answer = client.ask(&n.to_string());
        if answer != Some(format!("{word}:{n}")) {
            return vec![format!("the long stream on {port}: {answer:?} instead of {n}")];
        }
    }
    Vec::new()
}

fn descriptors(process: &Process) -> usize {
    std::fs::read_dir(format!("/proc/{}/fd", process.pid())).unwrap().count()
}

fn register(home: &Home, name: &str, backend: &str) -> u16 {
    home.devmesh(&["register", "--name", name, "--backend", backend, "--ttl", "3600", "--once"]).ok();
    let rows = home.devmesh(&["services", "list", "--format", "json"]).ok().json();
    let row =
        rows.as_array().unwrap().iter().find(|row| row["service"] == name || row["name"] == name).unwrap().clone();
    row["endpoint"].as_str().unwrap().rsplit_once(':').unwrap().1.parse().unwrap()
}

fn healthy(home: &Home, daemon: &mut Process) {
    wait_until("the daemon answers", PATIENCE, || {
        assert!(daemon.ended().is_none(), "{}", daemon.log());
        home.devmesh(&["health"]).code == 0
    });
}

#[test]
fn a_hundred_hand_overs_under_load_refuse_nobody_and_cut_nothing() {
    const ROUNDS: usize = 100;
    let home = Home::new();
    let backend = echo("mesh").to_string();
    let mut first = home.start("devmeshd-0", DEVMESHD, &MESH);
    healthy(&home, &mut first);
    let ports: Vec<u16> = (0..3).map(|n| register(&home, &format!("s{n}"), &backend)).collect();
    let load = Load::start(&ports, "mesh");
    load.flows(10);
    // The long streams are its own: it lives through all that follows.
    let mut leaving: Vec<Process> = Vec::new();
    let mut held = Vec::new();
    let mut current: Option<Process> = None;
    for round in 1..=ROUNDS {
        let mut next = home.start(&format!("devmeshd-{round}"), DEVMESHD, &[&MESH[..], &["--take-over"]].concat());
        next.expect("msg=daemon_took_over");
        next.expect("msg=daemon_started");
        load.flows(5);
        held.push(descriptors(&next));
        if let Some(mut old) = current.replace(next) {
            old.expect("msg=daemon_handed_over");
            leaving.push(old);
        }
        leaving.retain_mut(|old| match old.ended() {
            None => true,
            Some(status) => {
                assert!(status.success(), "{}", old.log());
                false
            }
        });
    }
    assert!(first.ended().is_none(), "it lives until its last stream ends");
    let mut last = current.unwrap();
    let wrong = load.end();
    assert!(wrong.is_empty(), "{} of them: {:?}", wrong.len(), &wrong[..wrong.len().min(5)]);
    for old in &mut leaving {
        assert!(old.wait().success());
    }
    assert!(first.wait().success());
    let (low, high) = (held.iter().min().unwrap(), held.iter().max().unwrap());
    eprintln!("descriptors of {ROUNDS} generations: {low} to {high}");
    // What is open at the moment of a look differs; what each generation leaves behind would add up.
    let median = |some: &[usize]| {
        let mut some = some.to_vec();
        some.sort_unstable();
        some[some.len() / 2]
    };
    assert!(median(&held[ROUNDS - 20..]) <= median(&held[..20]) + 8, "{held:?}");
    assert!(last.ended().is_none());
    assert!(last.stop().success());
    assert!(!home.file(".devmesh/run/devmesh.sock").exists());
}

/// What the lock rule says of the published state, read without a line of the daemon's own code.
fn publisher(state: &Path) -> Result<u64, String> {
    let lock = state.with_file_name("resolver-state.lock");
    let text = std::fs::read(state).map_err(|error| error.to_string())?;
    let state: serde_json::Value = serde_json::from_slice(&text).map_err(|error| error.to_string())?;
    let file = File::open(&lock).map_err(|error| error.to_string())?;
    if FileExt::try_lock_shared(&file).is_ok_and(|taken| taken) {
        return Err("nobody holds the lock".into());
    }
    let inside = std::fs::read_to_string(&lock).map_err(|error| error.to_string())?;
    let holder: u64 = inside.lines().next().unwrap_or_default().parse().map_err(|_| format!("lock: {inside:?}"))?;
    let pid = state["pid"].as_u64().unwrap_or_default();
    if holder == pid || state["took_over_from"].as_u64() == Some(holder) {
        Ok(pid)
    } else {
        Err(format!("the state is of {pid}, the lock of {holder}"))
    }
}

/// Reads all the time; the publishers in the order in which they were seen, and every moment without one.
fn watch(state: PathBuf, over: Arc<AtomicBool>) -> JoinHandle<(Vec<u64>, Vec<String>)> {
    thread::spawn(move || {
        let (mut seen, mut wrong) = (Vec::new(), Vec::new());
        while !over.load(Relaxed) {
            // The two files are read one after the other: between them the daemon may have changed.
            match publisher(&state).or_else(|_| publisher(&state)) {
                Ok(pid) if seen.last() != Some(&pid) => seen.push(pid),
                Ok(_) => {}
                Err(error) => wrong.push(error),
            }
        }
        (seen, wrong)
    })
}

#[test]
fn hand_overs_with_streams_to_another_host_cut_nothing_and_readers_see_one_publisher_at_any_moment() {
    const ROUNDS: usize = 25;
    needs!("sshd");
    let mut fleet = Fleet::on_loopback(&["away", "desk"]);
    let backend = echo("far");
    fleet.service("db", "away", "tcp", backend.port(), "shop");
    let ports = [fleet.adapter("desk", "db", "shop")];
    fleet.up();
    let desk = fleet.host("desk");
    let load = Load::start(&ports, "far");
    load.flows(5);
    let over = Arc::new(AtomicBool::new(false));
    let reader = watch(desk.home.file(".stado/resolver-state.json"), over.clone());
    let mut pids = vec![u64::from(desk.daemon().pid())];
    let mut held = Vec::new();
    let mut generations: Vec<Process> = Vec::new();
    for round in 1..=ROUNDS {
        let mut next = desk.home.start(&format!("resolver-{round}"), STADO, &["resolver", "serve", "--take-over"]);
        next.expect("took over from the daemon with pid");
        next.expect("fleet: target desk");
        load.flows(3);
        held.push(descriptors(&next));
        pids.push(next.pid().into());
        generations.push(next);
    }
    let status = desk.home.stado(&["resolver", "status", "--json"]).json();
    let leaving = status["leaving"].as_array().unwrap();
    assert!(leaving.iter().any(|one| one["pid"].as_u64() == Some(pids[0]) && one["streams"] == 1), "{status}");
    let text = desk.home.stado(&["resolver", "status"]).stdout;
    assert!(text.contains(&format!("leaving pid={} streams=1 taken-over=", pids[0])), "{text}");
    over.store(true, Relaxed);
    let (seen, without) = reader.join().unwrap();
    assert!(without.is_empty(), "{} moments: {:?}", without.len(), &without[..without.len().min(5)]);
    // A publisher that was followed by another one never comes back.
    let order: Vec<usize> = seen.iter().map(|pid| pids.iter().position(|known| known == pid).unwrap()).collect();
    assert!(order.is_sorted(), "{order:?}");
    let wrong = load.end();
    assert!(wrong.is_empty(), "{} of them: {:?}", wrong.len(), &wrong[..wrong.len().min(5)]);
    let mut last = generations.pop().unwrap();
    for old in &mut generations {
        assert!(old.wait().success(), "{}", old.log());
    }
    assert!(desk.daemon().wait().success());
    let (low, high) = (held.iter().min().unwrap(), held.iter().max().unwrap());
    eprintln!("descriptors of {ROUNDS} generations: {low} to {high}");
    assert!(high - low <= 16, "{held:?}");
    let mut seen = serde_json::Value::Null;
    wait_until("nobody is leaving", PATIENCE, || {
        let (code, status) = desk.status();
        assert!(last.ended().is_none());
        if seen != status {
            eprintln!("{code} {status}");
            seen = status.clone();
        }
        code == 0 && status["leaving"].is_null()
    });
}

#[test]
fn a_daemon_that_is_killed_while_it_takes_over_costs_nothing() {
    const ROUNDS: usize = 40;
    let seed: u64 = std::env::var("STADO_TEST_SEED").map_or_else(|_| rand::random(), |seed| seed.parse().unwrap());
    eprintln!("STADO_TEST_SEED={seed}");
    let mut random = StdRng::seed_from_u64(seed);
    let home = Home::new();
    let backend = echo("mesh").to_string();
    let mut serving = home.start("devmeshd-0", DEVMESHD, &MESH);
    healthy(&home, &mut serving);
    let port = register(&home, "s", &backend);
    // How long one takes from its start to its end here and now.
    let begun = Instant::now();
    let mut next = home.start("measured", DEVMESHD, &[&MESH[..], &["--take-over"]].concat());
    next.expect("msg=daemon_took_over");
    let whole = begun.elapsed();
    assert!(serving.wait().success());
    serving = next;
    let mut survived = 0;
    for round in 0..ROUNDS {
        let next = home.start(&format!("killed-{round}"), DEVMESHD, &[&MESH[..], &["--take-over"]].concat());
        thread::sleep(whole.mul_f64(random.random_range(0.0..1.0)));
        next.kill9();
        // Taken over and killed afterwards is a killed daemon, and no hand-over any more.
        let gone = wait_for("it serves on, or had left", PATIENCE, || {
            if serving.log().contains("msg=daemon_handed_over") {
                return Some(true);
            }
            (Client::connect(("127.0.0.1", port)).ok()?.ask("x")?.as_str() == "mesh:x").then_some(false)
        });
        if gone {
            assert!(serving.wait().success(), "{}", serving.log());
            serving = home.start(&format!("devmeshd-{round}"), DEVMESHD, &MESH);
            healthy(&home, &mut serving);
            home.devmesh(&["register", "--name", "s", "--backend", &backend, "--ttl", "3600", "--once"]).ok();
        } else {
            survived += 1;
            home.devmesh(&["health"]).ok();
        }
    }
    eprintln!("{survived} of {ROUNDS} died before they had taken over");
    let mut last = home.start("last", DEVMESHD, &[&MESH[..], &["--take-over"]].concat());
    last.expect("msg=daemon_took_over");
    assert!(serving.wait().success());
    assert_eq!(Client::connect(("127.0.0.1", port)).unwrap().ask("x").as_deref(), Some("mesh:x"));
}

#[test]
fn without_a_daemon_it_starts_and_says_so_and_without_the_flag_a_second_one_is_refused() {
    let home = Home::new();
    let mut daemon = home.start("resolver", STADO, &["resolver", "serve", "--take-over"]);
    daemon.expect("no daemon runs for this home: there is nothing to take over, so this one simply starts");
    daemon.expect("mesh: 0 services known");
    let second = home.stado(&["resolver", "serve"]).exits(1);
    assert!(second.stderr.contains("another resolver is running"), "{}", second.stderr);
    let mesh = crate::support::process::run(&mut home.command(DEVMESHD, &["serve", "--take-over"])).exits(1);
    assert!(mesh.stderr.contains("it serves the fleet too"), "{}", mesh.stderr);
    assert!(daemon.stop().success());
}

#[test]
#[ignore = "a measurement: prints how long thousands of services take"]
fn thousands_of_services_are_handed_over_at_once() {
    let count: u16 = std::env::var("STADO_TEST_SERVICES").map_or(9000, |text| text.parse().unwrap());
    let mut home = Home::new();
    let range = ports::block(count + 20);
    home.set("DEVMESH_TCP_FRONTEND_MIN", range.port());
    home.set("DEVMESH_TCP_FRONTEND_MAX", range.last());
    let mut old = home.start("old", DEVMESHD, &["serve", "--docker-enabled=false", "--log-level", "warn"]);
    healthy(&home, &mut old);
    let api = stado::client::Api::new(home.file(".devmesh/run/devmesh.sock")).with_timeout(Duration::from_secs(60));
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let backend = echo("mesh");
    runtime.block_on(async {
        for chunk in 0..count.div_ceil(50) {
            let all = (chunk * 50..((chunk + 1) * 50).min(count)).map(|n| {
                let api = api.clone();
                tokio::spawn(async move {
                    let backend =
                        stado::client::wire::BackendAddr { host: "127.0.0.1".into(), port: backend.port().into() };
                    let name = format!("service-{n}");
                    let request =
                        stado::client::wire::RegisterRequest { name, backend, ttl_seconds: 3600, ..Default::default() };
                    api.register(&request, None).await.unwrap();
                })
            });
            for one in all.collect::<Vec<_>>() {
                one.await.unwrap();
            }
        }
    });
    let services = runtime.block_on(api.list()).unwrap();
    let ports: Vec<u16> =
        services.iter().map(|service| service.frontend.port).step_by(usize::from(count / 3)).collect();
    let load = Load::start(&ports, "mesh");
    load.flows(10);
    let begun = Instant::now();
    let mut next = home.start("new", DEVMESHD, &["serve", "--take-over", "--docker-enabled=false"]);
    next.expect("msg=daemon_took_over");
    eprintln!("{count} services ({} descriptors) taken over in {:?}", descriptors(&next), begun.elapsed());
    load.flows(10);
    assert_eq!(runtime.block_on(api.list()).unwrap().len(), usize::from(count));
    let wrong = load.end();
    assert!(wrong.is_empty(), "{} of them: {:?}", wrong.len(), &wrong[..wrong.len().min(5)]);
    assert!(old.wait().success());
}

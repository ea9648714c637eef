//! Containers on a real engine: a database in a container keeps its address, the engine's trouble is visible and never
//! fatal, and each container that is not served says why.
use crate::joining_story::Machine;
use crate::support::docker::{Engine, Proxy, answer, docker, remove, select};
use crate::support::home::{DEVMESHD, Home, STADO};
use crate::support::process::{Process, run};
use crate::support::sshd::{Sshd, authorize, keygen};
use crate::support::{PATIENCE, program, wait_for, wait_until};
use serde_json::Value;
use std::net::IpAddr;
use std::path::Path;
use std::process::Command;

const DB: [&str; 7] = [
    "enable=true",
    "name=it.checkout.postgres",
    "container-port=5432",
    "kind=tcp",
    "app-protocol=postgres",
    "com.docker.compose.project=devmesh-it",
    "com.docker.compose.service=db",
];
const NAME: &str = "it.checkout.postgres";
const LOOPBACK: &str = "-p127.0.0.1::5432";

fn home() -> Home {
    let mut home = Home::new();
    home.unset("DEVMESH_DOCKER_ENABLED");
    home
}

fn serve(home: &Home, args: &[&str]) -> Process {
    let mut daemon = home.start("devmeshd", DEVMESHD, &[&["serve"], args].concat());
    wait_until("the daemon answers", PATIENCE, || {
        assert!(daemon.ended().is_none(), "{}", daemon.log());
        home.devmesh(&["health"]).code == 0
    });
    daemon
}

fn inspect(home: &Home, name: &str) -> Option<Value> {
    let found = home.devmesh(&["services", "inspect", name, "--format", "json"]);
    (found.code == 0).then(|| found.json()[0].clone())
}

/// The address of a ready service.
fn address(home: &Home, name: &str) -> String {
    wait_for(&format!("{name} is ready"), PATIENCE, || {
        let resolved = home.devmesh(&["services", "resolve", name, "--raw"]);
        (resolved.code == 0).then(|| resolved.stdout.trim().to_owned())
    })
}

fn backend(home: &Home, name: &str) -> String {
    inspect(home, name).map(|found| found["backend"].as_str().unwrap().to_owned()).unwrap_or_default()
}

fn refused(home: &Home) -> Vec<Value> {
    let rows = home.devmesh(&["services", "list", "--refused", "--format", "json"]).ok().json();
    rows.as_array().unwrap().clone()
}

/// Waits until `name` has another backend than `before`.
fn moved(home: &Home, name: &str, before: &str) -> String {
    wait_for("another backend", PATIENCE, || Some(backend(home, name)).filter(|now| !now.is_empty() && now != before))
}

#[test]
fn a_recreated_database_keeps_its_address_and_a_late_goodbye_does_not_touch_it() {
    needs!("docker", "postgres");
    let (engine, home) = (Engine::take(), home());
    let daemon = serve(&home, &[]);
    engine.database("it-db-1", &[&DB[..], &[LOOPBACK]].concat());
    let frontend = address(&home, NAME);
    assert_eq!(answer(&frontend, "select 1"), "1");
    let found = inspect(&home, NAME).unwrap();
    assert_eq!((&found["source"], &found["owner_key"]), (&"docker".into(), &"docker:devmesh-it:db:5432".into()));
    let first = backend(&home, NAME);
    remove("it-db-1");
    wait_until("unavailable", PATIENCE, || inspect(&home, NAME).is_some_and(|found| found["status"] == "unavailable"));

    let second = engine.database("it-db-2", &[&DB[..], &[LOOPBACK]].concat());
    let second_backend = moved(&home, NAME, &first);
    assert_eq!(address(&home, NAME), frontend);
    assert_eq!(answer(&frontend, "select 1"), "1");

    // Two at once, as while a new one is rolled out: the newest serves, and the old one's end changes nothing.
    let third = engine.database("it-db-3", &[&DB[..], &[LOOPBACK]].concat());
    let third_backend = moved(&home, NAME, &second_backend);
    let superseded = wait_for("the older one is listed", PATIENCE, || refused(&home).into_iter().next());
    assert_eq!(superseded["container"], "it-db-2", "{superseded}");
    assert!(superseded["reason"].as_str().unwrap().contains("superseded by /it-db-3"), "{superseded}");
    assert_eq!(answer(&frontend, "select 1"), "1");
    remove(&second);
    wait_until("nobody is superseded", PATIENCE, || refused(&home).is_empty());
    assert_eq!((backend(&home, NAME), address(&home, NAME)), (third_backend, frontend.clone()));
    assert_eq!(answer(&frontend, "select 1"), "1");
    assert_eq!(inspect(&home, NAME).unwrap()["docker_container_id"], third.as_str());
    daemon.stop();
}

#[test]
fn the_engine_may_be_there_first_go_away_and_come_back_changed() {
    needs!("docker", "postgres");
    let (engine, mut home) = (Engine::take(), home());
    engine.database("it-early", &[&DB[..], &[LOOPBACK]].concat());
    engine.sleeper("it-leaves", &["enable=true", "name=it.leaves", "container-port=80", "-p127.0.0.1::80"]);
    let path = home.file("engine.sock");
    let mut proxy = Proxy::start(&path);
    home.set("DOCKER_HOST", format!("unix://{}", path.display()));
    let _daemon = serve(&home, &[]);
    let frontend = address(&home, NAME);
    assert_eq!(answer(&frontend, "select 1"), "1", "it ran before the daemon did");
    let before = backend(&home, NAME);
    address(&home, "it.leaves");

    proxy.cut();
    let health = |home: &Home| home.devmesh(&["health", "--format", "json"]).ok().json()[0]["docker"].clone();
    wait_until("degraded", PATIENCE, || health(&home) == "degraded");
    assert_eq!(answer(&frontend, "select 1"), "1", "what is known keeps being served");
    let told = home.devmesh(&["services", "list", "--refused"]).ok().stderr;
    assert!(told.contains("containers are not watched since "), "{told}");
    remove("it-early");
    remove("it-leaves");
    engine.database("it-late", &[&DB[..], &[LOOPBACK]].concat());
    proxy.restore();
    moved(&home, NAME, &before);
    assert_eq!((health(&home), address(&home, NAME)), ("connected".into(), frontend.clone()));
    assert_eq!(answer(&frontend, "select 1"), "1");
    wait_until("what ended meanwhile", PATIENCE, || inspect(&home, "it.leaves").unwrap()["status"] == "unavailable");
}

#[test]
fn of_five_containers_four_are_refused_in_four_ways_and_the_good_one_serves() {
    needs!("docker", "postgres");
    let (engine, mut home) = (Engine::take(), home());
    home.write(".stado/config.json", "{}");
    let mut daemon = home.start("resolver", STADO, &["resolver", "serve"]);
    wait_until("the daemon answers", PATIENCE, || {
        assert!(daemon.ended().is_none(), "{}", daemon.log());
        home.devmesh(&["health"]).code == 0
    });
    engine.sleeper("it-good", &["enable=true", "name=it.good", "container-port=80", "-p127.0.0.1::80"]);
    engine.sleeper("it-exposed", &["enable=true", "name=it.exposed", "container-port=80", "-p0.0.0.0::80"]);
    engine.sleeper("it-unpublished", &["enable=true", "name=it.unpublished", "container-port=80"]);
    engine.sleeper("it-misnamed", &["enable=true", "name=It_Misnamed", "container-port=80", "-p127.0.0.1::80"]);
    engine.sleeper("it-badkind", &["enable=true", "name=it.badkind", "container-port=80", "kind=udp"]);
    engine.sleeper("it-unclear", &["enable=yes", "name=it.unclear", "container-port=80", "-p127.0.0.1::80"]);
    address(&home, "it.good");
    wait_until("four reasons", PATIENCE, || refused(&home).len() == 4);
    let rows = refused(&home);
    let reason = |container: &str| {
        let row =
            rows.iter().find(|row| row["container"] == container).unwrap_or_else(|| panic!("{container}: {rows:?}"));
        assert!(!row["remedy"].as_str().unwrap().is_empty());
        row["reason"].as_str().unwrap().to_owned()
    };
    let exposed = reason("it-exposed");
    assert_eq!(exposed, "container /it-exposed publishes 80/tcp on 0.0.0.0, which is not loopback-only");
    assert!(reason("it-unpublished").ends_with("80/tcp is not published to the host"));
    assert!(reason("it-misnamed").contains(r#"service name "It_Misnamed" must match"#));
    assert_eq!(reason("it-badkind"), r#"unsupported io.devmesh.kind="udp""#);
    let logged = |daemon: &Process| daemon.log().matches(&exposed).count();
    assert_eq!(logged(&daemon), 1, "{}", daemon.log());

    let status = wait_for("status tells too", PATIENCE, || {
        let status = home.stado(&["resolver", "status", "--json"]).json();
        status["warnings"].as_array().is_some_and(|all| all.len() == 4).then_some(status)
    });
    assert!(status["warnings"].to_string().contains("it-exposed"), "{status}");
    let doctor = home.devmesh(&["doctor", "--format", "json"]).exits(1);
    let checks = doctor.json();
    let check = |name: &str| {
        let row = checks.as_array().unwrap().iter().find(|row| row["check"] == name);
        row.unwrap_or_else(|| panic!("{name} in {checks}")).clone()
    };
    assert_eq!(check("docker")["status"], "ok");
    assert!(check("docker-engine")["detail"].as_str().unwrap().contains(" at unix:///var/run/docker.sock"));
    assert_eq!(check("container it-exposed")["status"], "fail");
    let unclear = check("container it-unclear");
    assert!(unclear["detail"].as_str().unwrap().starts_with(r#"io.devmesh.enable="yes" is not true"#), "{unclear}");
    assert!(check("docker-containers")["detail"].as_str().unwrap().starts_with("5 labelled: 5 without Compose"));
    assert_ne!(check("loopback-bind-ipv6")["status"], "fail", "{checks}");
    for name in ["docker-socket", "docker-containers", "loopback-bind", "descriptor-limit", "clock", "socket-dir"] {
        assert_eq!(check(name)["status"], "ok", "{checks}");
    }
    daemon.stop();

    home.set("DEVMESH_DOCKER_ALLOW_NON_LOOPBACK_PUBLISHED_PORTS", "true");
    let _daemon = serve(&home, &[]);
    address(&home, "it.exposed");
    assert!(backend(&home, "it.exposed").starts_with("127.0.0.1:"), "never the wildcard");
}

#[test]
fn a_pause_and_a_followed_health_check_are_answered_with_a_reason() {
    needs!("docker", "postgres");
    let (engine, home) = (Engine::take(), home());
    let _daemon = serve(&home, &[]);
    let labels = ["enable=true", "name=it.web", "container-port=80", "follow-health=true", "-p127.0.0.1::80"];
    let check = ["--health-cmd=test -e /tmp/ok", "--health-interval=200ms", "--health-retries=1"];
    engine.sleeper("it-web", &[&labels[..], &check].concat());
    let reason = |part: &str| {
        wait_until(part, PATIENCE, || home.devmesh(&["services", "inspect", "it.web"]).stderr.contains(part));
    };
    reason("container it-web is unhealthy");
    docker(&["exec", "it-web", "/bin/sh", "-c", ": >/tmp/ok"]).ok();
    let frontend = address(&home, "it.web");
    docker(&["pause", "it-web"]).ok();
    reason("container it-web is paused");
    docker(&["unpause", "it-web"]).ok();
    assert_eq!(address(&home, "it.web"), frontend);
    // A name without Compose is the owner: it follows a rename.
    docker(&["rename", "it-web", "it-web-renamed"]).ok();
    wait_until("the new owner key", PATIENCE, || {
        inspect(&home, "it.web").unwrap()["owner_key"] == "docker:it-web-renamed:80"
    });
    // A port leaves with its network and is back with it.
    docker(&["network", "disconnect", "bridge", "it-web-renamed"]).ok();
    reason("no longer publishes it");
    docker(&["network", "connect", "bridge", "it-web-renamed"]).ok();
    assert_eq!(address(&home, "it.web"), frontend);
}

#[test]
fn doctor_measures_a_loopback_publication_and_leaves_nothing_behind() {
    needs!("docker", "postgres");
    let (engine, home) = (Engine::take(), home());
    let _daemon = serve(&home, &[]);
    wait_until("connected", PATIENCE, || {
        home.devmesh(&["health", "--format", "json"]).ok().json()[0]["docker"] == "connected"
    });
    let probe = || {
        let checks = home.devmesh(&["doctor", "--format", "json"]).ok().json();
        let row = checks.as_array().unwrap().iter().find(|row| row["check"] == "docker-publication-probe").unwrap();
        (row["status"].as_str().unwrap().to_owned(), row["detail"].as_str().unwrap().to_owned())
    };
    let images = ["busybox:latest", "alpine:latest"];
    if images.iter().all(|image| docker(&["image", "inspect", image]).code != 0) {
        let skipped = "no local busybox/alpine image available for a disposable publication test";
        assert_eq!(probe(), ("skip".into(), skipped.into()));
        docker(&["tag", engine.image(), images[0]]).ok();
        let (status, detail) = probe();
        docker(&["rmi", images[0]]).ok();
        assert_eq!(status, "ok");
        let port = detail.strip_prefix("published 80/tcp on 127.0.0.1:").unwrap_or_else(|| panic!("{detail}"));
        assert!(port.parse::<u16>().is_ok_and(|port| port != 0), "{detail}");
    } else {
        assert_eq!(probe().0, "ok");
    }
    let left = docker(&["ps", "-aq", "--filter", "label=io.devmesh.doctor"]).ok().stdout;
    assert_eq!(left, "", "the probe removes its container");
}

#[test]
fn the_compose_example_works_as_its_page_says() {
    needs!("docker", "postgres", "docker-compose");
    let (engine, home) = (Engine::take(), home());
    let _daemon = serve(&home, &[]);
    let file = concat!(env!("CARGO_MANIFEST_DIR"), "/examples/compose-postgres/compose.yaml");
    let compose = |args: &[&str]| {
        let mut command = Command::new(program("docker-compose").unwrap());
        command.args(["-p", "devmesh-it-example", "-f", file]).args(args).current_dir(home.path());
        run(command.env("POSTGRES_IMAGE", engine.image()))
    };
    let down = || compose(&["down", "-v", "-t", "0"]);
    let _removed = Finally(down);
    assert!(Path::new(file).is_file());
    compose(&["up", "-d"]).ok();
    let frontend = address(&home, "checkout.postgres");
    assert_eq!(answer(&frontend, "select 1"), "1");
    let before = backend(&home, "checkout.postgres");
    compose(&["up", "-d", "--force-recreate", "-t", "0"]).ok();
    moved(&home, "checkout.postgres", &before);
    assert_eq!(address(&home, "checkout.postgres"), frontend);
    assert_eq!(answer(&frontend, "select 1"), "1");
    assert_eq!(inspect(&home, "checkout.postgres").unwrap()["owner_key"], "docker:devmesh-it-example:db:5432");
    down();
    wait_until("unavailable", PATIENCE, || select(&frontend, "select 1").is_none());
}

#[test]
fn an_engine_behind_ssh_is_watched_and_its_containers_are_served_over_our_own_link() {
    needs!("docker", "postgres", "sshd");
    let (engine, far, mut near) = (Engine::take(), Home::new(), home());
    // An address that is not loopback, and still of this machine alone: what is published there is elsewhere.
    let sshd = Sshd::start(&far, bridge(&engine));
    near.write(".ssh/known_hosts", sshd.known_host());
    near.write(".stado/keep", "");
    keygen(&near.file(".stado/resolver-ssh-key"));
    authorize(&far, &near.read(".stado/resolver-ssh-key.pub"));
    near.set("DOCKER_HOST", format!("ssh://{}", sshd.destination()));
    let mut daemon = near.start("resolver", STADO, &["resolver", "serve"]);
    engine.database("it-db-1", &[&DB[..], &[LOOPBACK]].concat());
    daemon.expect("service_registered");
    let frontend = address(&near, NAME);
    assert_eq!(answer(&frontend, "select 1"), "1");
    remove("it-db-1");
    wait_until("unavailable", PATIENCE, || inspect(&near, NAME).is_some_and(|found| found["status"] == "unavailable"));
}

/// This machine's address on the engine's default bridge.
fn bridge(engine: &Engine) -> IpAddr {
    engine.sleeper("it-bridge", &[]);
    let format = "{{.NetworkSettings.Gateway}}";
    docker(&["inspect", "--format", format, "it-bridge"]).ok().stdout.trim().parse().unwrap()
}

/// Done at the end, also of a test that fails.
struct Finally<T, F: Fn() -> T>(F);

impl<T, F: Fn() -> T> Drop for Finally<T, F> {
    fn drop(&mut self) {
        (self.0)();
    }
}

#[test]
fn a_container_that_asks_is_published_where_its_host_lets_it_and_recreated_without_a_write() {
    needs!("docker", "postgres");
    let (engine, mut tower) = (Engine::take(), Machine::new());
    tower.home.unset("DEVMESH_DOCKER_ENABLED");
    tower.init(50).ok();
    let labels = [&DB[..], &["publish=true", LOOPBACK]].concat();
    engine.database("it-db-1", &labels);
    let registry = || tower.home.stado(&["registry", "pull"]).ok().json();
    let entry = || registry()["service_directory"]["services"][NAME].clone();

    // Nobody has said that containers may: it is served here, offered to nobody, and both say why.
    let row =
        wait_for("it is listed", PATIENCE, || refused(&tower.home).into_iter().find(|row| row["service"] == NAME));
    assert_eq!(row["container"], "it-db-1", "{row}");
    assert!(row["reason"].as_str().unwrap().contains("containers of this host may not ask for that"), "{row}");
    assert!(row["remedy"].as_str().unwrap().contains("publish.labels"), "{row}");
    let frontend = address(&tower.home, NAME);
    assert_eq!(answer(&frontend, "select 1"), "1");
    let said = || tower.home.stado(&["resolver", "status"]).stdout;
    let not_offered = format!("container it-db-1 is not offered to the fleet as {NAME}: ");
    wait_until("status says so", PATIENCE, || said().contains(&not_offered));
    assert!(entry().is_null());

    let mut own: Value = serde_json::from_str(&tower.home.read(".stado/config.json")).unwrap();
    own["publish"] = serde_json::json!({"labels": true, "consumers": ["lap"]});
    tower.home.write(".stado/config.json", own.to_string());
    tower.home.stado(&["resolver", "restart"]).ok();
    let published = wait_for("it is published", PATIENCE, || Some(entry()).filter(|entry| !entry.is_null()));
    assert_eq!(published["endpoints"]["tower"]["url"], format!("tcp://{frontend}"), "the stable address: {published}");
    assert_eq!(published["consumers"], serde_json::json!({"lap": {"capabilities": []}}));
    wait_until("nothing is refused", PATIENCE, || refused(&tower.home).is_empty() && !said().contains(&not_offered));

    let version = || tower.home.stado(&["registry", "pull", "--generation-only"]).ok().stdout;
    let (before, backend_before) = (version(), backend(&tower.home, NAME));
    remove("it-db-1");
    wait_until("unavailable", PATIENCE, || backend(&tower.home, NAME).is_empty());
    engine.database("it-db-2", &labels);
    moved(&tower.home, NAME, &backend_before);
    assert_eq!((address(&tower.home, NAME), answer(&frontend, "select 1")), (frontend.clone(), "1".to_owned()));
    assert_eq!(version(), before, "nobody wrote the registry for that");
}

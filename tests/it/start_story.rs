//! A start in which not everything can be had: what can be served is served, the rest is said, and comes when it can.
use crate::support::disk::Small;
use crate::support::fleet::Fleet;
use crate::support::home::{DEVMESHD, Home, STADO};
use crate::support::netns::Network;
use crate::support::process::{Process, run};
use crate::support::tcp::{ask, echo};
use crate::support::{PATIENCE, ports, wait_for, wait_until};
use serde_json::Value;
use std::net::{TcpListener, TcpStream};
use std::process::Command;

fn state(home: &Home) -> Value {
    serde_json::from_str(&home.read(".stado/resolver-state.json")).unwrap_or_default()
}

fn unserved(home: &Home) -> Vec<String> {
    let rows = state(home)["unserved"].as_array().cloned().unwrap_or_default();
    rows.iter().map(|row| row["service"].as_str().unwrap().to_owned()).collect()
}

#[test]
fn a_gate_a_mesh_and_a_metrics_page_that_others_hold_are_served_as_soon_as_they_can_be() {
    let home = Home::new();
    let [gate, api, page] = [ports::one(), ports::one(), ports::one()];
    let config = serde_json::json!({
        "api_bind": format!("127.0.0.1:{}", api.port()), "gate": {"bind": format!("127.0.0.1:{}", gate.port())}
    });
    home.write(".stado/config.json", config.to_string());
    let holds = |port| TcpListener::bind(("127.0.0.1", port)).unwrap();
    let (at_gate, at_page) = (holds(gate.port()), holds(page.port()));
    let first = home.start("devmeshd", DEVMESHD, &["serve"]);
    wait_until("the first daemon answers", PATIENCE, || home.devmesh(&["health"]).code == 0);
    let metrics = format!("127.0.0.1:{}", page.port());
    let mut daemon = home.start("resolver", STADO, &["resolver", "serve", "--metrics-bind", &metrics]);
    wait_until("both are named", PATIENCE, || unserved(&home) == ["mesh", "gate"]);
    daemon.expect("it is tried again");

    drop(at_gate);
    daemon.expect(&format!("stado gate at 127.0.0.1:{} is served now", gate.port()));
    assert!(first.stop().success());
    daemon.expect("devmesh.sock is served now");
    // The page belongs to the mesh: its port is missed only now.
    wait_until("the page is named", PATIENCE, || unserved(&home) == ["metrics"]);
    drop(at_page);
    wait_until("nothing is missing", PATIENCE, || {
        state(&home)["state"] == "serving" && unserved(&home).is_empty() && TcpStream::connect(&metrics).is_ok()
    });
    home.devmesh(&["register", "--name", "a", "--backend", &echo("a").to_string(), "--once"]).ok();
    let address = home.devmesh(&["services", "resolve", "a", "--raw"]).ok().stdout;
    assert_eq!(ask(address.trim(), "x").as_deref(), Some("a:x"));
    home.stado(&["resolver", "status"]).ok();
    assert!(daemon.stop().success());
}

#[test]
fn a_second_persons_empty_home_is_ready_without_the_usual_api_address_and_gets_it_when_it_is_free() {
    needs!("netns");
    let network = Network::new(1);
    let mut home = Home::new();
    home.enter(network.namespace(0));
    let taken = network.inside(0, || TcpListener::bind("127.0.0.1:17600").unwrap());
    let mut daemon = home.start("resolver", STADO, &["resolver", "serve"]);
    wait_until("ready", PATIENCE, || home.stado(&["resolver", "status"]).code == 0);
    daemon.expect("this host serves its mesh without a resolution API: could not bind 127.0.0.1:17600");
    home.devmesh(&["health"]).ok();
    let told = home.stado(&["resolver", "status", "--json"]).ok().json();
    assert!(told["warnings"].to_string().contains("set `api_bind`"), "{told}");
    drop(taken);
    daemon.expect("serves the resolution API at 127.0.0.1:17600 now");
    wait_until("published", PATIENCE, || state(&home)["api_bind"] == "127.0.0.1:17600");
    home.stado(&["resolver", "status"]).ok();
}

#[test]
fn a_home_that_cannot_be_written_is_served_from_and_heals() {
    needs!("tmpfs");
    let (home, logs, api) = (Home::new(), tempfile::tempdir().unwrap(), ports::one());
    let disk = Small::mount(home.path(), 4096);
    home.write(".stado/config.json", format!(r#"{{"api_bind":"127.0.0.1:{}"}}"#, api.port()));
    let remount = |how: &str| {
        run(Command::new("mount").args(["-o", &format!("remount,{how}")]).arg(home.path())).ok();
    };
    remount("ro");
    let mut daemon =
        Process::start(&mut home.command(STADO, &["resolver", "serve"]), &logs.path().join("resolver.log"));
    daemon.expect("the resolver's state is not published: cannot lock ");
    wait_until("the resolution API", PATIENCE, || TcpStream::connect(("127.0.0.1", api.port())).is_ok());
    daemon.expect("mesh: not served by this daemon: ");
    assert!(daemon.ended().is_none(), "{}", daemon.log());
    remount("rw");
    daemon.expect("the resolver's state is published now");
    daemon.expect("devmesh.sock is served now");
    wait_until("ready", PATIENCE, || home.stado(&["resolver", "status"]).code == 0);
    assert!(daemon.stop().success());
    drop(disk);
}

#[test]
fn connect_gives_out_no_address_that_the_resolver_calls_unserved_and_does_without_a_corrupt_state() {
    needs!("sshd");
    let mut fleet = Fleet::on_loopback(&["authority", "workstation"]);
    fleet.service("echo", "authority", "tcp", echo("echo").port(), "shop");
    let at = fleet.adapter("workstation", "echo", "shop");
    let stranger = TcpListener::bind(("127.0.0.1", at)).unwrap();
    fleet.push("authority").ok();
    fleet.copies();
    fleet.host("authority").serve();
    fleet.host("workstation").serve();
    let home = &fleet.host("workstation").home;
    wait_until("the adapter is unserved", PATIENCE, || unserved(home) == ["echo"]);
    let connect = ["service", "directory", "connect", "echo", "--no-verify"];
    let refused = home.stado(&connect).exits(69);
    assert!(refused.stdout.is_empty() && refused.stderr.contains("does not serve"), "{}", refused.stderr);
    let tried = |home: &Home| home.stado(&connect[..4]).exits(69).stderr;
    let pid = state(home)["pid"].clone();
    let wanted = format!(
        "echo is placed on authority and did not answer at tcp://127.0.0.1:{at}: this host's resolver (pid {pid}) does not serve \
         127.0.0.1:{at} for echo/shop: could not bind 127.0.0.1:{at}: "
    );
    assert!(tried(home).contains(&wanted), "a stranger that accepts is no answer: {}", tried(home));
    drop(stranger);
    fleet.host("workstation").ready();
    fleet.host("workstation").stop();
    let gone = tried(&fleet.host("workstation").home);
    let wanted = format!(
        "did not answer at tcp://127.0.0.1:{at}: Connection refused (os error 111); the resolver that published this host's \
         state (pid {pid}, state stopped at "
    );
    assert!(gone.contains(&wanted), "{gone}");
    let home = &fleet.host("workstation").home;
    home.write(".stado/resolver-state.json", "{ this is not a state");
    let given = home.stado(&connect).ok();
    assert_eq!(given.stdout.trim(), format!("tcp://127.0.0.1:{at}"));
    assert!(given.stderr.contains("what this host's resolver has published is not known"), "{}", given.stderr);
}

#[test]
fn status_does_not_wait_for_an_authority_that_is_frozen() {
    needs!("sshd");
    let mut fleet = Fleet::on_loopback(&["authority", "workstation"]);
    fleet.service("echo", "authority", "tcp", 9, "shop");
    fleet.push("authority").ok();
    fleet.copies();
    let mut sshd = fleet.host("authority").sshd.take().unwrap();
    sshd.down();
    // Takes connections and says nothing, as a host does that is out of memory.
    let _frozen = wait_for("the address is free", PATIENCE, || TcpListener::bind(sshd.at()).ok());
    let (code, status) = fleet.host("workstation").status();
    assert_eq!((code, &status["authority"]["reachable"]), (1, &false.into()), "{status}");
    let detail = status["authority"]["detail"].as_str().unwrap();
    assert!(detail.contains("did not answer within 8s"), "{detail}");
}

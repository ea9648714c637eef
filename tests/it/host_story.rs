//! `host ping` and `host exec` over real sshd: every declared path in order, and nothing that a host says does harm.
use crate::support::fleet::Fleet;
use crate::support::process::run_with;
use crate::support::{PATIENCE, wait_until};
use serde_json::{Value, json};
use std::io::Write;
use std::net::{TcpListener, TcpStream};
use std::time::Instant;

/// Two hosts that log in to each other. A directory needs a service, whether or not it answers.
fn two_hosts() -> Fleet {
    let mut fleet = Fleet::on_loopback(&["authority", "worker"]);
    fleet.service("web", "authority", "http", 9, "shop");
    fleet.push("authority").ok();
    fleet
}

/// The same; the worker's primary path and its first fallback lead nowhere, the second is its sshd.
fn fleet() -> Fleet {
    let mut fleet = two_hosts();
    let real = fleet.hosts[1].sshd.as_ref().unwrap().destination();
    // Nobody listens on the first port of these addresses.
    fleet.declare("worker", "ssh", json!("ops@127.0.1.1:1"));
    let fallbacks =
        json!([{"name": "overlay", "destination": "ops@127.0.1.2:1"}, {"name": "lan", "destination": real}]);
    fleet.declare("worker", "ssh_fallbacks", fallbacks);
    fleet.push("authority").ok();
    fleet
}

fn observed(fleet: &mut Fleet) -> Vec<(String, String)> {
    let rows: Value = serde_json::from_str(&fleet.host("authority").home.read(".stado/observations.json")).unwrap();
    let row = |row: &Value| (row["fact"].as_str().unwrap().to_owned(), row["state"].as_str().unwrap().to_owned());
    rows.as_array().unwrap().iter().map(row).collect()
}

#[test]
fn every_declared_path_is_tried_in_order_and_the_first_that_answers_carries() {
    needs!("sshd");
    let mut fleet = fleet();
    let home = &fleet.host("authority").home;
    let ping = home.stado(&["host", "ping", "worker", "--json"]).ok().json();
    let paths: Vec<_> =
        ping["paths"].as_array().unwrap().iter().map(|p| (p["path"].as_str(), p["status"].as_str())).collect();
    let told = [("primary", "failed"), ("overlay", "failed"), ("lan", "ok")];
    assert_eq!(paths, told.map(|(path, status)| (Some(path), Some(status))), "{ping}");
    assert_eq!((&ping["status"], &ping["over"]), (&"reached".into(), &"lan".into()));
    assert!(ping["paths"][2]["round_trip_ms"].as_f64().unwrap() > 0.0, "{ping}");
    assert!(ping["paths"][0]["error"].as_str().unwrap().contains("127.0.1.1:1"), "{ping}");
    let text = home.stado(&["host", "ping", "worker"]).ok().stdout;
    let begins: Vec<&str> = text.lines().map(|line| line.split(' ').next().unwrap()).collect();
    assert_eq!(begins, ["primary", "overlay", "lan", "worker"], "{text}");
    assert!(text.ends_with("worker is reached over lan\n"), "{text}");
    let ran = home.stado(&["host", "exec", "worker", "--json", "--", "printf %s \"$HOME\""]).ok().json();
    assert_eq!((&ran["path"], &ran["exit_code"], &ran["cut"]), (&"lan".into(), &0.into(), &false.into()), "{ran}");
    let worker = fleet.host("worker").home.path().to_str().unwrap().to_owned();
    assert_eq!(ran["stdout"], worker);
    assert_eq!(ran["ssh"], fleet.host("worker").sshd.as_ref().unwrap().destination());
    assert_eq!(observed(&mut fleet), [("host:worker".into(), "observed".into())]);

    fleet.host("worker").sshd.as_mut().unwrap().down();
    let home = &fleet.host("authority").home;
    for verb in [&["host", "ping", "worker", "--json"] as &[&str], &["host", "exec", "worker", "--", "true"]] {
        let run = home.stado(verb).exits(69);
        let places = ["(primary: ", "; overlay: ", "; lan: "].map(|part| run.stderr.find(part));
        assert!(places.iter().all(Option::is_some) && places.is_sorted(), "{}", run.stderr);
        assert_eq!(run.stdout.is_empty(), verb[1] == "exec", "{}", run.stdout);
    }
    assert_eq!(observed(&mut fleet), [("host:worker".into(), "unreachable".into())]);
}

#[test]
fn a_wrong_host_key_stops_every_verb() {
    needs!("sshd");
    let fleet = two_hosts();
    let (own, other) = (fleet.hosts[1].sshd.as_ref().unwrap(), fleet.hosts[0].sshd.as_ref().unwrap());
    let name = own.known_host().split(' ').next().unwrap().to_owned();
    let key = other.known_host().split_once(' ').unwrap().1.to_owned();
    let home = &fleet.hosts[0].home;
    home.write(".ssh/known_hosts", format!("{name} {key}"));
    for verb in [
        &["host", "ping", "worker"] as &[&str],
        &["host", "exec", "worker", "--", "touch \"$HOME/was-here\""],
        &["host", "inventory", "worker"],
    ] {
        let run = home.stado(verb).exits(1);
        let told = run.stderr.contains("has changed") && run.stderr.contains("[auth]");
        assert!(told, "{verb:?}: {}", run.stderr);
    }
    let report = home.stado(&["host", "inventory", "worker", "--json"]).exits(1).json();
    assert_eq!((&report["status"], &report["exit_code"]), (&"failed".into(), &Value::Null), "{report}");
    assert!(report["error"].as_str().unwrap().contains("has changed"));
    assert!(!fleet.hosts[1].home.file("was-here").exists());
}

#[test]
fn a_command_has_its_words_its_input_its_output_and_its_exit_code() {
    needs!("sshd");
    let mut fleet = two_hosts();
    let home = &fleet.host("authority").home;
    let exec = |more: &[&str]| home.stado(&[&["host", "exec", "worker"], more].concat());
    let run = exec(&["--", "echo out; echo problem >&2; exit 7"]).exits(7);
    assert_eq!((run.stdout.as_str(), run.stderr.as_str()), ("out\n", "problem\n"));
    assert_eq!(exec(&["--", "printf", "%s", "it's $HOME; exit 9"]).ok().stdout, "it's $HOME; exit 9");
    let input = run_with(
        &mut home.command(crate::support::home::STADO, &["host", "exec", "worker", "--stdin", "--", "cat"]),
        b"fed",
    );
    assert_eq!(input.ok().stdout, "fed");
    let failed = exec(&["--json", "--", "exit 3"]).exits(3).json();
    assert_eq!(failed["exit_code"], 3);
    let signal = exec(&["--", "kill -TERM $$"]).exits(1);
    assert!(signal.stderr.contains("ended by signal TERM"), "{}", signal.stderr);
    let unknown = home.stado(&["host", "exec", "gone", "--", "true"]).exits(1);
    assert!(
        unknown.stderr.starts_with("Error: target 'gone' is not in the canonical registry\n"),
        "{}",
        unknown.stderr
    );
    exec(&["--timeout", "soon", "--", "true"]).exits(2);
}

#[test]
fn a_command_that_hangs_is_given_up_and_the_next_one_runs() {
    needs!("sshd");
    let mut fleet = two_hosts();
    let home = &fleet.host("authority").home;
    let began = Instant::now();
    let run = home.stado(&["host", "exec", "worker", "--timeout", "1s", "--", "echo part; sleep 1000"]).exits(69);
    assert!(began.elapsed() < PATIENCE);
    assert!(run.stderr.contains("gave no complete answer within 1s"), "{}", run.stderr);
    home.stado(&["host", "exec", "worker", "--", "true"]).ok();
}

#[test]
fn what_a_command_says_does_not_steer_the_terminal() {
    needs!("sshd");
    let mut fleet = two_hosts();
    let home = &fleet.host("authority").home;
    let evil =
        "printf 'a\\tb\\033[2J\\033]0;title\\007\\rc\\302\\2331m\\342\\200\\256\\377\\n'; printf '\\033[31mred\\n' >&2";
    let run = home.stado(&["host", "exec", "worker", "--", evil]).ok();
    assert_eq!(run.stdout, "a\tb\\u{1b}[2J\\u{1b}]0;title\\u{7}\\rc\\u{9b}1m\\u{202e}\\xff\n");
    assert_eq!(run.stderr, "\\u{1b}[31mred\n");
    let told = home.stado(&["host", "exec", "worker", "--json", "--", evil]).ok().json();
    assert_eq!(told["stdout"], run.stdout);
    let raw = home.stado(&["host", "exec", "worker", "--raw", "--", "printf '\\033[2J\\001'"]).ok();
    assert_eq!(raw.stdout, "\u{1b}[2J\u{1}");
    // A sentence that quotes a host is shown the same way.
    let said = home.stado(&["host", "exec", "worker", "--json", "--", "printf '\\033' >&2; exit 4"]).exits(4);
    assert!(!said.stdout.contains('\u{1b}') && !said.stderr.contains('\u{1b}'));
}

#[test]
fn output_without_end_is_bounded() {
    needs!("sshd");
    let mut fleet = two_hosts();
    let home = &fleet.host("authority").home;
    let run = home.stado(&["host", "exec", "worker", "--max-output", "100000", "--", "yes"]).exits(1);
    assert_eq!(run.stdout.len(), 100_000);
    assert!(run.stderr.contains("said more than 100000 bytes and was ended there"), "{}", run.stderr);
    let run = home.stado(&["host", "exec", "worker", "--", "yes | head -c 3000000 >&2; echo end"]).ok();
    assert_eq!((run.stdout.as_str(), run.stderr.len()), ("end\n", 64 * 1024));
}

#[test]
fn a_host_needs_no_path_to_itself() {
    let mut fleet = Fleet::on_loopback_without_sshd(&["authority"]);
    fleet.service("web", "authority", "http", 9, "shop");
    fleet.push("authority").ok();
    let home = &fleet.host("authority").home;
    let ran = home.stado(&["host", "exec", "authority", "--json", "--", "pwd; exit 5"]).exits(5).json();
    assert_eq!((&ran["path"], &ran["ssh"]), (&"here".into(), &Value::Null));
    let told = std::path::PathBuf::from(ran["stdout"].as_str().unwrap().trim());
    assert_eq!(told.canonicalize().unwrap(), home.path().canonicalize().unwrap());
    let report = home.stado(&["host", "inventory", "authority", "--json"]).ok().json();
    assert_eq!(
        (&report["status"], &report["path"], &report["forwards_dir_state"]),
        (&"inventory".into(), &"here".into(), &"missing".into())
    );
}

#[test]
fn a_host_whose_services_are_held_is_asked_all_the_same() {
    needs!("sshd");
    let mut fleet = Fleet::on_loopback(&["authority", "worker"]);
    // Accepts, and never says a word.
    let mute = TcpListener::bind("127.0.0.1:0").unwrap();
    fleet.service("mute", "worker", "http", mute.local_addr().unwrap().port(), "shop");
    let at = fleet.adapter("authority", "mute", "shop");
    fleet.up();
    let mut client = TcpStream::connect(("127.0.0.1", at)).unwrap();
    client.write_all(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n").unwrap();
    let home = &fleet.host("authority").home;
    wait_until("the wait is a blocker", PATIENCE, || {
        home.stado(&["resolver", "status"]).stdout.contains("blocker service mute for consumer shop")
    });
    let run = home.stado(&["host", "exec", "worker", "--", "echo answered"]).ok();
    assert_eq!(run.stdout, "answered\n");
    assert!(run.stderr.contains("service mute for consumer shop"), "{}", run.stderr);
    assert!(run.stderr.contains("asking worker over every declared path"), "{}", run.stderr);
    drop(client);
}

#[test]
fn a_host_without_a_path_says_how_to_declare_one() {
    let mut fleet = Fleet::on_loopback_without_sshd(&["authority", "worker"]);
    fleet.service("web", "authority", "http", 9, "shop");
    fleet.declare("worker", "ssh", Value::Null);
    fleet.push("authority").ok();
    let home = &fleet.host("authority").home;
    for verb in ["ping", "inventory"] {
        let run = home.stado(&["host", verb, "worker"]).exits(1);
        assert!(run.stderr.contains("stado registry host path set worker primary --ssh"), "{}", run.stderr);
    }
    // This host needs no path to itself, nor one that works: nobody listens at the one that it declares.
    let ping = home.stado(&["host", "ping", "authority", "--json"]).ok().json();
    assert_eq!((&ping["status"], &ping["paths"][0]["status"]), (&"here".into(), &"failed".into()), "{ping}");
    let text = home.stado(&["host", "ping", "authority"]).ok().stdout;
    assert!(text.ends_with("authority is this host\n"), "{text}");
}

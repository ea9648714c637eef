//! Hosts whose registry is in an engine that they share: every verb, two writers, the daemon, an outage. Nobody logs in to
//! anybody here: no SSH is needed where every host asks the store itself.
use crate::support::etcd::Etcd;
use crate::support::fleet::Fleet;
use crate::support::home::STADO;
use crate::support::process::Run;
use crate::support::s3::{Emulator, Fault, KEY_ID, SECRET};
use crate::support::s3_server::S3Server;
use crate::support::{PATIENCE, wait_until};
use serde_json::{Value, json};

/// Two hosts that name the store in their configuration.
fn hosts(storage: &Value) -> Fleet {
    let mut fleet = Fleet::on_loopback_without_sshd(&["authority", "desk"]);
    fleet.service("orders", "authority", "tcp", 5432, "shop");
    for host in &fleet.hosts {
        host.home.write(".stado/config.json", json!({ "storage": storage }).to_string());
        let keys = format!("[default]\naws_access_key_id = {KEY_ID}\naws_secret_access_key = {SECRET}\n");
        host.home.write(".stado/keys", keys);
    }
    fleet
}

fn stado<'a>(fleet: &'a Fleet, host: &str) -> impl Fn(&[&str]) -> Run + use<'a> {
    let home = &fleet.hosts.iter().find(|h| h.name == host).unwrap().home;
    move |args| home.stado(args)
}

/// The story that every engine tells.
fn story(fleet: &mut Fleet, location: &str) {
    let absent = stado(fleet, "desk")(&["registry", "pull"]).exits(1);
    assert!(absent.stderr.contains(&format!("no registry document at {location}")), "{}", absent.stderr);
    let created = fleet.push("authority").ok().json();
    assert_eq!((created["state"].as_str(), created["location"].as_str()), (Some("pushed"), Some(location)));
    assert!(created.get("replaced").is_none(), "{created}");
    let first = created["generation"].as_str().unwrap().to_owned();

    // Any host reads and writes it, without a way to the authority.
    let desk = stado(fleet, "desk");
    let shown = desk(&["registry", "self", "--json"]).ok().json();
    assert_eq!(
        (shown["registry"]["source"].as_str(), shown["registry"]["location"].as_str()),
        (Some("store"), Some(location))
    );
    desk(&["registry", "set", "--path", "channels.notes", "--value", "from the desk"]).ok();
    let consumer = ["service", "directory", "consumer", "add", "orders", "billing"];
    assert!(desk(&consumer).ok().stdout.contains("generation=2"));
    desk(&["registry", "host", "add", "extra", "--ssh", "ops@192.0.2.9", "--release-platform", "linux-amd64"]).ok();
    desk(&["registry", "validate"]).ok();
    desk(&["service", "directory", "show"]).ok();
    let twice = desk(&["registry", "import", "registry-to-push.json"]);
    assert_eq!(twice.code, 1, "{}", twice.stderr);

    // Who read an old version is told with 75, and nothing is written.
    let authority = stado(fleet, "authority");
    let late =
        authority(&["registry", "push", "registry-to-push.json", "--force", "--if-generation", &first, "--json"]);
    let late = late.exits(75);
    let receipt = late.json();
    assert_eq!(
        (receipt["state"].as_str(), receipt["expected_generation"].as_str()),
        (Some("conflict"), Some(first.as_str()))
    );
    let now = authority(&["registry", "pull", "--generation-only"]).ok().stdout.trim().to_owned();
    assert_eq!(receipt["actual_generation"], now.as_str());
    let notes = authority(&["registry", "pull", "--path", "channels.notes"]).ok();
    assert_eq!(notes.stdout.trim(), "from the desk");

    // Who wrote what is remembered there, and can be put back.
    let history = authority(&["registry", "history", "--json"]).ok().json();
    let writers: Vec<&str> =
        history["versions"].as_array().unwrap().iter().map(|v| v["writer"]["host"].as_str().unwrap()).collect();
    assert_eq!(writers, ["desk", "desk", "desk", "authority"], "{history}");
    let differs = authority(&["registry", "diff"]).ok();
    assert!(differs.stdout.contains("extra"), "{}", differs.stdout);
    authority(&["registry", "rollback"]).ok();
    let hosts = authority(&["registry", "host", "show", "extra"]);
    assert_eq!(hosts.code, 1, "{}", hosts.stdout);
}

/// Many edits at once from both hosts are all there.
fn crowd(fleet: &mut Fleet, prefix: &str) {
    let children: Vec<_> = (0..8)
        .map(|n| {
            let name = format!("{prefix}{n}");
            let args = ["service", "directory", "consumer", "add", "orders", &name];
            fleet.hosts[n % 2].home.command(STADO, &args).spawn().unwrap()
        })
        .collect();
    for mut child in children {
        assert!(child.wait().unwrap().success());
    }
    let stored = stado(fleet, "desk")(&["registry", "pull", "--path", "service_directory.services.orders.consumers"]);
    let stored = stored.ok().json();
    assert!((0..8).all(|n| stored.get(format!("{prefix}{n}")).is_some()), "{stored}");
}

#[test]
fn hosts_that_share_an_etcd_read_and_write_it_and_hear_of_each_others_changes_at_once() {
    needs!("etcd");
    let etcd = Etcd::start(1);
    let mut fleet = hosts(&json!({"url": etcd.url("prod?timeout=2s")}));
    // Long enough that no test waits for it: what is heard of was told.
    fleet.refresh_every(3600);
    story(&mut fleet, "etcd:/prod/registry.json");
    fleet.host("authority").serve();
    fleet.host("authority").ready();
    wait_until("changes are told", PATIENCE, || fleet.host("authority").published()["changes"] == "watched");
    crowd(&mut fleet, "app");
    fleet.host("authority").holds(10);

    etcd.members[0].process().freeze();
    let pull = stado(&fleet, "desk")(&["registry", "pull"]).exits(69);
    assert!(pull.stderr.contains("registry store unreachable (etcd:/prod/registry.json): "), "{}", pull.stderr);
    // Verbs that do nothing but read answer from this host's copy.
    let shown = stado(&fleet, "desk")(&["service", "directory", "endpoint", "orders", "--json"]).ok();
    assert_eq!(shown.json()["registry"]["source"], "last-known-good");
    etcd.members[0].process().thaw();
    wait_until("etcd answers again", PATIENCE, || stado(&fleet, "desk")(&["registry", "pull"]).code == 0);
    stado(&fleet, "desk")(&["service", "directory", "consumer", "add", "orders", "later"]).ok();
    fleet.host("authority").holds(11);
    fleet.host("authority").stop();
}

#[test]
fn hosts_that_share_a_bucket_read_and_write_it_and_no_key_shows_itself() {
    let bucket = Emulator::start();
    let storage = json!({"url": bucket.url("prod", "&timeout=2s"), "s3": {"credentials_file": "~/.stado/keys"}});
    let mut fleet = hosts(&storage);
    story(&mut fleet, "s3://fleet/prod/registry.json");
    assert!(bucket.keys().iter().all(|key| key.starts_with("prod/") && !key.contains("probe")), "{:?}", bucket.keys());
    fleet.host("authority").serve();
    fleet.host("authority").ready();
    crowd(&mut fleet, "app");
    fleet.host("authority").holds(10);

    // The answer to a write is lost, and the write is not: it is told as done, after reading back, and made once.
    bucket.expect([Fault::CutAfter]);
    stado(&fleet, "desk")(&["registry", "set", "--path", "channels.notes", "--value", "answered late"]).ok();
    // It is lost before it was made: told as not written.
    bucket.expect([Fault::CutBefore]);
    let lost = stado(&fleet, "desk")(&["registry", "set", "--path", "channels.notes", "--value", "never"]).exits(69);
    assert!(lost.stderr.contains("nothing was written"), "{}", lost.stderr);
    let notes = stado(&fleet, "desk")(&["registry", "pull", "--path", "channels.notes"]).ok();
    assert_eq!(notes.stdout.trim(), "answered late");

    let daemon = fleet.host("authority").daemon();
    let shown = ["cmdline", "environ"].map(|file| std::fs::read(format!("/proc/{}/{file}", daemon.pid())).unwrap());
    let log = daemon.log();
    let state = fleet.host("authority").home.read(".stado/resolver-state.json");
    let shown = shown.map(|bytes| String::from_utf8_lossy(&bytes).into_owned());
    assert!(shown.iter().chain([&log, &state]).all(|text| !text.contains(SECRET)));
    fleet.host("authority").stop();
}

#[test]
fn hosts_share_a_bucket_of_a_server_that_others_made() {
    needs!("s3-server");
    let server = S3Server::start();
    let storage = json!({"url": server.url("prod", ""), "s3": {"credentials_file": "~/.stado/keys"}});
    let mut fleet = hosts(&storage);
    story(&mut fleet, "s3://fleet/prod/registry.json");
    fleet.host("authority").serve();
    fleet.host("authority").ready();
    crowd(&mut fleet, "app");
    fleet.host("authority").holds(10);
    fleet.host("authority").stop();
}

#[test]
fn a_bucket_that_keeps_no_conditions_is_refused_by_writers_and_by_the_daemon() {
    let bucket = Emulator::start();
    bucket.manner(crate::support::s3::Manner::IgnoresMatch);
    let storage = json!({"url": bucket.url("prod", ""), "s3": {"credentials_file": "~/.stado/keys"}});
    let mut fleet = hosts(&storage);
    let refused = fleet.push("authority").exits(1);
    let why = "the store at s3://fleet/prod/registry.json cannot keep the registry: it let a write through";
    assert!(refused.stderr.contains(why), "{}", refused.stderr);
    assert!(bucket.keys().is_empty(), "{:?}", bucket.keys());
    fleet.host("authority").serve();
    wait_until("the daemon refuses it", PATIENCE, || {
        let state = fleet.host("authority").published();
        state["reason"].as_str().is_some_and(|reason| reason.contains(why))
    });
    fleet.host("authority").stop();
}

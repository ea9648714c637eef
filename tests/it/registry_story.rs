//! The registry over real sshd, with three hosts in networks of their own: every verb from a host that is not the
//! authority, and many writers at once.
use crate::support::fleet::Fleet;
use crate::support::home::Home;
use crate::support::process::Run;
use serde_json::{Value, json};
use std::thread;

const HOSTS: [&str; 3] = ["authority", "worker", "workstation"];

/// A fleet without daemons: its registry is on the authority, and the others hold a first copy.
fn fleet() -> Fleet {
    let mut fleet = Fleet::on_networks(&HOSTS);
    fleet.service("orders", "worker", "tcp", 5432, "shop");
    fleet.adapter("workstation", "orders", "shop");
    fleet.push("authority").ok();
    fleet.copies();
    fleet
}

fn home<'f>(fleet: &'f mut Fleet, name: &str) -> &'f Home {
    &fleet.host(name).home
}

fn generation(home: &Home) -> String {
    home.stado(&["registry", "pull", "--generation-only"]).ok().stdout.trim().to_owned()
}

fn document(home: &Home) -> Value {
    serde_json::from_str(&home.stado(&["registry", "pull"]).ok().stdout).unwrap()
}

#[test]
fn every_reading_verb_answers_on_a_host_that_is_not_the_authority() {
    needs!("netns", "sshd");
    let mut fleet = fleet();
    let stored = generation(home(&mut fleet, "authority"));
    for name in ["worker", "workstation"] {
        let home = home(&mut fleet, name);
        let says = |args: &[&str]| home.stado(args).ok().stdout;
        assert_eq!(generation(home), stored, "the same store version everywhere");
        assert_eq!(says(&["registry", "validate"]), "valid registry: authority:registry.json\n");
        assert!(says(&["registry", "self"]).starts_with(&format!("{name}\tlocal\t")));
        assert_eq!(says(&["registry", "pull", "--path", "channels.notes"]), "kept through every write\n");
        let receipt: Value = home.stado(&["registry", "pull", "--with-generation"]).ok().json();
        assert_eq!((&receipt["generation"], &receipt["location"]), (&json!(stored), &json!("authority:registry.json")));
        assert!(
            says(&["registry", "host", "show", "worker"])
                .starts_with("worker  kind=local release_platform=linux-amd64\n")
        );
        assert!(says(&["registry", "host", "path", "list", "worker"]).starts_with("primary\t"));
        assert!(
            says(&["registry", "doctor"]).starts_with("registry authority:registry.json agrees with live host state")
        );
        assert!(says(&["service", "directory", "show"]).starts_with("orders  active_host=worker\n"));
        assert_eq!(says(&["service", "directory", "profiles", "--json"]), "[]\n");
        let endpoint =
            home.stado(&["service", "directory", "endpoint", "orders", "--target", "worker", "--json"]).ok().json();
        assert_eq!(endpoint["url"], "tcp://127.0.0.1:5432");
        let from = &endpoint["registry"];
        assert_eq!((&from["source"], &from["generation"]), (&json!("authority"), &json!(stored)), "{endpoint}");
        assert!(from["age_seconds"].as_u64().unwrap() < 60, "{from}");
        let bind = home.stado(&["service", "directory", "bind", "orders", "--target", "worker", "--json"]).ok().json();
        let peers = json!(["workstation"]);
        assert_eq!((&bind["bind_address"], &bind["encrypted_peers"]), (&json!("127.0.0.1:5432"), &peers));
        assert_eq!(
            says(&["service", "directory", "bind", "orders", "--target", "worker"]),
            "bind_address=127.0.0.1:5432\nencrypted_peers=workstation\n"
        );
        let connect = ["service", "directory", "connect", "orders", "--target", "workstation", "--no-verify", "--json"];
        assert_eq!(home.stado(&connect).ok().json()["placed_on"], "worker");
        let resolved = ["resolver", "resolve", "stado://service/orders", "--consumer", "shop"];
        assert_eq!(says(&resolved), "stado://service/orders generation=1 capabilities=\n");
        home.stado(&["service", "directory", "publish", "--json"]).ok();
    }
}

#[test]
fn every_writing_verb_works_from_there_and_is_remembered_and_can_be_put_back() {
    needs!("netns", "sshd");
    let mut fleet = fleet();
    let first = document(home(&mut fleet, "authority"));
    let desk = home(&mut fleet, "workstation");
    let says = |args: &[&str]| desk.stado(args).ok().stdout;
    let set = desk.stado(&["registry", "set", "--path", "channels.notes", "--value", "changed", "--json"]).ok().json();
    assert_eq!((&set["state"], &set["previous"]), (&json!("set"), &json!("kept through every write")), "{set}");
    assert_eq!(generation(desk), set["generation"].as_str().unwrap());
    let again =
        desk.stado(&["registry", "set", "--path", "channels.notes", "--value", "changed", "--json"]).ok().json();
    assert_eq!((&again["state"], &again["generation"]), (&json!("unchanged"), &Value::Null));

    let add = ["registry", "host", "add", "spare", "--ssh", "ops@spare.local", "--release-platform", "linux-amd64"];
    assert!(
        says(&add)
            .starts_with("added spare (kind=local, release_platform=linux-amd64, ssh=ops@spare.local) -> authority:")
    );
    let twice = desk.stado(&add).exits(1);
    assert!(
        twice.stderr.contains("spare is already declared in authority:registry.json (kind=local)"),
        "{}",
        twice.stderr
    );
    let path = ["registry", "host", "path", "set", "spare", "lan", "--ssh", "ops@spare2.local"];
    assert!(says(&path).starts_with("set spare connection path lan -> ops@spare2.local; generation="));
    assert_eq!(says(&path), "spare: lan already points to ops@spare2.local\n");
    assert_eq!(
        says(&["registry", "host", "path", "list", "spare"]),
        "primary\tops@spare.local\nlan\tops@spare2.local\n"
    );
    says(&["registry", "host", "path", "remove", "spare", "lan"]);
    assert!(
        says(&["registry", "host", "remove", "spare"])
            .starts_with("removed spare -> authority:registry.json generation=")
    );

    let add = [
        "service",
        "directory",
        "consumer",
        "add",
        "orders",
        "till",
        "--capability",
        "read",
        "--target",
        "workstation",
    ];
    assert_eq!(says(&add), "declared till on orders generation=2\n");
    let remove = desk.stado(&["service", "directory", "consumer", "remove", "orders", "till", "--json"]).ok().json();
    assert_eq!(
        (&remove["generation"], remove["bindings_removed"].as_array().unwrap().len()),
        (&json!(3), 1),
        "{remove}"
    );

    let founded =
        desk.stado(&["registry", "import", desk.write("new.json", first.to_string()).to_str().unwrap()]).exits(1);
    assert!(founded.stderr.contains("holds a registry already"), "{}", founded.stderr);

    // Who moved it, and put it back.
    let address = fleet.host("workstation").address.to_string();
    let desk = home(&mut fleet, "workstation");
    let history = desk.stado(&["registry", "history", "--json"]).ok().json();
    let versions = history["versions"].as_array().unwrap();
    assert_eq!(versions.len(), 8, "{history}");
    assert_eq!(versions[0]["writer"]["host"], "authority", "the host that took the write");
    assert_eq!(versions[0]["writer"]["from"], address.as_str(), "the host that sent it");
    assert!(
        desk.stado(&["registry", "history", "--limit", "1"])
            .ok()
            .stdout
            .contains(&format!("from workstation ({address})"))
    );
    let oldest = versions[7]["version"].as_str().unwrap().to_owned();
    let diff = desk.stado(&["registry", "diff", &oldest[..12]]).ok().stdout;
    assert!(diff.contains("~ channels.notes: \"kept through every write\" -> \"changed\"\n"), "{diff}");
    let back = desk.stado(&["registry", "rollback", &oldest[..12], "--json"]).ok().json();
    assert_eq!((&back["restored"], &back["directory_generation"]), (&json!(oldest), &json!(4)), "{back}");
    let mut expected = first;
    expected["service_directory"]["generation"] = json!(4);
    for name in HOSTS {
        assert_eq!(document(home(&mut fleet, name)), expected, "{name} reads old content under a new generation");
    }
}

/// Pushes at the same moment from both hosts, each conditional on the same generation.
fn race(fleet: &mut Fleet, expected: &str, writers: usize) -> Vec<Run> {
    let files: Vec<_> = (0..writers)
        .map(|n| {
            let mut document = fleet.registry.clone();
            document["channels"]["notes"] = json!(format!("writer {n} on {expected}"));
            let home = home(fleet, HOSTS[1 + n % 2]);
            home.write(&format!("push-{n}.json"), document.to_string())
        })
        .collect();
    let fleet = &*fleet;
    thread::scope(|scope| {
        let push = |(n, file): (usize, &std::path::PathBuf)| {
            let home = &fleet.hosts[1 + n % 2].home;
            let args = ["registry", "push", file.to_str().unwrap(), "--if-generation", expected, "--json"];
            home.stado(&args)
        };
        let running: Vec<_> = files.iter().enumerate().map(|each| scope.spawn(move || push(each))).collect();
        running.into_iter().map(|push| push.join().unwrap()).collect()
    })
}

#[test]
fn of_pushes_at_once_exactly_one_wins_and_the_others_exit_75_with_both_generations() {
    needs!("netns", "sshd");
    let mut fleet = fleet();
    for _ in 0..3 {
        let before = generation(home(&mut fleet, "authority"));
        let runs = race(&mut fleet, &before, 6);
        let after = generation(home(&mut fleet, "authority"));
        let winners: Vec<_> = runs.iter().filter(|run| run.code == 0).collect();
        assert_eq!(winners.len(), 1, "{:?}", runs.iter().map(|r| (r.code, &r.stderr)).collect::<Vec<_>>());
        assert_eq!(winners[0].json()["generation"], after.as_str());
        assert_eq!(winners[0].json()["replaced"], before.as_str());
        for lost in runs.iter().filter(|run| run.code != 0) {
            assert_eq!(lost.code, 75, "{}", lost.stderr);
            let receipt = lost.json();
            assert_eq!(receipt["state"], "conflict");
            assert_eq!(
                (&receipt["expected_generation"], &receipt["actual_generation"]),
                (&json!(before), &json!(after))
            );
            assert!(lost.stderr.contains(&format!("it is conditional on generation {before} and ")), "{}", lost.stderr);
        }
    }
}

#[test]
fn edits_at_once_from_every_host_lose_nothing() {
    needs!("netns", "sshd");
    let fleet = fleet();
    thread::scope(|scope| {
        for (n, host) in (0..6).zip(fleet.hosts.iter().cycle()) {
            scope.spawn(move || {
                host.home.stado(&["service", "directory", "consumer", "add", "orders", &format!("c{n}")]).ok();
            });
        }
    });
    let stored = document(&fleet.hosts[0].home);
    let directory = &stored["service_directory"];
    assert_eq!(directory["generation"], 7, "one generation an edit");
    let consumers = directory["services"]["orders"]["consumers"].as_object().unwrap();
    assert_eq!(consumers.len(), 7, "{consumers:?}");
}

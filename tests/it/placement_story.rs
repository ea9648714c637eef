//! A service with state moves between two hosts under a client that keeps its address; what is refused, and what goes back.
use crate::support::notes::{Notes, parsed};
use crate::support::tcp::Client;
use crate::support::{PATIENCE, wait_until};
use serde_json::{Value, json};
use std::net::TcpListener;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

const HOSTS: [&str; 4] = ["authority", "a", "b", "workstation"];

/// Adds without a pause over one connection, and over the next when that one ends: every answer, and how often an
/// established connection was lost.
fn keep_adding(port: u16, stop: &AtomicBool) -> (Vec<(String, u64)>, usize) {
    let (mut answers, mut lost) = (Vec::new(), 0);
    while !stop.load(Relaxed) {
        let Ok(mut client) = Client::connect(("127.0.0.1", port)) else { break };
        let before = answers.len();
        while !stop.load(Relaxed)
            && let Some(answer) = client.ask("add")
        {
            answers.extend(parsed(&answer));
            std::thread::sleep(std::time::Duration::from_millis(5));
        }
        if answers.len() > before && !stop.load(Relaxed) {
            lost += 1;
        }
        std::thread::sleep(std::time::Duration::from_millis(5));
    }
    (answers, lost)
}

#[test]
fn a_service_moves_with_its_state_and_its_client_reconnects_once_to_the_same_address() {
    needs!("sshd", "python3");
    let mut notes = Notes::start(&HOSTS);
    let (adapter, stop) = (notes.adapter, AtomicBool::new(false));
    let before = notes.registry()["service_directory"]["generation"].as_u64().unwrap();
    assert_eq!(notes.add(), ("a".into(), 1));
    let (moved, (answers, lost)) = std::thread::scope(|scope| {
        let client = scope.spawn(|| keep_adding(adapter, &stop));
        // From a host that is not the authority, which runs it there.
        let moved = notes.placement("workstation", &["move", "notes", "--to-host", "b", "--json"]).ok().json();
        wait_until("the client is served by the new host", PATIENCE, || {
            notes.home("b").read("notes/data/count").parse().unwrap_or(0)
                > notes.home("a").read("notes/data/count").parse().unwrap_or(0) + 20
        });
        stop.store(true, Relaxed);
        (moved, client.join().unwrap())
    });
    assert_eq!(moved["status"], "moved", "{moved}");
    let generation = notes.fleet.hosts[0].home.stado(&["registry", "pull", "--generation-only"]).ok().stdout;
    let id = moved["transaction_id"].as_str().unwrap().to_owned();
    assert_eq!(
        moved,
        json!({"status": "moved", "transaction_id": id, "profile": "notebook", "from_host": "a", "to_host": "b",
               "registry_generation": generation.trim()})
    );
    assert_eq!(lost, 1, "one reconnect");
    let first_on_b = answers.iter().position(|(host, _)| host == "b").unwrap();
    assert!(first_on_b > 0 && answers[first_on_b..].iter().all(|(host, _)| host == "b"));
    for two in answers.windows(2) {
        // The request that the stop cut off may have been counted before its answer was lost.
        let most = if two[0].0 == two[1].0 { 1 } else { 2 };
        assert!((1..=most).contains(&(two[1].1 - two[0].1)), "{two:?}");
    }
    let registry = notes.registry();
    assert_eq!(registry["service_directory"]["generation"], before + 1, "once");
    assert_eq!(registry["channels"]["notes"], "kept through every write");
    let count = notes.add().1;
    notes.is_wholly_on("b", count);
    assert_eq!(notes.home("a").read("notes/token"), "secret", "the source's state is kept");

    let again = ["move", "notes", "--to-host", "b", "--json"];
    let already = json!({"status": "already_placed", "profile": "notebook", "host": "b"});
    assert_eq!(notes.placement("authority", &again).ok().json(), already);
    let text = notes.placement("workstation", &["move", "notes", "--to-host", "b"]).ok().stdout;
    assert_eq!(text, "notebook is already placed on b\n");

    // And home again: what was left there gives way to what is newer, and a file that is gone is gone.
    std::fs::remove_file(notes.home("b").file("notes/token")).unwrap();
    let text = notes.placement("authority", &["move", "notes", "--to-host", "a"]).ok().stdout;
    assert!(text.starts_with("moved notebook from b to a generation="), "{text}");
    assert!(!notes.home("a").file("notes/token").exists());
    notes.home("a").write("notes/token", "secret");
    notes.is_wholly_on("a", count + 1);
    notes.fleet.host("workstation").stop();
}

#[test]
fn evict_moves_to_the_next_host_and_stops_what_runs_where_it_is_not_placed() {
    needs!("sshd", "python3");
    // The source is the authority itself: its scripts run in a shell of its own.
    let notes = Notes::start(&["a", "b", "workstation"]);
    assert_eq!(notes.add(), ("a".into(), 1));
    let evicted = notes.placement("workstation", &["evict", "notes", "--host", "a", "--json"]).ok().json();
    assert_eq!((&evicted["status"], &evicted["to_host"]), (&json!("moved"), &json!("b")), "{evicted}");
    notes.is_wholly_on("b", 1);
    let again = notes.placement("a", &["evict", "notes", "--host", "a", "--json"]).ok().json();
    assert_eq!(again, json!({"status": "already_placed", "profile": "notebook", "host": "b"}));
    // Somebody starts it by hand where it is not placed.
    notes.boot("a");
    let stopped = notes.placement("workstation", &["evict", "notes", "--host", "a", "--json"]).ok().json();
    assert_eq!(
        stopped,
        json!({"status": "evicted", "profile": "notebook", "host": "a", "stopped": ["notes"], "active_host": "b"})
    );
    notes.is_wholly_on("b", 2);
    let back = notes.placement("a", &["evict", "notes", "--host", "b"]).ok().stdout;
    assert!(back.starts_with("moved notebook from b to a generation="), "{back}");
    notes.is_wholly_on("a", 3);
    // Nowhere to go: something else listens where the service would.
    let _taken = TcpListener::bind(("127.0.0.1", notes.port("b"))).unwrap();
    let stays = notes.placement("a", &["evict", "notes", "--host", "a"]).exits(1);
    let url = format!("http://127.0.0.1:{}/health", notes.port("b"));
    for sentence in [
        format!("notebook cannot go to b: preflight on b: something listens at {url} already"),
        format!("Error: preflight on b: something listens at {url} already"),
    ] {
        assert!(stays.stderr.contains(&sentence), "{sentence:?} is not in {}", stays.stderr);
    }
    notes.is_wholly_on("a", 4);
}

#[test]
fn what_cannot_be_moved_is_refused_before_anything_is_touched() {
    needs!("sshd", "python3");
    let mut notes = Notes::start(&HOSTS);
    let at_work = notes.pid("a");
    let refused = |notes: &Notes, args: &[&str], code: i32, sentence: &str| {
        let run = notes.placement("authority", args).exits(code);
        assert!(run.stderr.starts_with(&format!("Error: {sentence}")), "{}", run.stderr);
        assert_eq!((run.stdout.as_str(), notes.pid("a")), ("", at_work), "nothing was touched");
        assert_eq!(notes.placed(), "a");
    };
    refused(&notes, &["move", "nothing", "--to-host", "b"], 1, "no placement profile matches services nothing\n");
    refused(&notes, &["move", "notes", "x", "--to-host", "b"], 1, "no placement profile matches services notes, x\n");
    refused(&notes, &["evict", "x", "--host", "a"], 1, "no placement profile matches services x\n");
    let sentence = "placement profile \"notebook\" has no host \"workstation\"; it may run on a, b\n";
    refused(&notes, &["move", "notes", "--to-host", "workstation"], 1, sentence);
    refused(&notes, &["evict", "notes", "--host", "workstation"], 1, sentence);
    notes.placement("authority", &["move", "notes"]).exits(2);
    // From elsewhere the authority's own words come first, then how it ended.
    let far = notes.placement("workstation", &["move", "x", "--to-host", "b"]).exits(1);
    let (first, last) =
        ("Error: no placement profile matches services x\n", "Error: registry authority placement exited with 1\n");
    assert!(far.stderr.starts_with(first) && far.stderr.contains(last), "{}", far.stderr);

    // Preflight: nothing is stopped, and the claim is gone again.
    let goes_back = "; notebook is back on a and the claim is released\n";
    let preflight = |notes: &Notes, why: &str| {
        let sentence = format!("preflight on {why}{goes_back}");
        refused(notes, &["move", "notes", "--to-host", "b"], 1, &sentence);
        assert_eq!(notes.registry().get("placement_transactions"), None);
    };
    let (data, away) = (notes.home("a").file("notes/data"), notes.home("a").file("notes/away"));
    std::fs::rename(&data, &away).unwrap();
    preflight(&notes, "a: required state ~/notes/data is missing");
    std::fs::write(&data, "").unwrap();
    preflight(&notes, "a: ~/notes/data is not a directory");
    std::fs::remove_file(&data).unwrap();
    std::fs::rename(&away, &data).unwrap();
    notes.home("b").write("notes/data/count", "7");
    notes.boot("b");
    preflight(&notes, "b: notes already runs here");
    notes.placement("authority", &["evict", "notes", "--host", "b"]).ok();

    // Another transaction is active, whoever made it.
    let mut held = notes.registry();
    let id = "67e55044-10b1-426f-9247-bb680e5fe0c8";
    held["placement_transactions"] = json!([{"id": id, "profile": "notebook", "from_host": "a", "to_host": "b", "started_at": "2026-08-20T10:00:00Z"}]);
    notes.fleet.host("authority").push_stdin(&held, &[]).ok();
    let sentence = format!("another placement transaction is active: {id}\n");
    refused(&notes, &["move", "notes", "--to-host", "b"], 1, &sentence);
    refused(&notes, &["evict", "notes", "--host", "a"], 1, &sentence);
    wait_until("its services are refused meanwhile", PATIENCE, || notes.try_add().is_none());
    let status = notes.placement("workstation", &["status"]).ok().stdout;
    assert!(
        status.starts_with(&format!("notebook: a -> b  transaction={id} started=2026-08-20T10:00:00Z step=-\n")),
        "{status}"
    );
    assert!(status.contains("this host has no record of it"), "{status}");
    let undone = notes.placement("workstation", &["recover"]).ok().stdout;
    assert_eq!(undone, format!("undone: notebook is on a, transaction {id}\n"));
    assert_eq!(notes.placement("authority", &["recover", "--json"]).ok().json(), json!({"recovered": []}));
    // How many additions came through before the refusal was seen is not this test's business.
    let count = notes.home("a").read("notes/data/count").parse().unwrap();
    notes.is_wholly_on("a", count);
}

#[test]
fn a_step_that_fails_on_the_way_takes_everything_back() {
    needs!("sshd", "python3");
    let mut notes = Notes::start(&HOSTS);
    assert_eq!(notes.add(), ("a".into(), 1));
    notes.home("b").write("notes/data/count", "1000");
    notes.home("b").write("notes/token", "an older one");
    let fails = |notes: &Notes, why: &str| {
        let run = notes.placement("workstation", &["move", "notes", "--to-host", "b", "--json"]);
        assert!(run.code == 1 && run.stdout.is_empty(), "{} {}", run.code, run.stderr);
        assert!(run.stderr.contains(why), "{why:?} is not in {}", run.stderr);
        assert!(run.stderr.contains("; notebook is back on a and the claim is released\n"), "{}", run.stderr);
        // What was at the destination before is there again.
        let b = notes.home("b");
        assert_eq!((b.read("notes/data/count").as_str(), b.read("notes/token").as_str()), ("1000", "an older one"));
    };
    // A probe that does not succeed: the service comes up, and is sick.
    notes.home("b").write("sick", "");
    notes.fleet.registry = notes.registry();
    notes.fleet.registry["placement_profiles"][0]["hosts"]["b"]["probes"][0]["seconds"] = json!(10);
    notes.fleet.push("authority").ok();
    let url = format!("http://127.0.0.1:{}/health", notes.port("b"));
    fails(&notes, &format!("Error: notes does not answer at {url} on b within 10s: it answered HTTP 503"));
    notes.is_wholly_on("a", 1);

    // A service that cannot be started there, with its own last words.
    let unit = &mut notes.fleet.registry["placement_profiles"][0]["hosts"]["b"]["units"]["notes"];
    let good = std::mem::replace(&mut unit["start"], json!("echo 'no such thing here'; false"));
    notes.fleet.push("authority").ok();
    fails(&notes, "Error: starting on b: no such thing here; notes could not be started");
    notes.is_wholly_on("a", 2);

    notes.fleet.registry["placement_profiles"][0]["hosts"]["b"]["units"]["notes"]["start"] = good;
    notes.fleet.push("authority").ok();
    std::fs::remove_file(notes.home("b").file("sick")).unwrap();

    // The registry moves under the claim: the commit is conditional on the claim's generation, and nothing else.
    notes.home("b").write("hold-start", "");
    let run = std::thread::scope(|scope| {
        let run = scope.spawn(|| notes.placement("authority", &["move", "notes", "--to-host", "b"]));
        wait_until("the start is under way", PATIENCE, || notes.home("b").file("held-start").exists());
        notes.home("authority").stado(&["registry", "set", "--path", "channels.notes", "--value", "meanwhile"]).ok();
        std::fs::remove_file(notes.home("b").file("hold-start")).unwrap();
        run.join().unwrap().exits(75)
    });
    assert!(
        run.stderr.starts_with("Error: registry write refused: it is conditional on generation "),
        "{}",
        run.stderr
    );
    assert!(run.stderr.contains("; notebook is back on a and the claim is released\n"), "{}", run.stderr);
    notes.is_wholly_on("a", 3);
    assert_eq!(notes.registry()["channels"]["notes"], "meanwhile");
    let moved: Value = notes.placement("authority", &["move", "notes", "--to-host", "b", "--json"]).ok().json();
    assert_eq!(moved["status"], "moved");
    notes.is_wholly_on("b", 4);
}

//! Power cuts: the mover, the services and every command on their hosts are killed at each step of a move. What is left is
//! explained, withholds the service from clients, and is brought to an end by one command.
use crate::support::notes::Notes;
use crate::support::process::{Process, signal_pid};
use crate::support::strace::killed_at;
use crate::support::{PATIENCE, wait_until};
use rustix::process::Signal;
use serde_json::{Value, json};
use std::collections::BTreeSet;

const HOSTS: [&str; 4] = ["authority", "a", "b", "workstation"];

fn other(host: &str) -> &'static str {
    if host == "a" { "b" } else { "a" }
}

/// After a cut: the status says what the registry says, clients are refused, and recover ends it. Where the service is then,
/// and at which step it was cut.
fn recovered(notes: &Notes, from: &str, what: &str) -> (String, String) {
    let count = |host: &str| notes.home(host).read("notes/data/count").parse::<u64>().unwrap();
    let before = count(from);
    let status = notes.placement("workstation", &["status", "--json"]).ok().json();
    let row = &status["transactions"][0];
    let claimed = notes.registry().get("placement_transactions").is_some();
    if row != &Value::Null {
        eprintln!("{what}: {} {}", row["step"], row["explanation"]);
        assert_eq!((row["active"].as_bool(), &row["mover_pid"]), (Some(claimed), &Value::Null), "{what}: {status}");
        let explanation = row["explanation"].as_str().unwrap();
        assert!(explanation.contains("`stado placement recover`"), "{what}: {explanation}");
    }
    if claimed {
        assert_eq!(notes.try_add(), None, "{what}: nobody is served meanwhile");
        let refused = notes.placement("authority", &["move", "notes", "--to-host", other(from)]).exits(1);
        assert!(refused.stderr.starts_with("Error: another placement transaction is active: "), "{}", refused.stderr);
    }
    let recovered = notes.placement("workstation", &["recover", "--json"]).ok().json();
    let placed = notes.placed();
    let end = if placed == from { "restored" } else { "moved" };
    assert!(row == &Value::Null || recovered["recovered"][0]["status"] == end, "{what}: {recovered}");
    if notes.pid(&placed).is_none() {
        // Cut before the claim, or after everything: there was nothing to recover, and it comes up with its host.
        notes.boot(&placed);
    }
    notes.is_wholly_on(&placed, before);
    (placed, row["step"].as_str().unwrap_or("none").to_owned())
}

#[test]
fn power_cut_between_any_two_steps_is_explained_and_recovered() {
    needs!("sshd", "python3", "strace");
    let mut notes = Notes::start(&HOSTS);
    assert_eq!(notes.add(), ("a".into(), 1));
    let (mut at, mut steps, mut ends) = ("a".to_owned(), BTreeSet::new(), Vec::new());
    // The journal is written before each step, by a rename of its file; then its removal is the last call of all.
    let calls = (1..).map(|n| ("?rename,?renameat,?renameat2", n)).take(9).chain([("?unlink,?unlinkat", 1)]);
    for (class, n) in calls {
        let to = other(&at);
        let args = ["placement", "move", "notes", "--to-host", to];
        if !killed_at(&notes.fleet.hosts[0].home, class, n, &args) {
            at = to.to_owned();
            continue;
        }
        notes.power_cut();
        let (placed, step) = recovered(&notes, &at, &format!("killed at call {n} of {class}, {at} -> {to}"));
        steps.insert(step);
        ends.push(placed != at);
        at = placed;
    }
    let every =
        ["claim", "commit", "copy-state", "preflight", "retire-source", "routing", "start-destination", "stop-source"];
    assert!(every.iter().all(|step| steps.contains(*step)), "{steps:?}");
    assert!(ends.contains(&true) && ends.contains(&false), "{ends:?}");
}

/// A move from the authority, cut when `reached` says so.
fn cut_when(notes: &mut Notes, to: &str, reached: impl Fn(&Notes) -> bool) {
    let home = notes.home("authority");
    let mut mover: Process =
        home.start("mover", crate::support::home::STADO, &["placement", "move", "notes", "--to-host", to]);
    wait_until("the step is reached", PATIENCE, || {
        assert!(mover.ended().is_none(), "it ended before: {}", mover.log());
        reached(notes)
    });
    signal_pid(mover.pid(), Signal::KILL);
    mover.wait();
    notes.power_cut();
}

#[test]
fn power_cut_in_the_middle_of_a_stop_a_copy_or_a_start_is_recovered() {
    needs!("sshd", "python3");
    let mut notes = Notes::start(&HOSTS);
    assert_eq!(notes.add(), ("a".into(), 1));
    let hold = |notes: &Notes, host: &str, verb: &str| drop(notes.home(host).write(&format!("hold-{verb}"), ""));
    let let_go = |notes: &Notes, host: &str, verb: &str| {
        for file in [format!("hold-{verb}"), format!("held-{verb}")] {
            std::fs::remove_file(notes.home(host).file(&file)).unwrap();
        }
    };
    let held = |notes: &Notes, host: &str, verb: &str| notes.home(host).file(&format!("held-{verb}")).exists();

    hold(&notes, "a", "stop");
    cut_when(&mut notes, "b", |notes| held(notes, "a", "stop"));
    let_go(&notes, "a", "stop");
    assert_eq!(recovered(&notes, "a", "while stopping"), ("a".into(), "stop-source".into()));

    notes.home("a").write("notes/data/large", vec![7; 64 << 20]);
    cut_when(&mut notes, "b", |notes| {
        let beside = std::fs::read_dir(notes.home("b").file("notes")).into_iter().flatten().flatten();
        beside.into_iter().any(|entry| entry.file_name().to_string_lossy().ends_with(".part"))
    });
    assert_eq!(recovered(&notes, "a", "while copying"), ("a".into(), "copy-state".into()));
    std::fs::remove_file(notes.home("a").file("notes/data/large")).unwrap();

    hold(&notes, "b", "start");
    cut_when(&mut notes, "b", |notes| held(notes, "b", "start"));
    let_go(&notes, "b", "start");
    assert_eq!(recovered(&notes, "a", "while starting"), ("a".into(), "start-destination".into()));
    assert!(!notes.home("b").file("notes/data").exists(), "there was none before");
}

#[test]
fn power_cut_at_each_step_of_the_way_back_is_recovered_again() {
    needs!("sshd", "python3", "strace");
    let mut notes = Notes::start(&HOSTS);
    assert_eq!(notes.add(), ("a".into(), 1));
    // Cut where all has to be undone: the copies, the routes, what was started, what was stopped.
    notes.home("b").write("hold-start", "");
    cut_when(&mut notes, "b", |notes| notes.home("b").file("held-start").exists());
    std::fs::remove_file(notes.home("b").file("hold-start")).unwrap();
    let (mut cuts, mut ended) = (0, false);
    for n in 1..20 {
        let class = "?rename,?renameat,?renameat2";
        if !killed_at(&notes.fleet.hosts[0].home, class, n, &["placement", "recover"]) {
            ended = true;
            break;
        }
        cuts += 1;
        notes.power_cut();
        let status = notes.placement("workstation", &["status", "--json"]).ok().json();
        let row = &status["transactions"][0];
        if row["active"] == true {
            assert!(row["explanation"].as_str().unwrap().contains("`stado placement recover`"), "rename {n}: {status}");
            assert_eq!(notes.try_add(), None, "rename {n}: nobody is served meanwhile");
        }
    }
    assert!(ended && cuts >= 2, "{cuts} cuts");
    if notes.pid("a").is_none() {
        // The last cut came behind its start.
        notes.boot("a");
    }
    notes.is_wholly_on("a", 1);
}

#[test]
fn a_mover_that_dies_alone_leaves_commands_at_work_and_recover_waits_for_them() {
    needs!("sshd", "python3");
    let notes = Notes::start(&HOSTS);
    assert_eq!(notes.add(), ("a".into(), 1));
    notes.home("b").write("hold-start", "");
    let home = notes.home("authority");
    let mut mover = home.start("mover", crate::support::home::STADO, &["placement", "move", "notes", "--to-host", "b"]);
    wait_until("the start is held", PATIENCE, || notes.home("b").file("held-start").exists());
    let status = notes.placement("workstation", &["status"]).ok().stdout;
    assert!(status.contains(&format!("process {} is at work on it", mover.pid())), "{status}");
    let busy = notes.placement("workstation", &["recover"]).exits(1);
    assert!(busy.stderr.contains("is at work on it on this host"), "{}", busy.stderr);
    signal_pid(mover.pid(), Signal::KILL);
    mover.wait();
    // The command on b goes on without its mover, and would start the service beside the one on a.
    let recovered = std::thread::scope(|scope| {
        let recover = scope.spawn(|| notes.placement("authority", &["recover", "--json"]).ok().json());
        wait_until("recover is on its way back", PATIENCE, || {
            let journal = std::fs::read_dir(notes.home("authority").file(".stado/placement")).unwrap().flatten();
            let mut entries = journal.map(|e| std::fs::read_to_string(e.path()).unwrap_or_default());
            entries.any(|text| text.contains("\"back\": true"))
        });
        std::fs::remove_file(notes.home("b").file("hold-start")).unwrap();
        recover.join().unwrap()
    });
    assert_eq!(recovered["recovered"][0]["status"], "restored", "{recovered}");
    notes.is_wholly_on("a", 1);
}

#[test]
fn a_destination_that_is_gone_for_good_can_be_left_out() {
    needs!("sshd", "python3");
    let mut notes = Notes::start(&HOSTS);
    assert_eq!(notes.add(), ("a".into(), 1));
    notes.home("b").write("hold-start", "");
    cut_when(&mut notes, "b", |notes| notes.home("b").file("held-start").exists());
    notes.fleet.host("b").sshd.as_mut().unwrap().down();
    let stuck = notes.placement("authority", &["recover"]);
    assert_eq!(stuck.code, 69, "{}", stuck.stderr);
    assert!(
        stuck.stderr.starts_with("Error: stopping on b: no registry SSH connection path answered (primary: "),
        "{}",
        stuck.stderr
    );
    assert!(stuck.stderr.contains("`stado placement status` explains it"), "{}", stuck.stderr);
    assert!(notes.pid("a").is_none(), "it may still run on b");
    let without = notes.placement("authority", &["recover", "--without", "b"]).ok();
    assert!(without.stdout.starts_with("undone: notebook is on a"), "{}", without.stdout);
    notes.is_wholly_on("a", 1);
}

#[test]
fn an_interrupted_move_ends_the_step_at_work_and_goes_back() {
    needs!("sshd", "python3");
    let notes = Notes::start(&HOSTS);
    assert_eq!(notes.add(), ("a".into(), 1));
    notes.home("b").write("hold-start", "");
    let home = notes.home("authority");
    let mut mover = home.start("mover", crate::support::home::STADO, &["placement", "move", "notes", "--to-host", "b"]);
    wait_until("the start is held", PATIENCE, || notes.home("b").file("held-start").exists());
    mover.signal(Signal::INT);
    std::fs::remove_file(notes.home("b").file("hold-start")).unwrap();
    assert_eq!(mover.wait().code(), Some(1), "{}", mover.log());
    let said = "Error: stopped by a signal before retire-source; notebook is back on a and the claim is released\n";
    assert!(mover.log().contains(said), "{}", mover.log());
    notes.is_wholly_on("a", 1);
}

#[test]
fn a_claim_without_a_record_names_no_step_and_can_be_released_where_its_source_stays_down() {
    needs!("sshd", "python3");
    let mut notes = Notes::prepare(&HOSTS);
    notes.fleet.registry["placement_profiles"][0]["hosts"]["a"]["probes"][0]["seconds"] = json!(1);
    notes.fleet.registry["placement_transactions"] = json!([{
        "id": "67e55044-10b1-426f-9247-bb680e5fe0c8", "profile": "notebook", "from_host": "a", "to_host": "b",
        "started_at": "2026-08-20T10:00:00Z"
    }]);
    notes.fleet.push("authority").ok();
    std::fs::remove_file(notes.home("a").file("notes.py")).unwrap();
    let stuck = notes.placement("authority", &["recover"]).exits(1);
    assert!(stuck.stderr.contains("notes does not answer at http://127.0.0.1:"), "{}", stuck.stderr);
    let status = notes.placement("authority", &["status", "--json"]).ok().json();
    let row = &status["transactions"][0];
    assert_eq!((&row["step"], &row["back"]), (&Value::Null, &json!(true)), "{row}");
    let told = row["explanation"].as_str().unwrap();
    assert!(told.contains("no record of its steps") && told.contains("notes does not answer at"), "{told}");
    assert!(notes.placement("authority", &["status"]).ok().stdout.contains(" step=-\n"));
    let ended = notes.placement("authority", &["recover", "--leave-down", "--json"]).ok();
    assert_eq!(ended.json()["recovered"][0]["status"], "restored", "{}", ended.stdout);
    assert!(ended.stderr.contains("the services do not come up on a: "), "{}", ended.stderr);
    assert_eq!(notes.registry().get("placement_transactions"), None);
    assert!(notes.pid("b").is_none());
}

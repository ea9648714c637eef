//! Verbs that are killed at every call by which they change a file: afterwards the old content is there or the new, the
//! same verb works, and nothing that was there before is lost.
use crate::support::fleet::Fleet;
use crate::support::home::Home;
use crate::support::strace::at_each_call;
use serde_json::{Value, json};
use std::path::Path;

const STORE: &str = ".stado/local-storage";

fn fleet() -> Fleet {
    let mut fleet = Fleet::on_loopback_without_sshd(&["authority"]);
    fleet.service("orders", "authority", "tcp", 5432, "shop");
    fleet
}

/// The registry with another note, in a file of the home.
fn document(fleet: &Fleet, notes: &str) -> (String, String) {
    let mut document = fleet.registry.clone();
    document["channels"]["notes"] = json!(notes);
    let text = document.to_string();
    let file = fleet.hosts[0].home.write(&format!("{notes}.json"), &text);
    (file.to_str().unwrap().to_owned(), text)
}

/// Every file below a directory that is not a temporary one of a killed writer is JSON, a lock, or a version of the history.
fn whole(dir: &Path, what: &str) {
    for entry in std::fs::read_dir(dir).into_iter().flatten().flatten() {
        let (path, name) = (entry.path(), entry.file_name().to_string_lossy().into_owned());
        if path.is_dir() {
            whole(&path, what);
        } else if name.ends_with(".json") && !name.starts_with('.') {
            let text = std::fs::read_to_string(&path).unwrap();
            assert!(serde_json::from_str::<Value>(&text).is_ok(), "{what}: {}: {text:?}", path.display());
        }
    }
}

/// The versions that `registry history` lists, newest first.
fn versions(home: &Home) -> Vec<String> {
    let history = home.stado(&["registry", "history", "--json"]).ok().json();
    let versions = history["versions"].as_array().unwrap().iter();
    versions.map(|v| v["version"].as_str().unwrap().to_owned()).collect()
}

#[test]
fn a_push_killed_at_any_call_leaves_the_old_registry_or_the_new_one() {
    needs!("strace");
    let fleet = fleet();
    let home = &fleet.hosts[0].home;
    let ((old_file, old), (new_file, new)) = (document(&fleet, "old"), document(&fleet, "new"));
    let push = |file: &str| home.stado(&["registry", "push", file, "--force"]).ok();
    push(&old_file);
    let found_new = std::cell::Cell::new(0);
    let after = |what: &str| {
        whole(&home.file(".stado"), what);
        let held = home.read(&format!("{STORE}/registry.json"));
        assert!(held == old || held == new, "{what}: {held:?}");
        found_new.set(found_new.get() + u32::from(held == new));
        push(&new_file);
        assert_eq!(home.read(&format!("{STORE}/registry.json")), new, "{what}: the next push");
        let generation = home.stado(&["registry", "pull", "--generation-only"]).ok().stdout;
        assert_eq!(versions(home)[0], generation.trim(), "{what}: the history knows what is there");
    };
    let kills = at_each_call(home, &["registry", "push", &new_file, "--force"], || drop(push(&old_file)), after);
    eprintln!("{kills} kills, after {} of them the new one was there", found_new.get());
    assert!(kills > 10 && (1..kills).contains(&(found_new.get() as usize)), "{kills} {}", found_new.get());
}

#[test]
fn a_first_push_killed_at_any_call_leaves_no_registry_or_a_whole_one() {
    needs!("strace");
    let fleet = fleet();
    let home = &fleet.hosts[0].home;
    let (file, text) = document(&fleet, "first");
    let args = ["registry", "push", &file];
    let fresh = || {
        let _ = std::fs::remove_dir_all(home.file(STORE));
    };
    let after = |what: &str| {
        whole(&home.file(".stado"), what);
        let held = home.read(&format!("{STORE}/registry.json"));
        assert!(held.is_empty() || held == text, "{what}: {held:?}");
        home.stado(&[&args[..], &["--force"]].concat()).ok();
        assert_eq!(home.read(&format!("{STORE}/registry.json")), text, "{what}");
    };
    let kills = at_each_call(home, &args, fresh, after);
    assert!(kills > 10, "{kills}");
}

#[test]
fn a_publish_killed_at_any_call_leaves_no_marker_or_a_whole_one() {
    needs!("strace");
    let mut fleet = fleet();
    fleet.push("authority").ok();
    let home = &fleet.hosts[0].home;
    let marker = ".stado/forwards/orders.local";
    for old in ["", "tcp://127.0.0.1:1\n"] {
        let before = || {
            let _ = std::fs::remove_dir_all(home.file(".stado/forwards"));
            if !old.is_empty() {
                home.write(marker, old);
            }
        };
        let publish = ["service", "directory", "publish"];
        let after = |what: &str| {
            let held = home.read(marker);
            assert!(held == old || held == "tcp://127.0.0.1:5432\n", "{what}: {held:?}");
            home.stado(&publish).ok();
            assert_eq!(home.read(marker), "tcp://127.0.0.1:5432\n", "{what}");
        };
        assert!(at_each_call(home, &publish, before, after) > 3);
    }
}

#[test]
fn a_first_copy_killed_at_any_call_is_none_half_or_whole_and_is_told_apart() {
    needs!("strace", "sshd");
    let mut fleet = Fleet::on_loopback(&["authority", "workstation"]);
    fleet.service("orders", "authority", "tcp", 5432, "shop");
    fleet.push("authority").ok();
    let from = fleet.hosts[0].sshd.as_ref().unwrap().destination();
    let command = fleet.registry["service_directory"]["authority"]["command"].as_str().unwrap().to_owned();
    let desk = &fleet.hosts[1].home;
    let pull = ["registry", "pull", "--from", &from, "--command", &command];
    let fresh = || {
        let _ = std::fs::remove_dir_all(desk.file(".stado/cache"));
    };
    let after = |what: &str| {
        whole(&desk.file(".stado"), what);
        let run = desk.stado(&["service", "directory", "endpoint", "orders", "--target", "authority"]);
        let said = match run.code {
            // Complete: the authority is asked.
            0 => run.stdout.contains("tcp://127.0.0.1:5432"),
            // None: this host's own store is empty. Half: it is said.
            _ => {
                run.stderr.contains("no registry document at local:registry.json")
                    || run.stderr.contains("is not used: ")
            }
        };
        assert!(said, "{what}: {} {}", run.stdout, run.stderr);
        desk.stado(&pull).ok();
        desk.stado(&["service", "directory", "endpoint", "orders", "--target", "authority"]).ok();
    };
    let kills = at_each_call(desk, &pull, fresh, after);
    assert!(kills > 10, "{kills}");
}

#[test]
fn a_promotion_killed_at_any_call_is_not_made_or_whole_and_is_made_once() {
    needs!("strace");
    let mut fleet = Fleet::on_loopback_without_sshd(&["tower", "desk"]);
    fleet.service("orders", "tower", "tcp", 5432, "shop");
    fleet.registry["succession"] = json!({"standbys": ["desk"]});
    let (text, desk) = (fleet.registry.to_string(), &fleet.hosts[1].home);
    let meta = json!({"read_at": "2026-11-30T20:00:00Z", "generation": "first"}).to_string();
    let promote = ["registry", "promote", "--from-copy", "--json"];
    let fresh = || {
        let _ = std::fs::remove_dir_all(desk.file(STORE));
        desk.write(".stado/cache/registry-last-good.json", &text);
        desk.write(".stado/cache/registry-last-good.meta.json", &meta);
    };
    let after = |what: &str| {
        whole(&desk.file(".stado"), what);
        let held = desk.read(&format!("{STORE}/registry.json"));
        let done = desk.stado(&promote).ok().json();
        assert_eq!(done["epoch"], 1, "{what}");
        assert_eq!(done["state"] == "already", !held.is_empty(), "{what}: {done}");
        let authority = desk.stado(&["registry", "pull", "--path", "service_directory.authority.target"]).ok();
        assert_eq!(authority.stdout.trim(), "desk", "{what}");
    };
    let kills = at_each_call(desk, &promote, fresh, after);
    assert!(kills > 10, "{kills}");
}

//! The network itself goes at a step of a write, without a word to either end: whatever the step, what the writer is told is
//! what happened, and the store is whole.
use crate::support::fleet::Fleet;
use crate::support::home::STADO;
use crate::support::process::Run;
use crate::support::{PATIENCE, wait_until};
use serde_json::Value;

const AUTHORITY: usize = 0;

/// Three hosts, the first of which holds a write at the step that `<home>/cut` names, until `<home>/reached` is removed.
fn fleet() -> Fleet {
    let mut fleet = Fleet::on_networks(&["authority", "worker", "workstation"]);
    let home = &fleet.hosts[AUTHORITY].home;
    let script = format!(
        "#!/bin/sh\n\
         mode=$(cat '{home}/cut' 2>/dev/null)\n\
         hold() {{ rm '{home}/cut'; : >'{home}/reached'; while [ -e '{home}/reached' ]; do sleep 0.05; done; }}\n\
         case \"$mode:$1 $2\" in\n\
         'before-swap:registry push') cat >/dev/null; hold; exit 1 ;;\n\
         'after-swap:registry push') answer=$('{STADO}' \"$@\"); hold; echo \"$answer\"; exit 0 ;;\n\
         'before-read-back:registry push') echo reading-back >'{home}/cut' ;;\n\
         'reading-back:resolver snapshot') hold ;;\n\
         esac\n\
         exec '{STADO}' \"$@\"\n",
        home = home.path().display()
    );
    fleet.registry["service_directory"]["authority"]["command"] = home.program("bin/stado", &script).into();
    fleet.service("orders", "worker", "tcp", 5432, "shop");
    fleet.push("authority").ok();
    fleet.copies();
    fleet
}

/// A write from the workstation whose network goes at `step`; `short`: and is back before anybody gives up.
fn cut_at(fleet: &Fleet, step: &str, short: bool) -> Run {
    let (home, network) = (&fleet.hosts[AUTHORITY].home, fleet.network.as_ref().unwrap());
    home.write("cut", step);
    let reached = home.file("reached");
    let run = std::thread::scope(|scope| {
        let desk = &fleet.hosts[2].home;
        let write = scope.spawn(|| desk.stado(&["registry", "set", "--path", "channels.notes", "--value", step]));
        wait_until(step, PATIENCE, || reached.exists());
        network.cut(AUTHORITY);
        std::fs::remove_file(&reached).unwrap();
        if short {
            network.restore(AUTHORITY);
        }
        write.join().unwrap()
    });
    if !short {
        network.restore(AUTHORITY);
    }
    run
}

/// What is stored, after the workstation has read it as everybody reads.
fn notes(fleet: &Fleet) -> String {
    let stored: Value =
        serde_json::from_str(&fleet.hosts[AUTHORITY].home.read(".stado/local-storage/registry.json")).unwrap();
    let read = fleet.hosts[2].home.stado(&["registry", "pull"]).ok().json();
    assert_eq!(read, stored);
    stored["channels"]["notes"].as_str().unwrap().to_owned()
}

#[test]
fn a_network_that_is_gone_before_a_write_is_told_as_nothing_written() {
    needs!("netns", "sshd");
    let fleet = fleet();
    fleet.network.as_ref().unwrap().cut(AUTHORITY);
    let run = fleet.hosts[2].home.stado(&["registry", "set", "--path", "channels.notes", "--value", "x"]).exits(69);
    let sentence = "Error: registry write through authority authority: no SSH connection path answered (primary: ";
    assert!(run.stderr.contains(sentence), "{}", run.stderr);
    fleet.network.as_ref().unwrap().restore(AUTHORITY);
    assert_eq!(notes(&fleet), "kept through every write");
}

/// The end of a write that cannot be told: it says so, and what to do.
fn is_open(run: Run) {
    let run = run.exits(1);
    for part in [
        "Error: registry write at authority:registry.json is unconfirmed: registry write through authority authority: ",
        "; it could not be read back: ",
        "It may have been written: read the registry before writing again",
    ] {
        assert!(run.stderr.contains(part), "{part:?} is not in {}", run.stderr);
    }
}

#[test]
fn a_network_that_goes_before_the_swap_leaves_the_end_open_and_the_old_registry() {
    needs!("netns", "sshd");
    let fleet = fleet();
    is_open(cut_at(&fleet, "before-swap", false));
    assert_eq!(notes(&fleet), "kept through every write");
}

#[test]
fn a_network_that_goes_after_the_swap_leaves_the_end_open_and_the_new_registry() {
    needs!("netns", "sshd");
    let fleet = fleet();
    is_open(cut_at(&fleet, "after-swap", false));
    assert_eq!(notes(&fleet), "after-swap");
}

#[test]
fn a_network_that_goes_before_the_read_back_leaves_a_write_unconfirmed() {
    needs!("netns", "sshd");
    let fleet = fleet();
    let run = cut_at(&fleet, "before-read-back", false).exits(1);
    let sentence = "Error: registry write of generation ";
    let why = " at authority:registry.json is unconfirmed: it could not be read back: ";
    assert!(run.stderr.contains(sentence) && run.stderr.contains(why), "{}", run.stderr);
    assert_eq!(notes(&fleet), "before-read-back");
}

#[test]
fn a_network_that_is_back_in_time_costs_a_write_nothing() {
    needs!("netns", "sshd");
    let fleet = fleet();
    for step in ["after-swap", "before-read-back"] {
        let run = cut_at(&fleet, step, true).ok();
        assert!(run.stdout.starts_with("set channels.notes -> authority:registry.json generation="), "{}", run.stdout);
        assert_eq!(notes(&fleet), step);
    }
}

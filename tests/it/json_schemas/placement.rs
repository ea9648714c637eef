//! A service that moves, is evicted, is cut on its way and brought to an end.
use super::samples::Samples;
use crate::support::home::STADO;
use crate::support::notes::Notes;
use crate::support::{PATIENCE, wait_until};

pub const SHOWN: &[&str] = &[
    "placement-evict",
    "placement-move",
    "placement-recover",
    "placement-status",
    "service-directory-profiles",
    "service-directory-show",
];

#[test]
fn what_the_verbs_of_placement_print_is_what_their_schemas_say() {
    needs!("python3-jsonschema", "sshd", "python3");
    let notes = Notes::start(&["a", "b", "workstation"]);
    let (home, far) = (notes.home("a"), notes.home("workstation"));
    let mut all = Samples::default();
    all.stado(home, 0, "service directory profiles --json");
    all.stado(home, 0, "service directory show --json");
    all.stado(home, 0, "placement status --json");
    all.stado(home, 0, "placement recover --json");
    all.stado(far, 0, "placement move notes --to-host b --json");
    all.stado(home, 0, "placement move notes --to-host b --json");
    all.stado(home, 0, "placement evict notes --host a --json");
    // Somebody starts it by hand where it is not placed.
    notes.boot("a");
    all.stado(home, 0, "placement evict notes --host a --json");
    all.stado(home, 0, "placement evict notes --host b --json");

    // Cut while the destination starts it.
    notes.home("b").write("hold-start", "");
    let mover = home.start("mover", STADO, &["placement", "move", "notes", "--to-host", "b"]);
    wait_until("it is started there", PATIENCE, || notes.home("b").file("held-start").exists());
    all.stado(home, 0, "placement status --json");
    mover.kill9();
    all.stado(far, 0, "placement status --json");
    std::fs::remove_file(notes.home("b").file("hold-start")).unwrap();
    let ended = all.stado(home, 0, "placement recover --json");
    assert_eq!(ended["recovered"].as_array().map(Vec::len), Some(1), "{ended}");
    all.hold(home, SHOWN);
}

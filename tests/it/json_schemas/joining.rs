//! A fleet from nothing, and out of it again.
use super::samples::Samples;
use crate::joining_story::Machine;
use crate::support::sshd::Sshd;

pub const SHOWN: &[&str] = &["fleet-init", "fleet-invitations", "fleet-join", "fleet-leave"];

#[test]
fn what_the_verbs_of_joining_print_is_what_their_schemas_say() {
    needs!("python3-jsonschema");
    let (tower, laptop, thief) = (Machine::new(), Machine::new(), Machine::new());
    let mut all = Samples::default();
    all.stado(&tower.home, 0, "fleet invitations --json");
    let gate = tower.gate(9);
    let init = format!("fleet init --name tower --address {gate} --gate {gate} --json");
    all.stado(&tower.home, 0, &init);
    all.stado(&tower.home, 0, &init);
    let (only, withdrawn) = (tower.invite(&["--name", "laptop"]), tower.invite(&[]));
    let line = "fleet join --json";
    all.ran(line, &laptop.join("laptop", &only, &["--no-start"]).ok());
    all.ran(line, &laptop.join("laptop", "", &["--no-start"]).ok());
    thief.join("thief", &only, &["--no-start"]).exits(1);
    let listed = all.stado(&tower.home, 0, "fleet invitations --json");
    let id = listed["invitations"][1]["id"].as_str().unwrap().to_owned();
    tower.home.stado(&["fleet", "invitations", "--withdraw", &id]).ok();
    assert!(!withdrawn.is_empty());
    let listed = all.stado(&tower.home, 0, "fleet invitations --json");
    assert_eq!(listed["invitations"][1]["state"], "withdrawn", "{listed}");
    all.stado(&laptop.home, 0, "fleet leave --json");
    all.stado(&laptop.home, 0, "fleet leave --json");
    all.hold(&tower.home, SHOWN);
}

#[test]
fn what_init_prints_of_a_host_behind_its_sshd_is_what_the_schema_says() {
    needs!("python3-jsonschema", "sshd");
    let tower = Machine::new();
    let sshd = Sshd::start(&tower.home, "127.0.7.31".parse().unwrap());
    let (at, keys) = (sshd.destination(), tower.home.file("sshd/authorized_keys"));
    let mut all = Samples::default();
    let line =
        format!("fleet init --name tower --sshd --authorized-keys {} --address {at} --no-start --json", keys.display());
    all.stado(&tower.home, 0, &line);
    all.hold(&tower.home, &["fleet-init"]);
}

//! The authority dies, its standby is promoted, the others follow; the one that died comes back and follows too. Three hosts,
//! real sshd, the built programs.
use crate::support::fleet::Fleet;
use crate::support::tcp::{ask, serve};
use crate::support::{PATIENCE, wait_until};
use serde_json::{Value, json};
use std::net::TcpListener;

const STORE: &str = ".stado/local-storage/registry.json";

fn echo(word: &str) -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    serve(listener, word);
    port
}

fn authority(fleet: &mut Fleet, host: &str) -> String {
    let pull = ["registry", "pull", "--path", "service_directory.authority.target"];
    fleet.host(host).home.stado(&pull).ok().stdout.trim().to_owned()
}

fn note(fleet: &mut Fleet, host: &str, text: &str) -> crate::support::process::Run {
    fleet.host(host).home.stado(&["registry", "set", "--path", "channels.notes", "--value", text])
}

#[test]
fn a_standby_is_promoted_the_fleet_follows_and_the_old_authority_is_refused_until_it_does_too() {
    needs!("sshd");
    let mut fleet = Fleet::on_loopback(&["tower", "desk", "laptop"]);
    fleet.service("orders", "desk", "tcp", echo("orders"), "shop");
    let orders = fleet.adapter("laptop", "orders", "shop");
    fleet.registry["succession"] = json!({"standbys": ["desk"]});
    fleet.up();
    note(&mut fleet, "laptop", "before").ok();
    let remembered = |fleet: &mut Fleet| {
        let history = fleet.host("desk").home.stado(&["registry", "history", "--here", "--json"]).ok().json();
        history["versions"].as_array().unwrap().len()
    };
    wait_until("the standby holds every version", PATIENCE, || remembered(&mut fleet) == 2);
    // While the authority answers, nobody has to say anything special; it is not done here.
    assert_eq!(fleet.host("desk").home.read(STORE), "");

    // The tower loses its power.
    let old = fleet.host("tower").home.read(STORE);
    fleet.host("tower").kill9();
    fleet.host("tower").sshd.as_mut().unwrap().down();
    let unsaid = fleet.host("desk").home.stado(&["registry", "promote"]).exits(69);
    assert!(unsaid.stderr.contains("stado registry promote --from-copy"), "{}", unsaid.stderr);
    let promoted = fleet.host("desk").home.stado(&["registry", "promote", "--from-copy", "--json"]).ok().json();
    assert_eq!((promoted["state"].as_str(), promoted["epoch"].as_u64()), (Some("promoted"), Some(1)));
    assert_eq!((&promoted["before"]["target"], &promoted["before"]["told"]), (&json!("tower"), &json!(false)));
    let generation = promoted["directory_generation"].as_u64().unwrap();

    // Every daemon follows by itself, and writes go to the new authority.
    for host in ["desk", "laptop"] {
        fleet.host(host).holds(generation);
    }
    assert_eq!(authority(&mut fleet, "laptop"), "desk");
    let status = fleet.host("laptop").status().1;
    assert_eq!((&status["epoch"], &status["authority"]["epoch"]), (&json!(1), &json!(1)), "{status}");
    note(&mut fleet, "laptop", "after").ok();
    let consumer = ["service", "directory", "consumer", "add", "orders", "billing"];
    fleet.host("laptop").home.stado(&consumer).ok();
    fleet.host("laptop").holds(generation + 1);
    assert_eq!(ask(("127.0.0.1", orders), "1").as_deref(), Some("orders:1"), "the route never cared");

    // What the old authority held comes back on the new one's disk: nobody takes it.
    let now = fleet.host("desk").home.read(STORE);
    fleet.host("desk").home.write(STORE, &old);
    for host in ["desk", "laptop"] {
        wait_until("the old registry is refused", PATIENCE, || {
            let state = fleet.host(host).published();
            let reason = state["reason"].as_str().unwrap_or_default();
            let both =
                reason.contains("authority epoch 0 rejected") && reason.contains("authority epoch 1 (desk since ");
            both && reason.contains("it follows desk") && state["generation"] == generation + 1
        });
    }
    fleet.host("desk").home.write(STORE, &now);
    for host in ["desk", "laptop"] {
        wait_until("and the new one is read again", PATIENCE, || fleet.host(host).published()["state"] == "serving");
    }

    // The tower is back, and nobody has told it yet: its first write finds out, and is not made.
    let late = note(&mut fleet, "tower", "late").exits(1);
    for words in ["authority epoch 0, and desk was promoted in its place (authority epoch 1)", "Nothing was written"] {
        assert!(late.stderr.contains(words), "{}", late.stderr);
    }
    assert_eq!(authority(&mut fleet, "desk"), "desk");
    let kept: Value = serde_json::from_str(&fleet.host("desk").home.read(STORE)).unwrap();
    assert_eq!(kept["channels"]["notes"], "after");
    // From then on it follows: the same write again is made on the new authority.
    note(&mut fleet, "tower", "again").ok();
    let kept: Value = serde_json::from_str(&fleet.host("desk").home.read(STORE)).unwrap();
    assert_eq!(kept["channels"]["notes"], "again");
    let tower = fleet.host("tower");
    tower.sshd.as_mut().unwrap().up(&tower.home);
    tower.serve();
    tower.ready();
    tower.holds(generation + 1);

    // And back again, with both of them there: no copy, no word, no write lost.
    let back = fleet.host("tower").home.stado(&["registry", "promote", "--json"]).ok().json();
    assert_eq!((back["epoch"].as_u64(), &back["before"]["told"]), (Some(2), &json!(true)));
    for host in ["tower", "desk", "laptop"] {
        fleet.host(host).holds(generation + 2);
        assert_eq!(authority(&mut fleet, host), "tower");
    }
    for host in ["tower", "desk", "laptop"] {
        fleet.host(host).stop();
    }
}

#[test]
fn an_old_authority_whose_daemon_starts_first_follows_without_a_word_from_anybody() {
    needs!("sshd");
    let mut fleet = Fleet::on_loopback(&["tower", "desk"]);
    fleet.service("orders", "desk", "tcp", echo("orders"), "shop");
    fleet.registry["succession"] = json!({"standbys": ["desk"]});
    fleet.push("tower").ok();
    fleet.copies();
    fleet.host("tower").sshd.as_mut().unwrap().down();
    let promoted = fleet.host("desk").home.stado(&["registry", "promote", "--from-copy", "--json"]).ok().json();
    // No daemon runs on desk, and nobody can log in to the tower: only its own look can tell it.
    fleet.host("tower").serve();
    fleet.host("tower").holds(promoted["directory_generation"].as_u64().unwrap());
    let said = "desk was promoted in the place of tower (authority epoch 1) while this host was away";
    fleet.host("tower").daemon().expect(said);
    assert_eq!(authority(&mut fleet, "tower"), "desk");
    fleet.host("tower").stop();
}

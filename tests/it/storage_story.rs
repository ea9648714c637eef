//! `stado storage serve`: the store of one host, used by another through the object API and by its own commands.
use crate::support::fleet::Fleet;
use crate::support::home::STADO;
use crate::support::process::run;
use crate::support::{PATIENCE, wait_for};
use serde_json::{Value, json};
use std::process::Command;

const TOKEN: &str = "the-token-of-probierz";

#[test]
fn one_store_is_used_through_the_object_api_and_by_its_own_host() {
    let mut fleet = Fleet::on_loopback_without_sshd(&["authority", "workstation"]);
    fleet.service("orders", "authority", "tcp", 5432, "shop");
    // Nobody logs in to the workstation, and both would be at one address.
    fleet.registry["targets"][1]["ssh"] = Value::Null;
    let home = &fleet.hosts[0].home;
    home.write(".stado/object-token", TOKEN);
    let actions = json!(["get", "put", "stat"]);
    let policies = json!([{"prefix": "registry.json", "actions": actions}]);
    let namespaces = json!({"probierz": {"token_file": "~/.stado/object-token", "prefix_policies": policies}});
    home.write(".stado/config.json", json!({"object_api": {"namespaces": namespaces}}).to_string());
    let refused = home.stado(&["storage", "serve"]).exits(2);
    assert!(refused.stderr.contains("--bind 127.0.0.1:PORT, or object_api.bind"), "{}", refused.stderr);
    let refused = home.stado(&["storage", "serve", "--bind", "0.0.0.0:0"]).exits(1);
    assert!(refused.stderr.contains("must bind a loopback address"), "{}", refused.stderr);
    let server = home.start("storage", STADO, &["storage", "serve", "--bind", "127.0.0.1:0"]);
    let url = wait_for("the object API says where it is", PATIENCE, || {
        let log = server.log();
        Some(log.split_once("object API at ")?.1.split_once(' ')?.0.to_owned())
    });

    // The other host founds the registry through the API; the host itself reads and writes the same file.
    let desk = &fleet.hosts[1].home;
    desk.write(".stado/storage-token", TOKEN);
    let stado = json!({"url": url, "token_file": "~/.stado/storage-token"});
    desk.write(".stado/config.json", json!({"storage": {"backend": "stado", "stado": stado}}).to_string());
    let receipt = fleet.push("workstation").ok().json();
    assert_eq!(receipt["location"], "stado://probierz/registry.json");
    let (home, desk) = (&fleet.hosts[0].home, &fleet.hosts[1].home);
    let generation = home.stado(&["registry", "pull", "--generation-only"]).ok().stdout;
    assert_eq!(generation.trim(), receipt["generation"].as_str().unwrap());
    home.stado(&["registry", "set", "--path", "channels.notes", "--value", "from the host itself"]).ok();
    let _ = std::fs::remove_dir_all(desk.file(".stado/cache"));
    let notes = desk.stado(&["registry", "pull", "--path", "channels.notes"]).ok().stdout;
    assert_eq!(notes, "from the host itself\n");
    let history = home.stado(&["registry", "history", "--json"]).ok().json();
    assert_eq!(history["versions"].as_array().unwrap().len(), 2, "{history}");
    assert!(home.file(".stado/local-storage/ecosystem/probierz/registry.json").exists());

    // Nobody learns the token: it is in no log and no process list.
    assert!(!server.log().contains(TOKEN));
    let arguments = std::fs::read_to_string(format!("/proc/{}/cmdline", server.pid())).unwrap();
    assert!(!arguments.contains(TOKEN));
    assert!(server.stop().success());
}

#[test]
fn an_object_api_answers_a_client_that_is_not_ours() {
    needs!("curl");
    let fleet = Fleet::on_loopback_without_sshd(&["authority"]);
    let home = &fleet.hosts[0].home;
    home.write(".stado/object-token", TOKEN);
    let policies = json!([{"prefix": "", "actions": ["get", "put", "list", "stat", "delete"]}]);
    let namespaces = json!({"notes": {"token_file": "~/.stado/object-token", "prefix_policies": policies}});
    home.write(
        ".stado/config.json",
        json!({"object_api": {"bind": "127.0.0.1:0", "namespaces": namespaces}}).to_string(),
    );
    let server = home.start("storage", STADO, &["storage", "serve"]);
    let url = wait_for("the object API says where it is", PATIENCE, || {
        let log = server.log();
        Some(log.split_once("object API at ")?.1.split_once(' ')?.0.to_owned())
    });
    let body = home.write("body", "x".repeat(3_000_000));
    // The token comes from a file, as it should.
    let header = home.write("header", format!("Authorization: Bearer {TOKEN}\n"));
    let curl = |args: &[&str]| {
        let header = format!("@{}", header.display());
        run(Command::new("curl").args(["-sS", "--fail-with-body", "-H", &header]).args(args))
    };
    let object = format!("{url}/api/object?uri=stado://notes/a");
    let stored: Value = curl(&["-T", body.to_str().unwrap(), &object]).ok().json();
    assert_eq!(stored["state"], "stored", "{stored}");
    assert_eq!(curl(&["-r", "0-9", &object]).ok().stdout, "xxxxxxxxxx");
    assert_eq!(curl(&[&object]).ok().stdout.len(), 3_000_000);
    let list = curl(&[&format!("{url}/api/object/list?namespace=notes&prefix=")]).ok().json();
    assert_eq!(list["objects"][0]["size"], 3_000_000, "{list}");
    let wrong = run(Command::new("curl").args(["-sS", "-H", "Authorization: Bearer nobody", &object]));
    assert_eq!(wrong.stdout, r#"{"error":"unauthorized"}"#);
    curl(&["-X", "DELETE", &object]).ok();
    assert!(server.stop().success());
}

//! The registry of one host, from none to one that was put back.
use super::samples::Samples;
use crate::support::fleet::Fleet;
use crate::support::home::Home;
use crate::support::tcp::echo;
use serde_json::json;

pub const SHOWN: &[&str] = &[
    "registry-beacon-age",
    "registry-diff",
    "registry-doctor",
    "registry-history",
    "registry-holders",
    "registry-host-add",
    "registry-host-path-list",
    "registry-host-path-remove",
    "registry-host-path-set",
    "registry-host-remove",
    "registry-host-show",
    "registry-import",
    "registry-promote",
    "registry-push",
    "registry-rollback",
    "registry-self",
    "registry-set",
    "registry-validate",
    "resolver-api-reassign",
];

#[test]
fn what_the_verbs_of_the_registry_print_is_what_their_schemas_say() {
    needs!("python3-jsonschema");
    let mut all = Samples::default();
    let mut fleet = Fleet::on_loopback_without_sshd(&["authority", "other"]);
    fleet.service("echo", "authority", "tcp", echo("x").port(), "shop");
    fleet.adapter("authority", "echo", "shop");
    // Nobody runs it, and this build knows no such key.
    fleet.registry["future"] = json!({"kept": true});
    let pushed = fleet.push("authority").ok();
    all.ran("registry push --json", &pushed);
    written(&mut all, &fleet.host("authority").home);
    checked(&mut all, &mut fleet);
    fleet.host("authority").serve();
    fleet.host("authority").ready();
    let home = &fleet.host("authority").home;
    for line in ["registry holders --json", "registry beacon-age --json"] {
        all.stado(home, 0, line);
    }
    all.stado(home, 0, "resolver api-reassign --target authority --json");
    all.stado(home, 0, "registry promote --json");
    all.hold(home, SHOWN);
}

fn written(all: &mut Samples, home: &Home) {
    all.stado(home, 0, "registry push registry-to-push.json --force --json");
    let conflict = all.stado(home, 75, "registry push registry-to-push.json --if-generation other --json");
    assert_eq!(conflict["state"], "conflict");
    let set = "registry set --path channels.notes --value changed --json";
    all.stado(home, 0, set);
    all.stado(home, 0, set);
    all.stado(home, 0, "registry set --path channels.new --value [1] --json");
    all.stado(home, 0, "registry host add spare --ssh ops@spare.local --release-platform linux-amd64 --json");
    let path = "registry host path set spare lan --ssh ops@spare2.local --json";
    all.stado(home, 0, path);
    all.stado(home, 0, path);
    all.stado(home, 0, "registry host path list spare --json");
    all.stado(home, 0, "registry host show spare --json");
    all.stado(home, 0, "registry host show authority --json");
    all.stado(home, 0, "registry host path remove spare lan --json");
    all.stado(home, 0, "registry host remove spare --json");
    all.stado(home, 0, "registry history --json");
    all.stado(home, 0, "registry diff --json");
    let back = all.stado(home, 0, "registry rollback --json");
    assert_eq!(back["state"], "rolled-back");
    let same = all.stado(home, 0, &format!("registry rollback {} --json", back["generation"].as_str().unwrap()));
    assert_eq!(same["state"], "unchanged");

    let new = Home::new();
    let document = home.stado(&["registry", "pull"]).ok().stdout;
    new.write("new.json", document);
    all.stado(&new, 0, "registry import new.json --json");
}

fn checked(all: &mut Samples, fleet: &mut Fleet) {
    let own = fleet.registry["targets"][0]["service_resolver"]["api_bind"].as_str().unwrap().to_owned();
    let home = &fleet.host("authority").home;
    all.stado(home, 0, "registry self --json");
    let valid = all.stado(home, 0, "registry validate --json");
    assert_eq!(valid["valid"], true);
    home.write("bad.json", r#"{"schema_version": 2, "targets": [{"name": "A b"}], "later": 1}"#);
    let invalid = all.stado(home, 1, "registry validate bad.json --json");
    assert!(invalid["findings"].as_array().is_some_and(|all| !all.is_empty()), "{invalid}");
    for line in ["registry holders --json", "registry beacon-age --json"] {
        all.stado(home, 0, line);
    }
    all.stado(home, 0, "registry doctor --json");
    // An endpoint that is an address of the host's own resolver.
    let path = "service_directory.services.echo.endpoints.authority.url";
    home.stado(&["registry", "set", "--path", path, "--value", &format!("tcp://{own}")]).ok();
    all.stado(home, 1, "registry doctor --json");
    home.stado(&["registry", "rollback"]).ok();
}

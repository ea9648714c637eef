//! A host whose store is another host's object API: the authority's snapshot over SSH first, then the store, then the copy,
//! and a line on standard error for each step down.
use crate::support::fleet::Fleet;
use crate::support::home::Home;
use crate::support::object_api::{ObjectApi, TOKEN};
use serde_json::{Value, json};

fn behind(home: &Home, api: &ObjectApi) {
    home.write(".stado/storage-token", TOKEN);
    let url = format!("http://127.0.0.1:{}", api.port);
    let stado = json!({"url": url, "token_file": "~/.stado/storage-token"});
    home.write(".stado/config.json", json!({"storage": {"backend": "stado", "stado": stado}}).to_string());
}

#[test]
fn a_host_without_a_copy_reads_and_writes_the_store() {
    let api = ObjectApi::start();
    let mut fleet = Fleet::on_loopback_without_sshd(&["authority"]);
    let host = fleet.host("authority");
    behind(&host.home, &api);
    let absent = host.home.stado(&["registry", "pull"]).exits(1);
    assert!(absent.stderr.contains("no registry document at stado://probierz/registry.json"), "{}", absent.stderr);
    fleet.service("orders", "authority", "tcp", 5432, "shop");
    let receipt = fleet.push("authority").ok().json();
    assert_eq!(receipt["location"], "stado://probierz/registry.json");
    assert!(receipt.get("replaced").is_none(), "created: {receipt}");
    let home = &fleet.host("authority").home;
    let set = ["registry", "set", "--path", "channels.notes", "--value", "through the API"];
    home.stado(&set).ok();
    let stored: Value = serde_json::from_str(&api.object()).unwrap();
    assert_eq!(stored["channels"]["notes"], "through the API");
    let shown = home.stado(&["registry", "self", "--json"]).ok().json();
    assert_eq!(shown["registry"]["source"], "store", "{shown}");
}

#[test]
fn the_snapshot_comes_first_then_the_store_then_the_copy() {
    needs!("sshd");
    let api = ObjectApi::start();
    let mut fleet = Fleet::on_loopback(&["authority", "workstation"]);
    fleet.service("orders", "authority", "tcp", 5432, "shop");
    fleet.push("authority").ok();
    fleet.copies();
    api.put(&fleet.registry.to_string());
    let desk = &fleet.host("workstation").home;
    behind(desk, &api);
    let endpoint = |fleet: &mut Fleet| {
        let args = ["service", "directory", "endpoint", "orders", "--json"];
        fleet.host("workstation").home.stado(&args)
    };
    let run = endpoint(&mut fleet).ok();
    assert_eq!(run.json()["registry"]["source"], "authority");
    assert!(api.requests().is_empty(), "the store is not asked at all");

    fleet.host("authority").sshd.as_mut().unwrap().down();
    let run = endpoint(&mut fleet).ok();
    assert_eq!(run.json()["registry"]["source"], "store");
    let first = "stado: the registry authority's snapshot could not be read (no registry authority SSH connection path answered";
    let last = "reading the registry store at stado://probierz/registry.json instead";
    assert!(run.stderr.starts_with(first) && run.stderr.trim_end().ends_with(last), "{}", run.stderr);
    assert_eq!(api.requests(), ["GET /api/object?uri=stado%3A%2F%2Fprobierz%2Fregistry.json&versioned=true HTTP/1.1"]);

    // The write needs the authority; that the store would answer changes nothing.
    let set = ["registry", "set", "--path", "channels.notes", "--value", "x"];
    let run = fleet.host("workstation").home.stado(&set).exits(69);
    assert!(
        run.stderr.contains("registry write through authority authority: no SSH connection path answered (primary: "),
        "{}",
        run.stderr
    );
    assert!(api.requests().iter().all(|line| line.starts_with("GET ")), "nothing was put");

    api.close();
    let run = endpoint(&mut fleet).ok();
    assert_eq!(run.json()["registry"]["source"], "last-known-good");
    let cause = r#"because the authority did not answer: Stado object API error HTTP 503: {"error":"object authorization unavailable"}"#;
    assert!(run.stderr.contains(cause), "{}", run.stderr);
}

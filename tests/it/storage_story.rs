//! `stado storage serve`: the store of one host, used by another through the object API and by its own commands.
use crate::support::fleet::Fleet;
use crate::support::home::STADO;
use crate::support::process::run;
use crate::support::python;
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
    let url = server.object_api();

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
    let url = server.object_api();
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

#[test]
fn every_route_and_body_is_as_the_contract_says_to_a_client_in_another_language() {
    needs!("python3");
    let fleet = Fleet::on_loopback_without_sshd(&["authority"]);
    let home = &fleet.hosts[0].home;
    let (token, release) = (home.write(".stado/object-token", TOKEN), home.write(".stado/release-token", "release"));
    let all = json!(["get", "put", "list", "stat", "delete"]);
    let namespaces = json!({
        "probierz": {"token_file": "~/.stado/object-token", "prefix_policies": [{"prefix": "queue/", "actions": all}]},
        "releases": {"token_file": "~/.stado/release-token", "prefix_policies": [{"prefix": "", "actions": all}]}
    });
    home.stado(&["tls", "init"]).ok();
    home.stado(&["tls", "export", "localhost", "--output", "."]).ok();
    home.write("ca.pem", home.stado(&["tls", "export"]).ok().stdout);
    let config = |more: Value| {
        let mut api = json!({"bind": "127.0.0.1:0", "namespaces": namespaces});
        api.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        home.write(".stado/config.json", json!({ "object_api": api }).to_string());
    };
    let files = [token.to_str().unwrap(), release.to_str().unwrap()];
    let judged = |url: &str, more: &[&str]| {
        // A link in the store leads nowhere, and that is no fault of the client's.
        let objects = home.file(".stado/local-storage/ecosystem/probierz/queue");
        std::fs::create_dir_all(&objects).unwrap();
        std::os::unix::fs::symlink(home.path(), objects.join("away")).unwrap();
        let args = ["--url", url, "--token-file", files[0], "--release-token-file", files[1]];
        let args = [&args[..], &["--broken-key", "queue/away/x"]].concat();
        let run = python::client(home, "object_client.py", &[&args[..], more].concat()).ok();
        assert!(run.stdout.ends_with("everything is as the contract says\n"), "{}", run.stdout);
    };

    config(json!({}));
    let server = home.start("plain", STADO, &["storage", "serve"]);
    let url = server.object_api();
    assert!(url.starts_with("http://"), "{url}");
    judged(&url, &[]);
    assert!(server.stop().success());

    // The release of the first run is there for good: another store.
    let _ = std::fs::remove_dir_all(home.file(".stado/local-storage"));
    config(json!({"bind": "0.0.0.0:0", "tls": {"cert_file": "~/localhost.pem", "key_file": "~/localhost-key.pem"}}));
    let server = home.start("tls", STADO, &["storage", "serve"]);
    let url = server.object_api();
    assert!(url.starts_with("https://0.0.0.0:"), "with TLS, beyond loopback: {url}");
    judged(&url.replace("0.0.0.0", "localhost"), &["--ca", "ca.pem"]);
    assert!(server.stop().success());
}

#[test]
fn the_daemon_serves_the_object_api_when_it_is_told_to() {
    let mut fleet = Fleet::on_loopback_without_sshd(&["authority"]);
    fleet.service("orders", "authority", "tcp", 5432, "shop");
    let home = &fleet.hosts[0].home;
    home.write(".stado/object-token", TOKEN);
    let policies = json!([{"prefix": "registry.json", "actions": ["get", "put", "stat"]}]);
    let namespaces = json!({"probierz": {"token_file": "~/.stado/object-token", "prefix_policies": policies}});
    let api = json!({"serve": true, "bind": "127.0.0.1:0", "namespaces": namespaces});
    home.write(".stado/config.json", json!({ "object_api": api }).to_string());
    fleet.push("authority").ok();
    let host = fleet.host("authority");
    host.serve();
    let url = host.ready()["object_api"].as_str().unwrap().to_owned();
    let text = host.home.stado(&["resolver", "status"]).ok().stdout;
    assert!(text.contains(&format!("\nobject-api {url}\n")), "{text}");

    // Another home reads the registry through it, also after the next daemon has taken over.
    let desk = crate::support::home::Home::new();
    desk.write(".stado/storage-token", TOKEN);
    let stado = json!({"url": url, "token_file": "~/.stado/storage-token"});
    desk.write(".stado/config.json", json!({"storage": {"backend": "stado", "stado": stado}}).to_string());
    let pulled = || desk.stado(&["registry", "pull", "--generation-only"]).ok().stdout;
    let before = pulled();
    let mut next = host.home.start("next", STADO, &["resolver", "serve", "--take-over"]);
    next.expect("took over from the daemon");
    next.expect(&format!("object API at {url}"));
    assert_eq!(pulled(), before);
    assert!(host.daemon().wait().success());
    assert_eq!(pulled(), before);

    // A change of the section needs a restart, and a reload says so.
    let api = json!({"serve": false});
    host.home.write(".stado/config.json", json!({ "object_api": api }).to_string());
    next.signal(rustix::process::Signal::HUP);
    next.expect("object_api");
    assert!(!next.log().contains(TOKEN));
    assert!(next.stop().success());
}

//! `stado vault …`, and the object API in front of it: from an empty home to a namespace whose token is in the vault.
use crate::support::home::{Home, STADO};
use crate::support::process::{Process, Run, run_with};
use crate::support::python;
use crate::support::{PATIENCE, wait_for, wait_until};
use rustix::process::Signal;
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::os::unix::fs::PermissionsExt;
use std::time::{Duration, Instant};

const VERIFIER: &str = "stado-object-api-verifier";

fn put(home: &Home, args: &[&str], value: &str) -> Run {
    run_with(&mut home.command(STADO, &[&["vault", "put"], args].concat()), value.as_bytes())
}

/// Where a server says that it is.
fn url_of(server: &Process, what: &str) -> String {
    wait_for("it says where it is", PATIENCE, || {
        Some(server.log().split_once(&format!("{what} at "))?.1.split_once(' ')?.0.to_owned())
    })
}

/// A GET of the object API: status and body.
fn get(url: &str, namespace: &str, token: &str) -> (u16, Value) {
    let mut stream = TcpStream::connect(url.trim_start_matches("http://")).unwrap();
    let line = format!("GET /api/object?uri=stado://{namespace}/x HTTP/1.1\r\nHost: localhost\r\n");
    stream.write_all(format!("{line}Authorization: Bearer {token}\r\n\r\n").as_bytes()).unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    let (head, body) = answer.split_once("\r\n\r\n").unwrap();
    (head.split(' ').nth(1).unwrap().parse().unwrap(), serde_json::from_str(body).unwrap())
}

/// Arguments of every process that can be seen.
fn process_list() -> impl Iterator<Item = String> {
    let all = std::fs::read_dir("/proc").unwrap().flatten();
    all.filter_map(|entry| std::fs::read_to_string(entry.path().join("cmdline")).ok())
}

#[test]
fn a_vault_is_made_filled_granted_and_taken_away_again() {
    let home = Home::new();
    let none = home.stado(&["vault", "list"]).exits(1);
    assert!(none.stderr.contains("`stado vault init` makes one"), "{}", none.stderr);
    let made = home.stado(&["vault", "init", "--key", "file"]).ok();
    assert!(made.stdout.contains(".stado/vault/vault.json; its key is in "), "{}", made.stdout);
    assert!(home.stado(&["vault", "init"]).exits(1).stderr.contains("there is a vault already"));
    for file in ["vault.json", "key"] {
        let mode = std::fs::metadata(home.file(&format!(".stado/vault/{file}"))).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600, "{file}");
    }

    put(&home, &["db", "--field", "password", "--type", "login", "--tag", "prod"], "s3cret\n").ok();
    assert_eq!(home.stado(&["vault", "get", "db", "--field", "password"]).ok().stdout, "s3cret\n");
    put(&home, &["api", "--generate", "--to", "api-token"], "").ok();
    assert_eq!(home.stado(&["vault", "get", "api"]).ok().stdout, home.read("api-token"));
    assert!(put(&home, &["empty"], "\n").exits(1).stderr.contains("the value is empty"));
    assert!(put(&home, &["no name"], "x").exits(2).stderr.contains("letters, digits"));
    assert!(put(&home, &["api", "--generate", "--to", "api-token"], "").exits(1).stderr.contains("is there already"));

    let no_token = home.stado(&["vault", "grant", "shop", "db"]).exits(2);
    assert!(no_token.stderr.contains("--token-file names the new file"), "{}", no_token.stderr);
    let granted = home.stado(&["vault", "grant", "shop", "db", "later", "--token-file", "shop-grant"]).ok();
    assert!(granted.stdout.starts_with("shop may read db, later\n"), "{}", granted.stdout);
    assert!(granted.stderr.contains("there is no item later yet"), "{}", granted.stderr);
    let token = home.read("shop-grant").trim().to_owned();
    assert!(token.len() >= 40 && !granted.stdout.contains(&token) && !granted.stderr.contains(&token));
    home.stado(&["vault", "grant", "shop", "api"]).ok();

    let list = home.stado(&["vault", "list", "--json"]).ok().json();
    assert_eq!(list["items"][1]["fields"], json!(["password"]), "{list}");
    assert_eq!(list["grants"][0]["items"], json!(["api", "db", "later"]));
    let text = home.stado(&["vault", "list"]).ok().stdout;
    assert!(
        text.contains("item db password type=login versions=1 ") && text.contains("grant shop api,db,later "),
        "{text}"
    );
    home.stado(&["vault", "revoke", "shop", "db"]).ok();
    home.stado(&["vault", "revoke", "shop", "db"]).exits(1);
    home.stado(&["vault", "revoke", "shop"]).ok();
    home.stado(&["vault", "remove", "db"]).ok();
    home.stado(&["vault", "remove", "db"]).exits(1);
    home.stado(&["vault", "get", "db", "--field", "password"]).exits(1);
    let list = home.stado(&["vault", "list", "--json"]).ok().json();
    assert_eq!((list["items"].as_array().unwrap().len(), &list["grants"]), (1, &json!([])), "{list}");

    let audit = home.read(".stado/vault/audit.log");
    let lines: Vec<Value> = audit.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let told: Vec<_> = lines.iter().map(|line| line["action"].as_str().unwrap()).collect();
    let wanted = ["put", "read", "put", "read", "grant", "grant", "revoke", "revoke", "remove"];
    assert_eq!(told, wanted, "{audit}");
    assert_eq!((&lines[4]["grantee"], &lines[4]["item"]), (&json!("shop"), &json!("db later")));
    let all: String =
        ["vault.json", "audit.log"].iter().map(|file| home.read(&format!(".stado/vault/{file}"))).collect();
    for secret in ["s3cret", &token, home.read("api-token").trim()] {
        assert!(!all.contains(secret), "at rest nothing is in clear");
    }
}

#[test]
fn a_vault_that_is_served_answers_a_client_in_another_language_plainly_and_over_tls() {
    needs!("python3");
    let home = Home::new();
    home.stado(&["vault", "init", "--key", "file"]).ok();
    let item = "probierz-object-api";
    put(&home, &[item, "--generate", "--to", "value"], "").ok();
    home.stado(&["vault", "grant", VERIFIER, item, "--token-file", "grant"]).ok();
    let ask = |url: &str, more: &[&str]| {
        let args =
            ["--url", url, "--token-file", "grant", "--consumer", VERIFIER, "--item", item, "--value-file", "value"];
        python::client(&home, "object_client.py", &[&args, more].concat()).ok();
    };
    home.stado(&["vault", "serve"]).exits(2);
    let refused = home.stado(&["vault", "serve", "--bind", "0.0.0.0:0"]).exits(1);
    assert!(refused.stderr.contains("the vault without TLS must bind a loopback address"), "{}", refused.stderr);
    let server = home.start("plain", STADO, &["vault", "serve", "--bind", "127.0.0.1:0"]);
    ask(&url_of(&server, "vault"), &[]);
    assert!(server.stop().success());

    home.stado(&["tls", "init"]).ok();
    home.stado(&["tls", "export", "localhost", "--output", "."]).ok();
    home.write("ca.pem", home.stado(&["tls", "export"]).ok().stdout);
    let pair = ["--tls-cert", "localhost.pem", "--tls-key", "localhost-key.pem"];
    let server = home.start("tls", STADO, &[&["vault", "serve", "--bind", "0.0.0.0:0"], pair.as_slice()].concat());
    ask(&url_of(&server, "vault").replace("0.0.0.0", "localhost"), &["--ca", "ca.pem"]);
    assert!(server.stop().success());
    let reads = home.read(".stado/vault/audit.log");
    assert_eq!(reads.matches(r#""action":"read","outcome":"given""#).count(), 2, "a line for each read: {reads}");
    assert_eq!(reads.matches(r#""outcome":"unauthorized""#).count(), 6, "{reads}");
}

/// A vault and an object API, each a process of its own.
struct Scene {
    home: Home,
    vault: Process,
    objects: Process,
    url: String,
    /// The token of the namespace that is in the vault.
    token: String,
}

fn scene() -> Scene {
    let mut home = Home::new();
    home.stado(&["vault", "init", "--key", "file"]).ok();
    put(&home, &["probierz-object-api", "--generate", "--to", "token"], "").ok();
    let grant = ["vault", "grant", VERIFIER, "probierz-object-api", "--token-file", ".stado/verifier"];
    home.stado(&grant).ok();
    home.write(".stado/notes-token", "token-of-notes");
    let vault = home.start("vault", STADO, &["vault", "serve", "--bind", "127.0.0.1:0", "--log-level", "debug"]);
    let policies = json!([{"prefix": "", "actions": ["get", "put", "list", "stat", "delete"]}]);
    let namespaces = json!({
        "probierz": {"item": "probierz-object-api", "prefix_policies": policies},
        "notes": {"token_file": "~/.stado/notes-token", "prefix_policies": policies}
    });
    let skarbiec = json!({"url": url_of(&vault, "vault"), "consumer": VERIFIER, "token_file": "~/.stado/verifier"});
    let api = json!({"bind": "127.0.0.1:0", "namespaces": namespaces, "skarbiec": skarbiec});
    home.write(".stado/config.json", json!({ "object_api": api }).to_string());
    // The contract's cool-down and bound are long.
    home.set("WC_DASHBOARD_BOUNDARY_RECHECK_SECONDS", 1);
    let objects = home.start("objects", STADO, &["storage", "serve", "--log-level", "debug"]);
    let (url, token) = (url_of(&objects, "object API"), home.read("token").trim().to_owned());
    Scene { home, vault, objects, url, token }
}

#[test]
fn while_the_vault_hangs_its_namespace_is_refused_with_the_cause_at_once_and_no_other_is_harmed() {
    needs!("python3");
    let Scene { home, vault, objects, url, token } = scene();
    wait_until("the namespace is open", PATIENCE, || get(&url, "probierz", &token).0 == 404);
    assert_eq!(get(&url, "probierz", "wrong"), (401, json!({"error": "unauthorized"})));

    vault.signal(Signal::STOP);
    let (status, body) = get(&url, "probierz", &token);
    assert_eq!((status, &body["error"]), (503, &json!("object authorization unavailable")), "{body}");
    let cause = body["cause"].as_str().unwrap().to_owned();
    assert!(cause.starts_with("czekam: POST /v1/items/read probierz-object-api; gdzie: Skarbiec http://"), "{cause}");
    assert!(objects.log().contains(&cause), "the line that is announced");
    for _ in 0..20 {
        assert_eq!(get(&url, "probierz", &token).1["cause"], cause, "the same wait, by whoever finds it");
        assert_eq!(get(&url, "notes", "token-of-notes").0, 404, "unharmed");
    }
    let closed = ["--url", &url, "--token-file", "token", "--closed"];
    python::client(&home, "object_client.py", &closed).ok();
    vault.signal(Signal::CONT);
    wait_until("the namespace is open again", PATIENCE, || get(&url, "probierz", &token).0 == 404);
    assert!(objects.log().contains("koniec czekania: POST /v1/items/read probierz-object-api"));

    // Gone, then back at the same place.
    let at = url_of(&vault, "vault").trim_start_matches("http://").to_owned();
    vault.kill9();
    let (status, body) = get(&url, "probierz", &token);
    assert_eq!(status, 503, "{body}");
    assert!(body["cause"].as_str().unwrap().starts_with("blad czekania: "), "{body}");
    let vault = home.start("vault", STADO, &["vault", "serve", "--bind", &at]);
    wait_until("the namespace is open again", PATIENCE, || get(&url, "probierz", &token).0 == 404);

    // A new token holds at once, without a restart of anything.
    put(&home, &["probierz-object-api", "--generate", "--to", "token2"], "").ok();
    assert_eq!(get(&url, "probierz", &token).0, 401);
    assert_eq!(get(&url, "probierz", home.read("token2").trim()).0, 404);
    assert!(objects.stop().success() && vault.stop().success());
}

#[test]
fn no_token_is_in_a_log_or_a_process_list() {
    let Scene { home, vault, objects, url, token } = scene();
    wait_until("the namespace is open", PATIENCE, || get(&url, "probierz", &token).0 == 404);
    let seen = std::thread::scope(|scope| {
        // Looks while secrets go in and out, at every process of the machine.
        let (stop, stopped) = std::sync::mpsc::channel::<()>();
        let looking = scope.spawn(move || {
            let mut seen = BTreeSet::new();
            let end = Instant::now() + PATIENCE;
            while stopped.try_recv().is_err() && Instant::now() < end {
                seen.extend(process_list());
                std::thread::sleep(Duration::from_millis(1));
            }
            seen
        });
        put(&home, &["typed"], "typed-by-a-person").ok();
        home.stado(&["vault", "get", "typed"]).ok();
        home.stado(&["vault", "grant", "another", "typed", "--token-file", "another-grant"]).ok();
        get(&url, "probierz", &token);
        vault.signal(Signal::STOP);
        get(&url, "probierz", &token);
        vault.signal(Signal::CONT);
        stop.send(()).unwrap();
        looking.join().unwrap()
    });
    let seen = seen.into_iter().collect::<Vec<_>>().join("\n");
    assert!(seen.contains("vault\0serve"), "it looked at the right processes");
    let logs = [vault.log(), objects.log(), home.read(".stado/vault/audit.log")].concat();
    assert!(logs.contains("blad czekania") || logs.contains("czekam"), "{logs}");
    let grants = [".stado/verifier", "another-grant"].map(|file| home.read(file).trim().to_owned());
    let key = home.read(".stado/vault/key");
    for secret in [token.as_str(), "typed-by-a-person", "token-of-notes", &grants[0], &grants[1], key.trim()] {
        assert!(!secret.is_empty());
        assert!(!logs.contains(secret), "a log has it");
        assert!(!seen.contains(secret), "a process list has it");
    }
    assert!(objects.stop().success() && vault.stop().success());
}

//! `stado database …`: declarations of one host, and a real PostgreSQL that is placed by the directory.
use crate::support::fleet::Fleet;
use crate::support::home::Home;
use crate::support::postgres::{Postgres, answers, query};
use serde_json::{Value, json};

#[test]
fn a_database_is_declared_granted_resolved_revoked_and_removed() {
    let home = Home::new();
    home.write(".stado/config.json", r#"{"schema_version": 1, "future": {"kept": 1.50}}"#);
    let database = |args: &[&str]| home.stado(&[&["database"], args].concat());
    let unknown = database(&["resolve", "orders", "--consumer", "shop"]).exits(2);
    assert!(unknown.stderr.starts_with("Error: unknown database \"orders\"; declared: none\n"), "{}", unknown.stderr);
    let declare =
        ["declare", "orders", "--engine", "postgres", "--scope", "write", "--scope", "read", "--consumer", "till"];
    let declared = database(&[&declare[..], &["--json"]].concat()).ok().json();
    assert_eq!((&declared["state"], &declared["credential_item"]), (&"declared".into(), &"orders-database".into()));
    assert_eq!(database(&[&declare[..], &["--json"]].concat()).ok().json()["state"], "unchanged");
    let other = database(&["declare", "orders", "--engine", "sqlite", "--scope", "read"]).exits(1);
    assert!(other.stderr.contains("is declared as postgres"), "{}", other.stderr);
    database(&["declare", "Orders!", "--engine", "sqlite", "--scope", "read"]).exits(2);
    database(&["declare", "ledger", "--engine", "sqlite", "--scope", "read"]).ok();
    let refused = database(&["resolve", "orders", "--consumer", "shop"]).exits(2);
    assert!(
        refused.stderr.starts_with("Error: consumer \"shop\" is not authorized for database \"orders\"\n"),
        "{}",
        refused.stderr
    );
    let unknown = database(&["grant", "gone", "shop"]).exits(2);
    assert!(
        unknown.stderr.starts_with("Error: unknown database \"gone\"; declared: orders, ledger\n"),
        "{}",
        unknown.stderr
    );

    assert_eq!(database(&["grant", "orders", "shop", "--json"]).ok().json()["state"], "granted");
    assert_eq!(database(&["grant", "orders", "shop", "--json"]).ok().json()["state"], "unchanged");
    let resolved = database(&["resolve", "orders", "--consumer", "shop", "--json"]).ok();
    let body = "{\n  \"database\": \"stado://database/orders\",\n  \"engine\": \"postgres\",\n  \"scopes\": [\n    \"read\",\n    \
                \"write\"\n  ],\n  \"credential_item\": \"orders-database\",\n  \"placed\": false\n}\n";
    assert_eq!(resolved.stdout, body);
    let text = database(&["resolve", "stado://database/orders", "--consumer", "shop"]).ok().stdout;
    assert_eq!(text, "stado://database/orders engine=postgres item=orders-database scopes=read,write placed=false\n");
    let list = database(&["list", "--json"]).ok().json();
    let names: Vec<&Value> = list["databases"].as_array().unwrap().iter().map(|d| &d["database"]).collect();
    assert_eq!(names, ["stado://database/orders", "stado://database/ledger"], "{list}");
    assert_eq!(
        (&list["databases"][0]["consumers"], &list["databases"][0]["placed"]),
        (&json!(["till", "shop"]), &false.into())
    );
    assert!(home.read(".stado/config.json").contains("1.50"), "what others wrote stays as they wrote it");

    assert_eq!(database(&["revoke", "orders", "shop", "--json"]).ok().json()["consumers"], json!(["till"]));
    let again = database(&["revoke", "orders", "shop"]).exits(1);
    assert!(again.stderr.contains("\"orders\" does not declare \"shop\"; it declares till"), "{}", again.stderr);
    database(&["resolve", "orders", "--consumer", "shop"]).exits(2);
    assert_eq!(database(&["remove", "orders", "--json"]).ok().json()["state"], "removed");
    database(&["remove", "orders"]).exits(2);
    let config: Value = serde_json::from_str(&home.read(".stado/config.json")).unwrap();
    let left: Vec<&String> = config["database_api"]["databases"].as_object().unwrap().keys().collect();
    assert_eq!(left, ["ledger"]);
}

#[test]
fn the_variable_wins_over_the_file_and_is_never_written_behind() {
    let mut home = Home::new();
    home.set("WC_DATABASE_API_DATABASES", r#"{"orders":{"engine":"sqlite","scopes":["read"],"consumers":["shop"]}}"#);
    let text = home.stado(&["database", "resolve", "orders", "--consumer", "shop"]).ok().stdout;
    assert_eq!(text, "stado://database/orders engine=sqlite item=orders-database scopes=read placed=false\n");
    let refused = home.stado(&["database", "grant", "orders", "till"]).exits(1);
    assert!(refused.stderr.contains("WC_DATABASE_API_DATABASES is set and wins"), "{}", refused.stderr);
    assert!(!home.file(".stado/config.json").exists());
}

#[test]
fn a_placed_database_is_reached_at_the_address_that_is_resolved_wherever_it_listens() {
    needs!("sshd", "postgres");
    let mut postgres = Postgres::start(None);
    let mut fleet = Fleet::on_loopback(&["authority", "workstation"]);
    fleet.service("orders", "authority", "tcp", postgres.port(), "shop");
    let capabilities = json!(["sql"]);
    fleet.registry["service_directory"]["services"]["orders"]["consumers"]["shop"]["capabilities"] =
        capabilities.clone();
    let at = fleet.adapter("workstation", "orders", "shop");
    fleet.up();
    let home = &fleet.host("workstation").home;
    let declare = [
        "database",
        "declare",
        "orders",
        "--engine",
        "postgres",
        "--scope",
        "read",
        "--consumer",
        "shop",
        "--consumer",
        "cron",
    ];
    home.stado(&declare).ok();
    let resolve = |fleet: &mut Fleet, host: &str| {
        fleet.host(host).home.stado(&["database", "resolve", "orders", "--consumer", "shop", "--json"]).ok().json()
    };
    let first = resolve(&mut fleet, "workstation");
    assert_eq!(
        (&first["placed"], &first["active_host"], &first["generation"]),
        (&true.into(), &"authority".into(), &1.into()),
        "{first}"
    );
    assert_eq!(first["endpoint"], format!("tcp://127.0.0.1:{}", postgres.port()));
    assert_eq!((&first["address"], &first["capabilities"]), (&format!("tcp://127.0.0.1:{at}").into(), &capabilities));
    answers(at);
    query(at, "create table orders (n int); insert into orders values (7)").unwrap();
    // Authorized, and without an adapter there is no address yet.
    let cron =
        fleet.host("workstation").home.stado(&["database", "resolve", "orders", "--consumer", "cron", "--json"]).ok();
    assert_eq!(cron.json()["address"], Value::Null);
    assert!(cron.stderr.contains("declares no resolver adapter for orders as consumer cron"), "{}", cron.stderr);

    postgres.restart_elsewhere();
    fleet.moved("orders", postgres.port());
    fleet.push("workstation").ok();
    answers(at);
    let second = resolve(&mut fleet, "workstation");
    assert_eq!((&second["address"], &second["generation"]), (&first["address"], &2.into()), "{second}");
    assert_eq!(second["endpoint"], format!("tcp://127.0.0.1:{}", postgres.port()));
    assert_eq!(query(at, "select n from orders").as_deref(), Ok("7"));
    let list = fleet.host("workstation").home.stado(&["database", "list"]).ok().stdout;
    assert!(
        list.contains(
            "orders engine=postgres item=orders-database scopes=read consumers=shop,cron placed=true host=authority"
        ),
        "{list}"
    );
    // The right ends here, whatever the directory says.
    fleet.host("workstation").home.stado(&["database", "revoke", "orders", "shop"]).ok();
    fleet.host("workstation").home.stado(&["database", "resolve", "orders", "--consumer", "shop"]).exits(2);

    // On the host that serves it: is it a PostgreSQL that answers there.
    let home = &fleet.host("authority").home;
    home.stado(&declare).ok();
    let check = |fleet: &mut Fleet| {
        let report = fleet.host("authority").home.stado(&["doctor", "--json"]).json();
        let checks = report["checks"].as_array().unwrap();
        checks.iter().find(|check| check["id"] == "databases").unwrap().clone()
    };
    let fine = check(&mut fleet);
    assert_eq!(
        (&fine["status"], &fine["detail"]),
        (&"ok".into(), &"1 declared; 1 placed here and answering as PostgreSQL".into())
    );
    drop(postgres);
    let gone = check(&mut fleet);
    assert_eq!(gone["status"], "fail", "{gone}");
    assert!(
        gone["detail"].as_str().unwrap().starts_with("orders is placed here as postgres, and at 127.0.0.1:"),
        "{gone}"
    );
}

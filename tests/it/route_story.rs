//! `route list|open|close`, and `resolver api-reassign` under a running daemon.
use crate::support::fleet::Fleet;
use crate::support::tcp::echo;
use crate::support::{PATIENCE, wait_until};
use serde_json::{Value, json};
use std::net::TcpListener;

#[test]
fn a_route_is_opened_listed_and_closed_as_a_marker_of_this_host() {
    let mut fleet = Fleet::on_loopback_without_sshd(&["authority", "desk"]);
    fleet.service("orders", "authority", "http", 5432, "shop");
    fleet.service("notes", "desk", "http", 5433, "shop");
    fleet.push("authority").ok();
    let home = &fleet.hosts[0].home;
    let list = || home.stado(&["route", "list", "--json"]).ok().json();
    let forward = |service: &str| {
        let all = list()["services"].as_array().unwrap().clone();
        all.into_iter().find(|row| row["service"] == service).unwrap()["local_forward"].clone()
    };
    let row = json!({
        "service": "orders", "active_host": "authority",
        "endpoints": [{"target": "authority", "url": "http://127.0.0.1:5432"}], "local_forward": null
    });
    let listed = list();
    assert_eq!(listed["authority"], json!({"target": "authority"}));
    assert!(listed["services"].as_array().unwrap().contains(&row), "{listed}");

    let marker = home.file(".stado/forwards/orders.local");
    let place = marker.to_str().unwrap();
    let opened = home.stado(&["route", "open", "orders", "--local", "--json"]).ok().json();
    assert_eq!(
        opened,
        json!({"status": "open", "service": "orders", "endpoint": "http://127.0.0.1:5432",
               "forward": {"location": "local", "marker": place}})
    );
    assert_eq!(home.read(".stado/forwards/orders.local"), "http://127.0.0.1:5432\n");
    assert_eq!(forward("orders"), json!({"location": "local", "marker": place, "url": "http://127.0.0.1:5432"}));
    assert_eq!(forward("notes"), Value::Null);
    let nowhere = home.stado(&["route", "open", "notes", "--local"]).exits(1);
    assert!(nowhere.stderr.contains("no route to notes can be opened on this host: "), "{}", nowhere.stderr);
    let unknown = home.stado(&["route", "open", "nothing"]).exits(1);
    assert!(unknown.stderr.contains("no service \"nothing\" in service_directory"), "{}", unknown.stderr);

    let closed = home.stado(&["route", "close", "orders", "--json"]).ok().json();
    assert_eq!(closed["status"], "closed");
    assert!(!marker.exists() && forward("orders").is_null());
    let again = home.stado(&["route", "close", "orders"]).exits(1);
    assert!(again.stderr.contains("no route to orders is open on this host"), "{}", again.stderr);
    home.stado(&["route", "close", "../orders"]).exits(2);
}

#[test]
fn a_resolution_api_moves_to_a_free_port_under_its_running_daemon() {
    let mut fleet = Fleet::on_loopback_without_sshd(&["authority"]);
    fleet.service("orders", "authority", "tcp", echo("orders").port(), "shop");
    fleet.push("authority").ok();
    fleet.host("authority").serve();
    fleet.host("authority").ready();
    // Somebody listens at one port of the range; whichever is next is taken instead.
    let busy = (17601..17999).find_map(|port| TcpListener::bind(("127.0.0.1", port)).ok()).unwrap();
    let host = fleet.host("authority");
    let before = host.status().1["api"]["bind"].clone();
    let moved = host.home.stado(&["resolver", "api-reassign", "--target", "authority", "--json"]).ok().json();
    assert_eq!((&moved["target"], &moved["previous"]), (&json!("authority"), &before));
    let bind = moved["api_bind"].as_str().unwrap().to_owned();
    assert_ne!(bind, busy.local_addr().unwrap().to_string());
    assert_eq!(host.home.stado(&["registry", "pull", "--generation-only"]).ok().stdout.trim(), moved["generation"]);
    wait_until("the daemon answers there", PATIENCE, || {
        let (code, status) = host.status();
        code == 0 && status["api"] == json!({"bind": bind, "listening": true})
    });
    assert!(host.daemon().ended().is_none(), "without a restart");
    let unknown = host.home.stado(&["resolver", "api-reassign", "--target", "nobody"]).exits(1);
    assert!(unknown.stderr.contains("target 'nobody' is not in the canonical registry"), "{}", unknown.stderr);
}

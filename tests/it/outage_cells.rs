//! Cells of the outage table that no other story shows: a store that refuses, and a placed host that is away.
use crate::support::fleet::Fleet;
use crate::support::object_api::{ObjectApi, TOKEN};
use crate::support::tcp::{Client, ask, echo};
use serde_json::json;

/// `orders` on the host `data`, `notes` on the authority; the workstation has an adapter for each.
fn fleet() -> (Fleet, u16, u16) {
    let mut fleet = Fleet::on_loopback(&["authority", "data", "workstation"]);
    fleet.service("orders", "data", "tcp", echo("orders").port(), "shop");
    fleet.service("notes", "authority", "tcp", echo("notes").port(), "shop");
    let [orders, notes] = ["orders", "notes"].map(|name| fleet.adapter("workstation", name, "shop"));
    (fleet, orders, notes)
}

#[test]
fn a_store_that_refuses_stops_nothing_that_the_authority_can_answer() {
    needs!("sshd");
    let api = ObjectApi::start();
    api.close();
    let (mut fleet, orders, notes) = fleet();
    let desk = fleet.host("workstation");
    desk.home.write(".stado/storage-token", TOKEN);
    let url = format!("http://127.0.0.1:{}", api.port);
    let stado = json!({"url": url, "token_file": "~/.stado/storage-token"});
    desk.home.write(".stado/config.json", json!({"storage": {"backend": "stado", "stado": stado}}).to_string());
    fleet.up();
    let mut open = Client::connect(("127.0.0.1", orders)).unwrap();
    assert_eq!(open.ask("1").as_deref(), Some("orders:1"));
    assert_eq!(ask(("127.0.0.1", notes), "1").as_deref(), Some("notes:1"));

    let home = &fleet.host("workstation").home;
    home.stado(&["service", "directory", "consumer", "add", "notes", "till"]).ok();
    home.stado(&["service", "directory", "publish"]).ok();
    home.stado(&["service", "directory", "connect", "notes", "--consumer", "shop"]).ok();
    fleet.host("workstation").holds(2);
    let desk = fleet.host("workstation");
    desk.ready();
    assert_eq!(open.ask("2").as_deref(), Some("orders:2"), "the open connection saw nothing of it");
    desk.stop();
    desk.serve();
    desk.ready();
    assert_eq!(ask(("127.0.0.1", orders), "3").as_deref(), Some("orders:3"));
    assert!(api.requests().is_empty(), "and the store was never asked");
}

#[test]
fn a_placed_host_that_is_away_stops_only_what_it_serves() {
    needs!("sshd");
    let (mut fleet, orders, notes) = fleet();
    fleet.up();
    let mut open = Client::connect(("127.0.0.1", notes)).unwrap();
    assert_eq!(open.ask("1").as_deref(), Some("notes:1"));
    fleet.host("data").stop();
    fleet.host("data").sshd.as_mut().unwrap().down();
    assert_eq!(ask(("127.0.0.1", orders), "1"), None, "its own service is refused, not held");
    assert_eq!(open.ask("2").as_deref(), Some("notes:2"));
    assert_eq!(ask(("127.0.0.1", notes), "3").as_deref(), Some("notes:3"));

    let desk = fleet.host("workstation");
    desk.home.stado(&["service", "directory", "consumer", "add", "notes", "till"]).ok();
    desk.home.stado(&["service", "directory", "publish"]).ok();
    desk.home.stado(&["service", "directory", "endpoint", "orders"]).ok();
    desk.holds(2);
    desk.stop();
    desk.serve();
    desk.ready();
    assert_eq!(ask(("127.0.0.1", notes), "4").as_deref(), Some("notes:4"), "after a start of the daemon");
}

//! The authority's network is cut. Nothing that does not depend on it stops.
use crate::support::fleet::{Fleet, Host, REFRESH};
use crate::support::postgres::{At, Postgres, Session, query};
use crate::support::tcp::{ask, serve};
use crate::support::{PATIENCE, wait_for, wait_until};
use serde_json::Value;
use std::net::TcpListener;
use std::time::{Duration, Instant};

const AUTHORITY: usize = 0;
const DATA: usize = 1;
const WORKSTATION: usize = 2;

/// A status that is not ready and says that the authority does not answer.
fn outage(host: &Host) -> Value {
    wait_for("status reports the outage", 2 * PATIENCE, || {
        let (code, status) = host.status();
        let says = status["blockers"].as_array().is_some_and(|all| {
            all.iter().any(|b| b.as_str().unwrap().starts_with("the registry authority authority is unreachable"))
        });
        // The daemon itself has noticed too: its session to the authority outlives the cut by its keepalives.
        let noticed = status["attempt"].as_u64() > Some(0) && status["reason"].is_string();
        (code == 1 && says && noticed).then_some(status)
    })
}

#[test]
fn an_authority_that_is_cut_off_stops_nothing_else_and_its_return_is_noticed() {
    needs!("netns", "sshd", "postgres");
    let mut fleet = Fleet::on_networks(&["authority", "data", "workstation"]);
    let namespaces = [AUTHORITY, DATA, WORKSTATION].map(|n| fleet.network.as_ref().unwrap().namespace(n).to_owned());
    let postgres = Postgres::start(Some(&namespaces[DATA]));
    let echo = |host: usize, word: &str, fleet: &Fleet| {
        let listener = fleet.network.as_ref().unwrap().inside(host, || TcpListener::bind("127.0.0.1:0").unwrap());
        let port = listener.local_addr().unwrap().port();
        serve(listener, word);
        port
    };
    let (far, local) = (echo(AUTHORITY, "far", &fleet), echo(WORKSTATION, "local", &fleet));
    fleet.service("orders", "data", "tcp", postgres.port(), "shop");
    fleet.service("notes", "authority", "tcp", far, "shop");
    fleet.service("desk", "workstation", "tcp", local, "shop");
    let orders_port = fleet.adapter("workstation", "orders", "shop");
    let [notes, desk] = ["notes", "desk"].map(|name| fleet.adapter("workstation", name, "shop"));
    fleet.up();
    let orders = At { port: orders_port, namespace: Some(&namespaces[WORKSTATION]) };
    let asks = |fleet: &Fleet, port: u16, line: &str| {
        fleet.network.as_ref().unwrap().inside(WORKSTATION, || ask(("127.0.0.1", port), line))
    };
    assert_eq!(asks(&fleet, notes, "1").as_deref(), Some("far:1"));
    let mut open = Session::open(orders);
    open.run("create table t (n int); begin; insert into t values (1);").unwrap();

    fleet.network.as_ref().unwrap().cut(AUTHORITY);
    let cut = Instant::now();
    let status = outage(fleet.host("workstation"));
    eprintln!("noticed after {:?}", cut.elapsed());
    assert_eq!(status["authority"]["reachable"], false, "{status}");
    assert_eq!(open.run("insert into t values (2); select count(*) from t;").as_deref(), Some("2"));
    assert_eq!(query(orders, "select 1").as_deref(), Ok("1"), "a new connection to another host");
    assert_eq!(asks(&fleet, desk, "2").as_deref(), Some("local:2"), "a new local connection");

    // The daemon restarts while the authority is away.
    let workstation = fleet.host("workstation");
    workstation.stop();
    workstation.serve();
    let started = Instant::now();
    wait_until("the restarted daemon serves from its copy", PATIENCE, || {
        query(orders, "select 1").as_deref() == Ok("1")
    });
    eprintln!("serves from its copy after {:?}", started.elapsed());
    assert_eq!(asks(&fleet, desk, "3").as_deref(), Some("local:3"));
    let status = outage(fleet.host("workstation"));
    assert_eq!(status["generation"], 1, "{status}");

    fleet.network.as_ref().unwrap().restore(AUTHORITY);
    let restored = Instant::now();
    wait_until("the daemon has recovered", PATIENCE, || {
        let state = fleet.host("workstation").published();
        state["state"] == "serving" && state["attempt"] == 0
    });
    let took = restored.elapsed();
    eprintln!("recovered after {took:?}");
    assert!(took < Duration::from_secs(REFRESH) + Duration::from_secs(2), "recovered after {took:?}");
    fleet.host("workstation").ready();
    assert_eq!(asks(&fleet, notes, "4").as_deref(), Some("far:4"));
}

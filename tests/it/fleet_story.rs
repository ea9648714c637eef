//! The main job over real sshd and real PostgreSQL: one stable address while the service behind it moves.
use crate::support::fleet::Fleet;
use crate::support::postgres::{Postgres, Session, answers, query};
use crate::support::tcp::{ask, echo};
use crate::support::{PATIENCE, wait_until};
use serde_json::Value;

#[test]
fn a_database_moves_and_its_clients_keep_their_address() {
    needs!("sshd", "postgres");
    let (mut orders, ledger) = (Postgres::start(None), Postgres::start(None));
    let mut fleet = Fleet::on_loopback(&["authority", "workstation"]);
    fleet.service("orders", "authority", "tcp", orders.port(), "shop");
    fleet.service("ledger", "authority", "tcp", ledger.port(), "shop");
    let orders_at = fleet.adapter("workstation", "orders", "shop");
    let ledger_at = fleet.adapter("workstation", "ledger", "shop");
    fleet.up();
    assert_eq!(query(orders_at, "select 1").as_deref(), Ok("1"));

    // A client of a database that does not move, in the middle of a transaction.
    query(ledger_at, "create table entries (n int)").unwrap();
    let mut bystander = Session::open(ledger_at);
    bystander.run("begin; insert into entries values (1);").unwrap();
    let backend = bystander.run("select pg_backend_pid();").unwrap();
    let mut client = Session::open(orders_at);
    assert_eq!(client.run("select 1;").as_deref(), Some("1"));

    orders.restart_elsewhere();
    assert_eq!(client.run("select 1;"), None, "the restart ended the client's connection");
    fleet.moved("orders", orders.port());
    let receipt = fleet.push("workstation").ok().json();
    assert_eq!(receipt["state"], "pushed", "{receipt}");
    answers(orders_at);
    for name in ["authority", "workstation"] {
        fleet.host(name).holds(2);
        let status = fleet.host(name).ready();
        assert_eq!((&status["generation"], &status["stale"]), (&2.into(), &false.into()), "{status}");
    }

    bystander.run("insert into entries values (2); commit;").unwrap();
    assert_eq!(bystander.run("select pg_backend_pid();"), Some(backend), "still the same connection");
    assert_eq!(query(ledger_at, "select count(*) from entries").as_deref(), Ok("2"));
    let kept = fleet.host("authority").home.stado(&["registry", "pull", "--path", "channels.notes"]).ok().stdout;
    assert_eq!(kept, "kept through every write\n");
}

#[test]
fn markers_lead_to_this_hosts_own_address_of_a_service() {
    needs!("sshd");
    let mut fleet = Fleet::on_loopback(&["authority", "workstation"]);
    let backend = echo("echo").port();
    fleet.service("echo", "authority", "tcp", backend, "shop");
    let at = fleet.adapter("workstation", "echo", "shop");
    fleet.up();
    let marker = |fleet: &mut Fleet, host: &str| fleet.host(host).home.read(".stado/forwards/echo.local");
    assert_eq!(marker(&mut fleet, "authority"), format!("tcp://127.0.0.1:{backend}\n"));
    assert_eq!(marker(&mut fleet, "workstation"), format!("tcp://127.0.0.1:{at}\n"));
    assert_eq!(ask(("127.0.0.1", at), "x").as_deref(), Some("echo:x"));

    std::fs::remove_file(fleet.host("workstation").home.file(".stado/forwards/echo.local")).unwrap();
    wait_until("the marker is kept", PATIENCE, || !marker(&mut fleet, "workstation").is_empty());
    let connect = ["service", "directory", "connect", "echo", "--consumer", "shop", "--json"];
    let connect: Value = fleet.host("workstation").home.stado(&connect).ok().json();
    assert_eq!(connect["url"], format!("tcp://127.0.0.1:{at}"), "{connect}");
}

#[test]
fn a_killed_daemon_comes_back_with_the_same_frontends_and_adapters() {
    needs!("sshd");
    let mut fleet = Fleet::on_loopback(&["authority", "workstation"]);
    fleet.service("echo", "authority", "tcp", echo("fleet").port(), "shop");
    let adapter = fleet.adapter("workstation", "echo", "shop");
    fleet.up();
    let workstation = fleet.host("workstation");
    let local = echo("local").to_string();
    let register = ["service", "register", "--name", "web.api", "--backend", &local, "--once"];
    let resolve = ["service", "resolve", "web.api", "--raw"];
    workstation.home.stado(&register).ok();
    let frontend = workstation.home.stado(&resolve).ok().stdout.trim().to_owned();
    let (first, last) = workstation.home.frontends();
    assert!((first..=last).contains(&frontend.rsplit_once(':').unwrap().1.parse().unwrap()), "{frontend}");
    assert_eq!(ask(&frontend, "1").as_deref(), Some("local:1"));
    assert_eq!(ask(("127.0.0.1", adapter), "1").as_deref(), Some("fleet:1"));

    for round in 0..3 {
        workstation.kill9();
        assert_eq!(ask(&frontend, "2"), None);
        let (code, status) = workstation.status();
        assert_eq!(code, 1, "{status}");
        assert!(status["blockers"].to_string().contains("is not running"), "{status}");
        workstation.serve();
        workstation.ready();
        workstation.home.stado(&register).ok();
        assert_eq!(workstation.home.stado(&resolve).ok().stdout.trim(), frontend, "round {round}");
        assert_eq!(ask(&frontend, "3").as_deref(), Some("local:3"));
        assert_eq!(ask(("127.0.0.1", adapter), "3").as_deref(), Some("fleet:3"));
    }
    workstation.stop();
}

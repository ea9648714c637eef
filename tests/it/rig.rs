//! The rig does what the stories rely on.
use crate::support::home::Home;
use crate::support::netns::Network;
use crate::support::postgres::{Postgres, Session, query};
use crate::support::process::{descendants, run};
use crate::support::sshd::{Sshd, authorize, keygen};
use crate::support::{PATIENCE, ports, wait_until};
use std::collections::BTreeSet;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::time::Duration;

#[test]
fn ports_are_never_handed_out_twice_and_come_back_with_their_lease() {
    let leases: Vec<_> = (0..40).map(|_| ports::block(3)).collect();
    let all: BTreeSet<u16> = leases.iter().flat_map(|l| l.port()..=l.last()).collect();
    assert_eq!(all.len(), 120);
    assert!(all.iter().all(|port| (20_000..32_000).contains(port)));
    let held = TcpListener::bind(("127.0.0.1", leases[0].port())).unwrap();
    drop(leases);
    let again: Vec<_> = (0..3).map(|_| ports::one()).collect();
    assert!(again.iter().all(|l| l.port() != held.local_addr().unwrap().port()), "bound ports are passed over");
}

#[test]
fn commands_of_a_home_inherit_nothing() {
    let mut home = Home::new();
    home.set("STADO_TARGET", "here");
    let env = run(&mut home.command("/usr/bin/env", &[])).ok().stdout;
    let names: BTreeSet<_> = env.lines().filter_map(|l| l.split('=').next()).collect();
    let expected = [
        "DEVMESH_DOCKER_ENABLED",
        "DEVMESH_TCP_FRONTEND_MAX",
        "DEVMESH_TCP_FRONTEND_MIN",
        "HOME",
        "PATH",
        "RUST_BACKTRACE",
        "STADO_TARGET",
    ];
    assert_eq!(names, expected.into(), "{env}");
    assert!(env.contains(&format!("HOME={}\n", home.path().display())));
}

#[test]
fn a_dropped_process_takes_its_descendants_with_it() {
    let home = Home::new();
    let shell = home.start("shell", "/bin/sh", &["-c", "sleep 1000 & setsid sleep 1000 & echo up; wait"]);
    wait_until("two sleepers", PATIENCE, || descendants(shell.pid()).len() == 2);
    let pids = descendants(shell.pid());
    drop(shell);
    let gone = |pid: &u32| {
        let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
        stat.is_empty() || stat.contains(") Z ")
    };
    wait_until("no sleeper", PATIENCE, || pids.iter().all(gone));
}

#[test]
fn a_login_over_sshd_finds_the_home_and_the_identity_of_its_host() {
    needs!("sshd");
    let (mut host, client) = (Home::new(), Home::new());
    host.set("STADO_TARGET", "authority");
    let mut sshd = Sshd::start(&host, "127.0.0.2".parse().unwrap());
    keygen(&client.file("key"));
    authorize(&host, &client.read("key.pub"));
    client.write("known_hosts", sshd.known_host());
    let port = sshd.at().port().to_string();
    let options = "-F/dev/null -oBatchMode=yes -oStrictHostKeyChecking=yes -oUserKnownHostsFile=known_hosts -ikey -p";
    let mut args: Vec<&str> = options.split(' ').collect();
    let destination = sshd.destination().rsplit_once(':').unwrap().0.to_owned();
    args.extend([port.as_str(), &destination, "echo $HOME $STADO_TARGET"]);
    let seen = run(&mut client.command("/usr/bin/ssh", &args)).ok().stdout;
    assert_eq!(seen, format!("{} authority\n", host.path().display()), "{}", sshd.log());
    sshd.down();
    run(&mut client.command("/usr/bin/ssh", &args)).exits(255);
    sshd.up(&host);
    run(&mut client.command("/usr/bin/ssh", &args)).ok();
}

#[test]
fn postgres_answers_keeps_a_transaction_open_and_moves_to_another_port() {
    needs!("postgres");
    let mut postgres = Postgres::start(None);
    let first = postgres.port();
    query(first, "create table t (n int)").unwrap();
    let mut session = Session::open(first);
    assert_eq!(session.run("begin; insert into t values (7);").as_deref(), Some(""));
    assert_eq!(query(first, "select count(*) from t").as_deref(), Ok("0"));
    assert_eq!(session.run("commit;").as_deref(), Some(""));
    postgres.restart_elsewhere();
    assert_ne!(postgres.port(), first);
    assert_eq!(query(postgres.port(), "select n from t").as_deref(), Ok("7"));
    assert!(session.run("select 1;").is_none(), "the restart ended it");
}

#[test]
fn a_cut_network_drops_packets_without_a_word_and_comes_back() {
    needs!("netns");
    let network = Network::new(2);
    let address = network.address(1);
    let listener = network.inside(1, || TcpListener::bind((address, 7000)).unwrap());
    let mut client = network.inside(0, || TcpStream::connect((address, 7000)).unwrap());
    let (mut served, _) = listener.accept().unwrap();
    client.write_all(b"a").unwrap();
    served.read_exact(&mut [0]).unwrap();
    network.cut(1);
    client.write_all(b"b").unwrap();
    served.set_read_timeout(Some(Duration::from_millis(300))).unwrap();
    assert!(served.read(&mut [0]).is_err(), "nothing arrives");
    let again = network.inside(0, || TcpStream::connect_timeout(&(address, 7000).into(), Duration::from_millis(300)));
    assert_eq!(again.unwrap_err().kind(), std::io::ErrorKind::TimedOut, "not refused");
    network.restore(1);
    served.set_read_timeout(Some(PATIENCE)).unwrap();
    served.read_exact(&mut [0]).unwrap();
}

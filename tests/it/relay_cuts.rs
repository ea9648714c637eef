//! Networks that lose packets, some or all, one way or both, and hosts that change their address.
use crate::relay_scene::{DATA, DESK, inside, scene, upload};
use crate::support::netns::Way;
use crate::support::sshd::login;
use crate::support::tcp::Client;
use crate::support::{PATIENCE, wait_until};
use serde_json::json;
use std::net::Ipv4Addr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::thread;
use std::time::{Duration, Instant};

/// The bound of a dead peer: (keepalives + 1) × interval + 1 s.
const DEAD: Duration = Duration::from_secs(21);

fn cut_under_uploads(multiplex: bool, way: Way) {
    let scene = scene(multiplex);
    let mut open = inside(&scene.fleet, DESK, || Client::connect(("127.0.0.1", scene.notes)).unwrap());
    assert_eq!(open.ask("1").as_deref(), Some("notes:1"));
    let went = Arc::new(AtomicU64::new(0));
    let uploads: Vec<_> = (0..16).map(|_| upload(scene.connect(scene.sink), &went)).collect();
    wait_until("the uploads run", PATIENCE, || went.load(Relaxed) > 16 << 20);
    scene.fleet.network.as_ref().unwrap().cut_to(DATA, way);
    let cut = Instant::now();
    // What does not depend on it goes on.
    assert_eq!(open.ask("2").as_deref(), Some("notes:2"));
    assert_eq!(scene.asks(scene.notes, "3").as_deref(), Some("notes:3"));
    for upload in uploads {
        let noticed = upload.join().unwrap().saturating_duration_since(cut);
        assert!(noticed < DEAD + PATIENCE, "noticed after {noticed:?}");
    }
    eprintln!("all sixteen ended {:?} after the cut", cut.elapsed());
    scene.fleet.network.as_ref().unwrap().restore_to(DATA, way);
    scene.comes_back(scene.orders, "orders");
    assert_eq!(open.ask("4").as_deref(), Some("notes:4"));
}

#[test]
fn a_cut_under_sixteen_uploads_is_noticed_and_mended_with_the_multiplex() {
    needs!("netns", "sshd");
    cut_under_uploads(true, Way::Both);
}

#[test]
fn a_cut_under_sixteen_uploads_is_noticed_and_mended_with_direct_tcpip() {
    needs!("netns", "sshd");
    cut_under_uploads(false, Way::Both);
}

#[test]
fn a_cut_of_what_comes_in_is_noticed_and_mended_under_sixteen_uploads() {
    needs!("netns", "sshd");
    cut_under_uploads(true, Way::In);
}

#[test]
fn a_cut_of_what_goes_out_is_noticed_and_mended_under_sixteen_uploads() {
    needs!("netns", "sshd");
    cut_under_uploads(true, Way::Out);
}

#[test]
fn a_network_that_loses_packets_loses_no_byte() {
    needs!("netns", "statistic", "sshd");
    for multiplex in [true, false] {
        let scene = scene(multiplex);
        assert_eq!(scene.asks(scene.orders, "1").as_deref(), Some("orders:1"));
        assert!(scene.fleet.network.as_ref().unwrap().lose(DATA, 0.03));
        let port = scene.orders;
        let clients: Vec<_> = (0..8)
            .map(|n| {
                let mut client = inside(&scene.fleet, DESK, || Client::connect(("127.0.0.1", port)).unwrap());
                thread::spawn(move || {
                    for round in 0..6 {
                        let line = format!("{n}-{round}-").repeat(6000);
                        assert!(
                            client.ask(&line).is_some_and(|answer| answer == format!("orders:{line}")),
                            "{n} {round}"
                        );
                    }
                })
            })
            .collect();
        clients.into_iter().for_each(|client| client.join().unwrap());
    }
}

#[test]
fn a_host_that_changes_its_address_is_found_behind_its_name() {
    needs!("netns", "sshd");
    use crate::relay_scene::on;
    use crate::support::fleet::Fleet;
    let mut fleet = Fleet::on_networks(&["authority", "data", "other", "desk"]);
    let name = "data.stado.test";
    let sshd = fleet.hosts[DATA].sshd.as_ref().unwrap();
    let (port, key) = (sshd.at().port(), sshd.known_host().split_once(' ').unwrap().1.to_owned());
    fleet.declare("data", "ssh", json!(format!("{}@{name}:{port}", login())));
    for (n, host) in fleet.hosts.iter().enumerate() {
        let known = host.home.read(".ssh/known_hosts");
        host.home.write(".ssh/known_hosts", format!("{known}[{name}]:{port} {key}"));
        let network = fleet.network.as_ref().unwrap();
        network.names(n, &format!("{} {name}\n", network.address(DATA)));
    }
    let mut scene = on(fleet, true);
    assert_eq!(scene.asks(scene.orders, "1").as_deref(), Some("orders:1"));
    let mut open = inside(&scene.fleet, DESK, || Client::connect(("127.0.0.1", scene.notes)).unwrap());
    let elsewhere = Ipv4Addr::new(198, 18, 7, 7);
    scene.fleet.network.as_mut().unwrap().renumber(DATA, elsewhere);
    let data = scene.fleet.host("data");
    let mut sshd = data.sshd.take().unwrap();
    sshd.move_to(&data.home, elsewhere.into());
    data.sshd = Some(sshd);
    for n in 0..4 {
        scene.fleet.network.as_ref().unwrap().names(n, &format!("{elsewhere} {name}\n"));
    }
    scene.comes_back(scene.orders, "orders");
    assert_eq!(open.ask("2").as_deref(), Some("notes:2"));
}

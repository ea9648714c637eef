//! Crowds, shortage and clients that leave: what one stream does hurts no other, and nothing stays behind.
use crate::relay_scene::{DESK, Scene, inside, on, scene};
use crate::support::fleet::Fleet;
use crate::support::process::{descendants, signal_pid};
use crate::support::tcp::Client;
use crate::support::{PATIENCE, wait_for, wait_until};
use rustix::process::{Pid, Resource, Rlimit, Signal, getrlimit, prlimit, setrlimit};
use std::io::{Read, Write};
use std::net::{Shutdown, TcpStream};
use std::thread;
use std::time::Duration;

fn on_loopback() -> Scene {
    on(Fleet::on_loopback(&["authority", "data", "other", "desk"]), true)
}

/// Descriptors that a process has open.
fn descriptors(pid: u32) -> usize {
    std::fs::read_dir(format!("/proc/{pid}/fd")).map_or(0, Iterator::count)
}

/// Allows a process so many descriptors, until told otherwise; what it was allowed before.
fn allow(pid: u32, count: Option<u64>) -> Option<u64> {
    let pid = Pid::from_raw(i32::try_from(pid).unwrap());
    let maximum = getrlimit(Resource::Nofile).maximum;
    prlimit(pid, Resource::Nofile, Rlimit { current: count, maximum }).unwrap().current
}

/// The process on `data` that carries the multiplex of the desk.
fn relay_on_data(scene: &Scene) -> u32 {
    let sshd = scene.fleet.hosts[1].sshd.as_ref().unwrap().pid();
    wait_for("the relay on data", PATIENCE, || {
        descendants(sshd).into_iter().find(|pid| {
            let line = std::fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
            let words: Vec<&[u8]> = line.split(|b| *b == 0).collect();
            words.ends_with(&[b"resolver", b"relay", b""])
        })
    })
}

#[test]
fn descriptors_that_run_out_on_the_far_side_refuse_new_streams_and_hurt_no_open_one() {
    needs!("sshd");
    let mut scene = on_loopback();
    let mut open = Client::connect(("127.0.0.1", scene.orders)).unwrap();
    assert_eq!(open.ask("1").as_deref(), Some("orders:1"));
    let relay = relay_on_data(&scene);
    let before = allow(relay, Some(descriptors(relay) as u64));
    wait_until("a new stream is refused", PATIENCE, || scene.asks(scene.orders, "2").is_none());
    assert_eq!(open.ask("3").as_deref(), Some("orders:3"));
    assert_eq!(scene.asks(scene.notes, "4").as_deref(), Some("notes:4"), "another host");
    scene.fleet.host("desk").daemon().expect("Too many open files");
    allow(relay, before);
    scene.comes_back(scene.orders, "orders");
    assert_eq!(open.ask("5").as_deref(), Some("orders:5"));
    assert_eq!(relay_on_data(&scene), relay, "the relay lives");
}

#[test]
fn descriptors_that_run_out_on_the_near_side_hold_new_clients_and_hurt_no_open_one() {
    needs!("sshd");
    let mut scene = on_loopback();
    let mut open = Client::connect(("127.0.0.1", scene.orders)).unwrap();
    assert_eq!(open.ask("1").as_deref(), Some("orders:1"));
    assert_eq!(scene.asks(scene.notes, "1").as_deref(), Some("notes:1"));
    let daemon = scene.fleet.host("desk").daemon().pid();
    let before = allow(daemon, Some(descriptors(daemon) as u64 + 8));
    let crowd: Vec<_> = (0..40).map(|_| scene.connect(scene.notes)).collect();
    for n in 0..20 {
        assert_eq!(open.ask(&n.to_string()), Some(format!("orders:{n}")));
    }
    drop(crowd);
    allow(daemon, before);
    scene.comes_back(scene.orders, "orders");
    scene.comes_back(scene.notes, "notes");
    assert_eq!(open.ask("2").as_deref(), Some("orders:2"));
}

#[test]
fn nine_thousand_connections_to_a_silent_service_hold_no_other_and_leave_nothing_behind() {
    needs!("sshd", "descriptors");
    const CROWD: usize = 9000;
    // Both ends of the crowd are in this process.
    let maximum = getrlimit(Resource::Nofile).maximum;
    setrlimit(Resource::Nofile, Rlimit { current: maximum, maximum }).unwrap();
    let mut scene = on_loopback();
    assert_eq!(scene.asks(scene.orders, "1").as_deref(), Some("orders:1"));
    let daemon = scene.fleet.host("desk").daemon().pid();
    let before = descriptors(daemon);
    let port = scene.sink;
    let crowd: Vec<TcpStream> = thread::scope(|scope| {
        let part = || (0..CROWD / 6).map(|_| TcpStream::connect(("127.0.0.1", port)).unwrap()).collect::<Vec<_>>();
        let running: Vec<_> = (0..6).map(|_| scope.spawn(part)).collect();
        running.into_iter().flat_map(|thread| thread.join().unwrap()).collect()
    });
    for mut stream in &crowd {
        // Who is beyond the limit is closed already.
        let _ = stream.write_all(b"is anybody there");
    }
    assert_eq!(scene.asks(scene.orders, "2").as_deref(), Some("orders:2"), "another service of the same host");
    assert_eq!(scene.asks(scene.notes, "3").as_deref(), Some("notes:3"));
    // As many as a service may have still stand, and the others were told at once: none was ended for those after it.
    let stands = |mut stream: &TcpStream| {
        stream.set_nonblocking(true).unwrap();
        matches!(stream.read(&mut [0; 1]), Err(error) if error.kind() == std::io::ErrorKind::WouldBlock)
    };
    let standing = crowd.iter().filter(|stream| stands(stream)).count();
    assert!((3000..=4096).contains(&standing), "{standing} stand");
    drop(crowd);
    wait_until("their descriptors are given back", 2 * PATIENCE, || descriptors(daemon) < before + 50);
    assert_eq!(scene.asks(scene.orders, "4").as_deref(), Some("orders:4"));
}

#[test]
fn clients_that_leave_at_every_phase_leave_nothing_behind() {
    needs!("sshd");
    let mut scene = on_loopback();
    assert_eq!(scene.asks(scene.orders, "1").as_deref(), Some("orders:1"));
    let daemon = scene.fleet.host("desk").daemon().pid();
    let relay = relay_on_data(&scene);
    let before = (descriptors(daemon), descriptors(relay));
    let reset = |stream: TcpStream| {
        rustix::net::sockopt::set_socket_linger(&stream, Some(Duration::ZERO)).unwrap();
    };
    for _ in 0..20 {
        // Before a byte, with a close and with a reset.
        drop(scene.connect(scene.orders));
        reset(scene.connect(scene.orders));
        // With a question that is never read.
        let mut asked = scene.connect(scene.orders);
        asked.write_all(b"who is there\n").unwrap();
        drop(asked);
        // Half closed, then gone.
        let mut half = scene.connect(scene.orders);
        half.write_all(b"half\n").unwrap();
        half.shutdown(Shutdown::Write).unwrap();
        reset(half);
        // In the midst of an upload.
        let mut up = scene.connect(scene.sink);
        up.write_all(&[7; 300_000]).unwrap();
        reset(up);
        // In the midst of an answer.
        let mut down = scene.connect(scene.orders);
        down.write_all(&[b"x".repeat(200_000), b"\n".to_vec()].concat()).unwrap();
        down.read_exact(&mut [0; 10]).unwrap();
        drop(down);
    }
    // While the way is made: the host's sshd stands still.
    let sshd = scene.fleet.host("data").sshd.as_ref().unwrap().pid();
    let all: Vec<u32> = descendants(sshd).into_iter().chain([sshd]).collect();
    all.iter().for_each(|pid| signal_pid(*pid, Signal::STOP));
    let waiting: Vec<_> = (0..20).map(|_| scene.connect(scene.orders)).collect();
    drop(waiting);
    all.iter().for_each(|pid| signal_pid(*pid, Signal::CONT));
    scene.comes_back(scene.orders, "orders");
    wait_until("nothing stays behind", 2 * PATIENCE, || {
        let streams = |link: &serde_json::Value| link["streams"].as_u64().unwrap_or(0);
        let links = scene.fleet.hosts[DESK].published()["links"].as_array().cloned().unwrap_or_default();
        // A session that was replaced meanwhile may stand for a while, with its descriptors.
        descriptors(daemon) <= before.0 + 6 && links.iter().map(streams).sum::<u64>() == 0
    });
    let relay = relay_on_data(&scene);
    wait_until("nor on the far side", PATIENCE, || descriptors(relay) <= before.1 + 4);
}

#[test]
fn a_relay_that_stands_still_is_replaced_and_its_host_still_serves() {
    needs!("sshd");
    let scene = on_loopback();
    assert_eq!(scene.asks(scene.orders, "1").as_deref(), Some("orders:1"));
    let relay = relay_on_data(&scene);
    signal_pid(relay, Signal::STOP);
    scene.comes_back(scene.orders, "orders");
    assert_eq!(scene.asks(scene.notes, "2").as_deref(), Some("notes:2"));
    signal_pid(relay, Signal::CONT);
    assert_eq!(scene.asks(scene.orders, "3").as_deref(), Some("orders:3"));
}

#[test]
fn a_stopped_authority_stops_no_relay_and_its_changes_arrive_when_it_goes_on() {
    needs!("netns", "sshd");
    let mut scene = scene(true);
    let mut open = inside(&scene.fleet, DESK, || Client::connect(("127.0.0.1", scene.orders)).unwrap());
    assert_eq!(open.ask("1").as_deref(), Some("orders:1"));
    let sshd = scene.fleet.host("authority").sshd.as_ref().unwrap().pid();
    let all: Vec<u32> = descendants(sshd).into_iter().chain([sshd]).collect();
    all.iter().for_each(|pid| signal_pid(*pid, Signal::STOP));
    assert_eq!(open.ask("2").as_deref(), Some("orders:2"));
    assert_eq!(scene.asks(scene.notes, "3").as_deref(), Some("notes:3"));
    let elsewhere = scene.fleet.registry["service_directory"]["services"]["orders"]["endpoints"]["data"]["url"].clone();
    let port = elsewhere.as_str().unwrap().rsplit_once(':').unwrap().1.parse().unwrap();
    scene.fleet.moved("notes", port);
    scene.fleet.push("authority").ok();
    all.iter().for_each(|pid| signal_pid(*pid, Signal::CONT));
    scene.fleet.host("desk").holds(2);
    assert_eq!(scene.asks(scene.orders, "4").as_deref(), Some("orders:4"));
}

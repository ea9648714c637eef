//! What breaks between hosts, on networks of their own: nothing that does not depend on it stops, and it comes back.
use crate::relay_scene::{DESK, inside, on, scene};
use crate::support::fleet::Fleet;
use crate::support::process::{descendants, signal_pid};
use crate::support::tcp::Client;
use crate::support::{PATIENCE, wait_for, wait_until};
use rustix::process::Signal;
use std::io::{Read, Write};
use std::time::Duration;

#[test]
fn a_stopped_sshd_is_found_mute_and_a_new_session_serves() {
    needs!("netns", "sshd");
    let mut scene = scene(true);
    assert_eq!(scene.asks(scene.orders, "1").as_deref(), Some("orders:1"));
    let sshd = scene.fleet.host("data").sshd.as_ref().unwrap().pid();
    let sessions = descendants(sshd);
    sessions.iter().for_each(|pid| signal_pid(*pid, Signal::STOP));
    // The listener lives: a new session is to be had, without waiting for the keepalives of the old one.
    scene.comes_back(scene.orders, "orders");
    assert_eq!(scene.asks(scene.notes, "2").as_deref(), Some("notes:2"));
    sessions.iter().for_each(|pid| signal_pid(*pid, Signal::CONT));
    // And now the listener too.
    let all = || descendants(sshd).into_iter().chain([sshd]).collect::<Vec<_>>();
    let stopped = all();
    stopped.iter().for_each(|pid| signal_pid(*pid, Signal::STOP));
    assert_eq!(scene.asks(scene.orders, "3"), None, "it is refused within its budget, not held for ever");
    assert_eq!(scene.asks(scene.notes, "4").as_deref(), Some("notes:4"));
    stopped.iter().for_each(|pid| signal_pid(*pid, Signal::CONT));
    scene.comes_back(scene.orders, "orders");
}

#[test]
fn a_changed_host_key_stops_that_host_alone_and_names_both_keys() {
    needs!("sshd");
    let mut scene = on(Fleet::on_loopback(&["authority", "data", "other", "desk"]), true);
    assert_eq!(scene.asks(scene.orders, "1").as_deref(), Some("orders:1"));
    let mut open = inside(&scene.fleet, DESK, || Client::connect(("127.0.0.1", scene.notes)).unwrap());
    assert_eq!(open.ask("1").as_deref(), Some("notes:1"));
    let data = scene.fleet.host("data");
    let old = data.home.read("sshd/host_key.pub");
    let mut sshd = data.sshd.take().unwrap();
    sshd.down();
    for file in ["sshd/host_key", "sshd/host_key.pub"] {
        std::fs::remove_file(data.home.file(file)).unwrap();
    }
    crate::support::sshd::keygen(&data.home.file("sshd/host_key"));
    sshd.up(&data.home);
    data.sshd = Some(sshd);
    let new = data.home.read("sshd/host_key.pub");
    let orders = scene.orders;
    wait_until("the connection is refused", PATIENCE, || scene.asks(orders, "2").is_none());
    let desk = scene.fleet.host("desk");
    let known = desk.home.file(".ssh/known_hosts");
    let log = wait_for("the log to name the keys", PATIENCE, || {
        let log = desk.daemon().log();
        log.contains("has changed").then_some(log)
    });
    for part in [fingerprint(&old), fingerprint(&new), format!("{}:2", known.display())] {
        assert!(log.contains(&part), "{part} is not in\n{log}");
    }
    assert_eq!(open.ask("3").as_deref(), Some("notes:3"));
    assert_eq!(scene.asks(scene.notes, "4").as_deref(), Some("notes:4"));
    // A person who has compared the keys writes the new one down.
    let desk = scene.fleet.host("desk");
    let words = |key: &str| key.split(' ').take(2).collect::<Vec<_>>().join(" ");
    let text = desk.home.read(".ssh/known_hosts").replace(&words(&old), &words(&new));
    desk.home.write(".ssh/known_hosts", text);
    scene.comes_back(orders, "orders");
}

/// As `ssh-keygen -l` prints it.
fn fingerprint(public: &str) -> String {
    use std::process::Command;
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("key.pub");
    std::fs::write(&file, public).unwrap();
    let out = crate::support::process::run(Command::new("ssh-keygen").arg("-lf").arg(&file)).ok().stdout;
    out.split(' ').nth(1).unwrap().to_owned()
}

#[test]
fn many_connections_to_a_silent_service_hold_no_other() {
    needs!("netns", "sshd");
    let scene = scene(true);
    let mut silent: Vec<_> = (0..300).map(|_| scene.connect(scene.sink)).collect();
    for stream in &mut silent {
        stream.write_all(b"is anybody there").unwrap();
    }
    assert_eq!(scene.asks(scene.orders, "1").as_deref(), Some("orders:1"), "another service of the same host");
    assert_eq!(scene.asks(scene.notes, "2").as_deref(), Some("notes:2"));
    // They still stand: none was ended for those after it.
    for stream in &silent {
        stream.set_read_timeout(Some(Duration::from_millis(1))).unwrap();
        let error = (&mut &*stream).read(&mut [0; 1]).unwrap_err();
        assert!(matches!(error.kind(), std::io::ErrorKind::WouldBlock | std::io::ErrorKind::TimedOut), "{error}");
    }
}

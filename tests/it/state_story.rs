//! The state file in bad hands: nothing is lost, nothing is promised that is not on disk.
use crate::support::disk::Small;
use crate::support::home::{DEVMESHD, Home};
use crate::support::process::{Process, run};
use crate::support::tcp::{ask, echo};
use crate::support::{PATIENCE, wait_until};

const STATE: &str = ".config/devmesh/state.json";

fn serve(home: &Home) -> Process {
    let mut daemon = home.start("devmeshd", DEVMESHD, &["serve", "--docker-enabled=false"]);
    wait_until("the daemon answers", PATIENCE, || {
        assert!(daemon.ended().is_none(), "{}", daemon.log());
        home.devmesh(&["health"]).code == 0
    });
    daemon
}

fn register(home: &Home, name: &str) -> crate::support::process::Run {
    home.devmesh(&["register", "--name", name, "--backend", &echo(name).to_string(), "--ttl", "600", "--once"])
}

fn endpoint(home: &Home, name: &str) -> String {
    home.devmesh(&["services", "inspect", name, "--format", "json"]).ok().json()[0]["frontend"].as_str().unwrap().into()
}

/// What was set aside beside the state file.
fn copies(home: &Home) -> Vec<Vec<u8>> {
    let entries = home.file(STATE).parent().unwrap().read_dir().unwrap().flatten();
    let names = entries.filter(|entry| entry.file_name().to_string_lossy().starts_with("state.json.corrupt."));
    names.map(|entry| std::fs::read(entry.path()).unwrap()).collect()
}

#[test]
fn on_a_full_disk_a_registration_fails_its_port_is_free_again_and_no_old_one_is_lost() {
    needs!("tmpfs");
    let home = Home::new();
    let disk = Small::mount(&home.file(".config/devmesh"), 64);
    let daemon = serve(&home);
    register(&home, "old.one").ok();
    let (before, state) = (endpoint(&home, "old.one"), home.read(STATE));

    let filler = disk.fill();
    let refused = register(&home, "new.one").exits(1);
    assert!(refused.stderr.contains("internal_error: allocate frontend: "), "{}", refused.stderr);
    home.devmesh(&["services", "resolve", "new.one"]).exits(1);
    assert_eq!(home.read(STATE), state, "the old file is whole");
    assert_eq!(ask(&before, "x").as_deref(), Some("old.one:x"), "what was promised is served on");
    let (low, high) = home.frontends();
    let free = |port: u16| std::net::TcpListener::bind(("127.0.0.1", port)).is_ok();
    assert_eq!((low..=high).filter(|port| !free(*port)).count(), 1, "only the old frontend is bound");

    std::fs::remove_file(filler).unwrap();
    register(&home, "new.one").ok();
    let after = endpoint(&home, "new.one");
    daemon.kill9();
    let _daemon = serve(&home);
    assert_eq!((endpoint(&home, "old.one"), endpoint(&home, "new.one")), (before, after));
}

#[test]
fn a_truncated_file_and_one_of_zeros_are_set_aside_whole_and_the_daemon_starts() {
    let whole = r#"{"version":1,"tcp_ports":{"a.b":20001,"c.d":20002}}"#;
    for broken in [whole.as_bytes()[..whole.len() / 2].to_vec(), vec![0; 4096], b"\xff\xfe".to_vec(), b"[1]".to_vec()] {
        let home = Home::new();
        home.write(STATE, &broken);
        let daemon = serve(&home);
        assert_eq!(copies(&home), std::slice::from_ref(&broken));
        assert_eq!(std::fs::read(home.file(STATE)).unwrap(), broken, "the original stays until the next save");
        register(&home, "e.f").ok();
        let kept = endpoint(&home, "e.f");
        daemon.kill9();
        let _daemon = serve(&home);
        assert_eq!(endpoint(&home, "e.f"), kept);
        assert_eq!(copies(&home), [broken]);
    }
}

#[test]
fn an_empty_file_is_an_empty_state() {
    let home = Home::new();
    home.write(STATE, "");
    let _daemon = serve(&home);
    register(&home, "a").ok();
    assert!(copies(&home).is_empty());
}

#[test]
fn a_file_of_a_newer_daemon_refuses_the_start_and_is_not_touched() {
    let home = Home::new();
    let newer = r#"{"version":2,"tcp_ports":{"a":20001},"more":true}"#;
    home.write(STATE, newer);
    let refused = run(&mut home.command(DEVMESHD, &["serve", "--docker-enabled=false"])).exits(1);
    let path = home.file(STATE);
    let sentence =
        format!("state file {} has unsupported version 2 (want <= 1); refusing to overwrite", path.display());
    assert!(refused.stderr.contains(&sentence), "{}", refused.stderr);
    assert_eq!(home.read(STATE), newer);
    assert!(copies(&home).is_empty());
    assert!(!home.file(".devmesh/run/devmesh.sock").exists());
}

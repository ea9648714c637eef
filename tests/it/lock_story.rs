//! What another process holds is waited for, told with its file, and had when it is given back (design, rule 4).
use crate::support::home::{Home, STADO};
use crate::support::process::Process;
use crate::support::{PATIENCE, wait_until};
use rustix::process::Signal;
use serde_json::json;
use sha2::{Digest, Sha256};
use std::fs::File;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::path::PathBuf;
use std::thread;

const TOKEN: &str = "the-token-of-notes";

/// A host whose registry is in its own directory, which an object API serves.
fn served() -> (Home, Process, String) {
    let mut home = Home::new();
    home.set("STADO_TARGET", "a");
    let registry = json!({"schema_version": 2, "coordinators": [], "channels": {}, "targets": [
        {"name": "a", "kind": "local", "release_platform": "linux-amd64", "ssh": "ops@192.0.2.1"}
    ]});
    let file = home.write("registry.json", registry.to_string());
    home.stado(&["registry", "push", file.to_str().unwrap()]).ok();
    let (server, url) = home.serve_objects(TOKEN);
    (home, server, url)
}

fn of_object(home: &Home, path: &str) -> PathBuf {
    home.file(&format!(".stado/local-storage/.locks/{}", hex::encode(Sha256::digest(path))))
}

/// Holds a lock as another process would.
fn held(path: PathBuf) -> (String, File) {
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    let file = File::options().create(true).truncate(false).write(true).open(&path).unwrap();
    file.lock().unwrap();
    (path.to_str().unwrap().to_owned(), file)
}

/// One PUT of an object; the status that answers it.
fn put(url: &str, object: &str) -> thread::JoinHandle<String> {
    let (address, object) = (url.trim_start_matches("http://").to_owned(), object.to_owned());
    thread::spawn(move || {
        let mut stream = TcpStream::connect(address).unwrap();
        stream.set_read_timeout(Some(2 * PATIENCE)).unwrap();
        let head =
            format!("PUT /api/object?uri={object} HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {TOKEN}\r\n");
        write!(stream, "{head}Content-Length: 3\r\n\r\nnew").unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        answer.split(' ').nth(1).unwrap_or_default().to_owned()
    })
}

#[test]
fn a_wait_for_a_lock_is_told_with_its_file_and_ends_when_it_is_given_back() {
    let (home, server, url) = served();
    home.stado(&["vault", "init", "--key", "file"]).ok();
    home.stado(&["database", "declare", "orders", "--engine", "sqlite", "--scope", "read"]).ok();
    let locks = [
        held(home.file(".stado/vault/vault.lock")),
        held(home.file(".stado/.config.json.lock")),
        held(of_object(&home, "registry.json")),
        held(of_object(&home, "ecosystem/probierz/a")),
    ];
    let answer = put(&url, "stado://probierz/a");
    let verbs: [(&str, &[&str]); 3] = [
        ("put", &["vault", "put", "token", "--generate"]),
        ("grant", &["database", "grant", "orders", "shop"]),
        ("set", &["registry", "set", "--path", "channels.notes", "--value", "x"]),
    ];
    let mut waiting: Vec<Process> = verbs.iter().map(|(name, args)| home.start(name, STADO, args)).collect();
    let told = |process: &Process, lock: &str| process.log().contains(&format!("; gdzie: {lock}; rodzaj: lock; od: "));
    for (process, (lock, _)) in waiting.iter().chain([&server]).zip(&locks) {
        wait_until(&format!("the wait for {lock} is told"), PATIENCE, || told(process, lock));
    }
    assert!(waiting.iter_mut().all(|process| process.ended().is_none()));
    assert!(server.log().contains("czekam: exclusive lock of stado://probierz/a; gdzie: "), "{}", server.log());
    drop(locks);
    for process in &mut waiting {
        assert!(process.wait().success(), "{}", process.log());
        assert!(process.log().contains("koniec czekania: "), "{}", process.log());
    }
    assert_eq!(answer.join().unwrap(), "200");
    let shown = home.stado(&["database", "resolve", "orders", "--consumer", "shop"]).ok().stdout;
    assert!(shown.contains("engine=sqlite"), "{shown}");
    assert_eq!(home.stado(&["registry", "pull", "--path", "channels.notes"]).ok().stdout, "x\n");
}

#[test]
fn a_writer_that_is_frozen_with_the_stores_lock_holds_the_next_one_which_says_so() {
    needs!("python3");
    let (home, _server, _) = served();
    // Stopped in the middle of a write, as a debugger or a full disk would leave it.
    let lock = of_object(&home, "registry.json");
    let script = "import fcntl,os,signal,sys\nf=open(sys.argv[1],'a')\nfcntl.flock(f,2)\nprint('held',flush=True)\nsignal.pause()";
    let python = crate::support::program("python3").unwrap();
    let mut holder = home.start("holder", python, &["-c", script, lock.to_str().unwrap()]);
    holder.expect("held");
    holder.signal(Signal::STOP);
    let mut writer = home.start("set", STADO, &["registry", "set", "--path", "channels.notes", "--value", "x"]);
    writer.expect(&format!("czekam: exclusive lock of the registry; gdzie: {}; rodzaj: lock; od: ", lock.display()));
    // Readers need no lock.
    assert!(home.stado(&["registry", "self", "--name-only"]).ok().stdout.starts_with('a'));
    holder.kill9();
    assert!(writer.wait().success(), "{}", writer.log());
    assert_eq!(home.stado(&["registry", "pull", "--path", "channels.notes"]).ok().stdout, "x\n");
}

//! Programs that are registered from outside: `service run`, `register` that stays, and who waits for them.
use crate::support::home::{DEVMESH, DEVMESHD, Home, STADO};
use crate::support::process::{Process, signal_pid};
use crate::support::tcp::{ask, echo};
use crate::support::{PATIENCE, program, wait_for, wait_until};
use rustix::process::Signal;

/// Answers a line with its own pid; ends by itself after a while, should a test fail before it does.
const SERVER: &str = "import os,signal,socket\n\
    signal.alarm(120)\n\
    l = socket.create_server(('127.0.0.1', int(os.environ['PORT'])))\n\
    open('server.pid', 'w').write(str(os.getpid()))\n\
    while True:\n    c, _ = l.accept(); c.recv(9); c.sendall(b'%d\\n' % os.getpid()); c.close()\n";

fn daemon(home: &Home) -> Process {
    let daemon = home.start("devmeshd", DEVMESHD, &["serve", "--docker-enabled=false"]);
    wait_until("the daemon answers", PATIENCE, || home.devmesh(&["health"]).code == 0);
    daemon
}

fn raw(home: &Home, name: &str) -> Option<String> {
    let run = home.devmesh(&["services", "resolve", name, "--raw"]);
    (run.code == 0).then(|| run.stdout.trim().to_owned())
}

fn pid_file(home: &Home) -> Option<u32> {
    std::fs::read_to_string(home.file("server.pid")).ok()?.parse().ok()
}

#[test]
fn the_listener_is_followed_and_not_the_first_process() {
    needs!("python3");
    let home = Home::new();
    let _daemon = daemon(&home);
    let server = home.write("server.py", SERVER);
    // The wrapper starts the server, leaves, and its exit code is the one that counts.
    let wrapper = format!("{} {} & exit 3", program("python3").unwrap().display(), server.display());
    let mut run = home.start("run", STADO, &["service", "run", "web", "--", "sh", "-c", &wrapper]);
    let address = wait_for("web is ready", PATIENCE, || raw(&home, "web"));
    let pid = wait_for("the server's pid", PATIENCE, || pid_file(&home));
    assert_eq!(ask(&address, "x"), Some(pid.to_string()));
    assert!(run.ended().is_none(), "the listener is still there");

    signal_pid(pid, Signal::KILL);
    assert_eq!(run.wait().code(), Some(3));
    assert_eq!(raw(&home, "web"), None);
}

#[test]
fn a_program_that_a_signal_ends_or_that_cannot_start_is_told_as_shells_do() {
    needs!("python3");
    let home = Home::new();
    let _daemon = daemon(&home);
    let server = home.write("server.py", SERVER);
    let python = program("python3").unwrap();
    let args = ["service", "run", "web", "--", python.to_str().unwrap(), server.to_str().unwrap()];
    let mut run = home.start("run", STADO, &args);
    wait_for("web is ready", PATIENCE, || raw(&home, "web"));
    signal_pid(wait_for("the server's pid", PATIENCE, || pid_file(&home)), Signal::KILL);
    assert_eq!(run.wait().code(), Some(128 + 9));

    let absent = home.stado(&["service", "run", "web", "--", "/nowhere/at-all"]).exits(1);
    assert!(absent.stderr.contains("cannot run /nowhere/at-all: "), "{}", absent.stderr);
    let needs = ["service", "run", "web", "--with", "no.such", "--wait", "300ms", "--", "true"];
    let missing = home.stado(&needs).exits(1);
    assert!(missing.stderr.contains("waiting for no.such"), "{}", missing.stderr);
    assert!(missing.stderr.contains("service_not_found: service no.such is unknown"), "{}", missing.stderr);
}

#[test]
fn register_keeps_its_lease_through_a_killed_daemon_until_it_is_told_to_stop() {
    let home = Home::new();
    let first = daemon(&home);
    let backend = echo("x").to_string();
    let mut register = home.start(
        "register",
        DEVMESH,
        &["register", "--name", "a", "--backend", &backend, "--ttl", "3", "--format", "jsonl"],
    );
    let waited = home.devmesh(&["services", "resolve", "a", "--raw", "--wait", "20s"]).ok().stdout;
    let address = waited.trim();
    register.expect(&format!(r#""endpoint":"{address}""#));
    let id = |home: &Home| {
        home.devmesh(&["services", "inspect", "a", "--format", "json"]).ok().json()[0]["producer_id"].clone()
    };
    let before = id(&home);
    first.kill9();
    register.expect("not renewed since ");
    let _second = daemon(&home);
    register.expect(&format!("registered again at {address}"));
    assert_ne!(id(&home), before);
    assert_eq!(ask(address, "1").as_deref(), Some("x:1"));
    register.signal(Signal::TERM);
    assert!(register.wait().success());
    assert_eq!(raw(&home, "a"), None);
    assert_eq!(home.devmesh(&["services", "resolve", "a", "--raw", "--wait", "300ms"]).code, 1);
}

#[test]
fn who_waits_is_told_when_a_service_comes() {
    let home = Home::new();
    let _daemon = daemon(&home);
    let mut waiting = home.start("wait", STADO, &["service", "wait", "b", "c", "--for", "60s"]);
    for name in ["c", "b"] {
        home.devmesh(&["register", "--name", name, "--backend", &echo(name).to_string(), "--ttl", "60", "--once"]).ok();
    }
    assert!(waiting.wait().success());
    let lines: Vec<String> = waiting.log().lines().map(|line| line.split(' ').next().unwrap().to_owned()).collect();
    assert_eq!(lines, ["b", "c"]);
    let late = home.stado(&["service", "wait", "never", "--for", "200ms"]).exits(1);
    assert!(late.stderr.contains("service never is unknown"), "{}", late.stderr);
}

#[test]
fn a_name_that_no_daemon_takes_runs_nothing_and_a_program_that_does_not_listen_is_told_about() {
    let home = Home::new();
    let _daemon = daemon(&home);
    let ran = home.file("ran");
    let touch = format!("touch {}", ran.display());
    for args in [&["BAD-NAME"][..], &["web", "--with", "Not_A_Name"]] {
        let refused = home.stado(&[&["service", "run"], args, &["--", "sh", "-c", &touch]].concat()).exits(2);
        assert!(refused.stderr.contains("must match"), "{}", refused.stderr);
    }
    assert!(!ran.exists());
    let mut run = home.start("run", STADO, &["service", "run", "web", "--", "sleep", "60"]);
    run.expect("web: waiting for the program to listen on port ");
    run.expect("which its variable PORT names");
    run.signal(Signal::TERM);
    run.wait();
}

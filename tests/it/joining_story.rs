//! `stado fleet …` by the built program: a fleet from nothing, over the gate, with resolvers that the verbs start themselves.
use crate::support::home::{Home, STADO};
use crate::support::ports::{self, Lease};
use crate::support::process::{Run, run_with, signal_pid};
use crate::support::sshd::Sshd;
use crate::support::{PATIENCE, wait_for, wait_until};
use rustix::process::Signal;
use serde_json::{Value, json};
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::time::Instant;

/// An account whose resolver is started by the verbs under test, and ended with this value.
pub struct Machine {
    pub home: Home,
    gate: Lease,
    _api: Lease,
}

impl Machine {
    pub fn new() -> Self {
        let (home, gate, api) = (Home::new(), ports::one(), ports::one());
        home.write(".stado/config.json", format!(r#"{{"api_bind": "127.0.0.1:{}"}}"#, api.port()));
        Self { home, gate, _api: api }
    }

    /// Where its gate is to be, on an address of its own: one address is one host.
    pub fn gate(&self, n: u8) -> String {
        format!("127.0.7.{n}:{}", self.gate.port())
    }

    pub fn init(&self, n: u8) -> Run {
        let gate = self.gate(n);
        self.home.stado(&["fleet", "init", "--name", "tower", "--address", &gate, "--gate", &gate, "--json"])
    }

    pub fn invite(&self, args: &[&str]) -> String {
        let made = self.home.stado(&[&["fleet", "invite"], args].concat()).ok();
        assert!(made.stderr.contains("run `stado fleet join` there and paste this line"), "{}", made.stderr);
        made.stdout
    }

    pub fn join(&self, name: &str, invitation: &str, more: &[&str]) -> Run {
        let args = [&["fleet", "join", "--name", name, "--json"], more].concat();
        run_with(&mut self.home.command(STADO, &args), invitation.as_bytes())
    }

    /// The resolver that runs, by what it has published.
    pub fn pid(&self) -> Option<u32> {
        let state: Value = serde_json::from_str(&self.home.read(".stado/resolver-state.json")).ok()?;
        let pid = u32::try_from(state["pid"].as_u64()?).ok()?;
        // Never somebody else's process that has the number now.
        let environ = std::fs::read(format!("/proc/{pid}/environ")).ok()?;
        let home = format!("HOME={}", self.home.path().display()).into_bytes();
        environ.split(|b| *b == 0).any(|pair| pair == home).then_some(pid)
    }

    pub fn signal(&self, signal: Signal) {
        self.pid().into_iter().for_each(|pid| signal_pid(pid, signal));
    }
}

impl Drop for Machine {
    fn drop(&mut self) {
        self.signal(Signal::KILL);
        if std::thread::panicking() {
            eprintln!("--- {}\n{}", self.home.path().display(), self.home.read(".stado/resolver.log"));
        }
    }
}

#[test]
fn a_fleet_from_nothing_and_out_of_it_again() {
    let (tower, laptop) = (Machine::new(), Machine::new());
    let made = tower.init(1).ok().json();
    assert_eq!((&made["created"], &made["resolver"]), (&true.into(), &"started".into()), "{made}");
    let again = tower.init(1).ok().json();
    assert_eq!((&again["created"], &again["resolver"]), (&false.into(), &"running".into()), "{again}");

    let invitation = tower.invite(&["--name", "laptop"]);
    assert_eq!(invitation.lines().count(), 1, "the line and nothing else: it goes into a pipe");
    let refused = laptop.join("other", &invitation, &[]);
    assert!(refused.exits(1).stderr.contains("is for laptop alone, and this host asks to join as other"));
    // The same home, another name: what was begun is not held against it.
    let joined = laptop.join("laptop", &invitation, &[]).ok().json();
    assert_eq!(
        (&joined["authority"], &joined["hosts"], &joined["resolver"]),
        (&"tower".into(), &2.into(), &"started".into())
    );
    let status = laptop.home.stado(&["resolver", "status"]);
    assert!(status.exits(0).stdout.contains("ready"));
    let known = laptop.home.read(".stado/known_hosts");
    assert!(known.ends_with(" stado:tower\n"), "{known}");

    let thief = Machine::new();
    let reused = thief.join("thief", &invitation, &[]).exits(1).stderr;
    assert!(reused.contains("was used already") && reused.contains("by laptop from 127.0.0.1"), "{reused}");
    wait_until("tower is told", PATIENCE, || {
        tower.home.stado(&["resolver", "status"]).stdout.contains("may have stolen it")
    });
    let listed = tower.home.stado(&["fleet", "invitations", "--seen"]).ok().stdout;
    assert!(listed.contains("used by laptop from 127.0.0.1") && listed.contains("refused (used): thief"), "{listed}");
    assert!(!tower.home.read(".stado/gate/invitations.json").contains(invitation.trim()), "no secret is kept");

    let left = laptop.home.stado(&["fleet", "leave", "--json"]).ok().json();
    assert_eq!((&left["registry_told"], &left["resolver_restarted"]), (&true.into(), &true.into()));
    assert!(laptop.home.stado(&["fleet", "leave"]).ok().stdout.contains("is in no fleet"), "twice is once");
    let hosts = tower.home.stado(&["registry", "pull", "--path", "targets"]).ok().stdout;
    assert!(hosts.contains("tower") && !hosts.contains("laptop"), "{hosts}");
    let back = tower.invite(&[]);
    assert_eq!(laptop.join("laptop", &back, &[]).ok().json()["resolver"], "restarted", "and in again");
    assert!(tower.home.stado(&["fleet", "leave"]).exits(1).stderr.contains("this host keeps the registry"));
    // Who was given a used one and then one that is not pastes that one.
    let fresh = tower.invite(&[]);
    assert_eq!(thief.join("guest", &fresh, &["--no-start"]).ok().json()["target"], "guest");
}

/// Everything that any account of this machine can see of a process, and what its owner can.
fn seen_in_processes(what: &str) -> Vec<String> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir("/proc").unwrap().flatten() {
        for file in ["cmdline", "environ"] {
            let bytes = std::fs::read(entry.path().join(file)).unwrap_or_default();
            if String::from_utf8_lossy(&bytes).contains(what) {
                found.push(format!("{} of {}", file, entry.file_name().to_string_lossy()));
            }
        }
    }
    found
}

#[test]
fn nothing_secret_is_in_a_process_list_while_a_host_joins_and_a_killed_join_goes_on() {
    let (tower, laptop) = (Machine::new(), Machine::new());
    tower.init(2).ok();
    let invitation = tower.invite(&[]);
    tower.signal(Signal::STOP);
    let file = laptop.home.write("invitation", &invitation);
    // As typed: `stado fleet join < invitation`.
    let script = format!("exec {STADO} fleet join --name laptop < {}", file.display());
    let mut joining = laptop.home.start("join", "/bin/sh", &["-c", &script]);
    wait_until("it asks", PATIENCE, || {
        assert!(joining.ended().is_none(), "{}", joining.log());
        laptop.home.file(".stado/joining-key").exists()
    });
    let secret = invitation.trim();
    assert_eq!(seen_in_processes(secret), Vec::<String>::new());
    assert_eq!(seen_in_processes(&secret[secret.len() - 60..]), Vec::<String>::new());
    joining.kill9();
    tower.signal(Signal::CONT);
    let joined = laptop.join("laptop", "", &[]).ok();
    assert!(joined.stderr.contains("going on with the join that was begun here"), "{}", joined.stderr);
    assert_eq!(joined.json()["target"], "laptop");
    for left in [".stado/joining.json", ".stado/joining-key"] {
        assert!(!laptop.home.file(left).exists(), "{left}");
    }
}

#[test]
fn over_sshd_a_host_joins_and_uses_a_service_without_a_shell() {
    needs!("sshd");
    let (tower, laptop) = (Machine::new(), Machine::new());
    let sshd = Sshd::start(&tower.home, "127.0.7.30".parse().unwrap());
    let (address, keys) = (sshd.destination(), tower.home.file("sshd/authorized_keys"));
    tower.home.write("sshd/authorized_keys", "# a person's line\n");
    let place = ["--sshd", "--authorized-keys", keys.to_str().unwrap(), "--address", &address];
    let made = tower.home.stado(&[&["fleet", "init", "--name", "tower", "--json"], &place[..]].concat()).ok().json();
    assert!(sshd.known_host().contains(made["host_key"].as_str().unwrap()), "{made}");
    let invitation = tower.invite(&[]);
    laptop.join("laptop", &invitation, &[]).ok();
    let lines = tower.home.read("sshd/authorized_keys");
    assert!(lines.starts_with("# a person's line\nrestrict,command=") && lines.contains(" stado:laptop\n"), "{lines}");
    let reused = Machine::new().join("thief", &invitation, &[]).exits(1).stderr;
    assert!(reused.contains("was used already") && reused.contains("by laptop from 127.0.0.1"), "{reused}");

    let echo = crate::support::tcp::echo("tower");
    let port = ports::one();
    let mut registry = tower.home.stado(&["registry", "pull"]).ok().json();
    let (held_port, mute) = (ports::one(), TcpListener::bind("127.0.0.1:0").unwrap());
    let adapter = |service: &str, port: &Lease| json!({"service": service, "consumer": "me", "bind": format!("127.0.0.1:{}", port.port())});
    registry["targets"][0]["services"] = json!([{"name": "echo"}, {"name": "held"}]);
    registry["targets"][1]["service_resolver"]["adapters"] =
        json!([adapter("echo", &port), adapter("held", &held_port)]);
    let authority = registry.as_object_mut().unwrap().remove("empty_directory").unwrap()["authority"].clone();
    let service = |name: &str, at: String| {
        json!({"managed_service": name, "active_host": "tower",
        "endpoints": {"tower": {"url": format!("tcp://{at}")}}, "consumers": {"me": {"capabilities": []}}})
    };
    registry["service_directory"] = json!({"authority": authority, "generation": 2, "services": {
        "echo": service("echo", echo.to_string()), "held": service("held", mute.local_addr().unwrap().to_string())}});
    // From the host that joined: it may write.
    let push = run_with(
        &mut laptop.home.command(STADO, &["registry", "push", "-", "--force"]),
        registry.to_string().as_bytes(),
    );
    push.ok();
    let answer = wait_for("the route", PATIENCE, || crate::support::tcp::ask(("127.0.0.1", port.port()), "hello"));
    assert_eq!(answer, "tower:hello");

    // What the laptop may no longer use ends on the tower's side too, whatever the laptop's daemon does.
    let mut client = TcpStream::connect(("127.0.0.1", held_port.port())).unwrap();
    client.write_all(b"x").unwrap();
    let (mut far, _) = mute.accept().unwrap();
    far.read_exact(&mut [0; 1]).unwrap();
    laptop.signal(Signal::STOP);
    tower.home.stado(&["service", "directory", "consumer", "add", "held", "nobody"]).ok();
    tower.home.stado(&["service", "directory", "consumer", "remove", "held", "me"]).ok();
    let since = Instant::now();
    far.set_read_timeout(Some(PATIENCE)).unwrap();
    let ended = far.read(&mut [0; 1]);
    assert!(!matches!(&ended, Ok(1..)) && since.elapsed() < PATIENCE, "{ended:?}");
    eprintln!("ended after {:?}", since.elapsed());
    laptop.signal(Signal::CONT);
    drop(client);

    let key = laptop.home.file(".stado/resolver-ssh-key");
    let known = format!("UserKnownHostsFile={}", laptop.home.file(".stado/known_hosts").display());
    let port_of = sshd.at().port().to_string();
    let ssh = ["-i", key.to_str().unwrap(), "-o", &known, "-o", "IdentitiesOnly=yes", "-p", &port_of];
    let to = address.rsplit_once(':').unwrap().0;
    let shell = laptop.home.command("/usr/bin/ssh", &[&ssh[..], &[to, "id"]].concat());
    let refused = run_with(&mut { shell }, b"").exits(126);
    assert!(refused.stderr.contains("is none of its verbs") && refused.stdout.is_empty(), "{}", refused.stderr);
    let left = laptop.home.stado(&["fleet", "leave"]);
    left.ok();
    assert!(!tower.home.read("sshd/authorized_keys").contains("stado:laptop"));
}

#[test]
fn a_verb_that_cannot_be_done_says_what_is_to_be_done_first() {
    let home = Home::new();
    let says = |args: &[&str], code: i32, text: &str| {
        let run = run_with(&mut home.command(STADO, args), b"").exits(code);
        assert!(run.stderr.contains(text), "{args:?}: {}", run.stderr);
    };
    says(
        &["fleet", "join", "--name", "x"],
        2,
        "no invitation was given: `stado fleet invite` on the first host prints it",
    );
    says(&["fleet", "join", "stado1_abc"], 2, "unexpected argument");
    says(&["fleet", "invite"], 1, "");
    says(&["fleet", "invite", "--valid", "30d"], 2, "--valid \"30d\" must be a duration up to 7 days");
    says(&["fleet", "init", "--name", "Not A Name"], 2, "--name \"Not A Name\" must be a lowercase target identifier");
    let file = home.write("line", "hello");
    says(&["fleet", "join", "--name", "x", "--file", file.to_str().unwrap()], 1, "this is no invitation");
    let no_start = ["fleet", "init", "--name", "alone", "--address", "127.0.7.9:1", "--no-start"];
    assert!(home.stado(&no_start).ok().stderr.contains("start its resolver: `stado resolver serve`"));
    let invited = home.stado(&["fleet", "invite"]).ok();
    assert!(invited.stderr.contains("nobody can join yet: no resolver runs here"), "{}", invited.stderr);
}

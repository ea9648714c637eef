//! One desk with an adapter to each of many services: the hosts of some are out of reach, or forbid the channel, and some
//! services are the trouble themselves. All at once, in one daemon's life.
use super::said::Said;
use super::ssh::{self, Closed, Door, Far, Full, closer, liar};
use super::{ALL, Book, Group, NO_PAGE, Situation, page};
use crate::support::fleet::Fleet;
use crate::support::{PATIENCE, ports, wait_until};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::io::{Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::mpsc::channel;
use std::sync::{Arc, Condvar, Mutex};
use std::thread;
use std::time::{Duration, Instant};

const TEST: &str = "what_is_said_of_sessions_channels_and_services_names_the_hop_everywhere";

pub const SESSIONS: Group = Group {
    title: "The way to the host",
    shown: Ok(TEST),
    rows: &[
        Situation {
            id: "ssh-refused",
            broken: "Nobody listens at the host's SSH address",
            hop: "session",
            sentence: "primary: connect to …: Connection refused",
            cause: "sshd is not running there, or the path names another port",
            next: "start sshd on that host, or `stado registry host path set`",
            places: ALL,
        },
        Situation {
            id: "ssh-unanswered",
            broken: "The host's SSH address answers nothing at all",
            hop: "session",
            sentence: "primary: connect to …: no answer within 5s",
            cause: "the host is off, asleep or behind a filter that drops packets",
            next: "wake it, or declare a second path (`stado registry host path set`)",
            places: ALL,
        },
        Situation {
            id: "ssh-no-name",
            broken: "The name in the path does not resolve",
            hop: "session",
            sentence: "primary: the name no-such-host.invalid could not be resolved",
            cause: "a typing error, or a name that only another network knows",
            next: "correct the path, or write the address",
            places: ALL,
        },
        Situation {
            id: "ssh-mute",
            broken: "The SSH port takes connections and says nothing",
            hop: "session",
            sentence: "sent no SSH identification within 5s",
            cause: "sshd is stopped or overloaded, or something else listens there",
            next: "look at the host's load; `ssh -v` to the same address shows the same silence",
            places: ALL,
        },
        Situation {
            id: "ssh-stranger",
            broken: "Something that is no SSH server listens there",
            hop: "session",
            sentence: "what answers there is no SSH server: it said …HTTP/1.0 400",
            cause: "the path names another program's port",
            next: "correct the port of the path",
            places: ALL,
        },
        Situation {
            id: "ssh-turned-away",
            broken: "sshd turns the connection away",
            hop: "session",
            sentence: "the host turned the connection away: it said …Exceeded MaxStartups",
            cause: "too many logins at once for its MaxStartups",
            next: "it is tried again by itself; raise MaxStartups if it stays",
            places: ALL,
        },
        Situation {
            id: "ssh-closed",
            broken: "The SSH port closes at once",
            hop: "session",
            sentence: "the host closed the connection without an SSH identification",
            cause: "sshd is beyond its MaxStartups, or refuses this address",
            next: "see the log of that sshd",
            places: ALL,
        },
        Situation {
            id: "ssh-unknown-key",
            broken: "The host's key is not known here",
            hop: "session",
            sentence: "the host key …is not in …known_hosts",
            cause: "nobody has connected to that host yet",
            next: "compare the fingerprint, then connect once with `ssh`",
            places: ALL,
        },
        Situation {
            id: "ssh-changed-key",
            broken: "The host's key has changed",
            hop: "session",
            sentence: "has changed: …known_hosts:… has …the host offered …",
            cause: "the host was installed anew, or someone answers in its place",
            next: "compare the fingerprint on the host, then remove the line that is named",
            places: ALL,
        },
        Situation {
            id: "ssh-revoked-key",
            broken: "The host's key is revoked",
            hop: "session",
            sentence: "is marked @revoked at …known_hosts:",
            cause: "the key was declared lost",
            next: "give the host another key",
            places: ALL,
        },
        Situation {
            id: "ssh-key-refused",
            broken: "The host does not take this host's key",
            hop: "session",
            sentence: "SSH authentication as … failed: the host did not take …",
            cause: "the key is not in its authorized_keys",
            next: "add the public key that is named there",
            places: ALL,
        },
        Situation {
            id: "ssh-no-account",
            broken: "The account does not exist on the host",
            hop: "session",
            sentence: "SSH authentication as nobody-of-that-name at … failed: the host did not take …",
            cause: "the path names another login",
            next: "correct the login of the path",
            places: ALL,
        },
        Situation {
            id: "ssh-second-factor",
            broken: "The host asks for a second factor",
            hop: "session",
            sentence: "(the host asks for a second factor, which no one can give)",
            cause: "its AuthenticationMethods want more than a key",
            next: "exempt this key's login there",
            places: ALL,
        },
        Situation {
            id: "ssh-no-key",
            broken: "The key file is missing",
            hop: "session",
            sentence: "SSH authentication as … at alias-no-key failed: there is no key to offer; …/no-such-key is not there",
            cause: "`IdentityFile` of `~/.ssh/config` names a file that is gone",
            next: "make the key, or correct the line",
            places: ALL,
        },
        Situation {
            id: "ssh-open-key",
            broken: "The key file is open to others",
            hop: "session",
            sentence: "failed: there is no key to offer; …/open-key",
            cause: "others may read the private key, so it is not used",
            next: "`chmod 600` the file",
            places: ALL,
        },
        Situation {
            id: "ssh-proxy-command",
            broken: "`~/.ssh/config` wants a ProxyCommand",
            hop: "session",
            sentence: "Stado's own SSH runs no ProxyCommand; ProxyJump is honoured",
            cause: "the alias is reached through a program",
            next: "write `ProxyJump` in its place",
            places: ALL,
        },
        Situation {
            id: "ssh-jump",
            broken: "The jump host is away",
            hop: "session",
            sentence: "through the jump host ghost@127.0.7.203:…: connect to …: Connection refused",
            cause: "the host named by `ProxyJump` does not answer",
            next: "start its sshd, or take another way",
            places: ALL,
        },
    ],
};

pub const CHANNELS: Group = Group {
    title: "The channel on a standing session",
    shown: Ok(TEST),
    rows: &[
        Situation {
            id: "channel-forbidden",
            broken: "sshd forwards nothing",
            hop: "channel",
            sentence: "refused channel to …: administratively prohibited: open failed (its sshd forbids it",
            cause: "`AllowTcpForwarding no`",
            next: "`AllowTcpForwarding local`, at least for this login",
            places: ALL,
        },
        Situation {
            id: "channel-not-permitted",
            broken: "sshd forwards to other addresses only",
            hop: "channel",
            sentence: "refused channel to …: administratively prohibited: open failed (its sshd forbids it",
            cause: "`PermitOpen` lacks the service's address",
            next: "add the address that is named",
            places: ALL,
        },
        Situation {
            id: "channel-restricted-key",
            broken: "The key may not forward",
            hop: "channel",
            sentence: "refused channel to …: administratively prohibited: open failed (its sshd forbids it",
            cause: "`restrict` or `no-port-forwarding` before the key in authorized_keys",
            next: "add `port-forwarding` to that line",
            places: ALL,
        },
        Situation {
            id: "channel-mute",
            broken: "The channel is never answered",
            hop: "channel",
            sentence: "has waited …s to open a channel to …|did not answer the opening of a channel to …",
            cause: "the far host cannot reach the service's port: its queue of connections is full",
            next: "ask that host what answers there; `lsof` as named shows who waits here",
            places: NO_PAGE,
        },
    ],
};

pub const SERVICES: Group = Group {
    title: "The service",
    shown: Ok(TEST),
    rows: &[
        Situation {
            id: "service-down",
            broken: "Nobody listens at the service's address on its host",
            hop: "service",
            sentence: "refused channel to …: connect failed: …",
            cause: "the service is down, or listens elsewhere",
            next: "start it on that host, or correct its endpoint",
            places: ALL,
        },
        Situation {
            id: "service-far-half",
            broken: "On its host the service listens on the other loopback half",
            hop: "service",
            sentence: "refused channel to 127.0.0.1:…: connect failed: …",
            cause: "it listens on `[::1]` and the endpoint says 127.0.0.1",
            next: "write the endpoint as `localhost`, which is tried on both",
            places: ALL,
        },
        Situation {
            id: "service-local-down",
            broken: "The same, for a service of this host",
            hop: "service",
            sentence: "local upstream connect failed: 127.0.0.1:…: Connection refused|did not answer at http://127.0.0.1:…: Connection refused",
            cause: "the service is down, or listens elsewhere",
            next: "start it, or correct its endpoint",
            places: ALL,
        },
        Situation {
            id: "service-half",
            broken: "A service of this host listens on the other loopback half",
            hop: "service",
            sentence: "local upstream connect failed: 127.0.0.1:…: Connection refused|did not answer at http://127.0.0.1:…: Connection refused",
            cause: "it listens on `[::1]` and the endpoint says 127.0.0.1",
            next: "write the endpoint as `localhost`",
            places: ALL,
        },
        Situation {
            id: "service-full",
            broken: "A service of this host takes no more connections",
            hop: "service",
            sentence: "local upstream connect failed: 127.0.0.1:… did not answer within 2000 ms|did not answer at http://127.0.0.1:…: no answer within 5s",
            cause: "its queue of connections is full: it is stopped, or far too slow",
            next: "look at the process",
            places: ALL,
        },
        Situation {
            id: "service-closes",
            broken: "The service closes without an answer",
            hop: "service",
            sentence: "it closed the connection without an answer|service-closes is placed on desk and did not answer at http://127.0.0.1:…",
            cause: "it crashes on the request, or speaks another protocol",
            next: "see the service's own log",
            places: ALL,
        },
        Situation {
            id: "service-resets",
            broken: "The service resets the connection",
            hop: "service",
            sentence: "reset by peer|service-resets is placed on desk and did not answer at http://127.0.0.1:…",
            cause: "it was killed, or refuses the request without reading it",
            next: "see the service's own log",
            places: ALL,
        },
        Situation {
            id: "service-garbage",
            broken: "The service answers what is no HTTP",
            hop: "service",
            sentence: "its answer is malformed: it does not begin with HTTP/|service-garbage is placed on desk and did not answer at http://127.0.0.1:…",
            cause: "the endpoint says `http` and the service speaks something else",
            next: "declare it as `tcp://`",
            places: ALL,
        },
        Situation {
            id: "service-mute",
            broken: "The service takes the request and says nothing",
            hop: "service",
            sentence: "has waited …s for the first byte of an answer on an open channel to …",
            cause: "it hangs",
            next: "ask that host what answers there; `lsof` as named shows who waits here",
            places: NO_PAGE,
        },
        Situation {
            id: "service-slow",
            broken: "The service is slow, for longer than `refresh_seconds`",
            hop: "service",
            sentence: "has waited …s for the first byte of an answer on an open channel to …",
            cause: "it works, slowly; the sentence ends with its answer",
            next: "wait, or look at its load",
            places: NO_PAGE,
        },
    ],
};

/// Everything that is broken, for as long as the value lives.
struct Scene {
    fleet: Fleet,
    adapters: BTreeMap<&'static str, u16>,
    router: u16,
    answer: Arc<AtomicBool>,
    _held: Vec<Box<dyn std::any::Any + Send + Sync>>,
}

/// Whose requests wait, and get no page.
const WAITING: [&str; 3] = ["channel-mute", "service-mute", "service-slow"];

const DOORS: &[Door] = &[
    Door { name: "good", rules: "" },
    Door { name: "unknown-key", rules: "" },
    Door { name: "changed-key", rules: "" },
    Door { name: "revoked-key", rules: "" },
    Door { name: "key-refused", rules: "AuthorizedKeysFile DIR/no_keys" },
    Door { name: "second-factor", rules: "PasswordAuthentication yes\nAuthenticationMethods publickey,password" },
    Door { name: "forbidden", rules: "AllowTcpForwarding no" },
    Door { name: "not-permitted", rules: "PermitOpen 127.0.0.1:1" },
    Door { name: "restricted-key", rules: "AuthorizedKeysFile DIR/restricted_keys" },
    Door { name: "no-key", rules: "" },
    Door { name: "open-key", rules: "" },
    Door { name: "mute", rules: "" },
    Door { name: "far-half", rules: "" },
    Door { name: "service-mute", rules: "" },
    Door { name: "service-slow", rules: "" },
    Door { name: "account", rules: "" },
];

/// Answers each request once it may.
fn slow(may: Arc<AtomicBool>) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    thread::spawn(move || {
        for mut stream in listener.incoming().flatten() {
            let may = Arc::clone(&may);
            thread::spawn(move || {
                let _ = stream.read(&mut [0; 4096]);
                while !may.load(Relaxed) {
                    thread::sleep(Duration::from_millis(20));
                }
                let _ = stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\nConnection: close\r\n\r\n");
            });
        }
    });
    address
}

/// So many at a time.
struct Turns(Mutex<usize>, Condvar);

impl Turns {
    fn new(count: usize) -> Self {
        Self(Mutex::new(count), Condvar::new())
    }

    fn take<T>(&self, work: impl FnOnce() -> T) -> T {
        *self.1.wait_while(self.0.lock().unwrap(), |free| *free == 0).unwrap() -= 1;
        let done = work();
        *self.0.lock().unwrap() += 1;
        self.1.notify_one();
        done
    }
}

fn here() -> TcpListener {
    TcpListener::bind("127.0.0.1:0").unwrap()
}

impl Scene {
    fn set() -> Self {
        let mut fleet = Fleet::on_loopback_without_sshd(&["desk"]);
        let home = &fleet.hosts[0].home;
        let key = home.read(".stado/resolver-ssh-key.pub");
        let far = Far::start(DOORS, &key);
        let known = |door: &str| far.known(door, None);
        let mut trusted: String = DOORS
            .iter()
            .map(|door| door.name)
            .filter(|door| !matches!(*door, "unknown-key" | "changed-key" | "revoked-key"))
            .map(known)
            .collect();
        trusted.push_str(&far.known("changed-key", Some(&key)));
        trusted.push_str(&format!("@revoked {}", far.known("revoked-key", None)));
        home.write(".ssh/known_hosts", trusted);
        let closed = Closed::new();
        let (ssh_config, aliases) = aliases(home, &far, closed.port());
        home.write(".ssh/config", ssh_config);
        let open_key = home.write("open-key", home.read(".stado/resolver-ssh-key"));
        std::fs::set_permissions(open_key, std::os::unix::fs::PermissionsExt::from_mode(0o644)).unwrap();

        let (full_here, full_there, full_ssh) =
            (Full::new(Ipv4Addr::LOCALHOST), Full::new(Ipv4Addr::LOCALHOST), Full::new(Ipv4Addr::new(127, 0, 7, 200)));
        let six = TcpListener::bind("[::1]:0").unwrap();
        let half: SocketAddr = (Ipv4Addr::LOCALHOST, six.local_addr().unwrap().port()).into();
        let answer = Arc::new(AtomicBool::new(false));
        let nowhere: SocketAddr = (Ipv4Addr::LOCALHOST, closed.port()).into();
        let through = |door: &str| Some(far.destination(door));
        let at = |address: SocketAddr| Some(format!("ghost@{address}"));
        let placed = [
            ("ssh-refused", Some(format!("ghost@127.0.7.100:{}", closed.port())), nowhere),
            ("ssh-unanswered", at(full_ssh.address), nowhere),
            ("ssh-no-name", Some("ghost@no-such-host.invalid".into()), nowhere),
            ("ssh-mute", at(liar(b"")), nowhere),
            ("ssh-stranger", at(liar(b"HTTP/1.0 400 Bad Request\r\n\r\n")), nowhere),
            ("ssh-turned-away", at(liar(b"Exceeded MaxStartups\r\n")), nowhere),
            ("ssh-closed", at(closer(ssh::elsewhere(), false)), nowhere),
            ("ssh-unknown-key", through("unknown-key"), nowhere),
            ("ssh-changed-key", through("changed-key"), nowhere),
            ("ssh-revoked-key", through("revoked-key"), nowhere),
            ("ssh-key-refused", through("key-refused"), nowhere),
            ("ssh-no-account", through("account").map(|path| as_nobody(&path)), nowhere),
            ("ssh-second-factor", through("second-factor"), nowhere),
            ("ssh-no-key", Some(aliases[0].into()), nowhere),
            ("ssh-open-key", Some(aliases[1].into()), nowhere),
            ("ssh-proxy-command", Some(aliases[2].into()), nowhere),
            ("ssh-jump", Some(aliases[3].into()), nowhere),
            ("channel-forbidden", through("forbidden"), nowhere),
            ("channel-not-permitted", through("not-permitted"), nowhere),
            ("channel-restricted-key", through("restricted-key"), nowhere),
            ("channel-mute", through("mute"), full_there.address),
            ("service-down", through("good"), nowhere),
            ("service-far-half", through("far-half"), half),
            ("service-local-down", None, nowhere),
            ("service-half", None, half),
            ("service-full", None, full_here.address),
            ("service-closes", None, closer(here(), false)),
            ("service-resets", None, closer(here(), true)),
            ("service-garbage", None, ssh::says_on_loopback(b"220 mail.example ESMTP\r\n")),
            ("service-mute", through("service-mute"), slow(Arc::default())),
            ("service-slow", through("service-slow"), slow(Arc::clone(&answer))),
        ];
        let mut adapters = BTreeMap::new();
        for (id, path, endpoint) in placed {
            let host = match path {
                Some(path) => {
                    let host = format!("at-{id}");
                    fleet.stranger(&host, &path);
                    host
                }
                None => "desk".to_owned(),
            };
            fleet.service(id, &host, "http", endpoint.port(), "shop");
            adapters.insert(id, fleet.adapter("desk", id, "shop"));
        }
        for (id, seconds) in [("service-full", 2), ("ssh-turned-away", 3), ("ssh-closed", 3)] {
            fleet.budget("desk", id, seconds);
        }
        let router = ports::one();
        let desk = fleet.host("desk");
        desk.home.set("DEVMESH_HTTP_ENABLED", "true");
        desk.home.set("DEVMESH_HTTP_ADDR", format!("127.0.0.1:{}", router.port()));
        fleet.push("desk").ok();
        fleet.host("desk").serve();
        fleet.host("desk").ready();
        let port = router.port();
        let held: Vec<Box<dyn std::any::Any + Send + Sync>> = vec![
            Box::new(far),
            Box::new(closed),
            Box::new((full_here, full_there, full_ssh)),
            Box::new(six),
            Box::new(router),
        ];
        Self { fleet, adapters, router: port, answer, _held: held }
    }

    /// Whole seconds for which a request has waited, in the phase that it stays in.
    fn waited(&self, id: &str) -> Option<i64> {
        let list: Value = serde_json::from_str(&self.fleet.hosts[0].home.read(".stado/resolver-waiting.json")).ok()?;
        let phase = if id.starts_with("channel") { "open" } else { "answer" };
        let wait = list.as_array()?.iter().find(|wait| wait["service"] == id && wait["phase"] == phase)?;
        let since: jiff::Timestamp = wait["since"].as_str()?.parse().ok()?;
        Some(jiff::Timestamp::now().duration_since(since).as_secs())
    }

    fn connect(&self, id: &str) -> String {
        let run = self.fleet.hosts[0].home.stado(&["service", "directory", "connect", id]);
        if run.code == 69 { run.stdout + &run.stderr } else { format!("it ended with {}: {}", run.code, run.stdout) }
    }
}

fn as_nobody(path: &str) -> String {
    format!("nobody-of-that-name@{}", path.split_once('@').unwrap().1)
}

/// What `~/.ssh/config` says of four aliases.
fn aliases(home: &crate::support::home::Home, far: &Far, closed: u16) -> (String, [&'static str; 4]) {
    let names = ["alias-no-key", "alias-open-key", "alias-proxy", "alias-jump"];
    let to = |door: &str| {
        let destination = far.destination(door);
        let (user, at) = destination.split_once('@').unwrap();
        let (ip, port) = at.rsplit_once(':').unwrap();
        format!("  HostName {ip}\n  Port {port}\n  User {user}\n")
    };
    let file = |name: &str| home.file(name).display().to_string();
    let config = format!(
        "Host {}\n{}  IdentityFile {}\n  IdentitiesOnly yes\n\
         Host {}\n{}  IdentityFile {}\n  IdentitiesOnly yes\n\
         Host {}\n  HostName 127.0.7.201\n  ProxyCommand nc %h %p\n\
         Host {}\n  HostName 127.0.7.202\n  ProxyJump ghost@127.0.7.203:{closed}\n",
        names[0],
        to("no-key"),
        file("no-such-key"),
        names[1],
        to("open-key"),
        file("open-key"),
        names[2],
        names[3],
    );
    (config, names)
}

#[test]
fn what_is_said_of_sessions_channels_and_services_names_the_hop_everywhere() {
    needs!("sshd");
    let book = Book::of(&[&SESSIONS, &CHANNELS, &SERVICES]);
    let scene = Scene::set();
    let mut said: BTreeMap<&str, Said> = BTreeMap::new();

    // Everything is tried once, at once.
    let waiters: Vec<TcpStream> = WAITING
        .iter()
        .map(|id| {
            let mut stream = TcpStream::connect(("127.0.0.1", scene.adapters[id])).unwrap();
            stream.write_all(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n").unwrap();
            stream
        })
        .collect();
    // Each in a thread of its own: first the page, then the command, of which a few run at a time.
    let (tell, hear) = channel();
    let turns = Turns::new(4);
    thread::scope(|scope| {
        for id in scene.adapters.keys().copied() {
            let (tell, scene, turns) = (tell.clone(), &scene, &turns);
            scope.spawn(move || {
                let started = Instant::now();
                let page = if WAITING.contains(&id) { None } else { page(scene.router, id) };
                let took = started.elapsed();
                if WAITING.contains(&id) {
                    wait_until("a wait that is older than the interval", PATIENCE, || scene.waited(id) > Some(1));
                }
                let text = turns.take(|| scene.connect(id));
                tell.send((id, Said { page, connect: Some(text), ..Said::default() }, took)).unwrap();
            });
        }
    });
    drop(tell);
    for (id, answers, took) in hear {
        assert!(took < Duration::from_secs(11), "{id} took {took:?}");
        said.insert(id, answers);
    }

    let home = &scene.fleet.hosts[0].home;
    let end = Instant::now() + Duration::from_secs(10);
    let mut seen = (String::new(), Value::Null);
    wait_until("everything is said, or the time is over", PATIENCE, || {
        seen = (home.stado(&["resolver", "status"]).stdout, scene.fleet.hosts[0].status().1);
        let all = said.iter().all(|(id, said)| with_status(id, said, &seen).judge(book.row(id)).is_empty());
        all || Instant::now() > end
    });
    said.iter().for_each(|(id, said)| book.check(id, &with_status(id, said, &seen)));

    // The slow one answers, and nothing is said of it any more.
    scene.answer.store(true, Relaxed);
    wait_until("the slow service is no trouble any more", PATIENCE, || {
        !scene.fleet.hosts[0].status().1["blockers"].to_string().contains("service-slow")
    });
    drop(waiters);
    book.close();
}

/// With what a status says of one service.
fn with_status(id: &str, said: &Said, (text, json): &(String, Value)) -> Said {
    let lines = text.lines().filter(|line| line.contains(id)).collect::<Vec<_>>().join("\n");
    Said { status: Some(lines), json: Some(of(json, id)), ..said.clone() }
}

/// What a status says of one service: the strings and rows that name it.
fn of(status: &Value, id: &str) -> Value {
    let mentions = |value: &Value| match value.get("service") {
        Some(service) => service == id,
        None => value.as_str().is_some_and(|text| text.contains(id)),
    };
    let mut mine = serde_json::Map::new();
    for (key, value) in status.as_object().into_iter().flatten() {
        if let Some(all) = value.as_array() {
            mine.insert(key.clone(), all.iter().filter(|one| mentions(one)).cloned().collect());
        }
    }
    json!(mine)
}

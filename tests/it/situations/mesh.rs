//! Services of this host alone: producers that left, backends that do not answer, names and ports that are taken.
use super::said::Said;
use super::ssh::{Closed, closer, says_on_loopback};
use super::{Book, Group, HOST, Place, REFUSAL, Situation, page};
use crate::support::home::{DEVMESH, Home};
use crate::support::http::{http, register, serve};
use crate::support::tcp::echo;
use crate::support::{PATIENCE, ports, wait_until};
use serde_json::{Value, json};
use std::net::TcpListener;

const TEST: &str = "what_is_said_of_services_of_this_host_names_the_hop_everywhere";
/// A service that is ready for all that is known, and whose backend fails.
const TRIED: &[Place] = &[Place::Status, Place::Json, Place::Page];

pub const MESH: Group = Group {
    title: "Services of this host: leases, backends, names",
    shown: Ok(TEST),
    rows: &[
        Situation {
            id: "lease-ended",
            broken: "The producer stopped renewing its lease",
            hop: "service",
            sentence: "its producer stopped renewing the lease",
            cause: "it hangs, or was killed",
            next: "start it again: the address stays",
            places: super::ALL,
        },
        Situation {
            id: "producer-left",
            broken: "The producer has taken its service back",
            hop: "service",
            sentence: "its producer deregistered",
            cause: "it ended in order",
            next: "start it again: the address stays",
            places: super::ALL,
        },
        Situation {
            id: "not-back",
            broken: "The producer is not back since the daemon started",
            hop: "service",
            sentence: "producer not back since restart",
            cause: "it was not running when the daemon came back, or does not register again",
            next: "start it; programs with the client library come back by themselves",
            places: super::ALL,
        },
        Situation {
            id: "backend-down",
            broken: "Nobody listens at the registered address",
            hop: "service",
            sentence: "local upstream connect failed: 127.0.0.1:…: Connection refused",
            cause: "the process ended and its registration was made for longer",
            next: "start it, or register what listens",
            places: TRIED,
        },
        Situation {
            id: "backend-half",
            broken: "The process listens on the other loopback half",
            hop: "service",
            sentence: "local upstream connect failed: 127.0.0.1:…: Connection refused",
            cause: "it listens on `[::1]` and was registered as 127.0.0.1",
            next: "register `localhost:PORT`, which is tried on both",
            places: TRIED,
        },
        Situation {
            id: "backend-closes",
            broken: "The process closes without an answer",
            hop: "service",
            sentence: "it closed the connection without an answer",
            cause: "it crashes on the request, or speaks another protocol",
            next: "see its own log",
            places: TRIED,
        },
        Situation {
            id: "backend-garbage",
            broken: "The process answers what is no HTTP",
            hop: "service",
            sentence: "its answer is malformed: it does not begin with HTTP/",
            cause: "it is no HTTP service",
            next: "register it with `--kind tcp`",
            places: TRIED,
        },
        Situation {
            id: "port-taken",
            broken: "Somebody took a service's port while the daemon was away",
            hop: "adapter",
            sentence: "its port could not be taken back: 127.0.0.1:… is held by pid …; the next registration gets another port",
            cause: "a program that listens on any free port",
            next: "stop it; until then the service has another port",
            places: HOST,
        },
        Situation {
            id: "name-owned",
            broken: "The name belongs to another producer",
            hop: "service",
            sentence: "service owned is already owned by another registration",
            cause: "two programs register one name",
            next: "another name for one of them; `stado service forget` frees one that nobody uses",
            places: REFUSAL,
        },
        Situation {
            id: "host-owned",
            broken: "The hostname belongs to another service",
            hop: "service",
            sentence: "hostname owned-host.localhost is already owned by service owned.host",
            cause: "two names give one hostname",
            next: "register with a hostname of its own",
            places: REFUSAL,
        },
        Situation {
            id: "range-full",
            broken: "No port of the range is free",
            hop: "adapter",
            sentence: "no free frontend port in range …",
            cause: "names that are remembered keep theirs",
            next: "widen `tcp_frontend_min`–`tcp_frontend_max`, or forget names",
            places: REFUSAL,
        },
        Situation {
            id: "backend-loop",
            broken: "The registered address is this daemon's own",
            hop: "service",
            sentence: "is where this daemon itself listens for …, so connections would go in circles",
            cause: "a stable address was registered in place of the process's own",
            next: "register the address that the process listens on",
            places: REFUSAL,
        },
        Situation {
            id: "backend-elsewhere",
            broken: "The registered address is not on this host",
            hop: "service",
            sentence: "backend host \"192.0.2.1\" is not a loopback address",
            cause: "the mesh serves this host alone",
            next: "declare the service in the registry, for other hosts",
            places: REFUSAL,
        },
    ],
};

fn api<T: serde::Serialize>(
    home: &Home,
    ask: impl AsyncFnOnce(stado::client::Api) -> Result<T, stado::client::Error>,
) -> Value {
    let api = stado::client::Api::new(home.file(".devmesh/run/devmesh.sock"));
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(ask(api)).map_or(Value::Null, |found| json!(found))
}

fn asked(home: &Home, router: u16, row: &Situation) -> Said {
    let name = row.id;
    let mut said = Said::default();
    if row.places.contains(&Place::Page) {
        said.page = page(router, name);
    }
    if row.places.contains(&Place::Connect) {
        let run = home.stado(&["service", "resolve", name, "--raw"]);
        said.connect = Some(run.stdout + &run.stderr);
    }
    let text = ["inspect", "connections"].map(|verb| home.stado(&["service", verb, name]));
    said.status = Some(text.map(|run| run.stdout + &run.stderr).concat());
    let (inspect, connections) =
        (api(home, async |api| api.inspect(name).await), api(home, async |api| api.connections(name).await));
    said.json = Some(json!({"inspect": inspect, "connections": connections}));
    said
}

#[test]
fn what_is_said_of_services_of_this_host_names_the_hop_everywhere() {
    let book = Book::of(&[&MESH]);
    let mut home = Home::new();
    let range = ports::block(3);
    home.set("DEVMESH_TCP_FRONTEND_MIN", range.port());
    home.set("DEVMESH_TCP_FRONTEND_MAX", range.last());
    let router = ports::one();
    let mut daemon = serve(&home, router.port(), &[]);
    let check = |home: &Home, id: &str| {
        book.watch(id, |row| asked(home, router.port(), row));
    };
    let refused = |home: &Home, id: &str, args: &[&str]| {
        let run = home.devmesh(&[&["register", "--once", "--ttl", "600"], args].concat()).exits(1);
        book.check(id, &Said { refusal: Some(run.stderr), ..Said::default() });
    };
    let works = http("works").to_string();
    let works = format!("127.0.0.1:{works}");
    let http_args = |name: &'static str| ["register", "--name", name, "--kind", "http", "--backend"];
    home.devmesh(&[&http_args("lease-ended")[..], &[&works, "--once", "--ttl", "3"]].concat()).ok();
    let producer = home.start("producer", DEVMESH, &[&http_args("producer-left")[..], &[&works]].concat());
    register(&home, "not-back", works.rsplit_once(':').unwrap().1.parse().unwrap(), &[]);
    wait_until("the producer is there", PATIENCE, || {
        home.devmesh(&["services", "resolve", "producer-left", "--raw"]).code == 0
    });
    assert!(producer.stop().success());
    check(&home, "producer-left");

    let closed = Closed::new();
    let six = TcpListener::bind("[::1]:0").unwrap();
    register(&home, "backend-down", closed.port(), &[]);
    register(&home, "backend-half", six.local_addr().unwrap().port(), &[]);
    let closes = closer(TcpListener::bind("127.0.0.1:0").unwrap(), false);
    register(&home, "backend-closes", closes.port(), &[]);
    register(&home, "backend-garbage", says_on_loopback(b"220 mail.example ESMTP\r\n").port(), &[]);
    for id in ["backend-down", "backend-half", "backend-closes", "backend-garbage", "lease-ended"] {
        check(&home, id);
    }

    let backend = echo("x").to_string();
    home.devmesh(&["register", "--name", "owned", "--backend", &backend, "--once", "--ttl", "600"]).ok();
    home.devmesh(&["register", "--name", "port-taken", "--backend", &backend, "--once", "--ttl", "600"]).ok();
    refused(&home, "name-owned", &["--name", "owned", "--backend", &works]);
    register(&home, "owned.host", closed.port(), &[]);
    refused(&home, "host-owned", &["--name", "owned-host", "--kind", "http", "--backend", &works]);
    let own = home.devmesh(&["services", "resolve", "owned", "--raw"]).ok().stdout;
    refused(&home, "backend-loop", &["--name", "loop", "--backend", own.trim()]);
    refused(&home, "backend-elsewhere", &["--name", "elsewhere", "--backend", "192.0.2.1:80"]);
    home.devmesh(&["register", "--name", "third", "--backend", &backend, "--once", "--ttl", "600"]).ok();
    refused(&home, "range-full", &["--name", "fourth", "--backend", &backend]);

    let taken = home.devmesh(&["services", "resolve", "port-taken", "--raw"]).ok().stdout;
    home.stado(&["service", "forget", "third", "--force"]).ok();
    assert!(daemon.ended().is_none());
    assert!(daemon.stop().success());
    let thief = TcpListener::bind(taken.trim()).unwrap();
    let daemon = serve(&home, router.port(), &[]);
    check(&home, "port-taken");
    check(&home, "not-back");
    drop(thief);
    assert!(daemon.stop().success());
    book.close();
}

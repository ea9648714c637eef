//! The daemon of a host that is not there, not yet, no longer or only seemingly; files of it that cannot be read; and what
//! another process has taken from it.
use super::said::Said;
use super::{Book, Group, HOST, NO_PAGE, Place, REFUSAL, Situation};
use crate::support::fleet::{Fleet, Host};
use crate::support::home::DEVMESHD;
use crate::support::{PATIENCE, ports, wait_until};
use fs4::fs_std::FileExt;
use rustix::process::Signal;
use serde_json::json;
use std::fs::File;
use std::io::Write;
use std::net::TcpListener;

const TEST: &str = "what_is_said_of_a_resolver_that_is_not_what_it_seems_names_it_everywhere";

pub const PUBLISHERS: Group = Group {
    title: "The daemon of this host",
    shown: Ok(TEST),
    rows: &[
        Situation {
            id: "resolver-never",
            broken: "No daemon ever ran here",
            hop: "resolver",
            sentence: "no resolver has published state at …: nothing has served here since that file was last removed",
            cause: "it was never started, or its files were removed",
            next: "`stado resolver serve`, or `stado resolver install`",
            places: NO_PAGE,
        },
        Situation {
            id: "resolver-starting",
            broken: "A daemon has the lock and has said nothing yet",
            hop: "resolver",
            sentence: "another resolver (pid …) holds the lock and has published nothing yet",
            cause: "it starts, or hangs at its start",
            next: "look at its log; `kill` the pid if it stays",
            places: NO_PAGE,
        },
        Situation {
            id: "resolver-list",
            broken: "The waiting list is damaged",
            hop: "resolver",
            sentence: "the resolver's waiting list at … is not the list this build writes: …",
            cause: "somebody else wrote there, or another build",
            next: "nothing: the next wait writes it anew; else restart the daemon",
            places: NO_PAGE,
        },
        Situation {
            id: "resolver-marker",
            broken: "A forward marker cannot be written",
            hop: "resolver",
            sentence: "the resolver does not serve the forward marker of echo at …: it could not be written: …",
            cause: "a directory, or another account's file, has its name",
            next: "remove what is in its place",
            places: HOST,
        },
        Situation {
            id: "resolver-stopped",
            broken: "The daemon is stopped by a signal, and not ended",
            hop: "resolver",
            sentence: "the resolver (pid …) is not dead and does not answer: ",
            cause: "SIGSTOP, a debugger, a frozen control group",
            next: "`kill -CONT` the pid that is named",
            places: NO_PAGE,
        },
        Situation {
            id: "resolver-second",
            broken: "A second daemon is started for the same home",
            hop: "resolver",
            sentence: "another resolver is running: … holds …resolver-state.lock; stop it first",
            cause: "one runs already",
            next: "use it; `stado resolver stop` ends it; `--take-over` goes on in its place",
            places: REFUSAL,
        },
        Situation {
            id: "resolver-ended",
            broken: "The daemon was stopped",
            hop: "resolver",
            sentence: "the resolver that published this host's state (pid …, state stopped at …) is not running, and no resolver has published since; its listeners went with it",
            cause: "somebody stopped it, in order",
            next: "`stado resolver serve`",
            places: NO_PAGE,
        },
        Situation {
            id: "resolver-dead",
            broken: "The daemon was killed, or crashed",
            hop: "resolver",
            sentence: "the resolver that published this host's state (pid …, state serving at …) is not running, and no resolver has published since; its listeners went with it",
            cause: "`kill -9`, no memory, a crash",
            next: "see the system's log; start it again, with a manager that does (`stado resolver install`)",
            places: NO_PAGE,
        },
        Situation {
            id: "resolver-replaced",
            broken: "The daemon is gone, and another process listens at its ports",
            hop: "resolver",
            sentence: "the resolver that published this host's state (pid …, state serving at …) is not running, and no resolver has published since; its listeners went with it",
            cause: "a program took the free port; `status` names it: `no resolver of this home runs, and … is held by pid … (…)`",
            next: "stop that program, start the daemon again",
            places: NO_PAGE,
        },
        Situation {
            id: "resolver-state",
            broken: "The state file is damaged, and no daemon runs",
            hop: "resolver",
            sentence: "the resolver's state at … is not the state this build writes: …no resolver runs",
            cause: "somebody else wrote there, or a disk did",
            next: "start the daemon: it writes it anew",
            places: NO_PAGE,
        },
        Situation {
            id: "resolver-api",
            broken: "Another process holds the port of the resolution API",
            hop: "resolver",
            sentence: "could not bind 127.0.0.1:…: Address already in use …Something else already holds this resolver port",
            cause: "another account's daemon, or any other program",
            next: "stop it, or give this home another `api_bind`",
            places: REFUSAL,
        },
        Situation {
            id: "resolver-identity",
            broken: "The daemon is started for another target than this host is",
            hop: "resolver",
            sentence: "resolver target \"tower\" does not match this host (\"desk\")",
            cause: "`--target` and `STADO_TARGET` differ",
            next: "leave one of them out",
            places: REFUSAL,
        },
        Situation {
            id: "resolver-mesh",
            broken: "Another daemon has the mesh's socket",
            hop: "resolver",
            sentence: "the resolver does not serve the mesh at …: …",
            cause: "`devmeshd` runs beside it",
            next: "stop that one: the mesh is taken as soon as it is free",
            places: HOST,
        },
        Situation {
            id: "resolver-gate",
            broken: "Another process holds the gate's port",
            hop: "resolver",
            sentence: "the resolver does not serve the gate at …: …",
            cause: "another sshd, or another program",
            next: "stop it, or change `gate.bind`",
            places: HOST,
        },
    ],
};

fn check(book: &Book, host: &Host, id: &str) {
    check_after(book, host, id, || ());
}

/// Does `break_it` before each look, where the daemon mends it whenever it has something to write.
fn check_after(book: &Book, host: &Host, id: &str, break_it: impl Fn()) {
    book.watch(id, |row| {
        break_it();
        let status = host.home.stado(&["resolver", "status"]);
        break_it();
        let mut said =
            Said { status: Some(status.stdout + &status.stderr), json: Some(host.status().1), ..Said::default() };
        if row.places.contains(&Place::Connect) {
            break_it();
            let run = host.home.stado(&["service", "directory", "connect", "echo"]);
            said.connect = Some(if run.code == 0 { "it gave an address".into() } else { run.stdout + &run.stderr });
        }
        said
    });
}

fn refused(book: &Book, host: &Host, id: &str, args: &[&str]) {
    let refused = host.home.stado(args);
    assert_ne!(refused.code, 0, "{id}: {}", refused.stdout);
    book.check(id, &Said { refusal: Some(refused.stderr), ..Said::default() });
}

#[test]
fn what_is_said_of_a_resolver_that_is_not_what_it_seems_names_it_everywhere() {
    let book = Book::of(&[&PUBLISHERS]);
    let mut fleet = Fleet::on_loopback_without_sshd(&["desk"]);
    fleet.stranger("far", "ghost@127.0.7.241:9");
    fleet.service("echo", "far", "tcp", 9, "shop");
    let at = fleet.adapter("desk", "echo", "shop");
    fleet.push("desk").ok();
    let api = fleet.registry["targets"][0]["service_resolver"]["api_bind"].as_str().unwrap().to_owned();
    let host = fleet.host("desk");

    check(&book, host, "resolver-never");
    let path = host.home.write(".stado/resolver-state.lock", "");
    let mut lock = File::options().write(true).open(path).unwrap();
    lock.lock_exclusive().unwrap();
    lock.write_all(format!("{}\n", std::process::id()).as_bytes()).unwrap();
    check(&book, host, "resolver-starting");
    drop(lock);

    host.serve();
    host.ready();
    check_after(&book, host, "resolver-list", || {
        host.home.write(".stado/resolver-waiting.json", "{ this is no list");
    });
    host.home.write(".stado/resolver-waiting.json", "[]");
    let marker = host.home.file(".stado/forwards/echo.local");
    std::fs::remove_file(&marker).unwrap();
    std::fs::create_dir(&marker).unwrap();
    check(&book, host, "resolver-marker");
    std::fs::remove_dir(&marker).unwrap();
    refused(&book, host, "resolver-second", &["resolver", "serve"]);
    refused(&book, host, "resolver-identity", &["resolver", "serve", "--target", "tower"]);
    host.daemon().signal(Signal::STOP);
    check(&book, host, "resolver-stopped");
    host.daemon().signal(Signal::CONT);
    host.ready();

    host.stop();
    check(&book, host, "resolver-ended");
    host.serve();
    host.ready();
    host.kill9();
    check(&book, host, "resolver-dead");
    let strangers = [TcpListener::bind(&api).unwrap(), TcpListener::bind(("127.0.0.1", at)).unwrap()];
    check(&book, host, "resolver-replaced");
    let (code, status) = host.status();
    assert_eq!((code, &status["verdict"], &status["api"]["listening"]), (1, &"down".into(), &false.into()), "{status}");
    let me = format!("pid {} (", std::process::id());
    let held = format!("no resolver of this home runs, and the port of the resolution API, {api}, is held by {me}");
    let taken = format!(
        "no resolver of this home runs, and whoever connects to the echo adapter for consumer shop at 127.0.0.1:{at} \
         reaches {me}"
    );
    for said in [held, taken] {
        let told = status["blockers"].as_array().unwrap().iter().any(|b| b.as_str().unwrap().starts_with(&said));
        assert!(told, "{said}: {status}");
    }
    drop(strangers);
    host.home.write(".stado/resolver-state.json", "{ this is no state");
    check(&book, host, "resolver-state");

    let holder = TcpListener::bind(&api).unwrap();
    refused(&book, host, "resolver-api", &["resolver", "serve"]);
    drop(holder);
    let gate = ports::one();
    let _gate = TcpListener::bind(("127.0.0.1", gate.port())).unwrap();
    let config = json!({"gate": {"bind": format!("127.0.0.1:{}", gate.port())}});
    host.home.write(".stado/config.json", config.to_string());
    let mesh = host.home.start("devmeshd", DEVMESHD, &["serve"]);
    wait_until("the mesh's own daemon answers", PATIENCE, || host.home.devmesh(&["health"]).code == 0);
    host.serve();
    check(&book, host, "resolver-mesh");
    check(&book, host, "resolver-gate");
    host.stop();
    assert!(mesh.stop().success());
    book.close();
}

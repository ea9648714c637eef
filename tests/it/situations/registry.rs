//! The registry: an authority that is away, mute or wrong, a copy that cannot be kept, documents that are refused.
use super::said::Said;
use super::{Book, Group, HOST, REFUSAL, Situation};
use crate::support::fleet::{Fleet, Host};
use crate::support::home::STADO;
use crate::support::{PATIENCE, wait_until};
use serde_json::{Value, json};
use std::thread;

const TEST: &str = "what_is_said_of_the_registry_and_its_authority_names_them_everywhere";

pub const AUTHORITY: Group = Group {
    title: "The registry and its authority",
    shown: Ok(TEST),
    rows: &[
        Situation {
            id: "authority-missing",
            broken: "The authority's command is not there",
            hop: "registry",
            sentence: "registry authority exited with 127: …",
            cause: "Stado was moved or removed on that host",
            next: "install it there, or correct `service_directory.authority.command`",
            places: HOST,
        },
        Situation {
            id: "authority-fails",
            broken: "The authority's command fails",
            hop: "registry",
            sentence: "registry authority exited with 3: the store is on fire",
            cause: "as it says itself: its store, its configuration",
            next: "run `stado resolver snapshot` on that host",
            places: HOST,
        },
        Situation {
            id: "authority-torn",
            broken: "The authority's answer breaks off",
            hop: "registry",
            sentence: "invalid registry authority response: EOF while parsing …",
            cause: "the command was killed, or something between cuts output",
            next: "run `stado resolver snapshot` on that host",
            places: HOST,
        },
        Situation {
            id: "authority-chatter",
            broken: "A login script there floods the answer",
            hop: "registry",
            sentence: "invalid registry authority response: no JSON object in … bytes beginning …",
            cause: "more than 64 KiB are printed before the answer",
            next: "let the login script print only on a terminal",
            places: HOST,
        },
        Situation {
            id: "authority-mute",
            broken: "The authority's command says nothing",
            hop: "registry",
            sentence: "the registry authority authority is unreachable: …did not answer within 8s",
            cause: "its disk or its store hangs",
            next: "look at that host; this one serves its copy",
            places: HOST,
        },
        Situation {
            id: "registry-rolled-back",
            broken: "The authority serves an older generation",
            hop: "registry",
            sentence: "service directory rollback rejected: generation 1 < 2",
            cause: "its store was restored from a backup",
            next: "push the newer document again, or roll back under a new generation (`stado registry rollback`)",
            places: HOST,
        },
        Situation {
            id: "registry-changed",
            broken: "The directory was changed under the same generation",
            hop: "registry",
            sentence: "service directory changed without advancing generation 2",
            cause: "the document was edited beside Stado",
            next: "advance `service_directory.generation` and push",
            places: HOST,
        },
        Situation {
            id: "registry-invalid",
            broken: "The authority serves a document that is not valid",
            hop: "registry",
            sentence: "invalid registry document at …: registry.targets[1].kind: must be one of …",
            cause: "the document was edited beside Stado",
            next: "`stado registry validate` names every finding",
            places: HOST,
        },
        Situation {
            id: "registry-empty",
            broken: "The authority serves a document that names no host",
            hop: "registry",
            sentence: "invalid registry document at …: registry.service_directory.authority.target: unknown registry target",
            cause: "an empty store was set up in place of the old one",
            next: "`stado registry history` and `rollback` on the authority",
            places: HOST,
        },
        Situation {
            id: "registry-not-here",
            broken: "The registry no longer names this host",
            hop: "registry",
            sentence: "resolver target \"desk\" is not registered",
            cause: "it was removed, or renamed",
            next: "`stado registry host add`, or correct `STADO_TARGET`",
            places: REFUSAL,
        },
        Situation {
            id: "registry-no-policy",
            broken: "The registry declares no resolver for this host",
            hop: "registry",
            sentence: "registry target has no service_resolver configuration",
            cause: "the block was left out",
            next: "declare it, as the sentence says",
            places: REFUSAL,
        },
        Situation {
            id: "copy-blocked",
            broken: "The last-known-good copy cannot be written",
            hop: "registry",
            sentence: "the resolver is not refreshing this host's last-known-good registry copy (…)",
            cause: "its directory is full, read-only, or something else has the name",
            next: "make room for `~/.stado/cache/registry-last-good.json`",
            places: HOST,
        },
        Situation {
            id: "authority-away",
            broken: "The authority's host is away",
            hop: "registry",
            sentence: "the registry authority authority is unreachable: …Connection refused",
            cause: "as in “the way to the host”, for the authority's own paths",
            next: "nothing is harmed until the directory has to change; [outages.md](outages.md)",
            places: HOST,
        },
        Situation {
            id: "copy-read",
            broken: "An answer comes from the copy",
            hop: "registry",
            sentence: "this answer read a registry copy …s old rather than the authority",
            cause: "the authority did not answer",
            next: "as there",
            places: HOST,
        },
        Situation {
            id: "registry-stale",
            broken: "The directory that is held is older than allowed",
            hop: "registry",
            sentence: "the snapshot the resolver holds is …s old, past the 2s max-stale window this target declares",
            cause: "the authority has been away for longer than `max_stale_seconds`",
            next: "it serves on; bring the authority back",
            places: HOST,
        },
        Situation {
            id: "clock-ahead",
            broken: "The copy was written by a clock that is ahead",
            hop: "registry",
            sentence: "registry copy …read_at is …s ahead of this host's clock, so how old the copy is cannot be told",
            cause: "a clock was set back, or was wrong when the copy was taken",
            next: "nothing: no decision depends on it",
            places: REFUSAL,
        },
        Situation {
            id: "push-consumer",
            broken: "An adapter for a consumer that the service does not know",
            hop: "registry",
            sentence: "registry.targets[…].service_resolver.adapters[0].consumer: is not authorized by the service route",
            cause: "the consumer was not granted the service",
            next: "`stado service directory consumer add`",
            places: REFUSAL,
        },
        Situation {
            id: "push-service",
            broken: "An adapter for a service that there is none of",
            hop: "registry",
            sentence: "registry.targets[…].service_resolver.adapters[0].service: unknown logical service",
            cause: "a typing error, or a service that was removed",
            next: "correct or remove the adapter",
            places: REFUSAL,
        },
        Situation {
            id: "push-twice",
            broken: "Two adapters of a host have one port",
            hop: "registry",
            sentence: "service_resolver.adapters[1].bind: duplicate resolver bind",
            cause: "a copied line",
            next: "give one of them another port, or none",
            places: REFUSAL,
        },
        Situation {
            id: "push-endpoint",
            broken: "A service without an endpoint on its active host",
            hop: "registry",
            sentence: "registry.service_directory.services.orders.active_host: has no declared endpoint",
            cause: "it was moved by hand, and its endpoint was not",
            next: "declare the endpoint, or move it with `stado placement move`",
            places: REFUSAL,
        },
        Situation {
            id: "push-no-path",
            broken: "A service on a host without a connection path",
            hop: "registry",
            sentence: "registry.service_directory.…remote resolution requires targets[].ssh",
            cause: "nobody could reach it",
            next: "`stado registry host path set`",
            places: REFUSAL,
        },
        Situation {
            id: "push-older",
            broken: "An older document is pushed",
            hop: "registry",
            sentence: "registry upload refused: its service directory is generation 1 and the registry already carries 2",
            cause: "a file that was read before somebody else's change",
            next: "read the registry again, and change that",
            places: REFUSAL,
        },
        Situation {
            id: "push-no-json",
            broken: "What is pushed is no JSON",
            hop: "registry",
            sentence: "registry document is not valid JSON: …",
            cause: "a comma, a wrong file",
            next: "correct it at the place that is named",
            places: REFUSAL,
        },
    ],
};

/// An authority whose command does as the file `mode` says.
fn authority() -> Fleet {
    let mut fleet = Fleet::on_loopback(&["authority", "desk"]);
    let home = &fleet.hosts[0].home;
    let script = format!(
        "#!/bin/sh\n\
         case \"$(cat '{home}/mode' 2>/dev/null):$2\" in\n\
         missing:*) exec /nonexistent/stado ;;\n\
         fails:*) echo 'the store is on fire' >&2; exit 3 ;;\n\
         torn:snapshot) '{STADO}' resolver snapshot | head -c 300; exit 0 ;;\n\
         chatter:snapshot) head -c 70000 /dev/zero | tr '\\0' '\\n' ;;\n\
         mute:snapshot) exec sleep 20 ;;\n\
         other:snapshot) exec cat '{home}/other.json' ;;\n\
         *:watch) exit 9 ;;\n\
         esac\n\
         exec '{STADO}' \"$@\"\n",
        home = home.path().display()
    );
    fleet.registry["service_directory"]["authority"]["command"] = home.program("bin/stado", &script).into();
    fleet.registry["service_directory"]["generation"] = json!(2);
    for target in fleet.registry["targets"].as_array_mut().unwrap() {
        target["service_resolver"]["max_stale_seconds"] = json!(2);
    }
    fleet.service("orders", "authority", "tcp", 9, "shop");
    fleet.adapter("desk", "orders", "shop");
    fleet
}

fn host(host: &Host) -> Said {
    thread::scope(|scope| {
        let text = scope.spawn(|| host.home.stado(&["resolver", "status"]));
        let json = host.status().1;
        let text = text.join().unwrap();
        Said { status: Some(text.stdout + &text.stderr), json: Some(json), ..Said::default() }
    })
}

fn check(book: &Book, desk: &Host, id: &str) {
    book.watch(id, |_| host(desk));
}

fn refusal(book: &Book, id: &str, said: String) {
    book.check(id, &Said { refusal: Some(said), ..Said::default() });
}

#[test]
fn what_is_said_of_the_registry_and_its_authority_names_them_everywhere() {
    needs!("sshd");
    let book = Book::of(&[&AUTHORITY]);
    let mut fleet = authority();
    fleet.push("authority").ok();
    fleet.copies();
    fleet.host("desk").serve();
    fleet.host("desk").ready();
    let [authority, desk] = &fleet.hosts[..] else { panic!("two hosts") };
    for mode in ["missing", "fails", "torn", "chatter"] {
        authority.home.write("mode", mode);
        check(&book, desk, &format!("authority-{mode}"));
    }
    authority.home.write("mode", "");
    let envelope: Value = authority.home.stado(&["resolver", "snapshot"]).ok().json();
    let serve = |change: &dyn Fn(&mut Value)| {
        let mut other = envelope.clone();
        other["store_version"] = json!("ffffffffffffffff");
        change(&mut other["document"]);
        authority.home.write("other.json", other.to_string() + "\n");
        authority.home.write("mode", "other");
    };
    serve(&|document| document["service_directory"]["generation"] = json!(1));
    check(&book, desk, "registry-rolled-back");
    serve(&|document| {
        document["service_directory"]["services"]["orders"]["endpoints"]["authority"]["url"] =
            json!("tcp://127.0.0.1:10")
    });
    check(&book, desk, "registry-changed");
    serve(&|document| document["targets"][1]["kind"] = json!(7));
    check(&book, desk, "registry-invalid");
    serve(&|document| document["targets"] = json!([]));
    check(&book, desk, "registry-empty");
    let status = || desk.home.stado(&["resolver", "status"]).stderr;
    serve(&|document| document["targets"][1]["name"] = json!("tower"));
    refusal(&book, "registry-not-here", status());
    serve(&|document| {
        document["targets"][1].as_object_mut().unwrap().remove("service_resolver");
    });
    refusal(&book, "registry-no-policy", status());
    authority.home.write("mode", "");
    wait_until("the desk holds the authority's own again", PATIENCE, || desk.status().0 == 0);

    let copy = desk.home.file(".stado/cache/registry-last-good.json");
    let kept = std::fs::read(&copy).unwrap();
    std::fs::remove_file(&copy).unwrap();
    std::fs::create_dir(&copy).unwrap();
    std::fs::create_dir(copy.join("in-the-way")).unwrap();
    check(&book, desk, "copy-blocked");
    std::fs::remove_dir_all(&copy).unwrap();
    desk.home.write(".stado/cache/registry-last-good.json", kept);

    refusals(&book, &fleet);
    // Last, since the daemon waits for such an answer for a minute, or until its host is away.
    authority.home.write("mode", "mute");
    check(&book, desk, "authority-mute");
    let authority = fleet.host("authority");
    authority.sshd.as_mut().unwrap().down();
    let desk = &fleet.hosts[1];
    check(&book, desk, "authority-away");
    check(&book, desk, "copy-read");
    check(&book, desk, "registry-stale");
    fleet.host("desk").stop();
    ahead(&fleet.hosts[1]);
    let said = fleet.hosts[1].home.stado(&["service", "directory", "show"]).stderr;
    refusal(&book, "clock-ahead", said);
    book.close();
}

/// The copy says that it was read an hour from now.
fn ahead(desk: &Host) {
    let dir = desk.home.file(".stado/cache");
    for entry in std::fs::read_dir(dir).unwrap().flatten() {
        let Ok(text) = std::fs::read_to_string(entry.path()) else { continue };
        let Ok(mut value) = serde_json::from_str::<Value>(&text) else { continue };
        if value.get("read_at").is_some() {
            let later = jiff::Timestamp::now() + jiff::SignedDuration::from_hours(1);
            value["read_at"] = json!(later.to_string());
            std::fs::write(entry.path(), value.to_string()).unwrap();
        }
    }
}

/// Documents that no authority takes.
fn refusals(book: &Book, fleet: &Fleet) {
    let authority = &fleet.hosts[0];
    let refuse = |id: &str, change: &dyn Fn(&mut Value)| {
        let mut document = fleet.registry.clone();
        change(&mut document);
        document["service_directory"]["generation"] = json!(3);
        if id == "push-older" {
            document["service_directory"]["generation"] = json!(1);
        }
        let run = authority.push_stdin(&document, &[]);
        assert_ne!(run.code, 0, "{id}");
        refusal(book, id, run.stderr);
    };
    let adapter = |document: &mut Value, key: &str, value: &str| {
        document["targets"][1]["service_resolver"]["adapters"][0][key] = json!(value);
    };
    refuse("push-consumer", &|document| adapter(document, "consumer", "stranger"));
    refuse("push-service", &|document| adapter(document, "service", "no-such-service"));
    refuse("push-twice", &|document| {
        let adapters = document["targets"][1]["service_resolver"]["adapters"].as_array_mut().unwrap();
        let again = adapters[0].clone();
        adapters.push(again);
    });
    refuse("push-endpoint", &|document| {
        document["service_directory"]["services"]["orders"]["active_host"] = json!("desk");
    });
    refuse("push-no-path", &|document| {
        document["targets"][1]["ssh"] = Value::Null;
        document["service_directory"]["services"]["orders"]["endpoints"]["desk"] = json!({"url": "tcp://127.0.0.1:11"});
    });
    refuse("push-older", &|_| {});
    let run = crate::support::process::run_with(
        &mut authority.home.command(STADO, &["registry", "push", "-"]),
        b"{\"schema_version\": 2,,}",
    );
    assert_ne!(run.code, 0);
    refusal(book, "push-no-json", run.stderr);
}

//! What an authority prints, over real sshd: a refresh that moves no document, and answers that are not what they should be.
use crate::support::fleet::Fleet;
use crate::support::home::STADO;
use crate::support::{PATIENCE, wait_for, wait_until};

const FLAGGED: &str = "resolver snapshot --if-newer-than ";

/// An authority that logs each command with the bytes of its answer; with `<home>/old` it is one from before the flag.
fn logging(names: &[&str]) -> Fleet {
    let mut fleet = Fleet::on_loopback(names);
    let home = &fleet.hosts[0].home;
    let script = format!(
        "#!/bin/sh\n\
         case \"$*\" in *--if-newer-than*) if [ -e '{home}/old' ]; then\n\
         echo \"$* refused\" >>'{home}/log'; echo \"error: unexpected argument '--if-newer-than' found\" >&2; exit 2\n\
         fi ;; esac\n\
         answer=$(mktemp '{home}/answer.XXXXXX'); '{STADO}' \"$@\" >\"$answer\"; code=$?\n\
         echo \"$* $(wc -c <\"$answer\")\" >>'{home}/log'; cat \"$answer\"; rm \"$answer\"; exit $code\n",
        home = home.path().display()
    );
    fleet.registry["service_directory"]["authority"]["command"] = home.program("bin/stado", &script).into();
    fleet.service("orders", "authority", "tcp", 5432, "shop");
    fleet.adapter("workstation", "orders", "shop");
    fleet
}

/// The commands since the log was last removed, and the bytes of their answers.
fn asked(fleet: &Fleet) -> Vec<(String, Option<usize>)> {
    let log = fleet.hosts[0].home.read("log");
    let lines = log.lines().filter(|line| line.starts_with("resolver snapshot"));
    lines
        .map(|line| line.rsplit_once(' ').unwrap())
        .map(|(asked, bytes)| (asked.to_owned(), bytes.parse().ok()))
        .collect()
}

#[test]
fn an_unchanged_refresh_moves_no_document_and_an_older_authority_sends_it_whole() {
    needs!("sshd");
    let mut fleet = logging(&["authority", "workstation"]);
    fleet.push("authority").ok();
    fleet.copies();
    fleet.host("workstation").serve();
    fleet.host("workstation").ready();
    let whole = fleet.hosts[0].home.stado(&["resolver", "snapshot"]).ok().stdout.len();
    wait_until("some refreshes", PATIENCE, || {
        asked(&fleet).iter().filter(|(line, _)| line.starts_with(FLAGGED)).count() > 3
    });
    for (line, bytes) in asked(&fleet).iter().filter(|(line, _)| line.starts_with(FLAGGED)) {
        assert!(bytes.unwrap() < 200 && whole > 1000, "{line}: {bytes:?} of {whole}");
    }
    // A change is sent whole, once.
    std::fs::remove_file(fleet.hosts[0].home.file("log")).unwrap();
    fleet.moved("orders", 5433);
    fleet.push("authority").ok();
    fleet.host("workstation").holds(2);
    wait_until("refreshes after the change", PATIENCE, || asked(&fleet).len() > 3);
    let large = asked(&fleet).iter().filter(|(line, bytes)| line.starts_with(FLAGGED) && *bytes > Some(200)).count();
    assert_eq!(large, 1, "{:?}", asked(&fleet));

    // The authority goes back to a build that knows no such flag: refused once, and from then on whole.
    fleet.hosts[0].home.write("old", "");
    fleet.moved("orders", 5434);
    fleet.push("authority").ok();
    fleet.host("workstation").holds(3);
    std::fs::remove_file(fleet.hosts[0].home.file("log")).unwrap();
    let asked = wait_for("refreshes of the older authority", PATIENCE, || Some(asked(&fleet)).filter(|a| a.len() > 2));
    assert!(asked.iter().all(|(line, bytes)| line == "resolver snapshot" && bytes.unwrap() > 1000), "{asked:?}");
    let status = fleet.host("workstation").ready();
    assert_eq!(status["attempt"], 0, "and none of it is a failure: {status}");
}

#[test]
fn a_snapshot_that_is_chattered_torn_or_too_large_is_told_for_what_it_is() {
    needs!("sshd");
    let mut fleet = Fleet::on_loopback(&["authority", "workstation"]);
    let home = &fleet.hosts[0].home;
    let script = format!(
        "#!/bin/sh\n\
         case \"$(cat '{home}/mode' 2>/dev/null):$1 $2\" in\n\
         'chatter:resolver snapshot') echo 'Last login: today'; echo '{{tips of the day}}' ;;\n\
         'torn:resolver snapshot') '{STADO}' \"$@\" | head -c 300; exit 0 ;;\n\
         'large:resolver snapshot') printf '{{\"store_version\":\"a\",\"document\":{{\"x\":\"'; head -c 70000000 /dev/zero | tr '\\0' x ;;\n\
         esac\n\
         exec '{STADO}' \"$@\"\n",
        home = home.path().display()
    );
    fleet.registry["service_directory"]["authority"]["command"] = home.program("bin/stado", &script).into();
    fleet.service("orders", "authority", "tcp", 5432, "shop");
    fleet.push("authority").ok();
    fleet.copies();
    let endpoint = |mode: &str| {
        fleet.hosts[0].home.write("mode", mode);
        let args = ["service", "directory", "endpoint", "orders", "--target", "authority", "--json"];
        let run = fleet.hosts[1].home.stado(&args).ok();
        assert_eq!(run.json()["url"], "tcp://127.0.0.1:5432");
        (run.json()["registry"]["source"].as_str().unwrap().to_owned(), run.stderr)
    };
    let (source, said) = endpoint("chatter");
    assert_eq!(source, "authority");
    assert!(said.contains("before its answer, which were skipped: ") && said.contains("Last login: today"), "{said}");
    for (mode, why) in [
        ("torn", "invalid registry authority response: EOF while parsing"),
        ("large", "registry authority snapshot exceeds 64 MiB"),
    ] {
        let (source, said) = endpoint(mode);
        assert_eq!(source, "last-known-good", "{mode}: {said}");
        let notice =
            said.lines().find(|line| line.starts_with("reading the last-known-good registry copy from ")).unwrap();
        assert!(notice.contains(why), "{mode}: {notice}");
        // A write is not made on what cannot be read.
        let set = ["registry", "set", "--path", "channels.notes", "--value", mode];
        let refused = fleet.hosts[1].home.stado(&set);
        assert!(refused.code != 0 && refused.stderr.contains(why), "{mode}: {} {}", refused.code, refused.stderr);
    }
    fleet.hosts[0].home.write("mode", "");
    let notes = fleet.hosts[1].home.stado(&["registry", "pull", "--path", "channels.notes"]).ok().stdout;
    assert_eq!(notes, "kept through every write\n");
}

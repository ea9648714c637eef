//! Writes that are cut at each of their steps, an authority that is away, and two that name each other: what is told is what
//! happened.
use crate::support::fleet::Fleet;
use crate::support::home::{Home, STADO};
use serde_json::{Value, json};

/// The authority's `stado` with a line that can be cut: `<home>/cut` says when.
fn cuttable(home: &Home) -> String {
    let script = format!(
        "#!/bin/sh\n\
         mode=$(cat '{home}/cut' 2>/dev/null)\n\
         # The session ends without an answer, as when the network goes.\n\
         cut() {{ kill -9 $PPID; exit 1; }}\n\
         case \"$mode:$1 $2\" in\n\
         'before-swap:registry push') cat >/dev/null; rm '{home}/cut'; cut ;;\n\
         'after-swap:registry push') rm '{home}/cut'; '{STADO}' \"$@\" >/dev/null 2>&1; cut ;;\n\
         'before-read-back:registry push') echo snapshots >'{home}/cut' ;;\n\
         'snapshots:resolver snapshot') cut ;;\n\
         esac\n\
         exec '{STADO}' \"$@\"\n",
        home = home.path().display()
    );
    home.program("bin/stado", &script)
}

fn stored(fleet: &Fleet) -> Value {
    serde_json::from_str(&fleet.hosts[0].home.read(".stado/local-storage/registry.json")).unwrap()
}

#[test]
fn a_write_that_is_cut_at_any_step_is_told_truthfully() {
    needs!("sshd");
    let mut fleet = Fleet::on_loopback(&["authority", "workstation"]);
    fleet.registry["service_directory"]["authority"]["command"] = cuttable(&fleet.hosts[0].home).into();
    fleet.service("orders", "authority", "tcp", 5432, "shop");
    fleet.push("authority").ok();
    fleet.copies();
    let set = |fleet: &mut Fleet, cut: &str| {
        fleet.host("authority").home.write("cut", cut);
        let args = ["registry", "set", "--path", "channels.notes", "--value", cut];
        fleet.host("workstation").home.stado(&args)
    };
    let notes = |fleet: &Fleet| stored(fleet)["channels"]["notes"].as_str().unwrap().to_owned();

    let run = set(&mut fleet, "before-swap").exits(69);
    assert!(
        run.stderr.contains("; nothing was written, the registry at authority:registry.json still is at generation "),
        "{}",
        run.stderr
    );
    assert_eq!(notes(&fleet), "kept through every write");

    let run = set(&mut fleet, "after-swap").ok();
    assert!(run.stdout.starts_with("set channels.notes -> authority:registry.json generation="), "{}", run.stdout);
    assert_eq!(notes(&fleet), "after-swap", "settled by reading back");

    let run = set(&mut fleet, "before-read-back").exits(1);
    assert!(
        run.stderr.starts_with("Error: registry write of generation ")
            && run.stderr.contains(" at authority:registry.json is unconfirmed: it could not be read back: "),
        "{}",
        run.stderr
    );
    assert_eq!(notes(&fleet), "before-read-back", "and it was written");
}

#[test]
fn while_the_authority_is_away_reading_verbs_answer_from_the_copy_and_writes_say_which_path_failed() {
    needs!("sshd");
    let mut fleet = Fleet::on_loopback(&["authority", "workstation"]);
    fleet.service("orders", "authority", "tcp", 5432, "shop");
    fleet.adapter("workstation", "orders", "shop");
    fleet.push("authority").ok();
    fleet.copies();
    fleet.host("authority").sshd.as_mut().unwrap().down();
    let desk = &fleet.host("workstation").home;
    let endpoint = ["service", "directory", "endpoint", "orders", "--json"];
    let connect = ["service", "directory", "connect", "orders", "--consumer", "shop", "--no-verify", "--json"];
    let bind = ["service", "directory", "bind", "orders", "--target", "authority", "--json"];
    let show = ["service", "directory", "show"];
    let profiles = ["service", "directory", "profiles"];
    for args in [&endpoint[..], &connect[..], &bind[..], &show[..], &profiles[..]] {
        let run = desk.stado(args).ok();
        let notice =
            run.stderr.lines().find(|line| line.starts_with("reading the last-known-good registry copy from "));
        let notice = notice.unwrap_or_else(|| panic!("{args:?}: {}", run.stderr));
        assert!(
            notice.contains("s ago (") && notice.contains("read_at ") && notice.contains("generation "),
            "{notice}"
        );
        assert!(
            notice.contains(
                ") because the authority did not answer: no registry authority SSH connection path answered (primary: "
            ),
            "{notice}"
        );
        if args == endpoint {
            assert_eq!(run.json()["registry"]["source"], "last-known-good");
        }
    }
    let publish = ["service", "directory", "publish"];
    let publish = desk.stado(&publish).exits(69);
    assert!(!publish.stderr.contains("last-known-good"), "never from a copy: {}", publish.stderr);
    let add = ["service", "directory", "consumer", "add", "orders", "till"];
    let remove = ["service", "directory", "consumer", "remove", "orders", "shop"];
    let set = ["registry", "set", "--path", "channels.notes", "--value", "x"];
    let host = ["registry", "host", "add", "n", "--ssh", "o@n.local", "--release-platform", "linux-amd64"];
    let file = desk.write("push.json", "{\"schema_version\":2,\"targets\":[]}");
    let push = ["registry", "push", file.to_str().unwrap()];
    for args in [&add[..], &remove[..], &set[..], &host[..], &push[..]] {
        let run = desk.stado(args).exits(69);
        let sentence = "Error: registry write through authority authority: no SSH connection path answered (primary: ";
        assert!(run.stderr.contains(sentence) && !run.stderr.contains("last-known-good"), "{args:?}: {}", run.stderr);
    }
}

#[test]
fn two_hosts_that_name_each_other_pass_no_write_around() {
    needs!("sshd");
    let mut fleet = Fleet::on_loopback(&["one", "two"]);
    fleet.service("orders", "one", "tcp", 5432, "shop");
    fleet.push("one").ok();
    fleet.copies();
    // The registry of `one` names `two`, behind everybody's back; the copy of `two` names `one`.
    let store = ".stado/local-storage/registry.json";
    let one = &fleet.hosts[0].home;
    let mut document: Value = serde_json::from_str(&one.read(store)).unwrap();
    document["service_directory"]["authority"]["target"] = json!("two");
    document["service_directory"]["generation"] = json!(2);
    one.write(store, document.to_string());
    let run = fleet.hosts[1].home.stado(&["registry", "set", "--path", "channels.notes", "--value", "x"]).exits(1);
    assert!(
        run.stderr.contains("names one as the authority, and the registry there names two. Nothing was written."),
        "{}",
        run.stderr
    );
    assert_eq!(serde_json::from_str::<Value>(&fleet.hosts[0].home.read(store)).unwrap(), document);
    assert_eq!(fleet.hosts[1].home.read(store), "", "and no second registry was founded");
}

#[test]
fn a_copy_that_is_corrupt_is_set_aside_and_never_founds_a_second_fleet() {
    needs!("sshd");
    let mut fleet = Fleet::on_loopback(&["authority", "workstation"]);
    fleet.service("orders", "authority", "tcp", 5432, "shop");
    fleet.push("authority").ok();
    fleet.copies();
    let document = fleet.registry.to_string();
    let desk = &fleet.host("workstation").home;
    desk.write(".stado/cache/registry-last-good.json", "{ torn");
    let file = desk.write("push.json", document);
    for args in [&["registry", "push", file.to_str().unwrap()][..], &["service", "directory", "show"][..]] {
        let run = desk.stado(args).exits(1);
        assert!(run.stderr.contains("is not used: ") && run.stderr.contains("registry pull --from"), "{}", run.stderr);
    }
    assert_eq!(desk.read(".stado/local-storage/registry.json"), "");
}

#[test]
fn a_registry_past_a_mebibyte_is_written_and_older_readers_are_named() {
    let mut fleet = Fleet::on_loopback_without_sshd(&["authority"]);
    fleet.service("orders", "authority", "tcp", 5432, "shop");
    fleet.registry["padding"] = json!("x".repeat(1 << 20));
    let run = fleet.push("authority").ok();
    assert!(run.stderr.contains("readers before this one refuse more than 1048576"), "{}", run.stderr);
    let read = fleet.host("authority").home.stado(&["registry", "pull", "--path", "channels.notes"]).ok();
    assert_eq!(read.stdout, "kept through every write\n");
}

#[test]
fn one_connect_reads_the_registry_once() {
    // Fleet contract §8, failure 20: several reads in one command, each with its retries, outlast everybody's patience.
    needs!("sshd");
    let mut fleet = Fleet::on_loopback(&["authority", "workstation"]);
    let home = &fleet.hosts[0].home;
    let log = home.file("asked");
    let script = format!("#!/bin/sh\necho \"$@\" >>'{}'\nexec '{STADO}' \"$@\"\n", log.display());
    let command = home.program("bin/stado", &script);
    fleet.registry["service_directory"]["authority"]["command"] = command.into();
    fleet.service("orders", "authority", "tcp", 5432, "shop");
    fleet.adapter("workstation", "orders", "shop");
    fleet.push("authority").ok();
    fleet.copies();
    for verb in [&["connect", "orders", "--no-verify"][..], &["endpoint", "orders"], &["show"]] {
        std::fs::remove_file(&log).unwrap();
        fleet.hosts[1].home.stado(&[&["service", "directory"], verb].concat()).ok();
        assert_eq!(std::fs::read_to_string(&log).unwrap(), "resolver snapshot\n", "{verb:?}");
    }
}

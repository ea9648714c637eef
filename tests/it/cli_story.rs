//! The verbs from outside: what they print, and how they end.
use crate::support::disk::Small;
use crate::support::fleet::Fleet;
use crate::support::home::{Home, STADO};
use crate::support::process::run;
use crate::support::tcp::{ask, echo};
use crate::support::{PATIENCE, ports, wait_until};
use rustix::process::Signal;
use serde_json::{Value, json};
use std::os::unix::fs::PermissionsExt;

/// An authority alone, with a service that listens and one that does not.
fn fleet() -> Fleet {
    let mut fleet = Fleet::on_loopback_without_sshd(&["authority", "other"]);
    fleet.service("echo", "authority", "tcp", echo("echo").port(), "shop");
    fleet.service("gone", "authority", "tcp", ports::one().port(), "shop");
    fleet.registry["targets"][1]["ssh"] = "ops@127.0.0.10".into();
    fleet.push("authority").ok();
    fleet
}

#[test]
fn connect_tries_what_it_hands_out_and_remembers_what_it_saw() {
    let mut fleet = fleet();
    let home = &fleet.host("authority").home;
    let connect = |name| ["service", "directory", "connect", name, "--json"];
    let seen = home.stado(&connect("echo")).ok().json();
    assert_eq!((&seen["verified"], &seen["observed"]), (&true.into(), &"just now".into()), "{seen}");
    let refused = home.stado(&connect("gone")).exits(69);
    assert!(refused.stderr.starts_with("Error: gone is placed on authority and did not answer at tcp://127.0.0.1:"));
    assert!(refused.stdout.is_empty());
    let rows = home.read(".stado/observations.json");
    assert!(rows.contains("service:echo@authority") && rows.contains("unreachable"), "{rows}");
    let elsewhere = home.stado(&["service", "directory", "connect", "echo", "--target", "other"]).exits(1);
    assert!(elsewhere.stderr.contains("other declares no resolver adapter for echo"), "{}", elsewhere.stderr);
}

#[test]
fn publish_writes_what_is_declared_and_removes_only_when_asked() {
    let mut fleet = fleet();
    let home = &fleet.host("authority").home;
    let fossil = home.write(".stado/forwards/old.local", "http://127.0.0.1:9\n");
    let publish = |more: &[&str]| home.stado(&[&["service", "directory", "publish"], more].concat());
    let report = publish(&["--json"]).ok().json();
    assert_eq!(report["published"].as_array().unwrap().len(), 2, "{report}");
    assert_eq!((&report["fossil"][0]["service"], report.get("pruned")), (&"old".into(), None));
    assert!(home.read(".stado/forwards/echo.local").starts_with("tcp://127.0.0.1:") && fossil.exists());
    publish(&["--prune", "--service", "echo"]).exits(2);
    assert!(fossil.exists());
    assert_eq!(publish(&["--prune", "--json"]).ok().json()["pruned"][0]["status"], "removed");
    assert!(!fossil.exists());
}

#[test]
fn publish_says_each_thing_in_the_contracts_words() {
    let mut fleet = fleet();
    let adapter = |consumer: &str, port: u16| json!({"service": "echo", "consumer": consumer, "bind": format!("127.0.0.1:{port}")});
    let (first, second) = (ports::one(), ports::one());
    fleet.registry["service_directory"]["services"]["echo"]["consumers"]["lem"] = json!({"capabilities": []});
    fleet.registry["targets"][1]["service_resolver"] = json!({
        "api_bind": "127.0.0.1:1", "refresh_seconds": 5, "max_stale_seconds": 15,
        "adapters": [adapter("shop", first.port()), adapter("lem", second.port())],
    });
    fleet.registry["service_directory"]["generation"] = 2.into();
    fleet.push("authority").ok();
    let home = &fleet.host("authority").home;
    let publish = |more: &[&str]| home.stado(&[&["service", "directory", "publish"], more].concat());
    let dir = home.file(".stado/forwards");
    let at = |file: &str| dir.join(file).display().to_string();

    // An address that is right is not written again; one that differs is.
    home.write(".stado/forwards/gone.local", "http://127.0.0.1:9\n");
    home.write(".stado/forwards/old.url", "http://127.0.0.1:8766\n");
    home.write(".stado/forwards/dead.local", [0xff, 0xfe]);
    for (file, age) in [("old.url", "3 days ago"), ("dead.local", "2 hours ago")] {
        run(std::process::Command::new("touch").args(["-d", age, &at(file)])).ok();
    }
    // Not markers: unfinished, hidden, and not a file.
    home.write(".stado/forwards/x.local.staging", "http://127.0.0.1:1\n");
    home.write(".stado/forwards/.hidden.local", "http://127.0.0.1:1\n");
    std::os::unix::fs::symlink("/etc/hostname", dir.join("link.local")).unwrap();
    let told = publish(&["--json"]).ok();
    let report = told.json();
    let keys = |value: &Value| value.as_object().unwrap().keys().cloned().collect::<Vec<_>>().join(" ");
    assert_eq!(keys(&report), "target published skipped fossil markers_present markers_declared");
    assert_eq!(keys(&report["published"][0]), "service url source marker");
    assert_eq!(keys(&report["fossil"][0]), "service url marker age_seconds");
    let echo = home.read(".stado/forwards/echo.local").trim().to_owned();
    assert_eq!(
        report["published"][0],
        json!({"service": "echo", "url": echo, "source": "directory-endpoint", "marker": at("echo.local")})
    );
    assert_eq!(
        (&report["fossil"][0]["service"], &report["fossil"][0]["url"], &report["fossil"][1]["url"]),
        (&json!("old"), &json!("http://127.0.0.1:8766"), &json!("(unreadable: it is not text)")),
        "the oldest first"
    );
    assert_eq!((&report["markers_present"], &report["markers_declared"]), (&json!(4), &json!(2)));
    let mode = std::fs::metadata(dir.join("echo.local")).unwrap().permissions().mode() & 0o777;
    assert_eq!((mode, home.read(".stado/forwards/echo.local")), (0o600, format!("{echo}\n")));

    let gone = home.read(".stado/forwards/gone.local").trim().to_owned();
    let text = publish(&[]).ok().stdout;
    let wanted = [
        format!("echo -> {echo} ({}) [observed never]", at("echo.local")),
        format!("gone -> {gone} ({}) [observed never]", at("gone.local")),
        format!(
            "fossil old -> http://127.0.0.1:8766 ({}, last written 3d ago); service_directory declares no endpoint for authority",
            at("old.url")
        ),
        format!(
            "fossil dead -> (unreadable: it is not text) ({}, last written 2h ago); service_directory declares no endpoint for \
             authority",
            at("dead.local")
        ),
        format!("4 marker(s) in {}, 2 declared by the directory for authority, 2 it does not", dir.display()),
        "nothing was removed; `--prune` removes exactly the markers listed above".to_owned(),
    ];
    assert_eq!(text.lines().collect::<Vec<_>>(), wanted);
    let other = publish(&["--target", "other", "--json"]).ok().json();
    assert_eq!(
        other["skipped"],
        json!([
            {"service": "echo", "reason": "this host's resolver declares 2 echo adapters, one per consumer (shop, lem), and a \
              marker names no consumer; read the address from the consumer's own adapter"},
            {"service": "gone", "reason": "service_directory declares no endpoint for other and its resolver declares no gone \
              adapter"}
        ])
    );

    let both = publish(&["--prune", "--service", "echo"]).exits(2);
    let sentence = "--prune compares the whole directory against every marker present and cannot be scoped with --service; \
                    publish one service, then run `publish --prune` to sweep";
    assert!(both.stderr.contains(sentence), "{}", both.stderr);
    let none = publish(&["--service", "nobody"]).exits(1);
    assert!(none.stderr.contains("service_directory declares no service named nobody"), "{}", none.stderr);
    let one = publish(&["--service", "gone", "--json"]).ok().json();
    assert_eq!(one["published"].as_array().unwrap().len(), 1, "{one}");

    let pruned = publish(&["--prune"]).ok().stdout;
    for file in ["old.url", "dead.local"] {
        let line = format!("pruned {}: removed {}\n", file.split('.').next().unwrap(), at(file));
        assert!(pruned.contains(&line), "{line:?} is not in {pruned}");
    }
    assert!(!pruned.contains("nothing was removed"), "{pruned}");
    let mut left: Vec<_> =
        std::fs::read_dir(&dir).unwrap().map(|e| e.unwrap().file_name().into_string().unwrap()).collect();
    left.sort();
    assert_eq!(left, [".hidden.local", "echo.local", "gone.local", "link.local", "x.local.staging"]);
}

#[test]
fn a_marker_that_cannot_be_removed_is_listed_and_the_command_fails() {
    needs!("tmpfs");
    let mut fleet = fleet();
    let home = &fleet.host("authority").home;
    home.stado(&["service", "directory", "publish"]).ok();
    let disk = Small::mount(&home.file("disk"), 64);
    std::fs::rename(home.file(".stado/forwards"), home.file("kept")).unwrap();
    home.write("disk/forwards/old.local", "http://127.0.0.1:9\n");
    for file in ["echo.local", "gone.local"] {
        home.write(&format!("disk/forwards/{file}"), home.read(&format!("kept/{file}")));
    }
    disk.read_only();
    let run = run(home
        .command(STADO, &["service", "directory", "publish", "--prune"])
        .env("STADO_FORWARDS_DIR", home.file("disk/forwards")))
    .exits(1);
    let marker = home.file("disk/forwards/old.local").display().to_string();
    let listed = format!("pruned old: failed {marker}: Read-only file system");
    assert!(run.stdout.contains(&listed), "{listed:?} is not in {}", run.stdout);
    let sentence = "1 forward marker(s) could not be removed; each is reported above with the filesystem's own words";
    assert!(run.stderr.contains(sentence), "{}", run.stderr);
    disk.writable();
}

#[test]
fn one_field_is_changed_and_the_directory_advances() {
    let mut fleet = fleet();
    let home = &fleet.host("authority").home;
    let path = "service_directory.services.gone.endpoints.authority.url";
    let set = |value: &str| home.stado(&["registry", "set", "--path", path, "--value", value, "--json"]);
    let receipt = set("tcp://127.0.0.1:9").ok().json();
    assert_eq!(receipt["state"], "set", "{receipt}");
    assert_eq!(set("tcp://127.0.0.1:9").ok().json()["state"], "unchanged");
    let pull = |path| home.stado(&["registry", "pull", "--path", path]).ok().stdout;
    assert_eq!((pull(path), pull("service_directory.generation")), ("tcp://127.0.0.1:9\n".into(), "2\n".into()));
    let before = pull("service_directory");
    let refused = set("https://example.org:1").exits(1);
    assert!(refused.stderr.contains("endpoints.authority.url: must"), "{}", refused.stderr);
    assert_eq!(pull("service_directory"), before);
}

#[test]
fn status_of_another_host_is_not_made_up_from_what_is_here() {
    let mut fleet = fleet();
    let authority = fleet.host("authority");
    authority.serve();
    authority.ready();
    let other = authority.home.stado(&["resolver", "status", "--target", "other", "--json"]);
    let other = other.exits(1).json();
    assert_eq!((&other["state"], &other["verdict"]), (&"unpublished".into(), &"degraded".into()), "{other}");
    assert!(other["api"]["listening"].is_null() && other["bind_probe"].as_str().unwrap().starts_with("not probed:"));
}

#[test]
fn a_program_that_is_run_is_registered_while_it_listens_and_its_end_is_passed_on() {
    needs!("python3");
    let home = Home::new();
    let daemon = home.start("resolver", STADO, &["resolver", "serve"]);
    wait_until("the daemon answers", PATIENCE, || home.devmesh(&["health"]).code == 0);
    let backend = echo("dependency").to_string();
    home.stado(&["service", "register", "--name", "a.dep", "--backend", &backend, "--once"]).ok();
    let program = "import os,signal,socket\n\
        signal.signal(signal.SIGTERM, lambda *a: os._exit(7))\n\
        l = socket.create_server(('127.0.0.1', int(os.environ['LISTEN'])))\n\
        while True:\n    c, _ = l.accept(); c.recv(9); c.sendall(os.environ['A_DEP_ADDR'].encode()); c.close()\n";
    let python = crate::support::program("python3").unwrap();
    let args = ["service", "run", "web.api", "--with", "a.dep", "--port-env", "LISTEN", "--"];
    let mut service = home.start("run", STADO, &[&args[..], &[python.to_str().unwrap(), "-c", program]].concat());
    home.stado(&["service", "wait", "web.api", "--for", "20s"]).ok();
    let raw = |name| home.stado(&["service", "resolve", name, "--raw"]);
    let address = raw("web.api").ok().stdout.trim().to_owned();
    assert_eq!(ask(&address, "x").as_deref(), Some(raw("a.dep").ok().stdout.trim()));
    service.signal(Signal::TERM);
    assert_eq!(service.wait().code(), Some(7));
    raw("web.api").exits(1);
    home.stado(&["service", "forget", "web.api"]).ok();
    raw("web.api").exits(1);
    drop(daemon);
}

#[test]
fn what_clap_refuses_ends_with_2_in_the_voice_of_the_contract_and_1_for_devmesh() {
    let home = Home::new();
    let stado = run(&mut home.command(STADO, &["registry", "push"])).exits(2);
    assert!(stado.stderr.starts_with("Error: ") && stado.stderr.contains("[refused]"), "{}", stado.stderr);
    let devmesh = home.devmesh(&["services", "list", "--max-output-rows", "-1"]).exits(1);
    assert!(devmesh.stderr.starts_with("error: "), "{}", devmesh.stderr);
    assert!(home.devmesh(&["--help"]).ok().stdout.contains("services"));
}

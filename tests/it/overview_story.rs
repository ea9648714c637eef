//! What a person looks at every day: `stado status`, the shell's variables, completions.
use crate::support::fleet::Fleet;
use crate::support::home::{Home, STADO};
use crate::support::process::run;
use crate::support::tcp::echo;
use crate::support::{PATIENCE, ports, program, wait_for, wait_until};
use rustix::process::Signal;
use serde_json::Value;

/// What is said, as `severity about`.
fn troubles(report: &Value) -> Vec<String> {
    let text = |trouble: &Value, key: &str| trouble[key].as_str().unwrap().to_owned();
    let all = report["troubles"].as_array().unwrap().iter();
    all.map(|trouble| format!("{} {}", text(trouble, "severity"), text(trouble, "about"))).collect()
}

#[test]
fn one_screen_tells_of_a_host_from_no_daemon_to_a_service_in_use() {
    let home = Home::new();
    let none = home.stado(&["status", "--json"]).exits(1).json();
    assert_eq!((&none["verdict"], &none["daemon"]["answers"]), (&"down".into(), &false.into()), "{none}");
    assert_eq!(troubles(&none), ["fail daemon"], "{none}");

    let lease = ports::one();
    let http = format!("127.0.0.1:{}", lease.port());
    let mut daemon = home.start("resolver", STADO, &["resolver", "serve", "--http-enabled", "--http-addr", &http]);
    let ready = wait_for("nothing to put right", PATIENCE, || {
        assert!(daemon.ended().is_none(), "{}", daemon.log());
        Some(home.stado(&["status", "--json"])).filter(|run| run.code == 0)
    });
    assert_eq!((&ready.json()["verdict"], &ready.json()["fleet"]), (&"ready".into(), &Value::Null));
    let backend = echo("x").to_string();
    let register = |name| home.stado(&["service", "register", "--name", name, "--backend", &backend, "--once"]).ok();
    register("checkout.db");
    let seen = home.stado(&["status", "--json"]).ok().json();
    let row = &seen["services"][0];
    let address = home.stado(&["service", "resolve", "checkout.db", "--raw"]).ok().stdout;
    assert_eq!((&row["name"], row["address"].as_str()), (&"checkout.db".into(), Some(address.trim())), "{seen}");
    assert_eq!(row["place"], backend);
    let screen = home.stado(&["status"]).ok().stdout;
    assert!(screen.contains("ready, nothing to put right") && screen.contains("checkout.db"), "{screen}");
    assert!(screen.contains("all services at http://stado.localhost:"), "{screen}");
}

#[test]
fn one_screen_tells_what_the_fleet_does_not_serve_and_why() {
    let mut fleet = Fleet::on_loopback_without_sshd(&["authority", "other"]);
    fleet.service("echo", "authority", "tcp", echo("echo").port(), "shop");
    let taken = std::net::TcpListener::bind(("127.0.0.1", fleet.adapter("authority", "echo", "shop"))).unwrap();
    fleet.push("authority").ok();
    let host = fleet.host("authority");
    host.serve();
    let home = &host.home;
    let of_adapter = |report: &Value| {
        let rows = report["services"].as_array()?;
        let unserved = rows.iter().find(|row| row["from"] == "fleet").filter(|row| row["state"] == "unserved");
        // A daemon that is starting has not tried yet, and has no reason.
        unserved.filter(|row| row["reason"].as_str().is_some_and(|why| why.contains("already in use"))).cloned()
    };
    let report = wait_for("an adapter that is not served", PATIENCE, || {
        let run = home.stado(&["status", "--json"]);
        let report: Value = serde_json::from_str(&run.stdout).ok()?;
        of_adapter(&report).filter(|_| run.code == 1 && report["fleet"]["state"] == "serving").map(|_| report)
    });
    assert_eq!(report["verdict"], "degraded", "{report}");
    assert_eq!(report["services"][0]["from"], "fleet", "what does not work stands first: {report}");
    assert!(troubles(&report).contains(&"fail fleet".to_owned()), "{report}");
    let screen = home.stado(&["status"]).exits(1).stdout;
    assert!(screen.contains("TO PUT RIGHT") && screen.contains("echo for shop"), "{screen}");
    assert!(screen.contains("FLEET     authority: serving, generation 1"), "{screen}");
    drop(taken);
    wait_until("it is served", PATIENCE, || home.stado(&["status"]).code == 0);
}

#[test]
fn a_stopped_daemon_is_told_by_status_doctor_and_stop_with_what_lets_it_go_on() {
    let mut fleet = Fleet::on_loopback_without_sshd(&["desk"]);
    fleet.service("echo", "desk", "tcp", echo("echo").port(), "shop");
    fleet.push("desk").ok();
    let desk = fleet.host("desk");
    desk.serve();
    desk.ready();
    let pid = desk.daemon().pid();
    let goes_on = format!("`kill -CONT {pid}` lets it go on");
    desk.daemon().signal(Signal::STOP);
    let report = desk.home.stado(&["status", "--json"]).exits(1).json();
    let daemon = &report["daemon"];
    assert_eq!((&daemon["answers"], &daemon["pid"], &daemon["stopped"]), (&false.into(), &pid.into(), &true.into()));
    let first = &report["troubles"][0];
    assert_eq!(first["about"], "daemon", "{report}");
    let what = first["what"].as_str().unwrap();
    assert!(what.starts_with(&format!("the daemon (pid {pid}) is stopped by a signal: ")), "{what}");
    let screen = desk.home.stado(&["status"]).exits(1).stdout.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(screen.contains(&goes_on) && screen.contains("desk: stopped by a signal"), "{screen}");
    for wrong in ["none yet", "Start it", "desk: serving", "start one"] {
        assert!(!screen.contains(wrong), "{wrong}: {screen}");
    }
    let doctor = desk.home.stado(&["doctor", "--json"]).exits(1).json();
    for id in ["daemon-reachable", "resolver"] {
        let check = doctor["checks"].as_array().unwrap().iter().find(|check| check["id"] == id).unwrap();
        assert_eq!(check["status"], "fail", "{check}");
        assert!(check["detail"].as_str().unwrap().contains(&format!("(pid {pid}) is ")), "{check}");
        assert_eq!(check["remedy"], format!("{goes_on}."), "{check}");
    }
    let refused = desk.home.stado(&["resolver", "stop", "--for", "1s"]).exits(69).stderr;
    assert!(refused.contains("is stopped by a signal") && refused.contains(&goes_on), "{refused}");
    // It had heard it all the same, and ends in order.
    desk.daemon().signal(Signal::CONT);
    wait_until("it ends", PATIENCE, || desk.daemon().ended().is_some());
}

/// A daemon with one service, and a `stado` on the PATH.
fn with_a_service() -> (Home, crate::support::process::Process, String) {
    let home = Home::new();
    let daemon = home.start("resolver", STADO, &["resolver", "serve"]);
    wait_until("the daemon answers", PATIENCE, || home.devmesh(&["health"]).code == 0);
    let backend = echo("x").to_string();
    home.stado(&["service", "register", "--name", "checkout.db", "--backend", &backend, "--once", "--ttl", "600"]).ok();
    let address = home.stado(&["service", "resolve", "checkout.db", "--raw"]).ok().stdout.trim().to_owned();
    (home, daemon, address)
}

#[test]
fn a_shell_completes_commands_and_the_services_of_this_moment() {
    let (home, _daemon, _) = with_a_service();
    let path = std::path::Path::new(STADO).parent().unwrap().display().to_string();
    let shell = |shell: &str, script: &str| {
        let mut command = home.command(program(shell).unwrap(), &["-c", script]);
        // Each shell has words of its own for this.
        command.env("PATH", format!("{path}:/usr/local/bin:/usr/bin:/bin"));
        run(&mut command).ok().stdout
    };
    let bash = |words: &str| {
        let count = words.split(' ').count() - 1;
        let script = format!(
            "source <(stado completions bash); COMP_WORDS=({words}); COMP_CWORD={count}; COMP_TYPE=9
             _clap_complete_stado stado \"${{COMP_WORDS[-1]}}\" \"\"; printf '%s\\n' \"${{COMPREPLY[@]}}\""
        );
        shell("bash", &script)
    };
    assert_eq!(bash("stado service resolve check").trim(), "checkout.db");
    assert!(bash("stado sta").lines().any(|word| word.trim() == "status"), "{}", bash("stado sta"));
    needs!("zsh", "fish");
    let fish = shell("fish", "source (stado completions fish | psub); complete -C 'stado service inspect '");
    assert!(fish.contains("checkout.db\tready 127.0.0.1:"), "{fish}");
    // Without a terminal there is no Tab to press: the function loads, and what it asks is answered.
    let zsh = "autoload -Uz compinit && compinit -u -D && source <(stado completions zsh) && whence -w _clap_dynamic_completer_stado
               STADO_COMPLETE=zsh _CLAP_COMPLETE_INDEX=3 _CLAP_IFS=$'\\n' stado -- stado service inspect check";
    let zsh = shell("zsh", zsh);
    assert!(zsh.contains(": function") && zsh.contains("checkout.db"), "{zsh}");
}

#[test]
fn a_shell_reads_the_addresses_of_services_as_variables() {
    let (home, _daemon, address) = with_a_service();
    let script = format!("eval \"$('{STADO}' service env)\"; echo \"$CHECKOUT_DB_ADDR $CHECKOUT_DB_PORT\"");
    let told = run(&mut home.command("/bin/sh", &["-euc", &script])).ok().stdout;
    let port = address.rsplit_once(':').unwrap().1;
    assert_eq!(told, format!("{address} {port}\n"));
    let compose =
        home.stado(&["service", "env", "checkout.db", "--format", "compose", "--host", "host.docker.internal"]);
    let expected = format!("environment:\n  CHECKOUT_DB_ADDR: \"host.docker.internal:{port}\"\n");
    assert!(compose.ok().stdout.starts_with(&expected));
    let unknown = home.stado(&["service", "env", "nothing"]).exits(1);
    assert!(unknown.stderr.contains("nothing is not known here"), "{}", unknown.stderr);
}

#[test]
fn a_bundle_has_what_helps_and_gives_no_secret_away() {
    let (home, _daemon, _) = with_a_service();
    let token = "5ecre7".repeat(8);
    home.write(".stado/config.json", format!("{{\"object_api\": {{\"namespaces\": {{}}, \"token\": \"{token}\"}}}}"));
    let log = home.write("daemon-copy.log", format!("time=x msg=y password=hunter2 lease={token}\n"));
    let output = home.file("bundle.tar");
    let args = ["support", "bundle", "--output", output.to_str().unwrap(), "--log", log.to_str().unwrap()];
    let told = home.stado(&args).ok().stdout;
    assert!(told.contains("stado/config.json  object_api.token: named like a secret"), "{told}");
    let packed = String::from_utf8_lossy(&std::fs::read(&output).unwrap()).into_owned();
    for secret in [token.as_str(), "hunter2"] {
        assert!(!packed.contains(secret) && !told.contains(secret), "{secret} is given away");
    }
    assert!(!packed.contains(home.path().to_str().unwrap()), "the home directory is named");
    for part in ["stado-support/status.json", "stado-support/doctor.json", "checkout.db", "removed.txt"] {
        assert!(packed.contains(part), "{part} is not packed");
    }
    use std::os::unix::fs::PermissionsExt;
    assert_eq!(std::fs::metadata(&output).unwrap().permissions().mode() & 0o777, 0o600);
    assert!(home.stado(&args).exits(1).stderr.contains("cannot write"), "a bundle that is there is left alone");
}

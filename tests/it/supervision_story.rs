//! The daemon under a service manager: what it tells `NOTIFY_SOCKET`, and the units that `resolver install` writes.
use crate::support::fleet::Fleet;
use crate::support::home::{Home, STADO};
use crate::support::process::run;
use crate::support::{PATIENCE, program, wait_for, wait_until};
use rustix::process::Signal;
use serde_json::{Value, json};
use std::os::unix::net::UnixDatagram;
use std::process::Command;
use std::time::Duration;

/// The next message that is not of the watchdog.
fn next(manager: &UnixDatagram) -> String {
    wait_for("a message to the manager", PATIENCE, || {
        let mut buffer = [0; 4096];
        let n = manager.recv(&mut buffer).ok()?;
        Some(String::from_utf8_lossy(&buffer[..n]).into_owned()).filter(|message| message != "WATCHDOG=1")
    })
}

fn fed(manager: &UnixDatagram) -> bool {
    let mut buffer = [0; 4096];
    std::iter::from_fn(|| manager.recv(&mut buffer).ok().map(|n| buffer[..n] == *b"WATCHDOG=1")).any(|fed| fed)
}

/// Whether every thread of a process has been stopped by a signal.
fn stopped(pid: u32) -> bool {
    let threads = std::fs::read_dir(format!("/proc/{pid}/task")).unwrap().flatten();
    threads.map(|thread| std::fs::read_to_string(thread.path().join("stat")).unwrap_or_default()).all(|stat| {
        // The name in parentheses may hold anything: the state stands behind the last one.
        stat.rsplit_once(") ").is_none_or(|(_, state)| state.starts_with('T'))
    })
}

#[test]
fn a_manager_is_told_ready_only_when_the_fleet_is_served_then_reloads_the_watchdog_and_the_end() {
    let mut fleet = Fleet::on_loopback_without_sshd(&["desk"]);
    let policy = fleet.registry["targets"][0]["service_resolver"].clone();
    fleet.declare("desk", "service_resolver", Value::Null);
    fleet.registry["targets"][0].as_object_mut().unwrap().remove("service_resolver");
    fleet.push("desk").ok();
    let host = fleet.host("desk");
    let socket = host.home.file("notify");
    let manager = UnixDatagram::bind(&socket).unwrap();
    manager.set_read_timeout(Some(Duration::from_millis(50))).unwrap();
    host.home.set("NOTIFY_SOCKET", socket.to_str().unwrap());
    host.home.set("WATCHDOG_USEC", 200_000);
    host.serve();
    let waits = next(&manager);
    assert!(waits.starts_with("STATUS=fleet: backing_off: registry target has no service_resolver"), "{waits}");
    assert!(!waits.contains("READY"), "{waits}");
    wait_until("the watchdog is fed while it waits", PATIENCE, || fed(&manager));

    fleet.declare("desk", "service_resolver", policy);
    fleet.push("desk").ok();
    let ready = next(&manager);
    assert!(ready.starts_with("STATUS=fleet: target desk, directory generation 1"), "{ready}");
    assert!(ready.ends_with("\nREADY=1"), "{ready}");

    let host = fleet.host("desk");
    host.daemon().signal(Signal::HUP);
    assert!(next(&manager).starts_with("RELOADING=1\nMONOTONIC_USEC="));
    assert_eq!(next(&manager), "READY=1");

    // What it sent before it stopped is read to the end; then a whole WATCHDOG_USEC passes without a word, which is what a
    // manager takes for a daemon that hangs.
    let pid = host.daemon().pid();
    host.daemon().signal(Signal::STOP);
    wait_until("it is stopped", PATIENCE, || stopped(pid));
    while fed(&manager) {}
    manager.set_read_timeout(Some(Duration::from_micros(200_000))).unwrap();
    assert!(!fed(&manager), "a stopped daemon feeds nothing");
    manager.set_read_timeout(Some(Duration::from_millis(50))).unwrap();
    host.daemon().signal(Signal::CONT);
    wait_until("and goes on", PATIENCE, || fed(&manager));

    host.home.stado(&["resolver", "restart"]).ok();
    assert!(next(&manager).starts_with("RELOADING=1\n"), "a restart under the same pid is no end");
    wait_for("ready again", PATIENCE, || next(&manager).ends_with("READY=1").then_some(()));
    host.stop();
    let end = next(&manager);
    assert!(end.starts_with("STOPPING=1\nEXTEND_TIMEOUT_USEC=15000000\nSTATUS=stopping: "), "{end}");
}

#[test]
fn the_units_are_what_systemd_and_launchd_can_read() {
    needs!("systemd-analyze");
    let mut home = Home::new();
    let runtime = home.path().display().to_string();
    home.set("XDG_RUNTIME_DIR", runtime);
    home.set("STADO_TARGET", "de%sk \"1\" $HOME");
    let print = |more: &[&str]| {
        let args = ["resolver", "install", "--print", "--target", "desk", "--env", "STADO_TARGET"];
        home.stado(&[&args, more].concat()).ok().stdout
    };
    for (scope, more) in
        [("--user", &["--", "--lease-ttl", "20s"][..]), ("--system", &["--system", "--run-as", "root"])]
    {
        let unit = home.write("units/stado-resolver.service", print(&[&["--manager", "systemd"], more].concat()));
        let verified =
            run(&mut home.command("/usr/bin/env", &["systemd-analyze", scope, "verify", unit.to_str().unwrap()]));
        assert_eq!((verified.code, verified.stderr.as_str()), (0, ""), "{scope}");
        let text = home.read("units/stado-resolver.service");
        assert!(
            text.contains(&format!("ExecStart=\"{STADO}\" \"resolver\" \"serve\" \"--target\" \"desk\"")),
            "{text}"
        );
    }
    home.write("broken/stado-resolver.service", print(&["--manager", "systemd"]).replace("Restart=on", "Restart=of"));
    let broken = home.file("broken/stado-resolver.service");
    let told =
        run(&mut home.command("/usr/bin/env", &["systemd-analyze", "--user", "verify", broken.to_str().unwrap()]));
    assert!(told.stderr.contains("restart"), "the check itself sees what is wrong: {}", told.stderr);

    needs!("python3");
    let list = home.write("job.plist", print(&["--manager", "launchd", "--", "--lease-ttl", "20s"]));
    let script = "import json, plistlib, sys; print(json.dumps(plistlib.load(open(sys.argv[1], 'rb'))))";
    let read = run(Command::new(program("python3").unwrap()).args(["-c", script]).arg(list)).ok().json();
    assert_eq!(read["EnvironmentVariables"], json!({"STADO_TARGET": "de%sk \"1\" $HOME"}));
    assert_eq!(read["ProgramArguments"], json!([STADO, "resolver", "serve", "--target", "desk", "--lease-ttl", "20s"]));
    assert_eq!((&read["KeepAlive"], &read["ThrottleInterval"]), (&json!({"SuccessfulExit": false}), &json!(5)));
}

#[test]
fn a_unit_is_installed_replaced_and_removed_and_a_foreign_one_is_left_alone() {
    let mut home = Home::new();
    let file = ".config/systemd/user/stado-resolver.service";
    // A manager that only writes down what it is asked.
    home.program("bin/systemctl", "#!/bin/sh\necho \"$*\" >> \"$HOME/asked\"\n");
    let (programs, markers) = (home.file("bin").display().to_string(), home.file("markers").display().to_string());
    home.set("PATH", format!("{programs}:/usr/bin:/bin"));
    home.set("STADO_FORWARDS_DIR", markers);
    let asked = |home: &Home| {
        let asked = home.read("asked");
        std::fs::remove_file(home.file("asked")).ok();
        asked
    };
    let installed = home.stado(&["resolver", "install", "--manager", "systemd"]).ok();
    assert_eq!(installed.stdout, format!("wrote {}\n", home.file(file).display()));
    let left_out = installed.stderr.lines().find(|line| line.starts_with("set here, and not for the daemon: "));
    assert!(left_out.is_some_and(|line| line.contains("STADO_FORWARDS_DIR")), "{}", installed.stderr);
    let enable = "--user daemon-reload\n--user enable --now stado-resolver.service\n";
    assert_eq!(asked(&home), enable);
    assert!(home.file(".stado/logs").is_dir(), "systemd makes no directory for a log");

    let changed = home.stado(&["resolver", "install", "--manager", "systemd", "--target", "desk"]).ok();
    assert!(changed.stderr.contains("`systemctl --user restart stado-resolver.service`"), "{}", changed.stderr);
    assert_eq!(asked(&home), enable);
    home.stado(&["resolver", "uninstall", "--manager", "systemd"]).ok();
    assert_eq!(asked(&home), "--user disable --now stado-resolver.service\n--user daemon-reload\n");
    assert!(!home.file(file).exists());
    let none = home.stado(&["resolver", "uninstall", "--manager", "systemd"]).ok().stdout;
    assert!(none.starts_with("nothing is installed at "), "{none}");

    // A daemon that was started by hand: the unit is enabled, and how to change over is said.
    let mut daemon = home.start("resolver", STADO, &["resolver", "serve"]);
    daemon.expect("fleet: ");
    let advice = home.stado(&["resolver", "install", "--manager", "systemd"]).ok().stderr;
    assert!(advice.contains(&format!("a resolver (pid {}) runs for this home already", daemon.pid())), "{advice}");
    assert_eq!(asked(&home), "--user daemon-reload\n--user enable stado-resolver.service\n");
    assert!(daemon.stop().success());

    home.write(file, "[Service]\nExecStart=/bin/true\n");
    for verb in ["install", "uninstall"] {
        let refused = home.stado(&["resolver", verb, "--manager", "systemd"]).exits(1);
        assert!(refused.stderr.contains("was not written by `stado resolver install`"), "{}", refused.stderr);
    }
    assert!(home.read(file).contains("/bin/true") && asked(&home).is_empty());

    // None at all.
    std::fs::remove_file(home.file(file)).unwrap();
    std::fs::remove_file(home.file("bin/systemctl")).unwrap();
    home.set("PATH", programs);
    let alone = home.stado(&["resolver", "install", "--manager", "systemd"]).ok().stderr;
    assert!(alone.contains("systemd does not run here") && alone.contains("enable --now"), "{alone}");
    let removed = home.stado(&["resolver", "uninstall", "--manager", "systemd"]).ok();
    assert_eq!(removed.stdout, format!("removed {}\n", home.file(file).display()));
    let said = "systemd does not run here, so nothing had to be stopped there\n";
    assert_eq!(removed.stderr, said, "nothing of how to start what was just removed");
}

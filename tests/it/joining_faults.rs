//! Joining when something is wrong: invitations that are no good, another name, a join that is killed at each step, five at the
//! same second; and a service manager that is given the resolver.
use crate::joining_story::Machine;
use crate::support::home::STADO;
use crate::support::process::{Run, run, run_with};
use crate::support::strace::killed_at;
use crate::support::{PATIENCE, wait_until};
use serde_json::json;

#[test]
fn an_expired_a_withdrawn_and_a_changed_invitation_let_nobody_in_and_alarm_nobody() {
    let (tower, laptop) = (Machine::new(), Machine::new());
    tower.init(3).ok();
    let short = tower.invite(&["--valid", "1s"]);
    let listed = || tower.home.stado(&["fleet", "invitations"]).ok().stdout;
    wait_until("it has expired", PATIENCE, || listed().contains("expired ("));
    let withdrawn = tower.invite(&[]);
    let all = tower.home.stado(&["fleet", "invitations", "--json"]).ok().json();
    let id = all["invitations"][1]["id"].as_str().unwrap();
    tower.home.stado(&["fleet", "invitations", "--withdraw", id]).ok();
    for (invitation, why) in [(&short, " expired at "), (&withdrawn, " was withdrawn at ")] {
        for name in ["laptop", "stranger"] {
            let refused = laptop.join(name, invitation, &[]).exits(1).stderr;
            assert!(refused.contains(why) && refused.contains("`stado fleet invite` makes"), "{refused}");
            assert!(!refused.contains("somebody else had this one"), "{refused}");
        }
    }
    let whole = tower.invite(&[]);
    let letter = |at: usize| if whole.as_bytes()[at] == b'x' { "y" } else { "x" };
    let mut changed = whole.clone();
    changed.replace_range(100..101, letter(100));
    let refused = laptop.join("laptop", &changed, &[]).exits(1).stderr;
    assert!(refused.contains("the invitation is not whole, or was changed on its way here"), "{refused}");
    let seen = tower.home.stado(&["fleet", "invitations", "--json"]).ok().json();
    assert_eq!(seen["warnings"], json!([]), "{seen}");
    let status = tower.home.stado(&["resolver", "status"]).stdout;
    assert!(!status.contains("may have stolen it"), "{status}");
}

#[test]
fn a_host_that_was_told_its_name_joins_under_no_other() {
    let (tower, mut laptop) = (Machine::new(), Machine::new());
    tower.init(4).ok();
    let invitation = tower.invite(&["--name", "laptop"]);
    let join = |machine: &Machine, more: &[&str]| {
        let args = [&["fleet", "join", "--no-start", "--json"], more].concat();
        run_with(&mut machine.home.command(STADO, &args), invitation.as_bytes())
    };
    laptop.home.set("STADO_TARGET", "desk");
    let refused = join(&laptop, &[]).exits(1).stderr;
    let told = "the invitation is for laptop alone, and STADO_TARGET says that this host is desk";
    assert!(refused.contains(told) && refused.contains("`stado fleet invite --name desk`"), "{refused}");
    let refused = join(&laptop, &["--name", "laptop"]).exits(1).stderr;
    assert!(refused.contains("STADO_TARGET says that this host is desk, and --name that it is laptop"), "{refused}");
    laptop.home.unset("STADO_TARGET");
    laptop.home.write(".stado/config.json", r#"{"target": "desk"}"#);
    let refused = join(&laptop, &[]).exits(1).stderr;
    assert!(refused.contains("`target` in ~/.stado/config.json says that this host is desk"), "{refused}");
    let own = |machine: &Machine| machine.home.read(".stado/config.json");
    assert!(
        own(&laptop).contains(r#""desk""#) && !laptop.home.file(".stado/joining.json").exists(),
        "nothing was begun"
    );
    // Who names the new name means it.
    assert_eq!(join(&laptop, &["--name", "laptop"]).ok().json()["target"], "laptop");
    assert!(own(&laptop).contains(r#""target": "laptop""#));
}

#[test]
fn a_join_that_is_killed_at_any_step_goes_on_when_it_is_run_again() {
    needs!("strace");
    let tower = Machine::new();
    tower.init(5).ok();
    let (mut runs, mut kills) = (0, 0);
    // Every step ends with a file in its place, or taken away.
    for class in ["?rename,?renameat,?renameat2", "?unlink,?unlinkat"] {
        for n in 1.. {
            let (new, name) = (Machine::new(), format!("host-{runs}"));
            runs += 1;
            let invitation = tower.invite(&[]);
            let file = new.home.write("invitation", &invitation);
            let join = ["fleet", "join", "--name", &name, "--no-start", "--file", file.to_str().unwrap()];
            if !killed_at(&new.home, class, n, &join) {
                break;
            }
            let begun =
                new.home.file(".stado/joining.json").exists() || new.home.read(".stado/config.json").contains(&name);
            // Cut before it was begun, or all but one cleaning up: the line is needed once more, or none is.
            let line = if begun { "" } else { invitation.as_str() };
            let again = new.join(&name, line, &["--no-start"]).ok().json();
            assert_eq!(again["target"], name.as_str(), "killed at call {n} of {class}: {again}");
            for left in [".stado/joining.json", ".stado/joining-key"] {
                assert!(!new.home.file(left).exists(), "killed at call {n} of {class}: {left}");
            }
            kills += 1;
        }
    }
    assert!(kills >= 8, "{kills} steps");
    let targets = tower.home.stado(&["registry", "pull", "--path", "targets"]).ok().json();
    for name in (0..runs).map(|n| format!("host-{n}")) {
        let named = targets.as_array().unwrap().iter().filter(|target| target["name"] == name.as_str());
        assert_eq!(named.count(), 1, "{name}: {targets}");
    }
    let seen = tower.home.stado(&["fleet", "invitations", "--json"]).ok().json();
    assert_eq!(seen["warnings"], json!([]), "{seen}");
}

#[test]
fn five_hosts_join_in_the_same_second_and_each_serves() {
    let tower = Machine::new();
    tower.init(6).ok();
    let hosts: Vec<(Machine, String)> = (0..5).map(|_| (Machine::new(), tower.invite(&[]))).collect();
    std::thread::scope(|scope| {
        for (n, (machine, invitation)) in hosts.iter().enumerate() {
            scope.spawn(move || {
                let joined = machine.join(&format!("host-{n}"), invitation, &[]).ok().json();
                assert_eq!((&joined["resolver"], &joined["again"]), (&"started".into(), &false.into()), "{joined}");
            });
        }
    });
    for (n, (machine, _)) in hosts.iter().enumerate() {
        wait_until(&format!("host-{n} is ready and knows all"), PATIENCE, || {
            let run = machine.home.stado(&["registry", "pull", "--path", "targets"]);
            machine.home.stado(&["resolver", "status"]).code == 0 && run.stdout.matches("\"host-").count() >= 5
        });
    }
}

/// A service manager that writes down what it is asked, and starts what it is to start as systemd would: from the unit's own line,
/// with nothing of whoever asked but the home.
const SYSTEMCTL: &str = r#"#!/bin/sh
echo "$*" >> "$HOME/asked"
case "$*" in
*"enable --now "*)
    line=$(sed -n 's/^ExecStart=//p' "$HOME/.config/systemd/user/stado-resolver.service")
    eval "exec setsid env -i HOME=\"$HOME\" PATH=/usr/bin:/bin DOCKER_HOST=\"$DOCKER_HOST\" $line" > "$HOME/.stado/logs/stado-resolver.out" 2>&1 < /dev/null &
    ;;
esac
"#;

/// Runs `stado` where systemd is, as far as it can be seen: in a mount namespace of its own.
fn where_systemd_runs(machine: &Machine, args: &[&str], input: &str) -> Run {
    let line = "mount -t tmpfs none /run/systemd && mkdir /run/systemd/system && exec \"$@\"";
    let words = [&["-m", "/bin/sh", "-c", line, "sh", STADO], args].concat();
    run_with(&mut machine.home.command("/usr/bin/unshare", &words), input.as_bytes())
}

/// Takes away what keeps a resolver from being a unit's, since a unit has none of these variables; its programs come first.
fn beyond_units(machine: &mut Machine) {
    for name in ["DEVMESH_DOCKER_ENABLED", "DEVMESH_TCP_FRONTEND_MIN", "DEVMESH_TCP_FRONTEND_MAX"] {
        machine.home.unset(name);
    }
    // Containers of other tests are not its business.
    machine.home.set("DOCKER_HOST", format!("unix://{}", machine.home.file("no-engine").display()));
    let programs = machine.home.file("bin").display().to_string();
    machine.home.set("PATH", format!("{programs}:/usr/sbin:/usr/bin:/sbin:/bin"));
}

#[test]
fn a_service_manager_is_given_the_resolver_by_joining_and_one_that_refuses_is_done_without() {
    needs!("tmpfs", "systemd-analyze");
    let (tower, mut laptop) = (Machine::new(), Machine::new());
    tower.init(7).ok();
    beyond_units(&mut laptop);
    laptop.home.program("bin/systemctl", SYSTEMCTL);
    let join = ["fleet", "join", "--name", "laptop", "--json"];
    let joined = where_systemd_runs(&laptop, &join, &tower.invite(&[])).ok().json();
    assert_eq!((&joined["resolver"], &joined["target"]), (&"installed".into(), &"laptop".into()), "{joined}");
    assert_eq!(laptop.home.read("asked"), "--user daemon-reload\n--user enable --now stado-resolver.service\n");
    let unit = laptop.home.file(".config/systemd/user/stado-resolver.service");
    let runtime = laptop.home.path().display().to_string();
    laptop.home.set("XDG_RUNTIME_DIR", runtime);
    let verified =
        run(&mut laptop.home.command("/usr/bin/env", &["systemd-analyze", "--user", "verify", unit.to_str().unwrap()]));
    assert_eq!((verified.code, verified.stderr.as_str()), (0, ""), "{}", verified.stdout);
    // Nobody's child: it runs on when the verb has ended, and is the unit's own.
    let pid = laptop.pid().expect("it runs");
    let command = std::fs::read_to_string(format!("/proc/{pid}/cmdline")).unwrap();
    assert_eq!(command.split('\0').collect::<Vec<_>>(), [STADO, "resolver", "serve", ""]);
    assert!(laptop.home.stado(&["resolver", "status"]).ok().stdout.contains("ready"));
    let again = where_systemd_runs(&laptop, &join, "").ok().json();
    assert_eq!((&again["resolver"], laptop.pid()), (&"running".into(), Some(pid)), "{again}");

    // A manager that says no: nothing of the attempt is left, and the resolver runs all the same.
    let mut other = Machine::new();
    beyond_units(&mut other);
    other.home.program(
        "bin/systemctl",
        "#!/bin/sh\necho \"$*\" >> \"$HOME/asked\"\necho 'Failed to connect to bus' >&2\nexit 1\n",
    );
    let join = ["fleet", "join", "--name", "other", "--json"];
    let joined = where_systemd_runs(&other, &join, &tower.invite(&[])).ok().json();
    assert_eq!(joined["resolver"], "started", "{joined}");
    assert_eq!(other.home.read("asked"), "--user daemon-reload\n");
    assert!(!other.home.file(".config/systemd/user/stado-resolver.service").exists());
    // Its terminal may go.
    other.signal(rustix::process::Signal::HUP);
    wait_until("it serves on", PATIENCE, || other.home.stado(&["resolver", "status"]).code == 0);
}

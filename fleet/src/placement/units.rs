//! What is said to a host about its units. Every script can be said again: what is so already stays so.
use super::shell::{path, quoted};
use super::unit::Commands;
use super::{Manager, Run, Unit, unit_file};
use std::fmt::Write;

/// `own`: what needs the machine's own rights takes them from sudo where the account has none.
const PRELUDE: &str = "cd \"$HOME\" || exit 1\n\
    own() { if [ \"$(id -u)\" = 0 ]; then \"$@\"; else sudo -n \"$@\"; fi; }\n\
    sc() { own systemctl \"$@\"; }\n\
    su_() { XDG_RUNTIME_DIR=\"${XDG_RUNTIME_DIR:-/run/user/$(id -u)}\" systemctl --user \"$@\"; }\n\
    up() { case $1 in active|activating|deactivating|reloading|refreshing) return 0 ;; *) return 1 ;; esac; }\n";

/// How often a stopped unit is looked at, ten times a second, before it counts as one that does not stop.
const LOOKS: u32 = 600;

/// What the manager of a unit is told; each is a list of commands.
struct Verbs {
    start: String,
    stop: String,
    running: String,
    enable: String,
    disable: String,
    installed: String,
    reload: &'static str,
}

fn verbs(unit: &Unit) -> Verbs {
    match &unit.manager {
        Manager::Systemd => systemd(unit, "sc", "systemctl"),
        Manager::SystemdUser => systemd(unit, "su_", "su_"),
        Manager::Launchd { agent } => launchd(unit, *agent),
        Manager::Commands(commands) => plain(unit, commands),
    }
}

/// `does` may change things, `asks` only looks.
fn systemd(unit: &Unit, does: &'static str, asks: &str) -> Verbs {
    let name = quoted(&unit.unit);
    Verbs {
        start: format!("{does} start {name}"),
        // Also one that is between two of its restarts, which is not running.
        stop: format!("{does} stop {name}"),
        running: format!("up \"$({asks} is-active {name} 2>/dev/null)\""),
        enable: format!("{does} enable --quiet {name}"),
        disable: format!("{does} disable --quiet {name}"),
        installed: format!("{asks} cat {name} >/dev/null 2>&1"),
        reload: if does == "sc" { "sc daemon-reload" } else { "su_ daemon-reload" },
    }
}

fn launchd(unit: &Unit, agent: bool) -> Verbs {
    let (does, domain) = if agent { ("launchctl", "\"gui/$(id -u)\"") } else { ("own launchctl", "system") };
    let target = format!("{domain}/{}", quoted(&unit.unit));
    let plist = path(unit.path.as_deref().unwrap_or_default());
    let loaded = format!("{does} print {target} >/dev/null 2>&1");
    Verbs {
        start: format!("{{ {loaded} || {does} bootstrap {domain} {plist}; }} && {does} kickstart {target}"),
        stop: format!("if {loaded}; then {does} bootout {target}; fi"),
        running: loaded,
        enable: format!("{does} enable {target}"),
        disable: format!("{does} disable {target}"),
        installed: format!("[ -e {plist} ]"),
        reload: ":",
    }
}

fn plain(unit: &Unit, commands: &Commands) -> Verbs {
    let log = format!("\"$HOME\"/.stado/placement/{}.log", quoted(&unit.service));
    let quiet = |command: &str| format!("/bin/sh -c {} </dev/null >/dev/null 2>&1 9>&-", quoted(command));
    let told = |command: &str| format!("/bin/sh -c {} </dev/null >>{log} 2>&1 9>&-", quoted(command));
    let running = quiet(&commands.running);
    let optional = |command: &Option<String>| command.as_deref().map_or(":".to_owned(), told);
    Verbs {
        start: format!("{{ {running} || {} || {{ tail -n 5 {log} >&2; false; }}; }}", told(&commands.start)),
        stop: format!("if {running}; then {} || {{ tail -n 5 {log} >&2; false; }}; fi", told(&commands.stop)),
        running,
        enable: optional(&commands.enable),
        disable: optional(&commands.disable),
        installed: ":".into(),
        reload: ":",
    }
}

/// Ends the script with a sentence unless the commands succeed.
fn must(script: &mut String, commands: &str, sentence: &str) {
    let _ = writeln!(script, "{{ {commands}; }} 9>&- || {{ echo {} >&2; exit 1; }}", quoted(sentence));
}

/// Stops the units, in this order, and waits until each has stopped.
pub fn stop(units: &[Unit]) -> String {
    let mut script = PRELUDE.to_owned();
    for unit in units {
        let verbs = verbs(unit);
        let stop = format!("if {{ {}; }}; then {}; fi", verbs.installed, verbs.stop);
        // What no longer runs is stopped, also where the command had nobody to end.
        let stop = format!("{stop} || ! {{ {}; }}", verbs.running);
        must(&mut script, &stop, &format!("{} could not be stopped", unit.told()));
        let late = quoted(&format!("{} still runs {} s after it was told to stop", unit.told(), LOOKS / 10));
        let _ = writeln!(
            script,
            "n=0; while {{ {}; }}; do n=$((n+1)); if [ $n -ge {LOOKS} ]; then echo {late} >&2; exit 1; fi; sleep 0.1; done",
            verbs.running
        );
    }
    script
}

/// Starts the units, in this order; one that runs is left alone.
pub fn start(units: &[Unit]) -> String {
    let mut script = PRELUDE.to_owned();
    for unit in units {
        must(&mut script, &verbs(unit).start, &format!("{} could not be started", unit.told()));
    }
    script
}

/// Lets the units come up with their host.
pub fn enable(units: &[Unit]) -> String {
    let mut script = PRELUDE.to_owned();
    for unit in units {
        must(&mut script, &verbs(unit).enable, &format!("{} could not be enabled", unit.told()));
    }
    script
}

/// The opposite of [`enable`]. A unit that is not there at all will not come up.
pub fn disable(units: &[Unit]) -> String {
    let mut script = PRELUDE.to_owned();
    for unit in units {
        let Verbs { installed, disable, .. } = verbs(unit);
        let sentence = format!("{} could not be kept from starting with the host", unit.told());
        must(&mut script, &format!("if {{ {installed}; }}; then {disable}; fi"), &sentence);
    }
    script
}

/// Refuses a host on which one of the units already runs, or is not there and cannot be written.
pub fn ready(units: &[Unit], written: impl Fn(&Unit) -> bool) -> String {
    let mut script = PRELUDE.to_owned();
    for unit in units {
        let verbs = verbs(unit);
        let already = quoted(&format!("{} already runs here", unit.told()));
        let _ = writeln!(script, "if {{ {}; }}; then echo {already} >&2; exit 1; fi", verbs.running);
        if !written(unit) {
            let sentence = format!(
                "{} is not installed here, and service_directory.services.{}.declaration.run names no program to write it from",
                unit.told(),
                unit.service
            );
            must(&mut script, &verbs.installed, &sentence);
        }
    }
    script
}

/// Prints the services that run, one a line.
pub fn running(units: &[Unit]) -> String {
    let mut script = PRELUDE.to_owned();
    for unit in units {
        let _ = writeln!(script, "if {{ {}; }}; then echo {}; fi", verbs(unit).running, quoted(&unit.service));
    }
    script
}

/// Writes the file of a unit that is not there.
pub fn write_file(unit: &Unit, run: &Run, transaction: &str) -> String {
    let Some((file, text)) = unit_file::of(unit, run, transaction) else { return String::new() };
    let verbs = verbs(unit);
    let (file, rights) = (path(&file), if of_machine(unit) { "own " } else { "" });
    let failed = quoted(&format!("the unit file of {} could not be written", unit.told()));
    format!(
        "{PRELUDE}if ! {{ {}; }}; then\n\
         {rights}mkdir -p \"$(dirname {file})\" && printf %s {} | {rights}tee {file} >/dev/null && {} || {{ echo {failed} >&2; exit 1; }}\n\
         fi\n",
        verbs.installed,
        quoted(&text),
        verbs.reload
    )
}

/// Removes the file of a unit if this transaction wrote it.
pub fn remove_file(unit: &Unit, run: &Run, transaction: &str) -> String {
    let Some((file, _)) = unit_file::of(unit, run, transaction) else { return String::new() };
    let (file, rights) = (path(&file), if of_machine(unit) { "own " } else { "" });
    let mark = quoted(&unit_file::mark(transaction));
    format!("{PRELUDE}if grep -qF {mark} {file} 2>/dev/null; then {rights}rm -f {file} && {}; fi\n", verbs(unit).reload)
}

fn of_machine(unit: &Unit) -> bool {
    matches!(unit.manager, Manager::Systemd | Manager::Launchd { agent: false })
}

//! A vault whose key is in a real keyring: GNOME's, in a login session of the test's own.
use crate::support::home::{Home, STADO};
use crate::support::process::{Run, run};
use crate::support::{PATIENCE, program, wait_until};
use std::path::Path;

/// Runs lines of shell in a session with an unlocked keyring. `secret-tool` goes through a script that keeps its arguments.
fn in_session(home: &Home, lines: &str) -> Run {
    let real = program("secret-tool").unwrap();
    let kept = r#"printf '%s\n' "$*" >>"$HOME/arguments""#;
    let tool = home.program("bin/secret-tool", &format!("#!/bin/sh\n{kept}\nexec {} \"$@\"\n", real.display()));
    let bin = Path::new(&tool).parent().unwrap().display();
    let unlock = "printf password | gnome-keyring-daemon --unlock --components=secrets >/dev/null 2>&1";
    let script = format!("set -e\nPATH={bin}:$PATH\nstado={STADO}\n{unlock}\n{lines}\n");
    run(&mut home.command(program("dbus-run-session").unwrap(), &["--", "sh", "-c", &script]))
}

#[test]
fn a_key_in_the_keyring_opens_the_vault_in_that_session_and_nowhere_else() {
    needs!("secret-tool", "gnome-keyring-daemon", "dbus-run-session");
    let home = Home::new();
    let lines = "$stado vault init --key keyring\nprintf s3cret | $stado vault put db\n$stado vault get db";
    let run = in_session(&home, lines).ok();
    assert!(run.stdout.contains("its key is in the keyring of this login session"), "{}", run.stdout);
    assert!(run.stdout.ends_with("\ns3cret\n"), "{}", run.stdout);
    assert!(!home.file(".stado/vault/key").exists(), "the key is in no file");
    // Another session of the same person has the same keyring.
    assert!(in_session(&home, "$stado vault get db").ok().stdout.ends_with("s3cret\n"));
    let outside = home.stado(&["vault", "get", "db"]).exits(1);
    assert!(outside.stderr.contains("the keyring cannot be used: "), "{}", outside.stderr);
    // What went through the arguments of the tool is no key.
    let arguments = home.read("arguments");
    assert!(arguments.contains("lookup service stado-vault vault "), "{arguments}");
    let long = arguments.split_whitespace().find(|word| word.len() >= 64);
    assert_eq!(long, None, "{arguments}");
}

#[test]
fn without_a_keyring_the_key_is_in_a_file() {
    let home = Home::new();
    let made = home.stado(&["vault", "init"]).ok();
    assert!(made.stdout.trim_end().ends_with(".stado/vault/key"), "{}", made.stdout);
    let refused = Home::new().stado(&["vault", "init", "--key", "keyring"]).exits(1);
    assert!(refused.stderr.contains("the keyring cannot be used") && refused.stderr.contains("--key file"));
}

#[test]
fn a_keyring_that_hangs_is_told_and_ends_with_the_command_that_asked_it() {
    let mut home = Home::new();
    let hangs = "#!/bin/sh\nsleep 1000 &\necho $! >pids.new; echo $$ >>pids.new; mv pids.new pids\nwait\n";
    let tool = home.program("bin/secret-tool", hangs);
    home.set("PATH", format!("{}:/usr/bin:/bin", Path::new(&tool).parent().unwrap().display()));
    let mut init = home.start("init", STADO, &["vault", "init", "--key", "keyring"]);
    init.expect("czekam: secret-tool store; gdzie: the keyring of this login session; rodzaj: vault; od: ");
    init.signal(rustix::process::Signal::TERM);
    assert_eq!(init.wait().code(), Some(1), "{}", init.log());
    let log = init.log();
    assert!(log.contains("blad czekania: secret-tool store; ") && log.contains("Error: stopped by a signal"), "{log}");
    for pid in home.read("pids").lines() {
        let state = || std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
        wait_until("the tool and what it started have ended", PATIENCE, || {
            state().is_empty() || state().contains(") Z ")
        });
    }
    assert!(!home.file(".stado/vault/vault.json").exists());
}

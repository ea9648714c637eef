//! README.md's commands, run as they stand.
use crate::example_story::example;
use crate::support::home::{Home, STADO};
use crate::support::process::{Process, run};
use crate::support::{PATIENCE, program, wait_until};
use std::os::unix::fs::PermissionsExt;
use std::process::Command;

const README: &str = include_str!(concat!(env!("CARGO_MANIFEST_DIR"), "/README.md"));

/// The blocks that a person types into a shell.
fn blocks() -> Vec<&'static str> {
    README.split("\n```sh\n").skip(1).map(|rest| rest.split("\n```").next().unwrap()).collect()
}

/// Puts a `cargo` first on the PATH that runs what is built already, so that the blocks need not be changed.
fn with_cargo(home: &mut Home) -> String {
    let two_hosts = example("two-hosts");
    let script = format!(
        "#!/bin/sh\ncase \"$*\" in\n'run --release --example two-hosts') exec {} --check;;\nesac\n\
         test \"$1 $2\" = 'run --release' || exit 99\nshift 2\ntest \"$1\" != --quiet || shift\n\
         test \"$1\" = -- || exit 98\nshift\nexec {STADO} \"$@\"\n",
        two_hosts.display()
    );
    let cargo = home.write("bin/cargo", script);
    std::fs::set_permissions(&cargo, PermissionsExt::from_mode(0o755)).unwrap();
    let python = program("python3").unwrap();
    format!("PATH={}:{}:$PATH\n", cargo.parent().unwrap().display(), python.parent().unwrap().display())
}

fn shell(home: &Home, script: &str) -> Command {
    home.command("/bin/sh", &["-euc", script])
}

#[test]
fn the_commands_of_the_readme_do_what_it_says() {
    needs!("python3", "curl");
    let blocks = blocks();
    let [serve, register, two_hosts, tests] = blocks[..] else { panic!("README.md has other blocks now: {blocks:#?}") };
    assert_eq!(tests, "tests/run", "this test is run by it");
    let mut home = Home::new();
    let path = with_cargo(&mut home);

    let mut daemon = Process::start(&mut shell(&home, &format!("{path}exec {serve}")), &home.file("daemon.log"));
    daemon.expect("next: ");
    assert_eq!(daemon.log().lines().filter(|line| !line.starts_with("time=")).count(), 3, "{}", daemon.log());

    // The block takes a port that may be another test's: the same commands with a port of our own.
    let port = crate::support::ports::one();
    assert!(register.contains("http.server 25999 --bind") && register.contains("127.0.0.1:25999"));
    let register = register.replace("25999", &port.port().to_string());
    let register = register.replace("/tmp/hello", &home.file("hello").display().to_string());
    let up = format!("until curl -s -o index http://127.0.0.1:{}/; do sleep 0.1; done", port.port());
    let typed = register.replace(" &\n", &format!(" &\nserver=$!\n{up}\n"));
    let script = format!("{path}trap 'kill $server' EXIT\n{typed}");
    let register = run(&mut shell(&home, &script)).ok();
    assert!(register.stdout.contains("hello from behind"), "{}{}", register.stdout, register.stderr);

    // "Stop the daemon, start it again: test.web has the same address."
    let endpoint =
        || home.devmesh(&["services", "inspect", "test.web", "--format", "json"]).ok().json()[0]["frontend"].clone();
    let before = endpoint();
    assert!(daemon.stop().success());
    let _daemon = Process::start(&mut shell(&home, &format!("{path}exec {serve}")), &home.file("daemon.log"));
    wait_until("the daemon answers", PATIENCE, || home.devmesh(&["health"]).code == 0);
    assert_eq!(endpoint(), before);

    let played = run(&mut shell(&home, &format!("{path}{two_hosts}"))).ok();
    assert!(played.stdout.ends_with("every step held\n"), "{}", played.stdout);
}

#[test]
fn every_verb_and_page_that_the_readme_names_exists() {
    let root = env!("CARGO_MANIFEST_DIR");
    for link in README.split("](").skip(1).map(|rest| rest.split(')').next().unwrap()) {
        assert!(std::path::Path::new(root).join(link).exists(), "{link}");
    }
    let home = Home::new();
    let rows = README.lines().filter_map(|line| line.strip_prefix("| `stado ")?.split('`').next());
    let mut verbs = 0;
    for row in rows {
        let words: Vec<&str> = row.split(' ').filter(|word| !word.starts_with('[')).collect();
        let (last, group) = words.split_last().unwrap();
        for verb in last.split("\\|") {
            home.stado(&[group, &[verb, "--help"]].concat()).ok();
            verbs += 1;
        }
    }
    assert!(verbs >= 12, "{verbs}");
}

//! The examples run as their documentation says.
use crate::support::process::run;
use std::process::Command;

/// An example that was built beside this test, as `tests/run` does.
fn example(name: &str) -> Command {
    let test = std::env::current_exe().unwrap();
    let file = test.parent().and_then(|deps| deps.parent()).unwrap().join("examples").join(name);
    assert!(file.is_file(), "{} is not built: cargo build --examples, in the same profile", file.display());
    Command::new(file)
}

#[test]
fn two_hosts_plays_its_whole_story() {
    let played = run(example("two-hosts").arg("--check")).ok();
    assert!(played.stdout.ends_with("every step held\n"), "{}", played.stdout);
}

#[test]
fn two_hosts_explains_its_arguments() {
    assert!(run(example("two-hosts").arg("--chekc")).exits(2).stderr.contains("usage:"));
}

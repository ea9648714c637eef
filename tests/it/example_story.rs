//! The examples run as their documentation says.
use crate::support::process::run;
use std::path::PathBuf;
use std::process::Command;

/// An example that was built beside this test, as `tests/run` does.
pub fn example(name: &str) -> PathBuf {
    let test = std::env::current_exe().unwrap();
    let file = test.parent().and_then(|deps| deps.parent()).unwrap().join("examples").join(name);
    assert!(file.is_file(), "{} is not built: cargo build --examples, in the same profile", file.display());
    file
}

#[test]
fn two_hosts_plays_its_whole_story() {
    let played = run(Command::new(example("two-hosts")).arg("--check")).ok();
    assert!(played.stdout.ends_with("every step held\n"), "{}", played.stdout);
}

#[test]
fn two_hosts_explains_its_arguments() {
    assert!(run(Command::new(example("two-hosts")).arg("--chekc")).exits(2).stderr.contains("usage:"));
}

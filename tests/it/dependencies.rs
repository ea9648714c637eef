//! What the packages pull in.
use crate::support::process::run;
use std::collections::BTreeSet;
use std::process::Command;

fn packages(args: &[&str]) -> BTreeSet<String> {
    let mut command = Command::new(env!("CARGO"));
    command.args(["tree", "--locked", "--prefix", "none", "--format", "{lib} {p}"]).args(args);
    let tree = run(command.current_dir(env!("CARGO_MANIFEST_DIR"))).ok();
    let names: BTreeSet<_> = tree.stdout.lines().filter_map(|l| Some(l.split(' ').nth(1)?.to_owned())).collect();
    assert!(names.contains("serde_json"), "{}", tree.stdout);
    names
}

#[test]
fn the_client_library_alone_stays_light() {
    let names = packages(&["--package", "stado", "--no-default-features", "--edges", "normal"]);
    for heavy in
        ["russh", "hyper", "axum", "clap", "bollard", "reqwest", "rustls", "aws-lc-rs", "tokio-util", "stado-resolver"]
    {
        assert!(!names.contains(heavy), "{heavy} in {names:?}");
    }
    assert!(names.len() < 50, "{} packages: {names:?}", names.len());
}

#[test]
fn one_cryptography_library_is_built_and_it_is_not_ring() {
    let names = packages(&["--workspace", "--all-features", "--edges", "normal,build,dev", "--target", "all"]);
    assert!(names.contains("aws-lc-rs") && !names.contains("ring"), "{names:?}");
}

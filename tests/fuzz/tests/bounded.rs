//! Every target for a bounded time: two seconds each, or `STADO_FUZZ_SECONDS`.
#![allow(clippy::unwrap_used, clippy::print_stderr, missing_docs)]
use stado_fuzz::{Target, run, targets};
use std::time::Duration;

fn bounded(target: &Target) {
    let seconds = std::env::var("STADO_FUZZ_SECONDS").map_or(2, |text| text.parse().unwrap());
    let seed: u64 = std::env::var("STADO_TEST_SEED").map_or_else(|_| rand::random(), |seed| seed.parse().unwrap());
    let count = run(target, Duration::from_secs(seconds), seed);
    eprintln!("{}: {count} inputs, STADO_TEST_SEED={seed}", target.name);
    assert!(count > 100, "{count} inputs in {seconds}s are no test");
}

#[test]
fn api_body() {
    bounded(&targets::api_body());
}

#[test]
fn state_file() {
    bounded(&targets::state_file());
}

#[test]
fn registry() {
    bounded(&targets::registry());
}

#[test]
fn http_request() {
    bounded(&targets::http_request());
}

/// A target that cannot fail would be none.
#[test]
fn a_broken_promise_is_found() {
    let broken = Target {
        name: "broken",
        check: |bytes| {
            assert!(bytes.first() != Some(&b'{') || bytes.get(1) != Some(&b'{'), "found");
            0
        },
        seeds: vec![b"{}".to_vec()],
        words: &["{"],
    };
    let found = std::panic::catch_unwind(|| run(&broken, Duration::from_secs(20), 1));
    assert!(found.is_err());
}

//! Readers of bytes that somebody else wrote, under bytes that nobody should write.
//!
//! A target is a function that panics when a promise is broken. [`run`] feeds it mutations of good inputs for a bounded
//! time; `tests/bounded.rs` does that in every test run, and `STADO_FUZZ_SECONDS=600 tests/run -E 'package(stado-fuzz)'` for
//! longer. A failure prints the seed (`STADO_TEST_SEED` repeats it) and the input.
#![allow(clippy::panic)]

mod mutate;
pub mod targets;

use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::time::{Duration, Instant};

/// Inputs that are kept to be mutated further.
const KEPT: usize = 4096;

/// A reader and good inputs for it. The reader tells a shape of what it made of an input: an input with a new shape is kept
/// and mutated further, which is as much guidance as a reader's answers give.
pub struct Target {
    /// Name in reports.
    pub name: &'static str,
    /// Panics when a promise is broken.
    pub check: fn(&[u8]) -> u64,
    /// Where mutation begins.
    pub seeds: Vec<Vec<u8>>,
    /// Words worth inserting.
    pub words: &'static [&'static str],
}

/// Feeds `target` for `time`; returns how many inputs that were. The process ends with a panic that names seed and input
/// when a promise is broken.
pub fn run(target: &Target, time: Duration, seed: u64) -> u64 {
    let (mut random, mut corpus) = (StdRng::seed_from_u64(seed), target.seeds.clone());
    let mut shapes = std::collections::HashSet::new();
    let (end, mut count) = (Instant::now() + time, 0);
    while Instant::now() < end {
        let from = random.random_range(0..corpus.len());
        let other = random.random_range(0..corpus.len());
        let (Some(input), Some(other)) = (corpus.get(from), corpus.get(other)) else { continue };
        let input = mutate::mutate(input, other, target.words, &mut random);
        if shapes.insert(checked(target, &input, seed)) && corpus.len() < KEPT {
            corpus.push(input);
        }
        count += 1;
    }
    count
}

fn checked(target: &Target, input: &[u8], seed: u64) -> u64 {
    match catch_unwind(AssertUnwindSafe(|| (target.check)(input))) {
        Ok(shape) => shape,
        Err(panic) => {
            let shown = input.escape_ascii().to_string();
            // The panic itself was printed already; this says what it was about.
            std::io::Write::write_all(
                &mut std::io::stderr(),
                format!("{}: STADO_TEST_SEED={seed}, input b\"{shown}\"\n", target.name).as_bytes(),
            )
            .unwrap_or_default();
            resume_unwind(panic)
        }
    }
}

//! Relays beside `ssh -N -L`, with the same sshd, keys and cipher in one run: bulk, small messages, opens, idle memory, CPU.
//! `cargo bench --bench relay`. It reports, as a table of Markdown; nothing here judges. `ROUNDS` and `MIB` in the
//! environment make it longer or shorter.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::print_stdout,
    clippy::print_stderr,
    dead_code,
    unused_macros,
    missing_docs,
    unreachable_pub
)]

#[macro_use]
#[path = "../../it/support/mod.rs"]
mod support;
mod service;
mod way;
mod work;

use std::collections::BTreeMap;
use way::Way;

fn number(name: &str, otherwise: usize) -> usize {
    std::env::var(name).ok().and_then(|text| text.parse().ok()).unwrap_or(otherwise)
}

fn main() {
    // `cargo test --benches` and `nextest` start it too, to see that it starts.
    if std::env::args().any(|arg| arg == "--list" || arg == "--exact") {
        return;
    }
    if support::program("sshd").is_none() {
        println!("sshd is missing (Debian: apt-get install openssh-server)");
        return;
    }
    let (rounds, mib) = (number("ROUNDS", 3), number("MIB", 256));
    let endpoint = service::start();
    let ways = [Way::openssh(endpoint), Way::direct(endpoint), Way::multiplex(endpoint)];
    let mut seen: BTreeMap<(usize, usize), Vec<f64>> = BTreeMap::new();
    // The ways take turns, so that what else the machine does hits all of them.
    for round in 0..rounds {
        for (w, way) in ways.iter().enumerate() {
            for (line, work) in work::ALL.iter().enumerate() {
                if round > 0 && work.once {
                    continue;
                }
                eprintln!("round {round}: {} {}", way.name, work.name);
                seen.entry((line, w)).or_default().extend((work.run)(way, mib));
            }
        }
    }
    println!("| | {} |", ways.iter().map(|w| w.name).collect::<Vec<_>>().join(" | "));
    println!("|---|{}", "---|".repeat(ways.len()));
    for (line, work) in work::ALL.iter().enumerate() {
        let values: Vec<f64> = (0..ways.len()).map(|w| middle(&seen[&(line, w)])).collect();
        let cells = values.iter().map(|value| format!("{value:.1} ({:.2})", value / values[0]));
        println!("| {}, {} | {} |", work.name, work.unit, cells.collect::<Vec<_>>().join(" | "));
    }
    println!("\nMedians of {rounds} rounds; in brackets, as a multiple of the first column.");
}

fn middle(values: &[f64]) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    sorted.get(sorted.len() / 2).copied().unwrap_or(f64::NAN)
}

//! A thousand hosts that follow one authority, on one machine: a release daemon with a gate, and a few processes with many
//! watchers each, every one of them with an SSH session, a watch and a back-off of its own, as a daemon has them. What a
//! watcher costs the authority, how long a change takes to reach all, and what happens when the authority starts again.
//! `tests/bench/fleet-of-a-thousand/run` builds and starts it. It reports; nothing here fails because something is slow.
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
mod authority;
mod events;
mod report;
#[path = "../relay/usage.rs"]
mod usage;
mod worker;

use authority::Authority;
use events::{Event, Workers};
use report::Report;
use std::time::{Duration, Instant, SystemTime};

const USAGE: &str = "fleet-of-a-thousand [--hosts N] [--processes N] [--changes N] [--idle SECONDS] [--table FILE]";
/// For all of a fleet to do something.
const PATIENCE: Duration = Duration::from_secs(180);

pub struct Options {
    pub hosts: usize,
    pub processes: usize,
    pub changes: usize,
    pub idle: u64,
    pub table: Option<std::path::PathBuf>,
}

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).filter(|argument| argument != "--bench").collect();
    // `cargo test --benches` and `nextest` start it too, to see that it starts.
    if arguments.iter().any(|arg| arg == "--list" || arg == "--exact") {
        return;
    }
    usage::raise_descriptor_limit();
    if arguments.first().is_some_and(|first| first == "--worker") {
        return worker::run(&arguments[1..]);
    }
    let mut options = Options { hosts: 1000, processes: 4, changes: 5, idle: 20, table: None };
    let mut rest = arguments.iter();
    while let Some(flag) = rest.next() {
        let value = rest.next().unwrap_or_else(|| panic!("{flag} needs a value\n{USAGE}"));
        match flag.as_str() {
            "--hosts" => options.hosts = value.parse().expect(USAGE),
            "--processes" => options.processes = value.parse().expect(USAGE),
            "--changes" => options.changes = value.parse().expect(USAGE),
            "--idle" => options.idle = value.parse().expect(USAGE),
            "--table" => options.table = Some(value.into()),
            other => panic!("no option {other}\n{USAGE}"),
        }
    }
    let report = measure(&options);
    println!("{report}");
    if let Some(path) = &options.table {
        report.write(path);
    }
}

fn measure(options: &Options) -> Report {
    let mut authority = Authority::start(options.hosts);
    let mut report = Report::new(options, authority.document_bytes());
    std::thread::sleep(Duration::from_secs(2));
    let alone = usage::proportional(authority.pid());

    eprintln!("{} hosts come", options.hosts);
    let began = Instant::now();
    let mut workers = Workers::start(options, &authority);
    let came = workers.wait(Event::Watching, options.hosts, PATIENCE);
    report.came = began.elapsed();
    report.peak_came = events::peak(&came);
    // Until all of them have read once.
    std::thread::sleep(Duration::from_secs(5));

    eprintln!("idle for {} s", options.idle);
    let (cpu, idle) = (usage::cpu(authority.pid()), Instant::now());
    std::thread::sleep(Duration::from_secs(options.idle));
    report.idle_cpu = (usage::cpu(authority.pid()) - cpu) / idle.elapsed().as_secs_f64();
    report.memory_each = usage::proportional(authority.pid()).saturating_sub(alone) as f64 / options.hosts as f64;

    for n in 0..options.changes {
        eprintln!("change {} of {}", n + 1, options.changes);
        change(&mut authority, &mut workers, options, &mut report);
        std::thread::sleep(Duration::from_secs(1));
    }

    eprintln!("the authority starts again");
    workers.forget();
    let began = SystemTime::now();
    authority.restart();
    let back = workers.wait(Event::Watching, options.hosts, PATIENCE);
    report.back = back.iter().max().map_or(Duration::ZERO, |last| last.duration_since(began).unwrap_or_default());
    report.peak_back = events::peak(&back);
    // Another process: its time began with it.
    report.cpu_back = usage::cpu(authority.pid());
    std::thread::sleep(Duration::from_secs(5));
    // And a change reaches all of them as before.
    let mut after = Report::new(options, authority.document_bytes());
    change(&mut authority, &mut workers, options, &mut after);
    report.after_restart = after.latencies.iter().max().copied().unwrap_or_default();
    report
}

/// One move of a service; until every host holds it.
fn change(authority: &mut Authority, workers: &mut Workers, options: &Options, report: &mut Report) {
    workers.forget();
    let (cpu, carried) = (usage::cpu(authority.pid()), Authority::carried());
    let stored = authority.change();
    let held = workers.wait(Event::Held, options.hosts, PATIENCE);
    report.latencies.extend(held.iter().map(|at| at.duration_since(stored).unwrap_or_default()));
    report.change_cpu.push(usage::cpu(authority.pid()) - cpu);
    report.change_bytes.push((Authority::carried() - carried) as f64 / options.hosts as f64);
    report.read_whole += workers.read_whole();
}

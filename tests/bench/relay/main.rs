//! Relays beside `ssh -N -L`, with the same sshd, keys and cipher in one run: bulk, small messages, opens, idle memory, CPU,
//! neighbours that are slow or busy, and a far host 20 ms away. `tests/bench/relay/run` builds and starts it in a network of
//! its own. It reports; nothing here fails because something is slow.
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
mod delay;
mod lines;
mod results;
mod service;
mod soak;
mod table;
mod usage;
mod way;
mod work;

use results::Results;
use std::path::PathBuf;
use std::time::Duration;
use way::{Kind, Way};
use work::Work;

const USAGE: &str = "relay [--rounds N] [--mib MIB] [--only near|far] [--way WORD] [--work WORD] [--table FILE], or relay --soak SECONDS";

struct Options {
    rounds: usize,
    mib: u64,
    only: Option<String>,
    /// Ways whose names have one of these words in them (`ssh -N+gate`), and work whose name has this one; all without.
    way: String,
    work: String,
    table: Option<PathBuf>,
    soak: Option<u64>,
}

impl Options {
    fn parse() -> Self {
        let mut options =
            Self { rounds: 3, mib: 256, only: None, way: String::new(), work: String::new(), table: None, soak: None };
        let mut rest = std::env::args().skip(1).filter(|argument| argument != "--bench");
        while let Some(flag) = rest.next() {
            let value = rest.next().unwrap_or_else(|| panic!("{flag} needs a value\n{USAGE}"));
            match flag.as_str() {
                "--rounds" => options.rounds = value.parse().expect(USAGE),
                "--mib" => options.mib = value.parse().expect(USAGE),
                "--only" => options.only = Some(value),
                "--way" => options.way = value,
                "--work" => options.work = value,
                "--soak" => options.soak = Some(value.parse().expect(USAGE)),
                "--table" => options.table = Some(value.into()),
                other => panic!("no option {other}\n{USAGE}"),
            }
        }
        options
    }
}

fn main() {
    // `cargo test --benches` and `nextest` start it too, to see that it starts.
    if std::env::args().any(|arg| arg == "--list" || arg == "--exact") {
        return;
    }
    let options = Options::parse();
    if support::program("sshd").is_none() || support::program("ssh").is_none() {
        println!("sshd or ssh is missing (Debian: apt-get install openssh-server openssh-client)");
        return;
    }
    if let Some(seconds) = options.soak {
        std::process::exit(i32::from(!soak::run(seconds)));
    }
    usage::raise_descriptor_limit();
    let load = usage::load_average();
    let service = service::start();
    let mut results = Results::default();
    let wants = |what: &str| options.only.as_deref().is_none_or(|only| only == what);
    let kinds = || Kind::ALL.into_iter().filter(|kind| options.way.split('+').any(|word| kind.name().contains(word)));
    // One distance after the other, so that few daemons stand idle beside what is measured.
    if wants("near") {
        let ways: Vec<Way> = kinds().map(|kind| Way::start(kind, service, None)).collect();
        rounds(&ways, work::NEAR, &options, &mut results);
    }
    if wants("far") {
        let far = Some(Duration::from_millis(10));
        let ways: Vec<Way> = kinds().map(|kind| Way::start(kind, service, far)).collect();
        rounds(&ways, work::FAR, &options, &mut results);
    }
    let page = table::render(&results, options.rounds, options.mib, &[load, usage::load_average()]);
    println!("{page}");
    if let Some(path) = &options.table {
        table::write(path, &page);
    }
}

/// The ways take turns, each round beginning with another one, so that what else the machine does hits all of them.
fn rounds(ways: &[Way], works: &[Work], options: &Options, results: &mut Results) {
    for round in 0..options.rounds {
        for work in works.iter().filter(|work| work.name.contains(&options.work) && (round == 0 || !work.once)) {
            for turn in 0..ways.len() {
                let way = &ways[(turn + round) % ways.len()];
                eprintln!("round {} of {}: {}, {}", round + 1, options.rounds, way.kind.name(), work.name);
                for (line, value) in (work.run)(way, options.mib) {
                    results.add(line, way.kind, round, value);
                }
            }
        }
    }
}

//! The data path against its peers, in one run: a release daemon's mesh frontend, haproxy, nginx, socat and a plain
//! `copy_bidirectional` proxy, each in front of the same servers, in interleaved rounds. `tests/bench/data-path/run` builds
//! and starts it in a network of its own. It reports; nothing here fails because something is slow.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::print_stdout,
    clippy::print_stderr,
    clippy::panic,
    unreachable_pub
)]
mod baseline;
mod lines;
mod load;
mod options;
mod peers;
mod process;
mod servers;
mod soak;
mod table;

use lines::{Group, Results};
use options::Options;
use peers::{Subject, User};
use servers::Servers;
use std::time::Duration;

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).filter(|argument| argument != "--bench").collect();
    match arguments.first().map(String::as_str) {
        Some("--baseline") => return baseline::serve(&arguments[1..]),
        Some("--soak") => return soak::run(&arguments[1..]),
        _ => {}
    }
    let options = Options::parse(&arguments);
    process::raise_descriptor_limit();
    let load_before = process::load_average();
    let mut results = Results::default();
    let subjects = options.subjects();
    rounds(&options, &subjects, User::Own, &mut results);
    if options.wants(Group::OrdinaryUser) && process::may_change_user() {
        let few: Vec<Subject> = subjects.iter().copied().filter(|subject| subject.has_user_line()).collect();
        rounds(&options, &few, User::Nobody, &mut results);
    }
    sizes(&options, &subjects, &mut results);
    let page = table::render(&results, &options, &[load_before, process::load_average()]);
    println!("{page}");
    if let Some(path) = &options.table {
        table::write(path, &page);
    }
}

/// The lines that are measured against each other, every subject in every round, each round beginning with another one.
fn rounds(options: &Options, subjects: &[Subject], user: User, results: &mut Results) {
    let groups: &[Group] = match user {
        User::Own => &[Group::Bulk, Group::Trips, Group::Connections, Group::Resets],
        User::Nobody => &[Group::OrdinaryUser],
    };
    let groups: Vec<Group> = groups.iter().copied().filter(|group| options.wants(*group)).collect();
    if groups.is_empty() {
        return;
    }
    let servers = Servers::start();
    let running: Vec<_> = subjects.iter().filter_map(|subject| subject.start(&servers, user)).collect();
    for round in 0..options.rounds {
        for group in &groups {
            // Resets are a yes or a no: once is enough.
            if *group == Group::Resets && round > 0 {
                continue;
            }
            for turn in 0..running.len() {
                let proxy = &running[(turn + round) % running.len()];
                eprintln!("round {} of {}: {group:?}, {}", round + 1, options.rounds, proxy.subject.name());
                load::measure(*group, proxy, &servers, options.window, results);
                std::thread::sleep(Duration::from_millis(50));
            }
        }
    }
}

/// Memory and descriptors: fresh processes, measured once.
fn sizes(options: &Options, subjects: &[Subject], results: &mut Results) {
    if options.wants(Group::Idle) {
        // An idle connection splices nothing: haproxy is measured once.
        for subject in subjects.iter().filter(|subject| **subject != Subject::HaproxySplice) {
            eprintln!("idle connections: {}", subject.name());
            let servers = Servers::start();
            if let Some(proxy) = subject.start(&servers, User::Own) {
                load::idle::measure(&proxy, options.idle, results);
            }
        }
    }
    if options.wants(Group::Listeners) {
        for subject in subjects {
            eprintln!("listeners: {}", subject.name());
            peers::listeners(*subject, results);
        }
    }
    if options.wants(Group::Start) {
        eprintln!("start with 9,000 services");
        peers::stado::start_many(results);
    }
}

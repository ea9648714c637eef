//! An hour between four hosts: churn on every kind of stream, faults of a host and of the authority in turn, moves of a
//! service. No answer may be wrong, nothing may be cut outside of a fault of its own host, and the desk's daemon must stay as
//! large as it was. `tests/bench/soak-relay [SECONDS]` builds and starts it.
mod churn;
mod faults;
#[path = "../../data-path/soak/watch.rs"]
mod watch;

use crate::support::fleet::Fleet;
use crate::support::home::STADO;
use crate::support::tcp::{ask, echo};
use crate::support::{PATIENCE, wait_until};
use crate::{service, usage};
use churn::{Churn, Tally};
use faults::Fault;
use serde_json::json;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::{Duration, Instant};
use watch::Sample;

/// Between two looks at the daemon.
const SAMPLE: Duration = Duration::from_secs(10);
/// Between two moves, and between two faults.
const MOVE: Duration = Duration::from_secs(3);
const FAULT: Duration = Duration::from_secs(20);

pub fn run(seconds: u64) -> bool {
    usage::raise_descriptor_limit();
    let length = Duration::from_secs(seconds);
    let mut fleet = Fleet::on_loopback(&["authority", "data", "other", "desk"]);
    fleet.declare("data", "stado_command", json!(STADO));
    fleet.declare("other", "stado_command", json!(STADO));
    let moving = [echo("a").port(), echo("b").port()];
    fleet.service("bench", "data", "tcp", service::start().port(), "shop");
    fleet.service("notes", "other", "tcp", service::start().port(), "shop");
    fleet.service("moving", "data", "tcp", moving[0], "shop");
    let [bench, notes, moves] = ["bench", "notes", "moving"].map(|name| fleet.adapter("desk", name, "shop"));
    fleet.up();
    let desk = fleet.host("desk").daemon().pid();
    let tally = Arc::new(Tally::default());
    let churn = Churn::start(bench, notes, &tally);
    let (start, mut samples, mut turn) = (Instant::now(), Vec::new(), 0_usize);
    let (mut next_sample, mut next_move, mut next_fault) = (start + SAMPLE, start + MOVE, start + FAULT);
    while start.elapsed() < length {
        std::thread::sleep(Duration::from_millis(100));
        let now = Instant::now();
        if now >= next_sample {
            samples.push(sample(desk));
            eprintln!("{:>5} s: {}; {tally}", start.elapsed().as_secs(), samples[samples.len() - 1]);
            next_sample += SAMPLE;
        }
        if now >= next_move {
            turn += 1;
            move_service(&mut fleet, moves, moving[turn % 2], ["a", "b"][turn % 2], &tally);
            next_move = Instant::now() + MOVE;
        }
        if now >= next_fault {
            let fault = Fault::ALL[tally.faults.fetch_add(1, Relaxed) as usize % Fault::ALL.len()];
            eprintln!("{:>5} s: {fault:?}", start.elapsed().as_secs());
            fault.happens(&mut fleet, &tally, moves);
            next_fault = Instant::now() + FAULT;
        }
    }
    churn.stop();
    std::thread::sleep(Duration::from_secs(3));
    println!("at rest: {}", sample(desk));
    let verdict = watch::judge(&samples);
    let wrong = tally.wrong.load(Relaxed);
    let word = if wrong == 0 { "none wrong".to_owned() } else { format!("{wrong} WRONG") };
    println!("| {} s | {tally} | {verdict} | {word} |", length.as_secs());
    println!("{}", if verdict.flat && wrong == 0 { "flat" } else { "NOT flat" });
    verdict.flat && wrong == 0
}

fn sample(pid: u32) -> Sample {
    Sample { processes: 1, descriptors: usage::descriptors(pid), memory: usage::proportional(pid) }
}

/// Moves the service, and asks for it as soon as the desk holds the move.
fn move_service(fleet: &mut Fleet, at: u16, to: u16, word: &str, tally: &Tally) {
    fleet.moved("moving", to);
    fleet.push("authority").ok();
    let generation = fleet.registry["service_directory"]["generation"].as_u64().unwrap();
    fleet.host("desk").holds(generation);
    let answer = ask(("127.0.0.1", at), "where");
    tally.moves.fetch_add(1, Relaxed);
    if answer.as_deref() != Some(&format!("{word}:where")) {
        tally.wrong(&format!("a moved service answered {answer:?}, not {word}"));
    }
}

/// Waits until a port answers again.
fn answers(port: u16) {
    wait_until("the host answers again", 4 * PATIENCE, || ask(("127.0.0.1", port), "x").is_some());
}

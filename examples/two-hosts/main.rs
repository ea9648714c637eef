//! Two hosts on one machine: an authority that runs services, and a workstation that reaches them at addresses that stay.
//!
//! `cargo run --release --example two-hosts` starts both, prints the addresses and lets you try them; `m` and Enter moves
//! a service to another port, Ctrl-C stops everything. With `--check` the whole story is played unattended; it ends with
//! 0 only if every step held. Each host has a home of its own in a temporary folder; the two meet over their gates, the
//! SSH servers inside the daemons, on loopback ports. Needs `ssh-keygen`.
#![allow(clippy::print_stdout, clippy::print_stderr)]

mod check;
mod fleet;
mod host;
mod services;

use fleet::Fleet;
use std::io::BufRead;
use std::process::ExitCode;
use std::sync::mpsc;
use std::thread;

/// What a step that did not hold says.
pub(crate) type Held<T = ()> = Result<T, Box<dyn std::error::Error>>;

fn main() -> ExitCode {
    // The hosts run this same program as `stado`, so that one build is enough.
    if std::env::var_os(host::AS_STADO).is_some() {
        return stado::cmd::stado();
    }
    let check = match std::env::args().skip(1).collect::<Vec<_>>().as_slice() {
        [] => false,
        [flag] if flag == "--check" => true,
        _ => {
            eprintln!("usage: two-hosts [--check]");
            return ExitCode::from(2);
        }
    };
    match if check { check::play() } else { try_it() } {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("two-hosts: {error}");
            ExitCode::FAILURE
        }
    }
}

/// What a person or the terminal asks for.
enum Event {
    Line(String),
    Interrupt,
}

/// Serves until Ctrl-C.
fn try_it() -> Held {
    let events = events()?;
    let mut fleet = Fleet::start()?;
    print!("{}", fleet.describe()?);
    println!("m + Enter moves the echo service to another port; s + Enter prints the status again; Ctrl-C stops.");
    for event in events {
        match event {
            Event::Interrupt => break,
            Event::Line(line) if line.trim() == "m" => {
                let (from, to) = fleet.move_echo()?;
                println!("echo moved from port {from} of the authority to {to}; its address here is what it was");
            }
            Event::Line(line) if line.trim() == "s" => print!("{}", fleet.describe()?),
            Event::Line(_) => {}
        }
    }
    println!("stopping");
    fleet.stop()
}

fn events() -> Held<mpsc::Receiver<Event>> {
    let (send, events) = mpsc::channel();
    let interrupts = send.clone();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    thread::spawn(move || {
        while runtime.block_on(tokio::signal::ctrl_c()).is_ok() && interrupts.send(Event::Interrupt).is_ok() {}
    });
    thread::spawn(move || {
        for line in std::io::stdin().lock().lines().map_while(Result::ok) {
            if send.send(Event::Line(line)).is_err() {
                break;
            }
        }
        // The end of the input is no wish to stop: only Ctrl-C is.
    });
    Ok(events)
}

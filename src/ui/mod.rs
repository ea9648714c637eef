//! The only place that prints.
pub mod clean;
mod log;
mod rows;
pub mod screen;
mod wrap;

pub use log::start as start_log;
pub use rows::{Rows, render};
pub use wrap::wrapped;

use crate::exit::{Failure, Voice, classification};
use std::io::Write;

/// Writes text to standard output. A reader that went away is not an error; a full disk is.
pub fn print(text: &str) -> Result<(), Failure> {
    written(std::io::stdout().lock(), text.as_bytes())
}

fn written(mut out: impl Write, bytes: &[u8]) -> Result<(), Failure> {
    match out.write_all(bytes).and_then(|()| out.flush()) {
        Err(e) if e.kind() != std::io::ErrorKind::BrokenPipe => {
            Err(Failure::here(format!("cannot write standard output: {e}")))
        }
        _ => Ok(()),
    }
}

/// Writes text to standard output, and whether there is still somebody who reads it.
pub fn shown(text: &str) -> Result<bool, Failure> {
    let mut out = std::io::stdout().lock();
    match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        Ok(()) => Ok(true),
        Err(e) if e.kind() == std::io::ErrorKind::BrokenPipe => Ok(false),
        Err(e) => Err(Failure::here(format!("cannot write standard output: {e}"))),
    }
}

/// Writes one line to standard output.
pub fn line(text: impl std::fmt::Display) -> Result<(), Failure> {
    print(&format!("{text}\n"))
}

/// Writes a JSON document, pretty, to standard output.
pub fn json(value: &serde_json::Value) -> Result<(), Failure> {
    line(format_args!("{value:#}"))
}

/// Writes bytes to standard output as they are; see [`print`].
pub fn raw(bytes: &[u8]) -> Result<(), Failure> {
    written(std::io::stdout().lock(), bytes)
}

/// Writes one line to standard error. A standard error that nobody reads is nobody's loss. What other hosts said is often
/// part of it, so that it is made fit to be shown.
pub fn note(text: impl std::fmt::Display) {
    let shown = clean::lines(text.to_string().as_bytes());
    let _ = writeln!(std::io::stderr().lock(), "{shown}");
}

/// Writes bytes to standard error as they are.
pub fn raw_error(bytes: &[u8]) {
    let _ = std::io::stderr().lock().write_all(bytes);
}

/// Says why a verb failed.
pub fn failure(voice: Voice, failure: &Failure) {
    match voice {
        Voice::Stado => {
            note(format_args!("Error: {}", failure.message));
            note(classification(failure));
        }
        Voice::Devmesh => note(format_args!("error: {}", failure.message)),
    }
}

/// Prints what clap has to say: help and versions to standard output, mistakes to standard error in this binary's voice.
/// Returns whether that was all that was asked for. A line that ends before its verb gets the help too, as what it is: no error,
/// and nothing done.
pub fn clap(voice: Voice, error: &clap::Error) -> bool {
    if !error.use_stderr() {
        let _ = error.print();
        return true;
    }
    if error.kind() == clap::error::ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand {
        let _ = print(&error.render().to_string());
        return false;
    }
    let text = error.render().to_string();
    let message = text.strip_prefix("error: ").unwrap_or(&text).trim_end();
    failure(voice, &Failure::usage(message));
    false
}

/// Whether standard error is a terminal.
pub fn on_terminal() -> bool {
    std::io::IsTerminal::is_terminal(&std::io::stderr())
}

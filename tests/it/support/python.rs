//! Clients in another language, written from the contracts alone (`tests/clients`).
use super::home::Home;
use super::process::{Run, run};

/// Runs one to its end.
pub fn client(home: &Home, script: &str, args: &[&str]) -> Run {
    let script = format!("{}/tests/clients/{script}", env!("CARGO_MANIFEST_DIR"));
    let args = [&[script.as_str()], args].concat();
    run(&mut home.command(super::program("python3").unwrap(), &args))
}

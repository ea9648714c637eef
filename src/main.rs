//! `stado`: everything.
fn main() -> std::process::ExitCode {
    stado::cmd::stado()
}

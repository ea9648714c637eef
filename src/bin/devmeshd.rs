//! `devmeshd`: the daemon of the local mesh, and nothing of the fleet.
fn main() -> std::process::ExitCode {
    stado::cmd::devmeshd()
}

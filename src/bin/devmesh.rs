//! `devmesh`: the commands of the local mesh.
fn main() -> std::process::ExitCode {
    stado::cmd::devmesh()
}

//! The same command once more, in the same process: a supervisor and a pid file see no change.
use crate::exit::Failure;
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::Command;

/// Replaces this process by a fresh one of the same command; returns only when that failed. A binary that was replaced on
/// disk meanwhile is the one that runs.
pub(super) fn run() -> Failure {
    let program = match std::env::current_exe() {
        Ok(path) => on_disk(path),
        Err(error) => return Failure::here(format!("cannot start again: this program's file is not known: {error}")),
    };
    let mut arguments = std::env::args_os();
    let mut command = Command::new(&program);
    if let Some(name) = arguments.next() {
        command.arg0(name);
    }
    let error = command.args(arguments).exec();
    Failure::here(format!("cannot start {} again: {error}", program.display()))
}

/// Linux marks the file of a running program that was removed or renamed over.
fn on_disk(path: PathBuf) -> PathBuf {
    match path.to_str().and_then(|text| text.strip_suffix(" (deleted)")) {
        Some(text) => PathBuf::from(text),
        None => path,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_replaced_binary_is_looked_for_where_it_was() {
        assert_eq!(on_disk("/bin/stado (deleted)".into()), PathBuf::from("/bin/stado"));
        assert_eq!(on_disk("/bin/stado".into()), PathBuf::from("/bin/stado"));
    }
}

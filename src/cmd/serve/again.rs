//! The same command once more, in the same process: a supervisor and a pid file see no change.
use crate::exit::Failure;
use std::io;
use std::net::TcpListener;
use std::os::fd::{AsRawFd, OwnedFd, RawFd};
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::Command;

/// Where numbers of descriptors are looked for that are free one after the other.
const FREE_FROM: RawFd = 100;
/// What a service manager says of the sockets that it passes.
const PASSED: [&str; 3] = ["LISTEN_FDS", "LISTEN_FDS_FIRST_FD", "LISTEN_PID"];

/// Replaces this process by a fresh one of the same command; returns only when that failed. A binary that was replaced on
/// disk meanwhile is the one that runs. `sockets`: what a service manager had passed, which nobody else can open again.
pub(super) fn run(sockets: &[TcpListener]) -> Failure {
    let program = match std::env::current_exe() {
        Ok(path) => on_disk(path),
        Err(error) => return Failure::here(format!("cannot start again: this program's file is not known: {error}")),
    };
    let mut arguments = std::env::args_os();
    let mut command = Command::new(&program);
    if let Some(name) = arguments.next() {
        command.arg0(name);
    }
    for name in PASSED {
        command.env_remove(name);
    }
    let row = match in_a_row(sockets) {
        Ok(row) => row,
        Err(error) => return Failure::here(format!("cannot start again with the sockets that were passed: {error}")),
    };
    if let Some(first) = row.first() {
        let values = [row.len().to_string(), first.as_raw_fd().to_string(), std::process::id().to_string()];
        command.envs(PASSED.into_iter().zip(values));
    }
    let error = command.args(arguments).exec();
    Failure::here(format!("cannot start {} again: {error}", program.display()))
}

/// Copies that a new program inherits, with numbers that follow each other, as managers pass them.
fn in_a_row(sockets: &[TcpListener]) -> io::Result<Vec<OwnedFd>> {
    let mut from = FREE_FROM;
    loop {
        let numbered = || (from..).zip(sockets);
        let row: Vec<OwnedFd> = numbered()
            .map(|(number, socket)| rustix::io::fcntl_dupfd_cloexec(socket, number))
            .collect::<Result<_, _>>()?;
        // Somebody has a number in between: behind it there is room, or an error says that there is none.
        match numbered().zip(&row).find(|((number, _), fd)| fd.as_raw_fd() != *number) {
            Some((_, fd)) => from = fd.as_raw_fd() + 1,
            None => {
                for fd in &row {
                    rustix::io::fcntl_setfd(fd, rustix::io::FdFlags::empty())?;
                }
                return Ok(row);
            }
        }
    }
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
    fn sockets_are_passed_on_with_numbers_that_follow_each_other() {
        let sockets: Vec<TcpListener> = (0..3).map(|_| TcpListener::bind("127.0.0.1:0").unwrap()).collect();
        let blocked = rustix::io::fcntl_dupfd_cloexec(&sockets[0], FREE_FROM + 1).unwrap();
        let row = in_a_row(&sockets).unwrap();
        let numbers: Vec<RawFd> = row.iter().map(AsRawFd::as_raw_fd).collect();
        assert!(numbers.windows(2).all(|pair| pair[1] == pair[0] + 1), "{numbers:?}");
        assert!(!numbers.contains(&blocked.as_raw_fd()));
        for (fd, socket) in row.into_iter().zip(&sockets) {
            assert!(rustix::io::fcntl_getfd(&fd).unwrap().is_empty());
            assert_eq!(TcpListener::from(fd).local_addr().unwrap(), socket.local_addr().unwrap());
        }
        assert!(in_a_row(&[]).unwrap().is_empty());
    }

    #[test]
    fn a_replaced_binary_is_looked_for_where_it_was() {
        assert_eq!(on_disk("/bin/stado (deleted)".into()), PathBuf::from("/bin/stado"));
        assert_eq!(on_disk("/bin/stado".into()), PathBuf::from("/bin/stado"));
    }
}

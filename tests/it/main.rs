//! The system from outside: built binaries, real sockets, real sshd, real PostgreSQL. See `README.md` beside this file.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::print_stderr,
    missing_docs,
    unreachable_pub
)]

#[macro_use]
mod support;

mod bad_input;
mod cli_story;
mod client_story;
mod dependencies;
mod example_story;
mod fleet_story;
mod mesh_kill;
mod mesh_story;
mod outage_story;
mod rig;

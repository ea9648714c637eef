//! `stado database …`: databases by name. What is declared is in this host's configuration file, where one is placed is in
//! the directory (fleet contract §1.8, §6.12). No verb sees a credential: the vault's item is only named.
mod change;
mod list;
mod placed;
mod resolve;

pub(crate) use change::{declare, grant, remove, revoke};
pub(crate) use list::list;
pub(crate) use resolve::resolve;

use crate::config::{Database, Databases};
use crate::exit::Failure;

const PREFIX: &str = "stado://database/";

/// `stado://database/<name>`.
fn uri(name: &str) -> String {
    format!("{PREFIX}{name}")
}

/// A database by the name that a person typed.
fn find<'d>(databases: &'d Databases, name: &str) -> Result<&'d Database, Failure> {
    let name = name.strip_prefix(PREFIX).unwrap_or(name);
    databases.find(name).ok_or_else(|| unknown(name, &databases.names()))
}

fn unknown(name: &str, declared: &str) -> Failure {
    Failure::usage(format!("unknown database \"{name}\"; declared: {declared}"))
}

//! The account's `~/.ssh/config` for a destination of the registry, as `ssh -G` would resolve it: which host, port and login
//! an alias stands for, which keys, which known hosts, which hosts on the way. The first value of a keyword holds. A keyword
//! that would change how a host is reached or trusted and that this build cannot honour is refused by name and line, never
//! skipped (`docs/decisions/ssh-config.md`).
mod keywords;
mod line;
mod read;
mod route;
mod tokens;

use super::config::LinkConfig;
use super::error::{LinkError, Stage};
use crate::fault::Class;
use crate::name::SshDestination;
use std::path::PathBuf;
use std::time::Duration;

/// How a destination is reached.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Route {
    pub(super) host: String,
    pub(super) port: u16,
    pub(super) user: String,
    /// Key files in their order.
    pub(super) identity_files: Vec<PathBuf>,
    /// Of the agent's keys only those that belong to `identity_files`.
    pub(super) identities_only: bool,
    pub(super) agent_socket: Option<PathBuf>,
    pub(super) known_hosts: Vec<PathBuf>,
    /// Name under which known_hosts lists it, when it is another one than `host`.
    pub(super) known_as: Option<String>,
    /// A key of a host that is not listed is written into the first of `known_hosts`.
    pub(super) accept_new: bool,
    /// Hosts on the way, the nearest first.
    pub(super) jumps: Vec<SshDestination>,
    /// Per address.
    pub(super) connect: Duration,
}

impl Route {
    /// Name and port for known_hosts.
    pub(super) fn listed(&self) -> (&str, u16) {
        // As ssh: an alias is listed without a port.
        self.known_as.as_deref().map_or((self.host.as_str(), self.port), |alias| (alias, 22))
    }

    /// What the registry alone says.
    fn plain(destination: &SshDestination, config: &LinkConfig) -> Self {
        Self {
            host: destination.host.clone(),
            port: destination.port.unwrap_or(22),
            user: destination.user.clone().unwrap_or_else(|| config.user.clone()),
            identity_files: config.identity_files.clone(),
            identities_only: false,
            agent_socket: config.agent_socket.clone(),
            known_hosts: config.known_hosts.clone(),
            known_as: None,
            accept_new: false,
            jumps: Vec::new(),
            connect: config.timing.connect,
        }
    }
}

/// Resolves a destination. The files are read each time: they are small, and a person who mends one is heard at once.
pub(super) async fn resolve(destination: &SshDestination, config: &LinkConfig) -> Result<Route, LinkError> {
    if config.ssh_config.is_none() {
        return Ok(Route::plain(destination, config));
    }
    let (destination, config) = (destination.clone(), config.clone());
    let found = tokio::task::spawn_blocking(move || route::resolve(&destination, &config)).await;
    let found = found.unwrap_or_else(|error| Err(format!("~/.ssh/config could not be read: {error}")));
    found.map_err(|why| LinkError::new(Stage::Connect, Class::Config, why))
}

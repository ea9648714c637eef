//! Where keys and host keys come from, and how long each stage may take.
use super::threads::Threads;
use std::path::PathBuf;
use std::time::Duration;

/// Where keys and host keys come from; read by `src/config`, never from the environment here.
#[derive(Debug, Clone, Default)]
pub struct LinkConfig {
    /// Login name used when a destination names none.
    pub user: String,
    /// Key files in order of preference (resolver key first); missing ones are skipped. A certificate beside a file
    /// (`<file>-cert.pub`) is offered before its key. The agent's keys are offered after all files, so that an agent
    /// that hangs or holds many keys delays nothing while a file works.
    pub identity_files: Vec<PathBuf>,
    /// Agent socket, when there is one.
    pub agent_socket: Option<PathBuf>,
    /// known_hosts files, all consulted.
    pub known_hosts: Vec<PathBuf>,
    /// The account's ssh_config, which says what a host's name in the registry stands for; `None` reads none.
    pub ssh_config: Option<SshConfigFile>,
    /// Deadlines per stage; defaults of `ssh-relay.md` §3.7.
    pub timing: Timing,
    /// Threads that the sessions are spread over, all of a host on one; without them a session lives in the runtime that asks
    /// for it first.
    pub threads: Option<Threads>,
}

/// Where the account's ssh_config is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SshConfigFile {
    /// `~/.ssh/config`; may be missing.
    pub file: PathBuf,
    /// What `~` is.
    pub home: PathBuf,
}

/// Deadlines and keepalive.
#[derive(Debug, Clone)]
pub struct Timing {
    /// Per address.
    pub connect: Duration,
    /// Of a path over the next one that is declared.
    pub head_start: Duration,
    /// From the connection to the host's identification line.
    pub banner: Duration,
    /// Key exchange.
    pub handshake: Duration,
    /// Authentication.
    pub auth: Duration,
    /// One answer of the agent (its list of keys, one signature).
    pub agent: Duration,
    /// Channel open.
    pub open: Duration,
    /// Keepalive interval.
    pub keepalive: Duration,
    /// Unanswered keepalives before the end.
    pub keepalive_max: usize,
    /// For the first line of a relay on the far side; then streams take direct-tcpip channels.
    pub preamble: Duration,
    /// For any sign of life, when a session is asked for one.
    pub probe: Duration,
    /// How long a session must stand before the failures before it are forgotten.
    pub stable: Duration,
    /// Between two attempts to return to a better path, at first.
    pub better_path: Duration,
    /// How long a session without a stream is kept.
    pub idle: Duration,
}

impl Default for Timing {
    fn default() -> Self {
        Self {
            connect: Duration::from_secs(5),
            head_start: Duration::from_secs(2),
            banner: Duration::from_secs(5),
            handshake: Duration::from_secs(10),
            auth: Duration::from_secs(10),
            agent: Duration::from_secs(3),
            open: Duration::from_secs(10),
            keepalive: Duration::from_secs(5),
            keepalive_max: 3,
            preamble: Duration::from_secs(3),
            probe: Duration::from_secs(2),
            stable: Duration::from_secs(10),
            better_path: Duration::from_secs(30),
            idle: Duration::from_secs(300),
        }
    }
}

impl Timing {
    /// Nothing received for this long ends a session, also while a write is blocked: no keepalive can have been
    /// answered in it. A little later than the keepalive's own end, so that its clearer reason comes first.
    pub(super) fn silence(&self) -> Duration {
        let intervals = u32::try_from(self.keepalive_max.saturating_add(1)).unwrap_or(u32::MAX);
        self.keepalive * intervals + Duration::from_millis(500)
    }
}

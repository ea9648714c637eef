//! Embedded SSH server that admits only fleet traffic (design, choices: the gate): a closed table of verbs and channels
//! to endpoints that the directory places on this host. No shell, no terminal, no files, no environment, no other
//! forwarding. It makes a fleet possible without sshd and without shell accounts.
mod authorized;
mod channels;
mod handler;
mod host_key;
mod keys;
mod server;
mod strangers;
#[cfg(test)]
mod tests;
mod verbs;
mod words;

use russh::keys::ssh_key::public::KeyData;
use stado_fleet::fault::{Blame, Class, Faulty};
use stado_fleet::link::ChannelStream;
use stado_fleet::link::relay::{Explaining, Grant};
use std::net::SocketAddr;
use std::path::PathBuf;
use std::pin::Pin;
use std::sync::Arc;

pub use server::Gate;
pub use verbs::{REFUSED, TABLE, admitted};

/// Where the gate listens and which files it uses (`~/.stado/config.json`, `~/.stado/gate`).
#[derive(Debug, Clone)]
pub struct Config {
    /// Address and port; port 0 takes a free one.
    pub bind: SocketAddr,
    /// Private host key; made on first start (ed25519, 0600, its directory 0700).
    pub host_key: PathBuf,
    /// Keys that may come in; read again whenever it changes. Missing: nobody may.
    pub authorized_keys: PathBuf,
}

/// What a verb said.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct VerbOutput {
    /// For standard output.
    pub stdout: Vec<u8>,
    /// For standard error.
    pub stderr: Vec<u8>,
    /// Exit code.
    pub status: u32,
}

/// Who runs a verb.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Caller {
    /// The key that came in, `type base64`.
    pub key: String,
    /// From where.
    pub peer: SocketAddr,
}

/// A verb that is running.
pub type Running<'a> = Pin<Box<dyn Future<Output = VerbOutput> + Send + 'a>>;

/// What stands behind the gate: the daemon's authority and its directory.
pub trait Verbs: Send + Sync + std::fmt::Debug {
    /// Runs a verb of the closed table. `argv` has no program name: `["resolver", "snapshot"]`,
    /// `["registry", "push", "-", …flags]`. A verb that was started runs to its end, also when its caller has gone.
    fn run<'a>(&'a self, argv: &'a [String], stdin: Vec<u8>) -> Running<'a>;
    /// Tells the versions of this host's store over `stream` until its reader is gone: `resolver watch`.
    fn watch(&self, stream: ChannelStream) -> Pin<Box<dyn Future<Output = ()> + Send + '_>>;
    /// Reads the directory again: what is asked for may be newer than what is held. Returns when there is news, or soon.
    fn renew(&self) -> Pin<Box<dyn Future<Output = ()> + Send + '_>>;
    /// Takes in the host that came with the secret of an invitation; what it says of itself is on `stdin`.
    fn admit<'a>(&'a self, _caller: &'a Caller, _stdin: Vec<u8>) -> Running<'a> {
        Box::pin(async { VerbOutput::refused("this host takes no hosts in") })
    }
    /// Takes the host of this key out of the fleet.
    fn leave<'a>(&'a self, _caller: &'a Caller) -> Running<'a> {
        Box::pin(async { VerbOutput::refused("this host is in no fleet") })
    }
    /// Whether this is the key of a host of the fleet, by the registry.
    fn is_member(&self, _key: &KeyData) -> bool {
        false
    }
    /// Whether this is the secret of an invitation, used or not: whoever shows one is at least told what became of it.
    fn is_invited<'a>(&'a self, _key: &'a KeyData) -> Pin<Box<dyn Future<Output = bool> + Send + 'a>> {
        Box::pin(async { false })
    }
    /// Returns when [`Verbs::is_member`] may answer otherwise than at this call.
    fn membership(&self) -> Pin<Box<dyn Future<Output = ()> + Send>> {
        Box::pin(std::future::pending())
    }
    /// Whether a channel of this key may lead to `endpoint` (a loopback address of this host), and for how long; else why
    /// not, in one sentence.
    fn lend(&self, key: &KeyData, endpoint: SocketAddr) -> Result<Grant, String>;
    /// Why whoever listens at `endpoint` ended the connection from `client` without a word, where this daemon knows.
    fn why_ended(&self, _endpoint: SocketAddr, _client: SocketAddr) -> Explaining<'_> {
        Box::pin(async { None })
    }
}

impl VerbOutput {
    /// A refusal, in one sentence.
    pub fn refused(sentence: impl std::fmt::Display) -> Self {
        Self { stdout: Vec::new(), stderr: format!("Error: {sentence}\n").into_bytes(), status: 1 }
    }
}

/// Why the gate does not stand. The rest of the daemon serves without it.
#[derive(Debug, thiserror::Error)]
pub enum GateError {
    /// The address is not to be had.
    #[error(
        "could not bind {addr}: {source}; `lsof -nP -iTCP:{port} -sTCP:LISTEN` names the holder; free it or set another `gate.bind`",
        port = addr.port()
    )]
    Bind {
        /// Address.
        addr: SocketAddr,
        /// Cause.
        #[source]
        source: std::io::Error,
    },
    /// The host key can neither be read nor made.
    #[error("the gate's host key {}: {why}", file.display())]
    HostKey {
        /// File.
        file: PathBuf,
        /// Cause and next step.
        why: String,
    },
}

impl Faulty for GateError {
    fn blame(&self) -> Blame {
        Blame::ThisHost
    }
    fn class(&self) -> Class {
        match self {
            Self::Bind { .. } => Class::InfraDown,
            Self::HostKey { .. } => Class::Config,
        }
    }
}

/// What all sessions of a gate share.
#[derive(Debug)]
struct Shared {
    verbs: Arc<dyn Verbs>,
    keys: Arc<keys::Keys>,
}

impl Shared {
    /// What limits a key that may come in: its line in the file, or nothing but the directory for a host of the fleet.
    fn limits(&self, key: &KeyData) -> Option<authorized::Limits> {
        let now = jiff::Timestamp::now().as_second();
        let listed = self.keys.current().borrow().find(key, now).map(|line| line.limits.clone());
        listed.or_else(|| self.verbs.is_member(key).then(authorized::Limits::default))
    }
}

/// A key that came in.
#[derive(Debug, Clone, PartialEq)]
struct Came {
    key: KeyData,
    /// It is the secret of an invitation: it joins, and does nothing else.
    guest: bool,
}

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

use stado_fleet::fault::{Blame, Class, Faulty};
use stado_fleet::link::ChannelStream;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::pin::Pin;
use std::sync::Arc;

pub use server::Gate;

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
    /// Whether a channel may lead to `endpoint` (a loopback address of this host); else why not, in one sentence.
    fn allows(&self, endpoint: SocketAddr) -> Result<(), String>;
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

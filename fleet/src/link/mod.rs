//! Pooled SSH sessions: paths, host keys, keepalive, exec, channels (`ssh-relay.md`).
//!
//! [`Link`] keeps one session per (host, endpoint) for streams and one per host for commands. A session is opened once
//! however many ask for it, outside any lock; a refused stream keeps it; one that is found dead is replaced once before
//! a byte of the client went up.
mod agent;
mod auth;
mod channel;
mod choice;
mod config;
mod connect;
mod distance;
mod error;
mod exec;
mod handler;
mod handshake;
mod jump;
mod keep;
mod keys;
mod knock;
mod known_hosts;
mod liveness;
mod paths;
mod pipe;
mod pool;
pub mod relay;
mod road;
mod scan;
mod session;
mod ssh_config;
mod standing;
mod stream;
#[cfg(test)]
mod tests;
pub mod threads;
mod transport;
mod wake;

pub use config::{LinkConfig, SshConfigFile, Timing};
pub use error::{LinkError, Stage};
pub use knock::Knock;
pub use road::RoadReport;
pub use scan::offered_key;
pub use stream::{Carrier, ChannelStream};

use crate::name::{ConnectionPath, SshDestination, TargetName};
use exec::Past;
use pool::{Key, Pool, Purpose};
use road::Roads;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::runtime::Handle;
use tokio::time::timeout;

/// What a command said.
#[derive(Debug)]
pub struct ExecOutput {
    /// Standard output, within the limit.
    pub stdout: Vec<u8>,
    /// Standard error, the first 64 KiB; a signal that ended the command is named in it.
    pub stderr: Vec<u8>,
    /// Exit code, `None` when the far side sent none.
    pub status: Option<u32>,
    /// Path that carried it.
    pub path: String,
    /// Standard output went past the limit and ends there; the command was not heard to its end ([`Link::exec_cut`]).
    pub cut: bool,
}

/// Limits of one command.
#[derive(Debug, Clone, Copy)]
pub struct ExecLimits {
    /// Bytes of standard output; past it the command is refused ([`Stage::Limit`]).
    pub stdout: usize,
    /// From connect to last byte.
    pub deadline: Duration,
}

/// A byte stream to an endpoint on another host. End of stream and half-close are passed on as they are; a reset comes
/// as `ConnectionReset`, a lost SSH session as `ConnectionAborted` with its reason.
pub trait RemoteStream: AsyncRead + AsyncWrite + Send + Unpin {}
impl<T: AsyncRead + AsyncWrite + Send + Unpin> RemoteStream for T {}

/// The pool. Cheap to clone.
#[derive(Debug, Clone)]
pub struct Link {
    pool: Arc<Pool>,
    roads: Arc<Roads>,
}

impl Link {
    /// Makes an empty pool; nothing is read or opened yet.
    pub fn new(config: LinkConfig) -> Self {
        Self { pool: Pool::new(config), roads: Arc::default() }
    }

    /// Where the sessions to `host` live, when they have threads of their own: what is copied to and from their streams there
    /// wakes no other thread.
    pub fn runtime(&self, host: &TargetName) -> Option<Handle> {
        self.pool.runtime(host)
    }

    /// Runs a command on the first path that answers, on a session of its own kind (not shared with relays). A command
    /// that was sent is never sent again.
    pub async fn exec(
        &self,
        host: &TargetName,
        paths: &[ConnectionPath],
        command: &str,
        stdin: &[u8],
        limits: ExecLimits,
    ) -> Result<ExecOutput, LinkError> {
        self.exec_past(host, paths, command, stdin, limits, Past::Refuse).await
    }

    /// As [`Link::exec`], for people: of a command that says more than the limit, what it said until then is the answer.
    pub async fn exec_cut(
        &self,
        host: &TargetName,
        paths: &[ConnectionPath],
        command: &str,
        stdin: &[u8],
        limits: ExecLimits,
    ) -> Result<ExecOutput, LinkError> {
        self.exec_past(host, paths, command, stdin, limits, Past::Cut).await
    }

    async fn exec_past(
        &self,
        host: &TargetName,
        paths: &[ConnectionPath],
        command: &str,
        stdin: &[u8],
        limits: ExecLimits,
        past: Past,
    ) -> Result<ExecOutput, LinkError> {
        let key = Key { host: host.clone(), paths: paths.into(), purpose: Purpose::Exec };
        let until = Instant::now() + limits.deadline;
        for last in [false, true] {
            let Ok(seat) = timeout(until.saturating_duration_since(Instant::now()), self.pool.seat(&key)).await else {
                return Err(exec::late(host.as_str(), limits.deadline));
            };
            let seat = seat?;
            let left = until.saturating_duration_since(Instant::now());
            let outcome =
                timeout(left, exec::run(&seat, command, stdin, (limits, past), &self.pool.config().timing)).await;
            if !matches!(outcome, Ok(Ok(_))) {
                self.pool.forget(&key, &seat.session);
            }
            match outcome {
                Ok(Ok(output)) => return Ok(output),
                Ok(Err(exec::ExecError::Failed(error))) => return Err(error),
                Ok(Err(exec::ExecError::SessionLost)) if !last => {}
                Ok(Err(exec::ExecError::SessionLost)) => {
                    return Err(LinkError::new(Stage::Exec, crate::fault::Class::InfraDown, seat.session.lost()));
                }
                Err(_) => {
                    return Err(exec::late(&seat.session.destination.to_string(), limits.deadline));
                }
            }
        }
        Err(exec::late(host.as_str(), limits.deadline))
    }

    /// Opens a direct-tcpip channel to `endpoint` as `host` sees it, on the session shared per (host, endpoint).
    /// `budget` covers all of it, connecting included.
    pub async fn open(
        &self,
        host: &TargetName,
        paths: &[ConnectionPath],
        endpoint: SocketAddr,
        budget: Duration,
    ) -> Result<Pin<Box<dyn RemoteStream>>, LinkError> {
        let key = Key { host: host.clone(), paths: paths.into(), purpose: Purpose::Relay(endpoint) };
        let until = Instant::now() + budget;
        let mut lost = String::new();
        for _ in 0..2 {
            let Ok(seat) = timeout(until.saturating_duration_since(Instant::now()), self.pool.seat(&key)).await else {
                return Err(self.pool.late(host, budget));
            };
            let seat = seat?;
            let session = seat.session.clone();
            self.measured(&key, &session);
            let left = until.saturating_duration_since(Instant::now()).min(self.pool.config().timing.open);
            match channel::open(seat, endpoint, left, &self.pool.config().timing).await {
                Ok(stream) => return Ok(Box::pin(stream)),
                Err(channel::OpenError::Failed(error)) => return Err(error),
                // Nothing of the client went up: another session, once.
                Err(channel::OpenError::SessionLost) => {
                    lost = session.lost();
                    self.pool.forget(&key, &session);
                }
            }
        }
        Err(LinkError::new(Stage::Open, crate::fault::Class::InfraDown, lost))
    }

    /// Measures how far the host is, once per session, beside whatever else is done. One whose window is too small for the
    /// distance takes no new streams.
    fn measured(&self, key: &Key, session: &Arc<session::Session>) {
        if session.rtt.initialized() {
            return;
        }
        let (pool, key, session) = (self.pool.clone(), key.clone(), session.clone());
        tokio::spawn(async move {
            if !pool.distances.fits(&session, &pool.config().timing).await {
                pool.forget(&key, &session);
            }
        });
    }

    /// Starts a command and gives its standard input and output as one stream (standard error is dropped), on the session
    /// of commands. `budget` covers connecting and the start. Dropping the stream closes the command's channel.
    pub async fn exec_stream(
        &self,
        host: &TargetName,
        paths: &[ConnectionPath],
        command: &str,
        budget: Duration,
    ) -> Result<Pin<Box<dyn RemoteStream>>, LinkError> {
        let key = Key { host: host.clone(), paths: paths.into(), purpose: Purpose::Exec };
        let until = Instant::now() + budget;
        let mut lost = String::new();
        for _ in 0..2 {
            let Ok(seat) = timeout(until.saturating_duration_since(Instant::now()), self.pool.seat(&key)).await else {
                return Err(exec::late(host.as_str(), budget));
            };
            let seat = seat?;
            let session = seat.session.clone();
            let left = until.saturating_duration_since(Instant::now());
            match timeout(left, exec::start(seat, command, &self.pool.config().timing)).await {
                Ok(Ok((channel, seat))) => return Ok(Box::pin(ChannelStream::new(channel, seat))),
                Ok(Err(exec::ExecError::Failed(error))) => return Err(error),
                // Nothing was sent: another session, once.
                Ok(Err(exec::ExecError::SessionLost)) => {
                    lost = session.lost();
                    self.pool.forget(&key, &session);
                }
                Err(_) => return Err(exec::late(&session.destination.to_string(), budget)),
            }
        }
        Err(LinkError::new(Stage::Exec, crate::fault::Class::InfraDown, lost))
    }

    /// Opens a stream to `endpoint` as `host` sees it: through the multiplex where the far side runs Stado, over a
    /// direct-tcpip channel elsewhere. `command` is the path of `stado` there, when it is declared. `budget` covers all of
    /// it, connecting included.
    pub async fn relay(
        &self,
        host: &TargetName,
        paths: &[ConnectionPath],
        command: Option<&str>,
        endpoint: SocketAddr,
        budget: Duration,
    ) -> Result<Pin<Box<dyn RemoteStream>>, LinkError> {
        let until = Instant::now() + budget;
        let road = self.roads.of(host, paths, command);
        match road.open(&self.pool, endpoint, budget).await {
            Some(opened) => opened,
            // Beside it: a future is as large as its largest part, and a thousand may be open at once.
            None => Box::pin(self.open(host, paths, endpoint, until.saturating_duration_since(Instant::now()))).await,
        }
    }

    /// How streams reach each host that was asked for, and why so.
    pub fn roads(&self) -> Vec<RoadReport> {
        self.roads.report()
    }

    /// Ends every session.
    pub async fn close(&self) {
        self.roads.clear();
        self.pool.close().await;
    }
}

/// One destination without a registry (`registry pull --from`).
pub fn single_path(destination: SshDestination) -> Vec<ConnectionPath> {
    vec![ConnectionPath { name: "primary".into(), destination }]
}

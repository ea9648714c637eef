//! Why a daemon does not take over, or is not taken over. In each case the running one goes on with everything.
use super::wire::WireError;
use stado_fleet::fault::{Blame, Class, Faulty};
use std::io;
use std::path::PathBuf;

/// Of a daemon that could not be asked.
fn what_it_does(source: &io::Error) -> &'static str {
    match source.kind() {
        io::ErrorKind::TimedOut => "it says nothing: `stado status` tells whether it is stopped, and what to do",
        _ => "it keeps serving",
    }
}

/// Why this process does not take over from the running daemon, which keeps serving.
#[derive(Debug, thiserror::Error)]
pub enum TakeError {
    /// The socket cannot be asked.
    #[error("cannot ask the daemon on {} to hand over: {source}; {}", socket.display(), what_it_does(source))]
    Unreachable {
        /// Control socket.
        socket: PathBuf,
        /// Cause.
        #[source]
        source: io::Error,
    },
    /// The daemon belongs to somebody else.
    #[error(
        "the daemon on {} runs as user {user}, not as this one: only its own user may take it over; it keeps serving",
        socket.display()
    )]
    Foreign {
        /// Control socket.
        socket: PathBuf,
        /// Its user.
        user: u32,
    },
    /// The daemon does not know the request.
    #[error(
        "the daemon on {}{} knows no hand-over: it is older than this one, or not Stado's. It keeps serving. To change over: \
         stop it, then start this one; it binds every remembered port again",
        socket.display(), pid.map(|pid| format!(" (pid {pid})")).unwrap_or_default()
    )]
    Unknown {
        /// Control socket.
        socket: PathBuf,
        /// Its process.
        pid: Option<u32>,
    },
    /// The daemon speaks another version.
    #[error(
        "the running daemon{} speaks hand-over version {theirs}, this one version {ours}: they cannot hand over to each \
         other, and the running one keeps serving. To change over: stop it (`stado resolver stop`), then start this one; it \
         binds every remembered port again",
        pid.map(|pid| format!(" (pid {pid})")).unwrap_or_default()
    )]
    Version {
        /// Its process.
        pid: Option<u32>,
        /// Its version, as it says.
        theirs: String,
        /// Ours.
        ours: u32,
    },
    /// The daemon says no.
    #[error("the running daemon does not hand over: {0}; it keeps serving")]
    Refused(String),
    /// The connection broke before this process served.
    #[error("the hand-over stopped {step}: {source}; the running daemon goes on with everything")]
    Broken {
        /// At what.
        step: &'static str,
        /// Cause.
        #[source]
        source: WireError,
    },
    /// This process cannot serve what it was given.
    #[error(
        "what the running daemon handed over cannot be served here: {0}; the running daemon goes on with everything"
    )]
    Unusable(String),
}

impl Faulty for TakeError {
    fn blame(&self) -> Blame {
        Blame::ThisHost
    }
    fn class(&self) -> Class {
        match self {
            Self::Unreachable { .. } | Self::Broken { .. } => Class::InfraDown,
            Self::Foreign { .. } => Class::Auth,
            Self::Unknown { .. } | Self::Version { .. } | Self::Refused(_) => Class::Refused,
            Self::Unusable(_) => Class::Config,
        }
    }
}

/// Why this daemon is not taken over; it goes on with everything.
#[derive(Debug, thiserror::Error)]
pub(crate) enum GiveError {
    #[error("the other process was refused: {0}")]
    Refused(String),
    #[error("the other process gave up: {0}")]
    GaveUp(String),
    #[error("{step}: {source}")]
    Broken {
        step: &'static str,
        #[source]
        source: WireError,
    },
    #[error("a change of the mesh that was under way did not end")]
    Busy,
    #[error("the disk with the published files does not answer")]
    Disk,
    #[error("this daemon has begun to stop")]
    Stopping,
}

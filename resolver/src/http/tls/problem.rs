//! Why a connection to the TLS port did not become one.
use jiff::Timestamp;
use stado_fleet::fault::{Blame, Class, Faulty};
use std::io;
use std::time::Duration;

/// A connection that ended before its first request. The client has been told in TLS or in HTTP where it could be.
#[derive(Debug, thiserror::Error)]
pub enum TlsProblem {
    /// The first byte was not that of a handshake but of an HTTP request; it has not been read.
    #[error("an HTTP request came to the HTTPS port")]
    PlainHttp,
    /// The first byte was neither.
    #[error("the client spoke neither TLS nor HTTP")]
    NotTls,
    /// The client left without a word.
    #[error("the client left before its first byte")]
    Left,
    /// The total deadline passed (proxy rule 19).
    #[error("the TLS handshake was not done within {}s", .0.as_secs_f32())]
    Slow(Duration),
    /// The certificate for the name does not hold now.
    #[error("the certificate for {asked} {} {at}: put a new one in its place, it is read at the next connection",
        if *.early { "does not hold before" } else { "expired at" })]
    NotInForce {
        /// Name or address that the client asked for.
        asked: String,
        /// Not yet, instead of no longer.
        early: bool,
        /// When it begins or ended.
        at: Timestamp,
    },
    /// No certificate is for the name.
    #[error(
        "no certificate for {0}: the local authority makes them for local names only (localhost, *.localhost, *.test); \
        configure a pair of files for others"
    )]
    NoCertificate(String),
    /// The local authority could not make one.
    #[error("the local authority made no certificate for {0}: {1}")]
    NotIssued(String, String),
    /// The handshake failed.
    #[error("TLS handshake: {0}")]
    Handshake(#[from] io::Error),
}

impl Faulty for TlsProblem {
    fn blame(&self) -> Blame {
        match self {
            Self::NotInForce { .. } | Self::NoCertificate(_) | Self::NotIssued(..) => Blame::ThisHost,
            _ => Blame::Caller,
        }
    }
    fn class(&self) -> Class {
        match self {
            Self::NotInForce { .. } | Self::NoCertificate(_) | Self::NotIssued(..) => Class::Config,
            Self::Slow(_) => Class::Timeout,
            _ => Class::Refused,
        }
    }
}

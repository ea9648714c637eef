//! What is true about a client, in the fields that a backend reads it from (proxy rules 4 and 12).
use crate::http::serve1::Scheme;
use std::io::Write;
use std::net::{IpAddr, SocketAddr};

/// The mark that every request carries on, so that one which comes back is known: a word in `CDN-Loop` (RFC 8586).
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::http) struct Hop(String);
impl Hop {
    /// A mark that no other router has.
    pub(in crate::http) fn new() -> Self {
        Self(format!("stado-{:016x}", rand::random::<u64>()))
    }
    pub(super) fn is_in(&self, value: &[u8]) -> bool {
        super::field::words(value).any(|word| word == self.0.as_bytes())
    }
    pub(in crate::http) fn as_str(&self) -> &str {
        &self.0
    }
    pub(super) fn as_bytes(&self) -> &[u8] {
        self.0.as_bytes()
    }
}

/// The fields about one client connection, written once: `X-Forwarded-*` and `X-Real-IP` without the host, and the
/// beginning of `Forwarded`.
#[derive(Debug, Clone)]
pub(in crate::http) struct True {
    bytes: Box<[u8]>,
    fields: usize,
    scheme: Scheme,
    port: u16,
}
impl True {
    pub(in crate::http) fn new(peer: SocketAddr, local: SocketAddr, scheme: Scheme) -> Self {
        let (word, ip, port) = (scheme.as_str(), peer.ip().to_canonical(), local.port());
        let mut bytes = Vec::with_capacity(192);
        // Writing to memory does not fail.
        let _ = write!(
            bytes,
            "X-Forwarded-For: {ip}\r\nX-Real-IP: {ip}\r\nX-Forwarded-Proto: {word}\r\nX-Forwarded-Port: {port}\r\n"
        );
        let fields = bytes.len();
        let _ = match ip {
            IpAddr::V4(ip) => write!(bytes, "Forwarded: for={ip};proto={word};host=\""),
            IpAddr::V6(ip) => write!(bytes, "Forwarded: for=\"[{ip}]\";proto={word};host=\""),
        };
        Self { bytes: bytes.into(), fields, scheme, port }
    }

    /// As the client reached us.
    pub(in crate::http) fn scheme(&self) -> Scheme {
        self.scheme
    }
    /// The port that it reached.
    pub(in crate::http) fn port(&self) -> u16 {
        self.port
    }

    /// The whole block for a request to `authority`.
    pub(super) fn write(&self, authority: &[u8], out: &mut Vec<u8>) {
        let (fields, forwarded) = self.bytes.split_at_checked(self.fields).unwrap_or_default();
        for piece in [fields, b"X-Forwarded-Host: ", authority, b"\r\n", forwarded, authority, b"\"\r\n"] {
            out.extend_from_slice(piece);
        }
    }
}

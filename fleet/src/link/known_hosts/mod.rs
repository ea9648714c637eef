//! Strict host keys with OpenSSH's verdicts: which keys the known_hosts files hold for a host, and what they say of
//! the key it offers (`ssh-relay.md` §3.6, issue 11).
mod certificate;
mod line;
mod pattern;
mod remember;
mod verdict;

pub(super) use pattern::glob;
pub(super) use remember::remember;
pub(super) use verdict::Rejection;

use line::{Entry, Marker};
use russh::keys::ssh_key::{Algorithm, EcdsaCurve, HashAlg};
use std::path::PathBuf;

/// Everything that the known_hosts files say, read once per connection.
#[derive(Debug, Default)]
pub(super) struct KnownHosts {
    files: Vec<PathBuf>,
    entries: Vec<Entry>,
    /// Files that exist and could not be read: said wherever a key is refused.
    unreadable: Vec<String>,
    /// Lines that hold no usable entry, as `<file>:<line>: <why>`.
    skipped: Vec<String>,
}

impl KnownHosts {
    /// Reads `files`. A missing file holds nothing; an unreadable one is remembered for the sentences.
    pub(super) async fn read(files: &[PathBuf]) -> Self {
        let mut known = Self { files: files.to_vec(), ..Self::default() };
        for file in files {
            match tokio::fs::read(file).await {
                Ok(bytes) => known.add(file, &bytes),
                Err(error) if error.kind() == std::io::ErrorKind::NotFound => {}
                Err(error) => known.unreadable.push(format!("{} cannot be read: {error}", file.display())),
            }
        }
        known
    }

    fn add(&mut self, file: &std::path::Path, bytes: &[u8]) {
        let file: std::sync::Arc<std::path::Path> = file.into();
        for (index, text) in bytes.split(|b| *b == b'\n').enumerate() {
            match line::parse(&file, index + 1, text) {
                Ok(Some(entry)) => self.entries.push(entry),
                Ok(None) => {}
                Err(why) => self.skipped.push(format!("{}:{}: {why}", file.display(), index + 1)),
            }
        }
    }

    /// What is known of `host` at `port`.
    pub(super) fn of(&self, host: &str, port: u16) -> HostKeys<'_> {
        let name = host.to_ascii_lowercase();
        let listed = if port == 22 { name.clone() } else { format!("[{name}]:{port}") };
        let entries = self.entries.iter().filter(|e| e.hosts.matches(&listed)).collect();
        // As ssh: a key listed for the host without its port is accepted when nothing is listed with it.
        let portless =
            if port == 22 { Vec::new() } else { self.entries.iter().filter(|e| e.hosts.matches(&name)).collect() };
        HostKeys { known: self, name, port, listed, entries, portless }
    }
}

/// The entries of one host.
#[derive(Debug)]
pub(super) struct HostKeys<'a> {
    known: &'a KnownHosts,
    name: String,
    port: u16,
    /// The name as known_hosts lists it: `host`, or `[host]:port`.
    listed: String,
    entries: Vec<&'a Entry>,
    portless: Vec<&'a Entry>,
}

/// What to ask the host for, most preferred first.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Wanted {
    /// Plain keys: those whose type is known for the host first; `ssh-rsa` (SHA-1) never.
    pub(super) keys: Vec<Algorithm>,
    /// Certificates, when an authority is known for the host.
    pub(super) certificates: Vec<Algorithm>,
}

impl HostKeys<'_> {
    /// The algorithms to ask for: a host with several keys shall offer the one that is known.
    pub(super) fn wanted(&self) -> Wanted {
        let all = accepted();
        let listed = |marker| move |e: &&&Entry| e.marker == marker;
        let entries = || self.entries.iter().chain(&self.portless);
        let known: Vec<Algorithm> = entries().filter(listed(Marker::None)).map(|e| e.key.algorithm()).collect();
        let is_known = |a: &Algorithm| known.iter().any(|k| same_type(k, a));
        let (mut keys, others): (Vec<_>, Vec<_>) = all.iter().cloned().partition(is_known);
        keys.extend(others);
        let has_authority = entries().any(|e| e.marker == Marker::Authority);
        Wanted { keys, certificates: if has_authority { all } else { Vec::new() } }
    }
}

fn same_type(a: &Algorithm, b: &Algorithm) -> bool {
    matches!((a, b), (Algorithm::Rsa { .. }, Algorithm::Rsa { .. })) || a == b
}

fn accepted() -> Vec<Algorithm> {
    let ecdsa = |curve| Algorithm::Ecdsa { curve };
    let rsa = |hash| Algorithm::Rsa { hash: Some(hash) };
    vec![
        Algorithm::Ed25519,
        ecdsa(EcdsaCurve::NistP256),
        ecdsa(EcdsaCurve::NistP384),
        ecdsa(EcdsaCurve::NistP521),
        rsa(HashAlg::Sha512),
        rsa(HashAlg::Sha256),
    ]
}

//! One line of a known_hosts file.
use super::pattern::Hosts;
use base64::Engine;
use russh::keys::ssh_key::public::KeyData;
use std::path::Path;
use std::sync::Arc;

/// What a line says of its key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Marker {
    /// A key of the host.
    None,
    /// A key that signs host certificates.
    Authority,
    /// A key that is refused wherever it appears.
    Revoked,
}

/// A usable line.
#[derive(Debug)]
pub(super) struct Entry {
    pub(super) marker: Marker,
    pub(super) hosts: Hosts,
    pub(super) key: KeyData,
    pub(super) file: Arc<Path>,
    pub(super) line: usize,
}

impl Entry {
    /// `<file>:<line>`.
    pub(super) fn place(&self) -> String {
        format!("{}:{}", self.file.display(), self.line)
    }
}

/// Parses a line; `None` for blanks and comments, an error for what OpenSSH would skip as invalid.
pub(super) fn parse(file: &Arc<Path>, number: usize, bytes: &[u8]) -> Result<Option<Entry>, &'static str> {
    let text = String::from_utf8_lossy(bytes);
    let mut fields = text.split([' ', '\t', '\r']).filter(|f| !f.is_empty()).peekable();
    let marker = match fields.peek() {
        None => return Ok(None),
        Some(first) if first.starts_with('#') => return Ok(None),
        Some(&"@cert-authority") => Marker::Authority,
        Some(&"@revoked") => Marker::Revoked,
        Some(first) if first.starts_with('@') => return Err("unknown marker"),
        Some(_) => Marker::None,
    };
    if marker != Marker::None {
        fields.next();
    }
    let hosts = Hosts::parse(fields.next().ok_or("no host names")?)?;
    let kind = fields.next().ok_or("no key")?;
    let key = key(kind, fields.next().ok_or("no key")?)?;
    Ok(Some(Entry { marker, hosts, key, file: file.clone(), line: number }))
}

fn key(kind: &str, text: &str) -> Result<KeyData, &'static str> {
    let blob = base64::engine::general_purpose::STANDARD.decode(text).map_err(|_| "the key is not base64")?;
    let key = russh::keys::key::parse_public_key(&blob).map_err(|_| "the key is malformed or of an unknown type")?;
    if key.algorithm().as_str() != kind {
        return Err("the key is not of the type that the line says");
    }
    Ok(key.key_data().clone())
}

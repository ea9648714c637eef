//! What the known keys say of the key that a host offers.
use super::line::{Entry, Marker};
use super::{HostKeys, certificate};
use russh::keys::PublicKeyOrCertificate;
use russh::keys::ssh_key::public::KeyData;
use russh::keys::ssh_key::{Certificate, HashAlg};

/// Why a host key is not accepted: one sentence with the thing, the cause and the next step.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::link) enum Rejection {
    /// Listed with `@revoked`.
    Revoked(String),
    /// Another key of the host is listed.
    Changed(String),
    /// Nothing is listed.
    Unknown(String),
}

impl Rejection {
    /// The sentence.
    pub(in crate::link) fn sentence(&self) -> &str {
        match self {
            Self::Revoked(sentence) | Self::Changed(sentence) | Self::Unknown(sentence) => sentence,
        }
    }
}

/// `SHA256:… (ssh-ed25519)`.
fn show(key: &KeyData) -> String {
    format!("{} ({})", key.fingerprint(HashAlg::Sha256), key.algorithm().as_str())
}

impl HostKeys<'_> {
    /// Judges the key or certificate that the host proved to hold. `now` is in seconds since 1970. A certificate that
    /// proves nothing is judged as the bare key inside it, as ssh does.
    pub(in crate::link) fn judge(&self, offered: &PublicKeyOrCertificate, now: u64) -> Result<(), Rejection> {
        let key = offered.public_key().key_data().clone();
        let Some(certificate) = offered.certificate() else { return self.judge_key(&key) };
        match self.judge_certificate(certificate, now) {
            Ok(()) => Ok(()),
            Err(Refused::Revoked(rejection)) => Err(rejection),
            Err(Refused::Useless(why)) => self.judge_key(&key).map_err(|rejection| match rejection {
                Rejection::Unknown(sentence) => Rejection::Unknown(format!("{sentence}; {why}")),
                Rejection::Changed(sentence) => Rejection::Changed(format!("{sentence}; {why}")),
                revoked => revoked,
            }),
        }
    }

    fn judge_key(&self, key: &KeyData) -> Result<(), Rejection> {
        self.not_revoked(&self.entries, key)?;
        let plain = |e: &&&Entry| e.marker == Marker::None;
        if self.entries.iter().filter(plain).any(|e| e.key == *key) {
            return Ok(());
        }
        // Also when only keys of other types are listed: ssh says "changed" then, and a host that has lost its listed
        // key is as suspect.
        let same_type = |e: &&&Entry| e.key.algorithm() == key.algorithm();
        let listed = || self.entries.iter().filter(plain);
        if let Some(entry) = listed().find(same_type).or_else(|| listed().next()) {
            return Err(self.changed(entry, key));
        }
        self.not_revoked(&self.portless, key)?;
        if self.portless.iter().filter(plain).any(|e| e.key == *key) {
            return Ok(());
        }
        Err(self.unknown(key))
    }

    fn judge_certificate(&self, certificate: &Certificate, now: u64) -> Result<(), Refused> {
        let authority = certificate.signature_key();
        for key in [certificate.public_key(), authority] {
            self.not_revoked(&self.entries, key).map_err(Refused::Revoked)?;
            self.not_revoked(&self.portless, key).map_err(Refused::Revoked)?;
        }
        let trusted = |e: &&Entry| e.marker == Marker::Authority && e.key == *authority;
        if !self.entries.iter().chain(&self.portless).copied().any(|e| trusted(&e)) {
            let why = format!("its certificate is signed by {}, which is no authority for it", show(authority));
            return Err(Refused::Useless(why));
        }
        certificate::check(certificate, &self.name, now)
            .map_err(|why| Refused::Useless(format!("its certificate {:?} is not valid: {why}", certificate.key_id())))
    }

    fn not_revoked(&self, entries: &[&Entry], key: &KeyData) -> Result<(), Rejection> {
        match entries.iter().find(|e| e.marker == Marker::Revoked && e.key == *key) {
            None => Ok(()),
            Some(entry) => Err(Rejection::Revoked(format!(
                "the key {} of {} is marked @revoked at {}: the host must get another key before it is trusted again",
                show(key),
                self.listed,
                entry.place()
            ))),
        }
    }

    fn changed(&self, entry: &Entry, key: &KeyData) -> Rejection {
        Rejection::Changed(format!(
            "the host key of {host} has changed: {place} has {old}, the host offered {new}; if the host was installed \
             anew, compare the fingerprint there and remove the line with `ssh-keygen -R '{host}' -f '{file}'`, else \
             someone may be answering in its place",
            host = self.listed,
            place = entry.place(),
            old = show(&entry.key),
            new = show(key),
            file = entry.file.display(),
        ))
    }

    fn unknown(&self, key: &KeyData) -> Rejection {
        let files: Vec<String> = self.known.files.iter().map(|f| f.display().to_string()).collect();
        let place = if files.is_empty() { "any known_hosts file".to_owned() } else { files.join(" or ") };
        let port = if self.port == 22 { String::new() } else { format!("-p {} ", self.port) };
        let mut sentence = format!(
            "the host key {key} of {host} is not in {place}; compare it with the host's own, then connect once with \
             `ssh {port}{name}` or add the line that `ssh-keyscan {port}{name}` prints",
            key = show(key),
            host = self.listed,
            name = self.name,
        );
        let notes = self.known.unreadable.iter().cloned();
        let skipped = self.known.skipped.iter().take(3).map(|line| format!("skipped {line}"));
        for note in notes.chain(skipped) {
            sentence.push_str("; ");
            sentence.push_str(&note);
        }
        Rejection::Unknown(sentence)
    }
}

/// Why a certificate does not make its host known.
enum Refused {
    /// It, or its authority, is revoked: final.
    Revoked(Rejection),
    /// It proves nothing; the bare key may still be known.
    Useless(String),
}

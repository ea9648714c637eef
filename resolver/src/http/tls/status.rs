//! What a person is told about the certificates.
use super::Tls;
use super::identity::Identity;
use jiff::Timestamp;
use stado_fleet::wire::Certificate;

/// How long before its end a certificate is mentioned.
const SOON: jiff::SignedDuration = jiff::SignedDuration::from_hours(24 * 14);

/// One certificate of the router.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CertStatus {
    /// Its file, or the folder of the local authority.
    pub source: String,
    /// What it is for; empty when nothing is loaded from it.
    pub names: Vec<String>,
    /// When it ends.
    pub not_after: Option<Timestamp>,
    /// What is wrong with it, and what to do.
    pub problem: Option<String>,
    /// Since when that is known.
    pub since: Option<Timestamp>,
}

impl CertStatus {
    /// As the socket API tells it.
    pub fn into_wire(self) -> Certificate {
        let Self { source, names, not_after, problem, since } = self;
        let text = |at: Option<Timestamp>| at.map(|at| at.to_string());
        Certificate { source, names, not_after: text(not_after), problem, since: text(since) }
    }
}

impl Tls {
    /// Looks at the files first; blocks meanwhile.
    pub fn look_and_tell(&self, now: Timestamp) -> Vec<CertStatus> {
        self.refresh();
        self.status(now)
    }

    /// All certificates, in the order in which they are looked through, at `now`.
    pub fn status(&self, now: Timestamp) -> Vec<CertStatus> {
        let pairs = self.shelves.iter().map(|shelf| {
            let identity = shelf.identity();
            let unread = shelf.problem().map(|(error, since)| {
                let kept = if identity.is_some() { "; the one that was loaded before is served" } else { "" };
                (format!("{error}{kept}"), since)
            });
            let aged = identity.as_ref().and_then(|identity| age(identity, now));
            let (problem, since) = unread.or(aged).unzip();
            CertStatus {
                source: shelf.files().cert.display().to_string(),
                names: identity.as_ref().map(|identity| identity.names.list()).unwrap_or_default(),
                not_after: identity.as_ref().map(|identity| identity.not_after),
                problem,
                since,
            }
        });
        pairs.chain(self.authority.as_ref().map(|authority| authority.status(now))).collect()
    }
}

/// What is to be said about a certificate's validity, and since when.
fn age(identity: &Identity, now: Timestamp) -> Option<(String, Timestamp)> {
    let (from, until) = (identity.not_before, identity.not_after);
    if now < from {
        return Some((format!("does not hold before {from}"), now));
    }
    if until <= now {
        return Some((format!("expired at {until}: put a new one in its place"), until));
    }
    let soon = until.checked_sub(SOON).unwrap_or(until);
    (soon <= now && from < soon).then(|| (format!("expires at {until}"), soon))
}

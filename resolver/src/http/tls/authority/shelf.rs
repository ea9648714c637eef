//! The authority in the daemon: its files kept current, and the certificates it made.
use super::files::{self, CERT, KEY, Signer};
use super::leaf;
use crate::http::tls::identity::Identity;
use crate::http::tls::problem::TlsProblem;
use crate::http::tls::stamp::Stamp;
use crate::http::tls::{CertStatus, LoadError};
use jiff::Timestamp;
use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Names whose certificates are kept at a time.
const KEPT: usize = 1024;

/// An authority and what it made.
#[derive(Debug)]
pub(in crate::http::tls) struct AuthorityShelf {
    folder: PathBuf,
    held: Mutex<Held>,
}

struct Held {
    stamp: Stamp,
    signer: Signer,
    made: HashMap<Box<str>, Arc<Identity>>,
    problem: Option<(String, Timestamp)>,
}
impl std::fmt::Debug for Held {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Held").field("subject", &self.signer.facts.subject).finish_non_exhaustive()
    }
}

impl AuthorityShelf {
    /// The authority of `folder`, `None` where there is none.
    pub(in crate::http::tls) fn open(folder: PathBuf) -> Result<Option<Self>, LoadError> {
        let stamp = stamp(&folder);
        let opened = files::open(&folder)?;
        Ok(opened.map(|signer| {
            let held = Held { stamp, signer, made: HashMap::new(), problem: None };
            Self { folder, held: Mutex::new(held) }
        }))
    }

    /// A certificate for a local name, made now unless one is there that has long enough to live.
    pub(in crate::http::tls) fn leaf(&self, host: &str, now: Timestamp) -> Result<Arc<Identity>, TlsProblem> {
        let mut held = self.held();
        let (from, until) = (held.signer.facts.not_before, held.signer.facts.not_after);
        if now < from || until <= now {
            let early = now < from;
            let at = if early { from } else { until };
            return Err(TlsProblem::NotInForce { asked: format!("{host}, and its local authority,"), early, at });
        }
        let fresh = |one: &Identity| one.holds(now) && (until <= one.not_after || now + leaf::LEFT < one.not_after);
        if let Some(one) = held.made.get(host).filter(|one| fresh(one)) {
            return Ok(one.clone());
        }
        let made = leaf::make(&held.signer, host, now).map_err(|why| TlsProblem::NotIssued(host.to_owned(), why))?;
        let made = Arc::new(made);
        held.keep(host, made.clone());
        Ok(made)
    }

    /// Whether it may vouch for `host`, and still holds.
    pub(in crate::http::tls) fn serves(&self, host: &str, now: Timestamp) -> bool {
        super::is_local(host) && now < self.held().signer.facts.not_after
    }

    /// Reads the files again if they changed; the old authority is kept if the new one does not load.
    pub(in crate::http::tls) fn refresh(&self) {
        let stamp = stamp(&self.folder);
        let mut held = self.held();
        if held.stamp == stamp {
            return;
        }
        held.stamp = stamp;
        let folder = self.folder.display();
        match files::open(&self.folder) {
            Ok(Some(signer)) => {
                tracing::info!(target: "stado::mesh", %folder, fingerprint = signer.facts.fingerprint, "tls_authority_loaded");
                held.signer = signer;
                held.made.clear();
                held.problem = None;
            }
            Ok(None) => held.fail(&folder, "its files are gone"),
            Err(error) => held.fail(&folder, &error.to_string()),
        }
    }

    pub(in crate::http::tls) fn status(&self, now: Timestamp) -> CertStatus {
        let held = self.held();
        let until = held.signer.facts.not_after;
        let ended = || (until <= now).then(|| (format!("expired at {until}: `stado tls init --renew`"), until));
        let (problem, since) = held.problem.clone().or_else(ended).unzip();
        let names = super::DOMAINS.into_iter().flat_map(|domain| [domain.to_owned(), format!("*.{domain}")]);
        CertStatus {
            source: self.folder.display().to_string(),
            names: names.chain(["127.0.0.0/8".to_owned(), "::1".to_owned()]).collect(),
            not_after: Some(until),
            problem,
            since,
        }
    }

    fn held(&self) -> MutexGuard<'_, Held> {
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Held {
    fn keep(&mut self, host: &str, made: Arc<Identity>) {
        if self.made.len() >= KEPT {
            let oldest = self.made.iter().min_by_key(|(_, one)| one.not_after).map(|(host, _)| host.clone());
            self.made.retain(|host, _| Some(host) != oldest.as_ref());
        }
        self.made.insert(host.into(), made);
    }

    fn fail(&mut self, folder: &dyn std::fmt::Display, why: &str) {
        tracing::warn!(target: "stado::mesh", %folder, error = why, old_one_kept = true, "tls_authority_not_loaded");
        self.problem = Some((format!("{why}; the authority that was loaded before is used"), Timestamp::now()));
    }
}

fn stamp(folder: &Path) -> Stamp {
    Stamp::of([folder.join(CERT).as_path(), folder.join(KEY).as_path()])
}

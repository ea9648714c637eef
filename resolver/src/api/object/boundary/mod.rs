//! The boundary between requests and the vault that authorizes them (fleet contract §2.5, §7.2): whatever the vault does, a
//! request is answered soon.
//!
//! At its start the verifier is validated: it must see exactly the items that are mapped, with distinct tokens. Then each
//! request asks the vault for its namespace's token ([`Question`]: one consultation for a namespace at a time, which requests
//! share while it is young). One that is not answered within [`PATIENCE`] is announced, and from then on whoever finds it held
//! is refused at once with its line, until it ends. One that failed closes its namespace for the cool-down, without traffic;
//! then the next request asks again.
mod question;
#[cfg(test)]
mod tests;
mod verifier;

pub use verifier::{Asking, Limits, Verifier, Verifying};

use question::Question;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::sync::watch;
use verifier::{Asked, Teller};

/// How long a request waits for the vault.
pub(super) const PATIENCE: Duration = Duration::from_secs(2);
/// How long a validation waits for one item.
const ITEM: Duration = Duration::from_secs(1);
/// Between two attempts to validate.
const BETWEEN: Duration = Duration::from_secs(2);

/// SHA-256 of a token.
pub(super) type Digest256 = [u8; 32];
/// Namespaces that are closed, with the reason of each.
pub(super) type Closed = BTreeMap<String, String>;

/// All namespaces whose tokens are in the vault.
#[derive(Debug)]
pub(super) struct Boundary {
    shared: Arc<Shared>,
    /// Whether the verifier sees what it should, and no more.
    valid: Arc<Question<()>>,
    tokens: BTreeMap<String, Arc<Question<Digest256>>>,
}

#[derive(Debug)]
struct Shared {
    verifier: Arc<dyn Verifier>,
    limits: Limits,
    /// Item by namespace.
    items: BTreeMap<String, String>,
    /// What each item's token was last.
    seen: Mutex<BTreeMap<String, Digest256>>,
    closed: watch::Sender<Closed>,
}

impl Boundary {
    pub(super) fn new(items: BTreeMap<String, String>, verifying: Verifying) -> Result<Self, String> {
        let Verifying { verifier, limits } = verifying;
        let mut known = BTreeSet::new();
        if let Some(twice) = items.values().find(|item| !known.insert(*item)) {
            return Err(format!("two namespaces of object_api.namespaces have the item {twice:?}; each needs its own"));
        }
        let question = || Arc::new(Question::new(limits.recheck));
        let tokens = items.keys().map(|namespace| (namespace.clone(), question())).collect();
        let (valid, closed) = (Arc::new(Question::new(limits.recheck)), watch::Sender::default());
        let shared = Arc::new(Shared { verifier, limits, items, seen: Mutex::default(), closed });
        Ok(Self { shared, valid, tokens })
    }

    /// Validates, in the background.
    pub(super) fn begin(&self) {
        drop(self.validation(self.shared.limits.attempts));
    }

    pub(super) fn closed(&self) -> watch::Receiver<Closed> {
        self.shared.closed.subscribe()
    }

    /// Whether nothing is known to be closed.
    pub(super) fn is_open(&self) -> bool {
        self.valid.is_settled() && self.tokens.values().all(|token| token.is_open())
    }

    /// The digest of a namespace's token, or why it cannot be told: an open or an ended `czekam` line.
    pub(super) async fn token(&self, namespace: &str) -> Result<Digest256, String> {
        self.validation(1).await?;
        let Some(question) = self.tokens.get(namespace) else { return Err("it has no item in the vault".into()) };
        let (shared, item) = (self.shared.clone(), self.shared.items.get(namespace).cloned().unwrap_or_default());
        let asked = Asked {
            what: format!("POST /v1/items/read {item}"),
            place: self.shared.verifier.place(),
            told: self.shared.teller([namespace.to_owned()].into()),
            keeps: false,
        };
        question.ask(asked, async move { shared.token(&item).await }).await
    }

    fn validation(&self, attempts: u32) -> impl Future<Output = Result<(), String>> + Send + use<> {
        let shared = self.shared.clone();
        let asked = Asked {
            what: "validation of the object verifier".into(),
            place: shared.verifier.place(),
            told: shared.teller(shared.items.keys().cloned().collect()),
            keeps: true,
        };
        self.valid.ask(asked, async move { shared.validate(attempts).await })
    }
}

impl Shared {
    /// Keeps the list of what is closed.
    fn teller(self: &Arc<Self>, namespaces: BTreeSet<String>) -> Teller {
        let this = self.clone();
        Box::new(move |cause| {
            this.closed.send_if_modified(|closed| {
                let before = closed.clone();
                for namespace in &namespaces {
                    match cause {
                        Some(cause) => drop(closed.insert(namespace.clone(), cause.to_owned())),
                        None => drop(closed.remove(namespace)),
                    }
                }
                before != *closed
            });
        })
    }

    async fn bounded<T>(&self, asked: impl Future<Output = Result<T, String>>) -> Result<T, String> {
        let limit = self.limits.timeout;
        let late = || format!("no answer within {}s", limit.as_secs());
        tokio::time::timeout(limit, asked).await.unwrap_or_else(|_| Err(late()))
    }

    async fn token(&self, item: &str) -> Result<Digest256, String> {
        let digest = self.bounded(self.verifier.token(item)).await?;
        self.remember(item, digest)
    }

    /// Two items with one token would let one namespace's bearer into the other.
    fn remember(&self, item: &str, digest: Digest256) -> Result<Digest256, String> {
        let mut seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        seen.insert(item.to_owned(), digest);
        match seen.iter().find(|(other, held)| other.as_str() != item && **held == digest) {
            Some((other, _)) => {
                Err(format!("the vault items {item} and {other} hold the same token; give each its own"))
            }
            None => Ok(digest),
        }
    }

    async fn validate(&self, attempts: u32) -> Result<(), String> {
        let mut made = 1;
        loop {
            match self.bounded(self.attempt()).await {
                Err(_) if made < attempts => tokio::time::sleep(BETWEEN).await,
                ended => return ended,
            }
            made += 1;
        }
    }

    async fn attempt(&self) -> Result<(), String> {
        let seen = self.verifier.items().await?;
        let mapped: BTreeSet<String> = self.items.values().cloned().collect();
        let missing: Vec<_> = mapped.difference(&seen).collect();
        let unexpected: Vec<_> = seen.difference(&mapped).collect();
        if !missing.is_empty() || !unexpected.is_empty() {
            let (missing, unexpected) = (listed(&missing), listed(&unexpected));
            return Err(format!(
                "object verifier grant item set mismatch (missing=[{missing}], unexpected=[{unexpected}])"
            ));
        }
        // An item that is not answered closes its own namespace, when that is asked for, and no other.
        let reads = mapped.iter().map(|item| async move {
            let read = tokio::time::timeout(ITEM, self.verifier.token(item)).await.ok()?.ok()?;
            Some(self.remember(item, read).map(|_| ()))
        });
        futures_util::future::join_all(reads).await.into_iter().flatten().collect()
    }
}

fn listed(names: &[&String]) -> String {
    names.iter().map(|name| name.as_str()).collect::<Vec<_>>().join(", ")
}

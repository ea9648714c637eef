//! Who asks the vault, and within which bounds.
use super::Digest256;
use stado_fleet::vault::Broker;
use std::collections::BTreeSet;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

/// The field of an item that holds a namespace's token.
const FIELD: &str = "token";

/// An answer of the vault that is awaited. The error is a sentence without a secret.
pub type Asking<'a, T> = Pin<Box<dyn Future<Output = Result<T, String>> + Send + 'a>>;

/// The vault, as the object API needs it.
pub trait Verifier: Send + Sync + std::fmt::Debug {
    /// SHA-256 of an item's token.
    fn token<'a>(&'a self, item: &'a str) -> Asking<'a, Digest256>;
    /// What it may see.
    fn items(&self) -> Asking<'_, BTreeSet<String>>;
    /// Where it asks, as people read it.
    fn place(&self) -> String;
}

impl Verifier for Broker {
    fn token<'a>(&'a self, item: &'a str) -> Asking<'a, Digest256> {
        Box::pin(async move {
            let token = self.read(item, FIELD).await.map_err(|e| e.sentence)?;
            // A bearer that is empty must never be the right one.
            if token.reveal().is_empty() {
                Err(format!("the vault item {item} holds no token"))
            } else {
                Ok(token.digest())
            }
        })
    }
    fn items(&self) -> Asking<'_, BTreeSet<String>> {
        Box::pin(async move {
            let all = self.list().await.map_err(|e| e.sentence)?;
            Ok(all.into_iter().filter(|item| !item.deleted).map(|item| item.id).collect())
        })
    }
    fn place(&self) -> String {
        Broker::place(self)
    }
}

/// Bounds of §2.5.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Attempts to validate at the start, two seconds apart.
    pub attempts: u32,
    /// Longest time for one of them, and for any other question.
    pub timeout: Duration,
    /// The cool-down after a failure.
    pub recheck: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Self { attempts: 3, timeout: Duration::from_secs(90), recheck: Duration::from_secs(30) }
    }
}

/// A vault and its bounds.
#[derive(Debug, Clone)]
pub struct Verifying {
    /// Who asks.
    pub verifier: Arc<dyn Verifier>,
    /// Within which bounds.
    pub limits: Limits,
}

/// Told the reason of what is closed, `None` when it opens.
pub(super) type Teller = Box<dyn Fn(Option<&str>) + Send + Sync>;

/// A question, for its lines, and who is told what came of it.
pub(super) struct Asked {
    pub(super) what: String,
    pub(super) place: String,
    /// Told the reason while it is closed, `None` when it opens.
    pub(super) told: Teller,
    /// Whether its answer holds from then on.
    pub(super) keeps: bool,
}

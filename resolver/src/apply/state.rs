//! What `resolver-state.json` says, made from what runs. Pure.
use super::held::Held;
use stado_fleet::ledger::{AdapterState, RefusedRegistry, ResolverState, Unserved, stamp};

/// `state` of fleet contract §4.6, and `stopped` for an orderly end.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Phase {
    /// Nothing was read yet.
    #[default]
    Starting,
    /// Serving what can be served.
    Serving,
    /// The last read failed or was refused; what is held is served on.
    BackingOff,
    /// The process ends because of an error.
    Failed,
    /// The process ends because it was asked to.
    Stopped,
}
impl Phase {
    /// The word in the file.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Starting => "starting",
            Self::Serving => "serving",
            Self::BackingOff => "backing_off",
            Self::Failed => "failed",
            Self::Stopped => "stopped",
        }
    }
}

/// The loop's part of the state.
#[derive(Debug, Clone, Default)]
pub struct Progress {
    /// Phase.
    pub phase: Phase,
    /// Why it is not serving.
    pub reason: Option<String>,
    /// Failed reads in a row.
    pub attempt: u64,
    /// When the next read is due, while failing.
    pub next_attempt_at: Option<jiff::Timestamp>,
    /// What was read last and is not taken into force.
    pub refused: Option<RefusedRegistry>,
}

/// Everything else that is published.
#[derive(Debug, Clone, Default)]
pub struct Listeners {
    /// Resolution API that is bound.
    pub api_bind: Option<std::net::SocketAddr>,
    /// Adapters that serve.
    pub adapters: Vec<AdapterState>,
    /// What does not, with reasons.
    pub unserved: Vec<Unserved>,
    /// Things worth saying.
    pub warnings: Vec<String>,
}

/// Writes all of it into the state; `updated_at` and `pid` are the publisher's.
/// A failed read keeps generation and age: what is held is served on, and a reader can tell how old it is (design, rule 2).
pub fn compose(
    state: &mut ResolverState,
    progress: &Progress,
    held: Option<&Held>,
    listeners: Listeners,
    last_good_refusal: Option<&str>,
) {
    state.state = progress.phase.as_str().to_owned();
    state.reason = progress.reason.clone();
    state.attempt = progress.attempt;
    state.next_attempt_at = progress.next_attempt_at.map(stamp);
    state.refused.clone_from(&progress.refused);
    state.last_good_refusal = last_good_refusal.map(str::to_owned);
    if let Some(held) = held {
        state.target = Some(held.target.to_string());
        state.generation = held.directory.generation().map(|g| g.0);
        state.store_version = Some(held.snapshot.store_version.to_string());
        state.loaded_at = Some(stamp(held.loaded_at));
        state.epoch = held.epoch();
    }
    state.listening = listeners.api_bind.is_some() || !listeners.adapters.is_empty();
    state.api_bind = listeners.api_bind.map(|b| b.to_string());
    state.adapters = listeners.adapters;
    state.unserved = listeners.unserved;
    state.warnings = listeners.warnings;
}

//! What the published state is worth now: the lock rule (fleet contract §4.6), and what `connect` says of it (§6.9).
use super::{PublishedPaths, ResolverState, read};
use crate::disk::{DiskError, Lock};
use std::path::Path;

/// What the published state is worth now, by the lock rule (§4.6).
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Publisher {
    /// No state file.
    Never {
        /// A process that holds the lock and has not published yet.
        starting: Option<u32>,
    },
    /// The lock is held by the pid that published.
    Alive(ResolverState),
    /// Nobody holds the lock, or another pid does: the state's publisher is gone.
    Dead {
        /// Last published state.
        state: ResolverState,
        /// Another process that holds the lock and has not published yet.
        replaced_by: Option<u32>,
    },
    /// There is a state file that nobody can read.
    Unreadable {
        /// Why, naming the file.
        why: String,
        /// Whether a resolver holds the lock, and its pid where the lock names it.
        holder: Option<Option<u32>>,
    },
}

/// Reads state and lock together. An error is one of the lock.
pub fn publisher(paths: &PublishedPaths) -> Result<Publisher, DiskError> {
    let mut seen = look(paths)?;
    if !matches!(
        seen,
        Publisher::Alive(_) | Publisher::Dead { replaced_by: None, .. } | Publisher::Never { starting: None }
    ) {
        // The new process may have published between the read of the state and the look at the lock.
        seen = look(paths)?;
    }
    Ok(seen)
}

fn look(paths: &PublishedPaths) -> Result<Publisher, DiskError> {
    let read = read::state(paths);
    let holder = Lock::holder(&paths.lock)?;
    Ok(match (read, holder) {
        (Err(why), holder) => Publisher::Unreadable { why, holder },
        (Ok(None), holder) => Publisher::Never { starting: holder.flatten() },
        (Ok(Some(state)), Some(Some(pid))) if pid == state.pid || Some(pid) == state.took_over_from => {
            Publisher::Alive(state)
        }
        (Ok(Some(state)), holder) => Publisher::Dead { state, replaced_by: holder.flatten() },
    })
}

impl Publisher {
    /// The state, when its publisher still runs.
    pub fn alive(&self) -> Option<&ResolverState> {
        match self {
            Self::Alive(state) => Some(state),
            _ => None,
        }
    }

    /// Where the resolution API is of the resolver that runs.
    pub fn api(&self) -> Option<std::net::SocketAddr> {
        self.alive()?.api_bind.as_deref()?.parse().ok()
    }

    /// Whether a resolver runs, or may: somebody holds the lock.
    pub fn may_run(&self) -> bool {
        match self {
            Self::Alive(_) => true,
            Self::Never { starting: pid } | Self::Dead { replaced_by: pid, .. } => pid.is_some(),
            Self::Unreadable { holder, .. } => holder.is_some(),
        }
    }

    /// The state that was published last, whether or not its publisher still runs.
    pub fn last(&self) -> Option<&ResolverState> {
        match self {
            Self::Alive(state) | Self::Dead { state, .. } => Some(state),
            Self::Never { .. } | Self::Unreadable { .. } => None,
        }
    }

    /// The sentence of a dead publisher (§4.10).
    pub fn dead_sentence(&self) -> Option<String> {
        match self {
            Self::Dead { state, .. } => Some(format!(
                "the resolver that published this host's state (pid {}, state {} at {}) is not running, and no resolver \
                 has published since; its listeners went with it",
                state.pid, state.state, state.updated_at
            )),
            _ => None,
        }
    }

    /// The sentence for a resolver that runs and has said nothing yet.
    pub fn starting_sentence(&self) -> Option<String> {
        match self {
            Self::Never { starting: Some(pid) } | Self::Dead { replaced_by: Some(pid), .. } => Some(format!(
                "another resolver (pid {pid}) holds the lock and has published nothing yet: it is starting, or it hangs"
            )),
            _ => None,
        }
    }

    /// The sentence for a state that cannot be read.
    pub fn unreadable_sentence(&self) -> Option<String> {
        match self {
            Self::Unreadable { why, holder } => Some(match holder {
                Some(Some(pid)) => format!("{why}; a resolver runs (pid {pid}) and writes it anew with its next read"),
                Some(None) => format!("{why}; a resolver runs and writes it anew with its next read"),
                None => format!("{why}; no resolver runs"),
            }),
            _ => None,
        }
    }

    /// Why the running resolver does not serve an adapter, as it has published; `None` when it does, or when none runs.
    /// Whoever accepts at the bind of such an adapter is not the service.
    pub fn why_unserved(&self, service: &str, consumer: &str, bind: &str) -> Option<String> {
        self.unserved(|row| row.service == service && row.consumer == consumer && row.bind == bind)
    }

    /// Why the running resolver serves no adapter at an address, whatever adapter that is.
    pub fn unserved_at(&self, bind: &str) -> Option<String> {
        self.unserved(|row| !row.consumer.is_empty() && row.bind == bind)
    }

    fn unserved(&self, which: impl Fn(&super::Unserved) -> bool) -> Option<String> {
        let state = self.alive()?;
        let super::Unserved { service, consumer, bind, reason, .. } = state.unserved.iter().find(|row| which(row))?;
        let reason = reason_or_none(Some(reason));
        Some(format!(
            "this host's resolver (pid {}) does not serve {bind} for {service}/{consumer}: {reason}",
            state.pid
        ))
    }

    /// Whether the running resolver says that somebody else, or nobody, listens at the bind of an adapter: it is unserved
    /// and not bound.
    pub fn says_not_bound(&self, service: &str, consumer: &str) -> bool {
        self.alive().is_some_and(|state| {
            state.unserved.iter().any(|u| u.service == service && u.consumer == consumer)
                && !state.adapters.iter().any(|a| a.service == service && a.consumer == consumer)
        })
    }

    /// Why nobody accepts at an adapter's bind, as far as the published state tells (§6.9); `None` when the state says
    /// that it is served. `state_file` is named when no resolver ever published.
    pub fn why_refused(&self, service: &str, consumer: &str, bind: &str, state_file: &Path) -> Option<String> {
        let state = match self {
            Self::Never { .. } => return Some(with(never_sentence(state_file), self.starting_sentence())),
            Self::Dead { .. } => return self.dead_sentence().map(|dead| with(dead, self.starting_sentence())),
            Self::Unreadable { .. } => return self.unreadable_sentence(),
            Self::Alive(state) => state,
        };
        if let Some(sentence) = self.why_unserved(service, consumer, bind) {
            return Some(sentence);
        }
        if state.listening {
            return None;
        }
        let pid = state.pid;
        let reason = reason_or_none(state.reason.as_deref());
        let (name, at) = (&state.state, &state.updated_at);
        Some(format!("this host's resolver (pid {pid}, state {name} at {at}) holds no listener: {reason}"))
    }
}

/// The sentence for a host where no resolver has published (§4.10).
pub fn never_sentence(state_file: &Path) -> String {
    format!(
        "no resolver has published state at {}: nothing has served here since that file was last removed",
        state_file.display()
    )
}

/// One sentence, and another where there is one.
fn with(sentence: String, more: Option<String>) -> String {
    more.map_or(sentence.clone(), |more| format!("{sentence}; {more}"))
}

fn reason_or_none(reason: Option<&str>) -> &str {
    reason.filter(|r| !r.is_empty()).unwrap_or("it has published no reason")
}

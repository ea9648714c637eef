//! Writers of the state, waits and answers files (fleet contract §4.6–4.8).
//!
//! One task writes; everybody else changes memory. A disk that fails or hangs costs a warning, never a connection (design,
//! rule 6). The lock is held from before the first publication until the publisher ends, so that readers can tell a
//! living publisher from files that outlived one.
mod answers;
mod error;
mod files;
mod pace;
#[cfg(test)]
mod tests;
mod writer;

pub use error::PublishError;

use crate::conn::ledger::Ledger;
use stado_fleet::disk::{self, Lock, LockAttempt};
use stado_fleet::ledger::{PublishedPaths, ResolverState, stamp};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::Duration;
use tokio::sync::Notify;
use tokio::task::JoinHandle;
use tokio::time::{Instant, sleep, timeout};
use tokio_util::sync::CancellationToken;

/// How long a starting daemon asks for a lock that is held: a reader's probe, or a predecessor that is just leaving.
const LOCK_PATIENCE: Duration = Duration::from_secs(2);
/// How long an orderly stop waits for a disk that hangs.
const LAST_WRITE: Duration = Duration::from_secs(5);

/// The publisher of this process. Dropping it ends publishing and gives the lock back without a last word; [`finish`] says one.
///
/// [`finish`]: Publisher::finish
#[derive(Debug)]
pub struct Publisher {
    shared: Arc<Shared>,
    writer: Option<JoinHandle<()>>,
}

#[derive(Debug)]
struct Shared {
    paths: PublishedPaths,
    ledger: Ledger,
    state: Mutex<ResolverState>,
    changed: Notify,
    stop: CancellationToken,
    /// Taken at start, else when the disk allows it; nothing is written without it.
    lock: OnceLock<Lock>,
}

impl Publisher {
    /// Takes the lock with this process's pid inside, publishes an empty waiting list, takes up the answers that an earlier
    /// process published, and starts writing. The state file is first written after the first [`Publisher::update`].
    ///
    /// Where no lock can be made (a home that cannot be written) nothing is published until it can, and that is said:
    /// serving does not depend on it.
    ///
    /// Must run inside a tokio runtime. Fails only when another process holds the lock for [`LOCK_PATIENCE`].
    pub async fn start(paths: PublishedPaths, ledger: Ledger) -> Result<Self, PublishError> {
        let lock = take_lock(&paths).await?.map_or_else(OnceLock::new, OnceLock::from);
        answers::restore(&paths, &ledger);
        let state = ResolverState {
            pid: std::process::id(),
            started_at: Some(stamp(jiff::Timestamp::now())),
            state: "starting".to_owned(),
            ..ResolverState::default()
        };
        let shared = Arc::new(Shared {
            paths,
            ledger,
            state: Mutex::new(state),
            changed: Notify::new(),
            stop: CancellationToken::new(),
            lock,
        });
        let mut writer = writer::Writer::new(Arc::clone(&shared));
        if shared.lock.get().is_some() {
            for path in [&shared.paths.state, &shared.paths.waiting, &shared.paths.answers] {
                disk::sweep_locked(path);
            }
            writer.publish_empty_waits();
        }
        let writer = tokio::spawn(writer.run());
        Ok(Self { shared, writer: Some(writer) })
    }

    /// Changes the state; the file follows within 100 ms. `updated_at` and `pid` are set by the writer.
    pub fn update(&self, change: impl FnOnce(&mut ResolverState)) {
        change(&mut self.shared.state.lock().unwrap_or_else(PoisonError::into_inner));
        self.shared.changed.notify_one();
    }

    /// The state as it will be published.
    pub fn state(&self) -> ResolverState {
        self.shared.state.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// The held lock, to hand its descriptor over; `None` where it could not be made.
    pub fn lock(&self) -> Option<&Lock> {
        self.shared.lock.get()
    }

    /// Publishes a last state and what the ledger holds, then gives the lock back. A disk that hangs is not waited for.
    pub async fn finish(mut self, change: impl FnOnce(&mut ResolverState)) {
        self.update(change);
        self.shared.stop.cancel();
        if let Some(writer) = self.writer.take() {
            // The writer warns of its own failures; an orderly stop goes on in any case.
            let _ = timeout(LAST_WRITE, writer).await;
        }
    }
}
impl Drop for Publisher {
    fn drop(&mut self) {
        if let Some(writer) = &self.writer {
            writer.abort();
        }
    }
}

/// `None`: there can be none at the moment.
async fn take_lock(paths: &PublishedPaths) -> Result<Option<Lock>, PublishError> {
    let deadline = Instant::now() + LOCK_PATIENCE;
    loop {
        match Lock::try_exclusive(&paths.lock, true) {
            Ok(LockAttempt::Held(lock)) => return Ok(Some(lock)),
            Ok(LockAttempt::Busy { pid }) if Instant::now() >= deadline => {
                return Err(PublishError { pid, lock: paths.lock.clone() });
            }
            Ok(LockAttempt::Busy { .. }) => sleep(Duration::from_millis(50)).await,
            Err(error) => {
                tracing::warn!(
                    target: "stado::fleet",
                    "the resolver's state is not published: {error}; everything else is served, `stado resolver status` cannot \
                     tell it, and the lock is tried again every second"
                );
                return Ok(None);
            }
        }
    }
}

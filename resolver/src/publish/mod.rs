//! Writers of the state, waits, answers and routes files (fleet contract §4.6–4.8).
//!
//! One task writes; everybody else changes memory. A disk that fails or hangs costs a warning, never a connection (design,
//! rule 6). The lock is held from before the first publication until the publisher ends, so that readers can tell a
//! living publisher from files that outlived one.
mod answers;
mod error;
mod files;
mod pace;
mod routes;
#[cfg(test)]
mod tests;
mod writer;

pub use error::PublishError;

use crate::conn::ledger::Ledger;
use stado_fleet::disk::{self, Lock, LockAttempt};
use stado_fleet::ledger::{Leaving, PublishedPaths, ResolverState, stamp};
use std::sync::{Arc, Mutex, OnceLock, PoisonError, Weak};
use std::time::Duration;
use tokio::sync::{Notify, watch};
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
    stop: CancellationToken,
    writer: Option<JoinHandle<writer::Writer>>,
    /// The writer, while nothing is written.
    paused: Option<Box<writer::Writer>>,
}

#[derive(Debug)]
struct Shared {
    paths: PublishedPaths,
    ledger: Ledger,
    state: Mutex<ResolverState>,
    changed: Notify,
    /// Taken at start, else when the disk allows it; nothing is written without it.
    lock: OnceLock<Lock>,
    /// Whose lock it was, until this process is known as its holder.
    took_over_from: Mutex<Option<u32>>,
    /// Whether this process has published a state of its own.
    published: watch::Sender<bool>,
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
        routes::restore(&paths, &ledger);
        let shared = Shared::new(paths, ledger, lock, None);
        let mut writer = writer::Writer::new(Arc::clone(&shared));
        if shared.lock.get().is_some() {
            let PublishedPaths { state, waiting, answers, routes, .. } = &shared.paths;
            for path in [state, waiting, answers, routes] {
                disk::sweep_locked(path);
            }
            writer.publish_empty_waits();
        }
        Ok(Self::run(shared, writer))
    }

    /// Goes on for process `from`, which handed its lock over and publishes no more. What it published stays until the first
    /// [`Publisher::update`]; readers see one publisher at any moment.
    pub fn take_up(paths: PublishedPaths, ledger: Ledger, lock: Lock, from: u32) -> Self {
        routes::restore(&paths, &ledger);
        let shared = Shared::new(paths, ledger, OnceLock::from(lock), Some(from));
        let writer = writer::Writer::new(Arc::clone(&shared));
        Self::run(shared, writer)
    }

    fn run(shared: Arc<Shared>, writer: writer::Writer) -> Self {
        let stop = CancellationToken::new();
        let writer = tokio::spawn(writer.run(stop.clone()));
        Self { shared, stop, writer: Some(writer), paused: None }
    }

    /// Publishes what holds now and then nothing more, with the lock still held. `false`: the disk does not answer.
    pub async fn pause(&mut self) -> bool {
        self.stop.cancel();
        let Some(writer) = &mut self.writer else { return self.paused.is_some() };
        let Ok(stopped) = timeout(LAST_WRITE, writer).await else { return false };
        self.writer = None;
        self.paused = stopped.ok().map(Box::new);
        self.paused.is_some()
    }

    /// Publishes again after a [`Publisher::pause`]; nothing to do otherwise.
    pub fn resume(&mut self) {
        if self.paused.is_none() && !self.stop.is_cancelled() {
            return;
        }
        if let Some(stuck) = self.writer.take() {
            stuck.abort();
        }
        // A process that was to take over may have published, and written itself into the lock.
        let other = self.shared.lock.get().and_then(Lock::recorded_pid).filter(|pid| *pid != std::process::id());
        *self.shared.took_over_from.lock().unwrap_or_else(PoisonError::into_inner) = other;
        let writer = self.paused.take().map_or_else(|| writer::Writer::new(Arc::clone(&self.shared)), |writer| *writer);
        *self = Self::run(Arc::clone(&self.shared), writer.again());
    }

    /// When a state of this process is published.
    pub fn published(&self) -> Published {
        Published(self.shared.published.subscribe())
    }

    /// Changes the state; the file follows within 100 ms. `updated_at` and `pid` are set by the writer.
    pub fn update(&self, change: impl FnOnce(&mut ResolverState)) {
        change(&mut self.shared.state.lock().unwrap_or_else(PoisonError::into_inner));
        self.shared.changed.notify_one();
    }

    /// A way to list daemons that were taken over, for whoever hears of them.
    pub fn leavers(&self) -> Leavers {
        Leavers(Arc::downgrade(&self.shared))
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
        self.stop.cancel();
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

/// When a state of this process is published.
#[derive(Debug)]
pub struct Published(watch::Receiver<bool>);
impl Published {
    /// Returns once it is, or cannot be within a few seconds.
    pub async fn done(mut self) {
        // A disk that fails holds up no hand-over; the writer warns of it.
        let _ = timeout(LAST_WRITE, self.0.wait_for(|done| *done)).await;
    }
}

/// Lists the daemons that were taken over and still have streams.
#[derive(Debug, Clone)]
pub struct Leavers(Weak<Shared>);
impl Leavers {
    /// These, from now on. They are published with the first state at the earliest.
    pub fn set(&self, leaving: Vec<Leaving>) {
        // Without a publisher there is nobody to tell; the lock is not held for this.
        let Some(shared) = self.0.upgrade() else { return };
        shared.state.lock().unwrap_or_else(PoisonError::into_inner).leaving = leaving;
        if *shared.published.borrow() {
            shared.changed.notify_one();
        }
    }
}

impl Shared {
    fn new(paths: PublishedPaths, ledger: Ledger, lock: OnceLock<Lock>, took_over_from: Option<u32>) -> Arc<Self> {
        let state = ResolverState {
            pid: std::process::id(),
            started_at: Some(stamp(jiff::Timestamp::now())),
            version: Some(env!("CARGO_PKG_VERSION").to_owned()),
            state: "starting".to_owned(),
            ..ResolverState::default()
        };
        Arc::new(Self {
            paths,
            ledger,
            state: Mutex::new(state),
            changed: Notify::new(),
            lock,
            took_over_from: Mutex::new(took_over_from),
            published: watch::Sender::new(false),
        })
    }

    fn took_over_from(&self) -> Option<u32> {
        *self.took_over_from.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The state on disk names this process: the lock does so too from now on.
    fn own_lock(&self) {
        if self.took_over_from().is_some() {
            if let Some(Err(error)) = self.lock.get().map(Lock::record_pid) {
                tracing::warn!(target: "stado::fleet", "the resolver lock still names the process that handed it over: {error}");
                return;
            }
            *self.took_over_from.lock().unwrap_or_else(PoisonError::into_inner) = None;
            // The state need not say any more whose lock it was.
            self.changed.notify_one();
        }
        self.published.send_replace(true);
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

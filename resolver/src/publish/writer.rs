//! The one task that writes the published files.
use super::files::{Left, OnDisk, Round};
use super::pace::{Cause, Pace};
use super::routes::Routes;
use super::{PublishError, Shared};
use stado_fleet::disk::{DiskError, Lock, LockAttempt};
use stado_fleet::ledger::BEAT;
use std::sync::{Arc, PoisonError};
use tokio::time::{Instant, sleep_until};
use tokio_util::sync::CancellationToken;

/// Owns what is known to be on disk and the schedule of what goes there next.
#[derive(Debug)]
pub(super) struct Writer {
    shared: Arc<Shared>,
    on_disk: OnDisk,
    pace: Pace,
    /// The state is published only after somebody said something about it.
    has_state: bool,
    routine_since: Option<Instant>,
    routes: Routes,
    /// When the state is written anew although nothing changed.
    beat: Instant,
}

impl Writer {
    pub(super) fn new(shared: Arc<Shared>) -> Self {
        Self {
            shared,
            on_disk: OnDisk::default(),
            pace: Pace::default(),
            has_state: false,
            routine_since: None,
            routes: Routes::default(),
            beat: Instant::now() + BEAT,
        }
    }

    /// The waits of a former resolver must not be read as held by this one. A disk that refuses is tried again later.
    pub(super) fn publish_empty_waits(&mut self) {
        let answers = self.shared.ledger.snapshot_answers();
        let round = Round { state: None, waits: Vec::new(), answers, routes: None, routine: true };
        let result = round.write(&self.shared.paths, &mut self.on_disk);
        self.settle(result);
    }

    /// Writes until the publisher stops, and once more then.
    pub(super) async fn run(mut self, stop: CancellationToken) -> Self {
        let shared = Arc::clone(&self.shared);
        loop {
            let due = self.pace.due();
            let now = tokio::select! {
                biased;
                () = stop.cancelled() => break,
                () = sleep_until(due.unwrap_or_else(Instant::now)), if due.is_some() => {
                    self.round().await;
                    continue;
                }
                () = shared.changed.notified() => {
                    self.has_state = true;
                    Cause::State
                }
                () = shared.ledger.changed() => Cause::Ledger,
                () = shared.ledger.traffic(), if !self.routes.owed() => {
                    // The first sign of life after a pause is told soon: `connect` waits for it.
                    self.routes.touched();
                    Cause::Ledger
                }
                () = sleep_until(self.beat) => {
                    self.beat = Instant::now() + BEAT;
                    self.on_disk.state = None;
                    // Readers refuse requests while they cannot read it, so that nothing else might ever change it.
                    self.on_disk.waits = None;
                    Cause::State
                }
            };
            self.pace.wants(now, Instant::now());
        }
        self.has_state |= self.shared.took_over_from().is_none();
        self.routine_since = None;
        self.routes = Routes::default();
        self.routes.touched();
        self.round().await;
        self
    }

    /// The same writer, which writes everything anew: another process may have written meanwhile.
    pub(super) fn again(mut self) -> Self {
        self.on_disk = OnDisk::default();
        self.routes.touched();
        self.pace.wants(Cause::State, Instant::now());
        self
    }

    async fn round(&mut self) {
        let now = Instant::now();
        self.pace.writing(now);
        if !self.locked().await {
            self.pace.wants(Cause::Failure, Instant::now());
            return;
        }
        self.routes.failure(self.shared.ledger.take_failed());
        let routes = self.routes.due(now).then(|| {
            let before = self.on_disk.routes.as_deref().unwrap_or_default();
            self.routes.look(self.shared.ledger.snapshot_routes(), before, now)
        });
        let routine = self.routine_since.is_none_or(|since| now.duration_since(since) >= super::pace::ROUTINE);
        let round = Round {
            state: self.has_state.then(|| self.state()),
            waits: self.shared.ledger.snapshot_waits(),
            answers: self.shared.ledger.snapshot_answers(),
            routes,
            routine,
        };
        let shared = Arc::clone(&self.shared);
        let mut on_disk = std::mem::take(&mut self.on_disk);
        let work = move || {
            let result = round.write(&shared.paths, &mut on_disk);
            // In the same breath as the state, so that no reader finds the two apart for longer than that.
            if on_disk.state.is_some() {
                shared.own_lock();
            }
            (result, on_disk)
        };
        // A task that cannot be joined has panicked or the runtime ends: what is on disk is unknown, so all is written anew.
        if let Ok((result, on_disk)) = tokio::task::spawn_blocking(work).await {
            self.on_disk = on_disk;
            if routine {
                self.routine_since = Some(now);
            }
            self.settle(result);
        }
        if self.routes.owed() {
            self.pace.wants(Cause::Routine, Instant::now());
        }
    }

    /// Whether the files are ours to write. Without the lock nothing is: it would be read as a dead resolver's.
    async fn locked(&mut self) -> bool {
        if self.shared.lock.get().is_some() {
            return true;
        }
        let shared = Arc::clone(&self.shared);
        let tried = tokio::task::spawn_blocking(move || Lock::try_exclusive(&shared.paths.lock, true)).await;
        match tried {
            Ok(Ok(LockAttempt::Held(lock))) => {
                tracing::info!(target: "stado::fleet", "the resolver's state is published now");
                return self.shared.lock.set(lock).is_ok();
            }
            Ok(Ok(LockAttempt::Busy { pid })) if self.pace.may_warn(Instant::now()) => {
                let held = PublishError { pid, lock: self.shared.paths.lock.clone() };
                tracing::warn!(target: "stado::fleet", "the resolver's state is not published: {held}");
            }
            // Said at the start.
            _ => {}
        }
        false
    }

    fn settle(&mut self, result: Result<Left, DiskError>) {
        let now = Instant::now();
        match result {
            Ok(Left::Nothing) => {}
            Ok(Left::Routine) => self.pace.wants(Cause::Routine, now),
            Err(error) => {
                self.routes.touched();
                self.pace.wants(Cause::Failure, now);
                if self.pace.may_warn(now) {
                    tracing::warn!(target: "stado::fleet", "the resolver's published files are behind: {error}; connections are served all the same, and the write is tried again every second");
                }
            }
        }
    }

    fn state(&self) -> stado_fleet::ledger::ResolverState {
        let state = self.shared.state.lock().unwrap_or_else(PoisonError::into_inner);
        stado_fleet::ledger::ResolverState {
            pid: std::process::id(),
            updated_at: String::new(),
            took_over_from: self.shared.took_over_from(),
            ..state.clone()
        }
    }
}

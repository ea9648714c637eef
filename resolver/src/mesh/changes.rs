//! Whether this mesh may be changed now: while it is handed over, changes wait; afterwards they belong to another process.
use std::time::Duration;
use tokio::sync::watch;
use tokio::time::timeout;
use tokio_util::task::TaskTracker;
use tokio_util::task::task_tracker::TaskTrackerToken;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    Open,
    Frozen,
    Gone,
}

/// The door that every change goes through.
#[derive(Debug)]
pub(crate) struct Changes {
    state: watch::Sender<State>,
    inside: TaskTracker,
}

/// A change that is under way, while it lives.
pub(crate) type Turn = TaskTrackerToken;

/// Another process has the mesh.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct HandedOver;

impl Changes {
    pub(crate) fn new() -> Self {
        Self { state: watch::Sender::new(State::Open), inside: TaskTracker::new() }
    }

    /// Waits while changes are frozen.
    pub(crate) async fn enter(&self) -> Result<Turn, HandedOver> {
        let mut state = self.state.subscribe();
        loop {
            // The sender lives as long as `self`.
            let _ = state.wait_for(|state| *state != State::Frozen).await;
            if let Some(turn) = self.try_enter() {
                return Ok(turn);
            }
            if *self.state.borrow() == State::Gone {
                return Err(HandedOver);
            }
        }
    }

    /// A turn, if changes are allowed now.
    pub(crate) fn try_enter(&self) -> Option<Turn> {
        // First counted, then asked: whoever freezes waits for everyone that saw it open.
        let turn = self.inside.token();
        (*self.state.borrow() == State::Open).then_some(turn)
    }

    /// A turn within a turn, for work that outlives the one who asked for it.
    pub(crate) fn join(&self) -> Turn {
        self.inside.token()
    }

    /// Lets no change in and waits for those that are under way. `false`: they did not end in time, and nothing is frozen.
    pub(crate) async fn freeze(&self, patience: Duration) -> bool {
        self.state.send_replace(State::Frozen);
        self.inside.close();
        let frozen = timeout(patience, self.inside.wait()).await.is_ok();
        self.inside.reopen();
        if !frozen {
            self.state.send_replace(State::Open);
        }
        frozen
    }

    /// Allows changes again.
    pub(crate) fn thaw(&self) {
        self.state.send_replace(State::Open);
    }

    /// Whether another process has the mesh.
    pub(crate) fn is_gone(&self) -> bool {
        *self.state.borrow() == State::Gone
    }

    /// Returns once another process has the mesh.
    pub(crate) async fn gone(&self) {
        // The sender lives as long as `self`.
        let _ = self.state.subscribe().wait_for(|state| *state == State::Gone).await;
    }

    /// Sends everyone away from now on, those that wait too.
    pub(crate) fn give_away(&self) {
        self.state.send_replace(State::Gone);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;
    use tokio::time::sleep;

    const PATIENCE: Duration = Duration::from_secs(20);

    #[tokio::test(start_paused = true)]
    async fn a_freeze_waits_for_changes_under_way_and_is_given_up_when_they_do_not_end() {
        let changes = Changes::new();
        let turn = changes.enter().await.unwrap();
        assert!(!changes.freeze(PATIENCE).await);
        let more = changes.join();
        drop((turn, changes.try_enter().unwrap()));
        assert!(!changes.freeze(PATIENCE).await, "work that outlives its asker counts");
        drop(more);
        assert!(changes.freeze(PATIENCE).await && changes.try_enter().is_none());
    }

    #[tokio::test(start_paused = true)]
    async fn whoever_waits_goes_in_after_a_thaw_and_is_sent_on_after_a_hand_over() {
        for gone in [false, true] {
            let changes = Arc::new(Changes::new());
            assert!(changes.freeze(PATIENCE).await);
            let waiting = tokio::spawn({
                let changes = changes.clone();
                async move { changes.enter().await.map(drop) }
            });
            sleep(Duration::from_secs(1)).await;
            assert!(!waiting.is_finished());
            if gone {
                changes.give_away()
            } else {
                changes.thaw()
            }
            assert_eq!(waiting.await.unwrap(), if gone { Err(HandedOver) } else { Ok(()) });
        }
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 4)]
    async fn nothing_changes_while_it_is_frozen() {
        let changes = Arc::new(Changes::new());
        let busy = Arc::new(std::sync::atomic::AtomicUsize::new(0));
        let workers: Vec<_> = (0..8)
            .map(|_| {
                let (changes, busy) = (changes.clone(), busy.clone());
                tokio::spawn(async move {
                    while let Ok(turn) = changes.enter().await {
                        busy.fetch_add(1, std::sync::atomic::Ordering::SeqCst);
                        tokio::task::yield_now().await;
                        busy.fetch_sub(1, std::sync::atomic::Ordering::SeqCst);
                        drop(turn);
                        tokio::task::yield_now().await;
                    }
                })
            })
            .collect();
        for _ in 0..200 {
            assert!(changes.freeze(PATIENCE).await);
            assert_eq!(busy.load(std::sync::atomic::Ordering::SeqCst), 0);
            changes.thaw();
            tokio::task::yield_now().await;
        }
        changes.give_away();
        for worker in workers {
            worker.await.unwrap();
        }
    }
}

//! Threads that carry: each with a runtime of its own, so that what belongs together wakes no other thread while bytes move.
use super::handler::lock;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use tokio::runtime::{Builder, Handle};
use tokio_util::sync::{CancellationToken, DropGuard};

/// More threads than this only cost.
pub const MOST: usize = 16;

/// Starts a thread with a runtime; both end when `stop` is cancelled. `None` where no thread can be had.
pub fn start(name: String, stop: CancellationToken) -> Option<Handle> {
    let runtime = Builder::new_current_thread().enable_all().build().ok()?;
    let handle = runtime.handle().clone();
    let thread = std::thread::Builder::new().name(name);
    thread.spawn(move || runtime.block_on(stop.cancelled())).ok()?;
    Some(handle)
}

/// Threads that take turns, started as they are needed. Cheap to clone; they end with the last clone.
#[derive(Debug, Clone)]
pub struct Threads(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    name: &'static str,
    most: usize,
    started: Mutex<Vec<Handle>>,
    turn: AtomicUsize,
    stop: CancellationToken,
    _stop: DropGuard,
}

impl Threads {
    /// Up to `most` of them; with none, everything stays in the runtime that asks.
    pub fn new(name: &'static str, most: usize) -> Self {
        let stop = CancellationToken::new();
        let (started, turn, _stop) = (Mutex::default(), AtomicUsize::new(0), stop.clone().drop_guard());
        Self(Arc::new(Inner { name, most: most.min(MOST), started, turn, stop, _stop }))
    }

    /// One for each processor.
    pub fn for_each_processor(name: &'static str) -> Self {
        Self::new(name, std::thread::available_parallelism().map_or(1, usize::from))
    }

    /// Whose turn it is.
    pub fn turn(&self) -> usize {
        self.0.turn.fetch_add(1, Ordering::Relaxed)
    }

    /// The runtime of a turn; `None` where there is no thread for it.
    pub fn of(&self, turn: usize) -> Option<Handle> {
        let at = turn.checked_rem(self.0.most)?;
        let mut started = lock(&self.0.started);
        while started.len() <= at {
            let name = format!("{}-{}", self.0.name, started.len());
            started.push(start(name, self.0.stop.clone())?);
        }
        started.get(at).cloned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn thread() -> Option<String> {
        std::thread::current().name().map(str::to_owned)
    }

    #[tokio::test]
    async fn a_turn_is_always_the_same_thread_and_none_starts_before_its_turn() {
        let threads = Threads::new("t", 2);
        assert_eq!(lock(&threads.0.started).len(), 0);
        for (turn, name) in [(0, "t-0"), (2, "t-0"), (1, "t-1"), (3, "t-1")] {
            assert_eq!(threads.of(turn).unwrap().spawn(thread()).await.unwrap().unwrap(), name);
        }
        assert_eq!(lock(&threads.0.started).len(), 2);
        assert!(Threads::new("none", 0).of(0).is_none());
    }

    #[test]
    fn they_end_with_the_last_clone() {
        let threads = Threads::new("t", 1);
        let (ended, seen) = std::sync::mpsc::channel::<()>();
        threads.of(0).unwrap().spawn(async move {
            let _ended = ended;
            std::future::pending::<()>().await;
        });
        drop(threads);
        // The sender is dropped with the runtime that held its task.
        let patience = std::time::Duration::from_secs(20);
        assert_eq!(seen.recv_timeout(patience), Err(std::sync::mpsc::RecvTimeoutError::Disconnected));
    }
}

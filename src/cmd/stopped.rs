//! Verbs that serve until they are told to stop, and those that may wait for long.
use crate::exit::Failure;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use tokio::signal::unix::{SignalKind, signal};

/// How long work that is not wanted any more may take to see it.
const SEEN: Duration = Duration::from_secs(1);

/// Returns at the first SIGINT or SIGTERM.
pub(crate) async fn until_stopped() -> Result<(), Failure> {
    let listen = |kind| signal(kind).map_err(|e| Failure::here(format!("cannot listen for signals: {e}")));
    let (mut interrupt, mut terminate) = (listen(SignalKind::interrupt())?, listen(SignalKind::terminate())?);
    tokio::select! {
        _ = interrupt.recv() => {}
        _ = terminate.recv() => {}
    }
    Ok(())
}

/// Whether work is still wanted.
#[derive(Debug, Clone, Default)]
pub(crate) struct Wanted(Arc<AtomicBool>);

impl Wanted {
    /// Whether nobody has asked for a stop.
    pub(crate) fn still(&self) -> bool {
        !self.0.load(Ordering::Relaxed)
    }
}

/// Does what may block for long (a program, a lock, a pipe) on a thread of its own. The first SIGINT or SIGTERM ends the verb;
/// the work sees that it is not wanted any more and ends what it has started.
pub(crate) async fn unless_stopped<T: Send + 'static>(
    work: impl FnOnce(&Wanted) -> Result<T, Failure> + Send + 'static,
) -> Result<T, Failure> {
    let wanted = Wanted::default();
    let seen = wanted.clone();
    let mut working = tokio::task::spawn_blocking(move || work(&seen));
    tokio::select! {
        done = &mut working => done.unwrap_or_else(|e| Err(Failure::here(e.to_string()))),
        stopped = until_stopped() => {
            stopped?;
            wanted.0.store(true, Ordering::Relaxed);
            // A lock or a pipe it may stand on for ever; they end with the process.
            let _ = tokio::time::timeout(SEEN, working).await;
            Err(Failure::here("stopped by a signal"))
        }
    }
}

//! The two stages of an end (design, rule 9).
use tokio_util::sync::CancellationToken;

/// Asks a running daemon to end: first by draining, then at once. Cheap to clone; all clones speak of one daemon.
#[derive(Debug, Clone, Default)]
pub struct Shutdown {
    drain: CancellationToken,
    now: CancellationToken,
    left: CancellationToken,
}

impl Shutdown {
    /// Nothing asked yet.
    pub fn new() -> Self {
        Self::default()
    }
    /// The first signal asks to drain, the second one to end now.
    pub fn signal(&self) {
        if self.drain.is_cancelled() { self.now.cancel() } else { self.drain.cancel() }
    }
    /// Asks to stop accepting and to end as soon as open streams end.
    pub fn drain(&self) {
        self.drain.cancel();
    }
    /// Asks to end now, whatever is open.
    pub fn end_now(&self) {
        self.drain.cancel();
        self.now.cancel();
    }
    /// Whether draining was asked for.
    pub fn is_draining(&self) -> bool {
        self.drain.is_cancelled()
    }
    /// Another process has taken this daemon over; what is left are streams.
    pub(super) fn leave(&self) {
        self.left.cancel();
    }
    /// Whether another process has taken this daemon over.
    pub fn has_left(&self) -> bool {
        self.left.is_cancelled()
    }
    /// Resolves when draining was asked for.
    pub async fn draining(&self) {
        self.drain.cancelled().await;
    }
    /// Resolves when the end was asked for at once.
    pub async fn ending_now(&self) {
        self.now.cancelled().await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn the_first_signal_drains_and_the_second_ends_now() {
        let shutdown = Shutdown::new();
        let other = shutdown.clone();
        other.signal();
        shutdown.draining().await;
        assert!(!shutdown.now.is_cancelled());
        other.signal();
        shutdown.ending_now().await;
    }
}

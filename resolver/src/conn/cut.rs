//! The end of all connections of a frontend at once.
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll};
use tokio_util::sync::{CancellationToken, WaitForCancellationFuture};

/// A token that connections run under. They are woken for every message, so they look at a flag, not at the token's locks.
#[derive(Debug, Default)]
pub(super) struct Cut {
    now: AtomicBool,
    token: CancellationToken,
}

impl Cut {
    /// Ends what runs under it.
    pub(super) fn cut(&self) {
        self.now.store(true, Ordering::Release);
        self.token.cancel();
    }

    /// What a connection's task keeps pinned beside its work.
    pub(super) fn watch(&self) -> WaitForCancellationFuture<'_> {
        self.token.cancelled()
    }

    /// Ready when it is cut. `watch` leaves the task's waker with the token in the first poll; a task's waker stays the same
    /// one, so later polls only look at the flag.
    pub(super) fn poll(
        &self,
        watch: Pin<&mut WaitForCancellationFuture<'_>>,
        watched: &mut bool,
        cx: &mut Context<'_>,
    ) -> Poll<()> {
        let now = self.now.load(Ordering::Acquire);
        if now || (!std::mem::replace(watched, true) && watch.poll(cx).is_ready()) {
            return Poll::Ready(());
        }
        Poll::Pending
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::future::poll_fn;
    use std::pin::pin;
    use std::sync::Arc;

    async fn until_cut(cut: Arc<Cut>) {
        let (mut watch, mut watched) = (pin!(cut.watch()), false);
        poll_fn(|cx| cut.poll(watch.as_mut(), &mut watched, cx)).await;
    }

    #[tokio::test]
    async fn a_cut_wakes_who_sleeps_and_is_seen_by_who_comes_later() {
        let cut = Arc::new(Cut::default());
        let sleeping = tokio::spawn(until_cut(Arc::clone(&cut)));
        tokio::task::yield_now().await;
        assert!(!sleeping.is_finished());
        cut.cut();
        sleeping.await.unwrap();
        until_cut(cut).await;
    }
}

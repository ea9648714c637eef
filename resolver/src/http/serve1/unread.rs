//! How long a client may leave an answer unread: whoever takes nothing of it must not hold its backend for ever.
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;
use tokio::time::{Instant, Sleep, sleep_until};

/// Since when nothing was taken of an answer that waits for its client.
#[derive(Default)]
pub(super) struct Unread {
    /// Bytes that the client has taken, and when that was found.
    seen: Option<(u64, Instant)>,
    /// Set up once: answers that wait often must not cost a timer each time.
    alarm: Option<Pin<Box<Sleep>>>,
}

impl Unread {
    /// The answer does not wait for the client.
    pub(super) fn read(&mut self) {
        self.seen = None;
    }

    /// It does, and the client has taken `given` bytes so far. Ready when that number has not changed for `limit`.
    pub(super) fn poll(&mut self, cx: &mut Context<'_>, given: u64, limit: Duration) -> Poll<()> {
        let since = match self.seen {
            Some((seen, since)) if seen == given => since,
            _ => {
                let now = Instant::now();
                self.seen = Some((given, now));
                now
            }
        };
        let end = since + limit;
        let alarm = self.alarm.get_or_insert_with(|| Box::pin(sleep_until(end)));
        loop {
            ready!(alarm.as_mut().poll(cx));
            if alarm.deadline() >= end {
                return Poll::Ready(());
            }
            alarm.as_mut().reset(end);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::task::Waker;
    use tokio::time::advance;

    #[tokio::test(start_paused = true)]
    async fn whoever_takes_a_byte_now_and_then_is_waited_for_and_whoever_takes_none_is_not() {
        let mut cx = Context::from_waker(Waker::noop());
        let (mut unread, limit) = (Unread::default(), Duration::from_secs(10));
        for given in 0..20 {
            assert!(unread.poll(&mut cx, given, limit).is_pending(), "{given}");
            advance(Duration::from_secs(9)).await;
        }
        assert!(unread.poll(&mut cx, 19, limit).is_pending());
        unread.read();
        advance(Duration::from_secs(100)).await;
        assert!(unread.poll(&mut cx, 19, limit).is_pending(), "nothing waited for it meanwhile");
        advance(Duration::from_secs(11)).await;
        assert!(unread.poll(&mut cx, 19, limit).is_ready());
    }
}

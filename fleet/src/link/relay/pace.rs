//! Bulk beside small messages. What has been written to a multiplex is one queue: a small message waits behind all bulk that
//! is in it. So while small messages are sent, bulk is let in no faster than the other end shows, by answering pings, that it
//! has taken what came before. Bulk alone is never held back.
use crate::link::distance::NEAR;
use crate::link::handler::lock;
use futures_util::task::AtomicWaker;
use std::sync::Mutex;
use std::task::{Context, Poll, Waker};
use std::time::{Duration, Instant};

/// A piece of a small message.
const SMALL: usize = 1024;
/// How long after one the next is expected.
const BESIDE: Duration = Duration::from_millis(50);
/// Bulk that is let in before the last ping is answered.
const MOST: usize = 128 * 1024;

/// Shared by the driver of one end of a multiplex and the streams that send from there.
#[derive(Debug, Default)]
pub(super) struct Pace {
    inner: Mutex<Inner>,
    driver: AtomicWaker,
}

#[derive(Debug, Default)]
struct Inner {
    /// When a small message was sent last.
    small: Option<Instant>,
    /// Bulk that was let in since a ping was answered.
    sent: usize,
    ping: Ping,
    /// Nothing is held back: the other end is not near, so that what is on its way must fill the way, or it is gone.
    free: bool,
    waiting: Vec<Waker>,
}

#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
enum Ping {
    #[default]
    None,
    Wanted,
    Sent,
}

/// What a stream has sent lately.
#[derive(Debug, Default)]
pub(super) struct Gait {
    /// Its last piece was small: two in a row are messages, one may be the rest of something large.
    small: bool,
}

impl Pace {
    /// Lets a piece of `n` bytes in, or wakes the stream once it may ask again.
    pub(super) fn poll_enter(&self, cx: &Context<'_>, gait: &mut Gait, n: usize, now: Instant) -> Poll<()> {
        if n <= SMALL {
            if std::mem::replace(&mut gait.small, true) {
                lock(&self.inner).small = Some(now);
            }
            return Poll::Ready(());
        }
        gait.small = false;
        let mut inner = lock(&self.inner);
        if inner.free || inner.small.is_none_or(|small| now.saturating_duration_since(small) > BESIDE) {
            return Poll::Ready(());
        }
        if inner.sent >= MOST && inner.ping != Ping::None {
            inner.waiting.push(cx.waker().clone());
            return Poll::Pending;
        }
        inner.sent += n;
        if inner.ping == Ping::None {
            inner.ping = Ping::Wanted;
            drop(inner);
            self.driver.wake();
        }
        Poll::Ready(())
    }

    /// For the driver: whether a ping is to be sent. It is woken when one is.
    pub(super) fn poll_wanted(&self, cx: &Context<'_>) -> bool {
        self.driver.register(cx.waker());
        let mut inner = lock(&self.inner);
        let wanted = inner.ping == Ping::Wanted;
        if wanted {
            inner.ping = Ping::Sent;
        }
        wanted
    }

    /// A ping was answered: what was written before it has arrived. `best`: the shortest round trip so far.
    pub(super) fn answered(&self, best: Duration) {
        self.go_on(best >= NEAR);
    }

    /// No ping will be answered any more.
    pub(super) fn over(&self) {
        self.go_on(true);
    }

    fn go_on(&self, free: bool) {
        let waiting = {
            let mut inner = lock(&self.inner);
            // Who waits asks for the next ping.
            (inner.sent, inner.ping, inner.free) = (0, Ping::None, free);
            std::mem::take(&mut inner.waiting)
        };
        waiting.into_iter().for_each(Waker::wake);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PIECE: usize = 64 * 1024;
    const NEARBY: Duration = Duration::from_micros(300);

    struct Scene {
        pace: Pace,
        messages: Gait,
        bulk: Gait,
        now: Instant,
    }
    impl Scene {
        fn new() -> Self {
            Self { pace: Pace::default(), messages: Gait::default(), bulk: Gait::default(), now: Instant::now() }
        }
        fn says(&mut self, n: usize) -> bool {
            self.pace.poll_enter(&Context::from_waker(Waker::noop()), &mut self.messages, n, self.now).is_ready()
        }
        fn sends(&mut self) -> bool {
            self.pace.poll_enter(&Context::from_waker(Waker::noop()), &mut self.bulk, PIECE, self.now).is_ready()
        }
        fn pings(&self) -> bool {
            self.pace.poll_wanted(&Context::from_waker(Waker::noop()))
        }
    }

    #[test]
    fn bulk_alone_and_the_small_rest_of_something_large_hold_nothing_back_and_cost_no_ping() {
        let mut scene = Scene::new();
        assert!(scene.says(10));
        assert!((0..1000).all(|_| scene.sends()));
        assert!(!scene.pings());
    }

    #[test]
    fn beside_messages_bulk_waits_for_pings_and_messages_never() {
        let mut scene = Scene::new();
        assert!(scene.says(64) && scene.says(64));
        for _ in 0..3 {
            assert!(scene.sends());
            assert!(scene.pings() && !scene.pings());
            assert!(scene.sends() && !scene.sends() && !scene.sends());
            assert!(scene.says(64));
            assert_eq!(lock(&scene.pace.inner).waiting.len(), 2);
            scene.pace.answered(NEARBY);
            assert_eq!(lock(&scene.pace.inner).waiting.len(), 0);
        }
    }

    #[test]
    fn bulk_goes_free_again_once_no_message_has_been_sent_for_a_while() {
        let mut scene = Scene::new();
        assert!(scene.says(64) && scene.says(64));
        assert!(scene.sends() && scene.sends() && !scene.sends());
        scene.now += BESIDE * 2;
        assert!((0..1000).all(|_| scene.sends()));
    }

    #[test]
    fn a_host_that_is_far_is_not_kept_waiting() {
        let mut scene = Scene::new();
        scene.pace.answered(Duration::from_millis(20));
        assert!(scene.says(64) && scene.says(64));
        assert!((0..1000).all(|_| scene.sends()));
    }

    #[test]
    fn who_waits_for_an_end_that_is_gone_goes_on_and_learns_it_elsewhere() {
        let mut scene = Scene::new();
        assert!(scene.says(64) && scene.says(64));
        assert!(scene.sends() && scene.sends() && !scene.sends());
        scene.pace.over();
        assert_eq!(lock(&scene.pace.inner).waiting.len(), 0);
        assert!((0..1000).all(|_| scene.sends()));
    }
}

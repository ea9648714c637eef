//! Runs the two directions of a connection on its two ends.
use super::direction::{Direction, Fault};
use super::pipe::Pipes;
use super::side::Side;
use crate::conn::ledger::{Entry, Seen};
use std::future::poll_fn;
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;
use tokio::time::{Instant, Sleep, sleep_until};

/// Which end broke, and how.
#[derive(Debug)]
pub(super) enum Broken {
    /// The client's.
    Client,
    /// The service's.
    Service(io::Error),
}

/// How a relay ended.
#[derive(Debug)]
pub(super) enum Ending {
    /// Both directions ended in order.
    Done,
    /// One end broke; the other is reset.
    Broken(Broken),
    /// Half-closed, and silent past the deadline.
    Lingered,
}

/// Two ends and the two directions between them.
pub(super) struct Relay<C, S> {
    client: C,
    service: S,
    up: Direction,
    down: Direction,
    linger: Duration,
    /// When bytes last moved on a half-closed pair, and the alarm that asks.
    moved: bool,
    alarm: Option<Pin<Box<Sleep>>>,
    /// Asks once in a while whether pipes are still worth having.
    rest: Option<Pin<Box<Sleep>>>,
    down_first: bool,
}

/// How long a direction keeps its pipe without bulk.
const REST: Duration = Duration::from_secs(1);

impl<C: Side, S: Side> Relay<C, S> {
    pub(super) fn new(client: C, service: S, early: Vec<u8>, linger: Duration, pipes: &Pipes) -> Self {
        let pipes = (client.splices() && service.splices()).then_some(pipes);
        let (up, down) = (Direction::new(early, pipes), Direction::new(Vec::new(), pipes));
        Self { client, service, up, down, linger, moved: false, alarm: None, rest: None, down_first: false }
    }

    /// Runs to the end. Dropped before it, both ends are reset.
    pub(super) async fn run(&mut self, entry: &mut Entry) -> Ending {
        if !self.up.parked().is_empty() {
            entry.up(Seen::Bytes(self.up.parked()));
        }
        let ending = poll_fn(|cx| self.poll(cx, entry)).await;
        if matches!(ending, Ending::Done) {
            self.client.settle();
            self.service.settle();
        }
        ending
    }

    fn poll(&mut self, cx: &mut Context<'_>, entry: &mut Entry) -> Poll<Ending> {
        // Each direction gets the first turn in every other poll: one that never rests must not starve the other.
        self.down_first = !self.down_first;
        let turns = if self.down_first { [Self::poll_down, Self::poll_up] } else { [Self::poll_up, Self::poll_down] };
        for turn in turns {
            if let Poll::Ready(Err(broken)) = turn(self, cx, entry) {
                return Poll::Ready(Ending::Broken(broken));
            }
        }
        let (up_done, down_done) = (self.up.is_done(), self.down.is_done());
        if up_done && down_done {
            return Poll::Ready(Ending::Done);
        }
        if (up_done || down_done) && self.poll_silence(cx).is_ready() {
            return Poll::Ready(Ending::Lingered);
        }
        self.poll_rest(cx);
        self.poll_breaks(cx).map(Ending::Broken)
    }

    fn poll_up(&mut self, cx: &mut Context<'_>, entry: &mut Entry) -> Poll<Result<(), Broken>> {
        let ended_before = self.up.source_ended();
        let moved = &mut self.moved;
        let note = |seen: Seen<'_>| {
            *moved = true;
            entry.up(seen);
        };
        let result = self.up.poll(cx, &mut self.client, &mut self.service, self.down.is_done(), note);
        if !ended_before && self.up.source_ended() {
            entry.client_ended();
        }
        if entry.awaits_answer() {
            // The ledger wants to see how the answer begins.
            self.down.look_again();
        }
        if entry.expects_requests() {
            self.up.look_again_when_idle();
        }
        result.map_err(|fault| match fault {
            Fault::Source(_) => Broken::Client,
            Fault::Destination(error) => Broken::Service(error),
        })
    }

    fn poll_down(&mut self, cx: &mut Context<'_>, entry: &mut Entry) -> Poll<Result<(), Broken>> {
        let moved = &mut self.moved;
        let note = |seen: Seen<'_>| {
            *moved = true;
            entry.down(seen);
        };
        self.down.poll(cx, &mut self.service, &mut self.client, self.up.is_done(), note).map_err(|fault| match fault {
            Fault::Source(error) => Broken::Service(error),
            Fault::Destination(_) => Broken::Client,
        })
    }

    /// An end that is not being read breaks unnoticed: it is watched for that alone.
    fn poll_breaks(&mut self, cx: &mut Context<'_>) -> Poll<Broken> {
        if self.up.looks_away() && self.client.poll_broken(cx).is_ready() {
            return Poll::Ready(Broken::Client);
        }
        if self.down.looks_away()
            && let Poll::Ready(error) = self.service.poll_broken(cx)
        {
            return Poll::Ready(Broken::Service(error));
        }
        Poll::Pending
    }

    /// Ready when a half-closed pair has been silent for the linger deadline. The alarm is set once and asks, when it rings,
    /// whether a byte moved since, so that a busy half does not reset a timer with every byte.
    fn poll_silence(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        loop {
            let linger = self.linger;
            let alarm = self.alarm.get_or_insert_with(|| Box::pin(sleep_until(Instant::now() + linger)));
            ready!(alarm.as_mut().poll(cx));
            // What a slow reader takes of what is held for it is a byte too.
            let (up, down) = (self.up.gave(), self.down.gave());
            if !(std::mem::take(&mut self.moved) || up || down) {
                return Poll::Ready(());
            }
            alarm.as_mut().reset(Instant::now() + linger);
        }
    }

    /// Gives pipes back that were not needed since the last look.
    fn poll_rest(&mut self, cx: &mut Context<'_>) {
        while self.up.has_pipe() || self.down.has_pipe() {
            let rest = self.rest.get_or_insert_with(|| Box::pin(sleep_until(Instant::now() + REST)));
            if rest.as_mut().poll(cx).is_pending() {
                return;
            }
            rest.as_mut().reset(Instant::now() + REST);
            self.up.rest();
            self.down.rest();
        }
        self.rest = None;
    }
}

#[cfg(test)]
mod tests {
    use super::super::pipe::Pipe;
    use super::*;
    use crate::conn::ledger::Ledger;
    use crate::conn::{Backend, Descriptors, FrontendId};
    use std::sync::Arc;
    use tokio::time::sleep;

    const LINGER: Duration = Duration::from_secs(100);

    /// A client that has ended its stream and takes ten bytes now and then.
    #[derive(Default)]
    struct Slow {
        taken: usize,
        pause: Option<Pin<Box<Sleep>>>,
    }
    /// A service that says a hundred bytes at once and then nothing.
    #[derive(Default)]
    struct Brief {
        said: bool,
    }

    macro_rules! idle {
        () => {
            fn poll_flush(&mut self, _: &mut Context<'_>) -> Poll<io::Result<()>> {
                Poll::Ready(Ok(()))
            }
            fn poll_shutdown(&mut self, _: &mut Context<'_>, _: bool) -> Poll<io::Result<()>> {
                Poll::Ready(Ok(()))
            }
            fn poll_broken(&mut self, _: &mut Context<'_>) -> Poll<io::Error> {
                Poll::Pending
            }
            fn settle(&mut self) {}
            fn poll_fill(&mut self, _: &mut Context<'_>, _: &Pipe) -> Poll<io::Result<usize>> {
                Poll::Pending
            }
        };
    }
    impl Side for Slow {
        fn poll_read(&mut self, _: &mut Context<'_>, _: &mut [u8]) -> Poll<io::Result<usize>> {
            Poll::Ready(Ok(0))
        }
        fn poll_write(&mut self, cx: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
            let pause = self.pause.get_or_insert_with(|| Box::pin(sleep(LINGER * 3 / 4)));
            ready!(pause.as_mut().poll(cx));
            self.pause = None;
            let n = buf.len().min(10);
            self.taken += n;
            Poll::Ready(Ok(n))
        }
        idle!();
    }
    impl Side for Brief {
        fn poll_read(&mut self, _: &mut Context<'_>, buf: &mut [u8]) -> Poll<io::Result<usize>> {
            match std::mem::replace(&mut self.said, true) {
                false => Poll::Ready(Ok(buf.len().min(100))),
                true => Poll::Pending,
            }
        }
        fn poll_write(&mut self, _: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
            Poll::Ready(Ok(buf.len()))
        }
        idle!();
    }

    #[tokio::test(start_paused = true)]
    async fn a_slow_reader_of_what_is_held_for_it_is_no_silence() {
        let ledger = Ledger::new();
        let id = Arc::new(FrontendId { service: "s".into(), consumer: None, bind: "127.0.0.1:1".parse().unwrap() });
        let (slot, peer) = (ledger.slot(&id), "127.0.0.1:2".parse().unwrap());
        let backend = Backend::Local("127.0.0.1:3".parse().unwrap());
        let mut entry = Entry::open(&ledger, &slot, &id, &backend, peer, 1).unwrap();
        let pipes = Pipes::new(&Arc::<Descriptors>::default());
        let mut relay = Relay::new(Slow::default(), Brief::default(), Vec::new(), LINGER, &pipes);
        let ending = relay.run(&mut entry).await;
        assert!(matches!(ending, Ending::Lingered), "{ending:?}");
        assert_eq!(relay.client.taken, 100, "all of it was taken, each piece in time");
    }
}

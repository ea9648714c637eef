//! What the driver of a multiplex and its streams share: how many there are, to where, and whether the other end lives.
use super::near::Multiplex;
use super::pace::Pace;
use crate::link::handler::lock;
use futures_util::task::AtomicWaker;
use std::collections::HashMap;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::task::Context;
use std::time::{Duration, Instant};
use tokio_util::sync::CancellationToken;

/// Between two looks at whether anything came.
const LOOK: Duration = Duration::from_millis(20);

#[derive(Debug)]
pub(super) struct Facts {
    load: Mutex<Load>,
    /// Microseconds; 0 before the first answer.
    pub(super) rtt: AtomicU64,
    pub(super) ended: CancellationToken,
    pub(super) why: Mutex<Option<String>>,
    /// Bytes that came from the other end.
    received: Arc<AtomicU64>,
    /// Whether a ping is wanted, and who is to send it.
    asked: AtomicBool,
    driver: AtomicWaker,
    pub(super) pace: Pace,
}

#[derive(Debug)]
struct Load {
    streams: usize,
    to: HashMap<SocketAddr, usize>,
    idle_since: Instant,
}

impl Facts {
    pub(super) fn new(received: Arc<AtomicU64>) -> Self {
        Self {
            load: Mutex::new(Load { streams: 0, to: HashMap::new(), idle_since: Instant::now() }),
            rtt: AtomicU64::new(0),
            ended: CancellationToken::new(),
            why: Mutex::default(),
            received,
            asked: AtomicBool::new(false),
            driver: AtomicWaker::new(),
            pace: Pace::default(),
        }
    }

    /// Bytes that came from the other end so far.
    pub(super) fn received(&self) -> u64 {
        self.received.load(Ordering::Relaxed)
    }

    /// Asks the other end for a sign of life; whether anything came within `limit`.
    pub(super) async fn probe(&self, limit: Duration) -> bool {
        let before = self.received();
        self.asked.store(true, Ordering::Release);
        self.driver.wake();
        let until = tokio::time::Instant::now() + limit;
        while tokio::time::Instant::now() < until && !self.ended.is_cancelled() {
            if self.received() > before {
                return true;
            }
            tokio::time::sleep(LOOK).await;
        }
        self.received() > before
    }

    /// For the driver: whether somebody wants a ping. It is woken when somebody does.
    pub(super) fn poll_asked(&self, cx: &Context<'_>) -> bool {
        self.driver.register(cx.waker());
        self.asked.swap(false, Ordering::Acquire)
    }

    pub(super) fn streams(&self) -> usize {
        lock(&self.load).streams
    }

    /// Streams to one endpoint that are open or opening.
    pub(super) fn streams_to(&self, endpoint: SocketAddr) -> usize {
        lock(&self.load).to.get(&endpoint).copied().unwrap_or(0)
    }

    /// How long there has been no stream; `None` while there is one.
    pub(super) fn idle(&self) -> Option<Duration> {
        let load = lock(&self.load);
        (load.streams == 0).then(|| load.idle_since.elapsed())
    }
}

/// Counts a stream while it lives, and keeps its multiplex.
pub(super) struct Guard {
    multiplex: Arc<Multiplex>,
    endpoint: SocketAddr,
}

impl Guard {
    pub(super) fn new(multiplex: Arc<Multiplex>, endpoint: SocketAddr) -> Self {
        {
            let mut load = lock(&multiplex.facts.load);
            load.streams += 1;
            *load.to.entry(endpoint).or_default() += 1;
        }
        Self { multiplex, endpoint }
    }

    pub(super) fn lost(&self) -> String {
        self.multiplex.lost()
    }

    pub(super) fn pace(&self) -> &Pace {
        &self.multiplex.facts.pace
    }
}

impl Drop for Guard {
    fn drop(&mut self) {
        let mut load = lock(&self.multiplex.facts.load);
        load.streams = load.streams.saturating_sub(1);
        load.idle_since = Instant::now();
        if let Some(count) = load.to.get_mut(&self.endpoint) {
            *count = count.saturating_sub(1);
            if *count == 0 {
                load.to.remove(&self.endpoint);
            }
        }
    }
}

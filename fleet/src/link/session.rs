//! One SSH session that stands: who uses it, whether it lives, how it ends.
use super::config::Timing;
use super::error::seconds;
use super::handler::{Facts, Watcher, lock};
use super::liveness::Heard;
use super::stream::Carrier;
use super::transport::Cord;
use crate::name::{ConnectionPath, SshDestination};
use russh::client::Handle;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};
use tokio::sync::OnceCell;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

/// Channels closed by us before the peer closed them stay in russh's table (3.3 KiB each); past this many the session
/// takes no new channels and ends with its last one.
pub(super) const FORCED_CLOSES: usize = 512;

/// An authenticated session. Everything about its users is in `load`.
pub(super) struct Session {
    pub(super) handle: Handle<Watcher>,
    pub(super) facts: Arc<Facts>,
    pub(super) heard: Arc<Heard>,
    /// Told once, when it takes no new channels any more.
    pub(super) retired: CancellationToken,
    /// Path that carries it.
    pub(super) path: String,
    /// Destination as declared, for sentences.
    pub(super) destination: SshDestination,
    /// Receive window of each of its channels.
    pub(super) window: u32,
    /// Measured once somebody needs to know; `None` inside when it did not answer.
    pub(super) rtt: OnceCell<Option<Duration>>,
    cord: Cord,
    load: Mutex<Load>,
    forced: AtomicUsize,
    since: Instant,
}

#[derive(Debug)]
struct Load {
    /// Channels open or opening.
    channels: usize,
    /// The only stream's reader is behind, so its channel is not read (see `hold`).
    held: bool,
    /// Takes no new channels.
    retired: bool,
    /// This side ends it.
    closed_here: bool,
    idle_since: Instant,
}

/// A session takes no new channels past this age. russh is told never to start a rekey, so keys are renewed by renewing
/// sessions wherever the other side starts none either.
const MAX_AGE: Duration = Duration::from_secs(12 * 3600);

impl std::fmt::Debug for Session {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Session").field("path", &self.path).field("load", &self.load).finish_non_exhaustive()
    }
}

impl Session {
    pub(super) fn new(
        handle: Handle<Watcher>,
        facts: Arc<Facts>,
        heard: Arc<Heard>,
        cord: Cord,
        path: &ConnectionPath,
        window: u32,
    ) -> Self {
        let load = Load { channels: 0, held: false, retired: false, closed_here: false, idle_since: Instant::now() };
        Self {
            handle,
            facts,
            heard,
            retired: CancellationToken::new(),
            path: path.name.clone(),
            destination: path.destination.clone(),
            window,
            rtt: OnceCell::new(),
            cord,
            load: Mutex::new(load),
            forced: AtomicUsize::new(0),
            since: Instant::now(),
        }
    }

    /// Reserves a place for one channel, unless the session has ended or takes no more.
    pub(super) fn enter(self: &Arc<Self>) -> Option<Seat> {
        let mut load = lock(&self.load);
        if load.held || load.retired || self.since.elapsed() > MAX_AGE || self.has_ended() {
            return None;
        }
        load.channels += 1;
        Some(Seat { session: self.clone() })
    }

    /// Whether no channel can be opened any more.
    pub(super) fn has_ended(&self) -> bool {
        self.handle.is_closed() || self.facts.end.is_cancelled()
    }

    /// Takes no new channels; ends with its last one.
    pub(super) fn retire(&self) {
        lock(&self.load).retired = true;
        self.retired.cancel();
    }

    /// Whether any sign of life comes within `deadline`.
    pub(super) async fn probe(&self, deadline: Duration) -> bool {
        let before = self.heard.bytes();
        let answered = matches!(timeout(deadline, self.handle.send_ping()).await, Ok(Ok(())));
        (answered || self.heard.bytes() > before) && !self.has_ended()
    }

    /// Waits for what the host shall answer; `None` when the session turns out to be dead meanwhile. The host is asked for a
    /// sign of life when nothing at all has come for a while.
    pub(super) async fn answers<T>(&self, timing: &Timing, answer: impl Future<Output = T>) -> Option<T> {
        tokio::pin!(answer);
        loop {
            let before = self.heard.bytes();
            if let Ok(answer) = timeout(timing.probe, &mut answer).await {
                return Some(answer);
            }
            if self.heard.bytes() > before {
                continue;
            }
            tokio::select! {
                answer = &mut answer => return Some(answer),
                alive = self.probe(timing.probe) => if !alive { return None },
            }
        }
    }

    /// The sentence for a session that gave no sign of life when asked.
    pub(super) fn mute(&self) -> String {
        let silent = Duration::from_secs(self.heard.silent_for().as_secs());
        format!(
            "the SSH session to {} was lost: the host gave no sign of life for {}",
            self.destination,
            seconds(silent)
        )
    }

    /// How long no channel has been open; `None` while one is.
    pub(super) fn idle(&self) -> Option<Duration> {
        let load = lock(&self.load);
        (load.channels == 0).then(|| load.idle_since.elapsed())
    }

    /// Whether it ended, and not because this side closed it.
    pub(super) fn ended_by_itself(&self) -> bool {
        self.has_ended() && !lock(&self.load).closed_here
    }

    /// Ends the session now, whatever its task is doing.
    pub(super) fn cut(&self, why: &str) {
        self.retire();
        self.facts.end_with(why);
        self.cord.cut();
    }

    /// Says goodbye, then ends the session.
    pub(super) async fn close(&self) {
        self.retire();
        lock(&self.load).closed_here = true;
        let goodbye = self.handle.disconnect(russh::Disconnect::ByApplication, "", "");
        let _ = timeout(Duration::from_millis(200), goodbye).await;
        let ended = self.facts.end.cancelled();
        let _ = timeout(Duration::from_millis(300), ended).await;
        self.cut("it was closed here");
    }

    /// The sentence for streams that a lost session takes with it.
    pub(super) fn lost(&self) -> String {
        let why = self.facts.ended().unwrap_or_else(|| "it ended".into());
        format!("the SSH session to {} was lost: {why}", self.destination)
    }
}

/// A channel's place in its session; given back on drop.
#[derive(Debug)]
pub(super) struct Seat {
    pub(super) session: Arc<Session>,
}

impl Carrier for Seat {
    fn hold(&self) -> bool {
        let mut load = lock(&self.session.load);
        load.held = load.channels == 1;
        load.held
    }

    /// Until then the session takes no other channel.
    fn resume(&self) {
        lock(&self.session.load).held = false;
    }

    fn closed_first(&self) {
        if self.session.forced.fetch_add(1, Ordering::Relaxed) + 1 >= FORCED_CLOSES {
            self.session.retire();
        }
    }

    /// As OpenSSH's client does.
    fn closes(&self) -> bool {
        false
    }

    fn lost(&self) -> String {
        self.session.lost()
    }
}

impl Drop for Seat {
    fn drop(&mut self) {
        let mut load = lock(&self.session.load);
        load.channels = load.channels.saturating_sub(1);
        load.held = false;
        load.idle_since = Instant::now();
        if load.channels == 0 && load.retired {
            load.closed_here = true;
            self.session.cord.cut();
        }
    }
}

//! What the data path may take of the system: descriptors, of which it leaves a reserve alone so that the control socket still
//! answers when they run out (proxy rule 7), and pipes.
use std::os::fd::{AsFd, AsRawFd};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// The descriptors that the data path holds, of how many it may.
#[derive(Debug)]
pub struct Descriptors {
    /// What it may hold together with everything that was open before it.
    ceiling: usize,
    /// What was open before it.
    before: usize,
    held: AtomicUsize,
    /// Accept loops that wait for descriptors.
    waiting: AtomicUsize,
    pipe_bytes: AtomicUsize,
    said: Mutex<Option<Instant>>,
}

impl Default for Descriptors {
    fn default() -> Self {
        let limit = rustix::process::getrlimit(rustix::process::Resource::Nofile).current;
        let limit = limit.and_then(|limit| usize::try_from(limit).ok()).unwrap_or(usize::MAX);
        Self {
            ceiling: limit.saturating_sub((limit / 8).clamp(4, 64)),
            before: lowest_free().unwrap_or(0),
            held: AtomicUsize::new(0),
            waiting: AtomicUsize::new(0),
            pipe_bytes: AtomicUsize::new(0),
            said: Mutex::new(None),
        }
    }
}

impl Descriptors {
    /// Claims `count` descriptors that are about to be used, or are used already, unless that touches the reserve. `made` is
    /// one that was just made: the system hands out the lowest free number, so its number says how many there are at least,
    /// whoever holds them.
    pub(crate) fn claim(self: &Arc<Self>, count: usize, made: &impl AsRawFd) -> Option<Claim> {
        let number = usize::try_from(made.as_raw_fd()).unwrap_or(usize::MAX);
        let held = self.held.fetch_add(count, Ordering::Relaxed) + count;
        let claim = Claim { descriptors: Arc::clone(self), count };
        (number < self.ceiling && self.before.saturating_add(held) <= self.ceiling).then_some(claim)
    }

    /// The same for something made earlier: a copy of its descriptor gets the lowest number now.
    pub(crate) fn claim_later(self: &Arc<Self>, count: usize, made: impl AsFd) -> Option<Claim> {
        rustix::io::fcntl_dupfd_cloexec(made, 0).ok().and_then(|copy| self.claim(count, &copy))
    }

    /// Counts descriptors that are held in any case: listeners.
    pub(crate) fn count(self: &Arc<Self>, count: usize) -> Claim {
        self.held.fetch_add(count, Ordering::Relaxed);
        Claim { descriptors: Arc::clone(self), count }
    }

    /// Bytes that the pipes of the data path may hold now.
    pub fn pipe_bytes(&self) -> usize {
        self.pipe_bytes.load(Ordering::Relaxed)
    }
    #[cfg(target_os = "linux")]
    pub(super) fn count_pipe(&self, size: usize) {
        self.pipe_bytes.fetch_add(size, Ordering::Relaxed);
    }
    #[cfg(target_os = "linux")]
    pub(super) fn uncount_pipe(&self, size: usize) {
        self.pipe_bytes.fetch_sub(size, Ordering::Relaxed);
    }

    /// Whether an accept loop waits for descriptors; the others then leave the rest of the reserve alone.
    pub(crate) fn short(&self) -> bool {
        self.waiting.load(Ordering::Relaxed) > 0
    }

    /// Marks the shortage for as long as the mark lives.
    pub(crate) fn mark_short(&self) -> Shortage<'_> {
        self.waiting.fetch_add(1, Ordering::Relaxed);
        Shortage(self)
    }

    /// Says at most once a minute, for all listeners together, why accepting pauses.
    pub(crate) fn warn(&self, why: &str, bind: std::net::SocketAddr) {
        if self.may_say(Instant::now()) {
            tracing::warn!(target: "stado::mesh", frontend = %bind, cause = why, "accept_paused");
        }
    }

    fn may_say(&self, now: Instant) -> bool {
        let mut said = self.said.lock().unwrap_or_else(PoisonError::into_inner);
        let may = said.is_none_or(|last| now.duration_since(last) >= Duration::from_secs(60));
        if may {
            *said = Some(now);
        }
        may
    }
}

/// Descriptors that are in use, or about to be; given back when it is dropped.
#[derive(Debug)]
pub(crate) struct Claim {
    descriptors: Arc<Descriptors>,
    count: usize,
}
impl Claim {
    /// Gives back all but `count`.
    pub(crate) fn keep(&mut self, count: usize) {
        let surplus = self.count.saturating_sub(count);
        self.count -= surplus;
        self.descriptors.held.fetch_sub(surplus, Ordering::Relaxed);
    }
}
impl Drop for Claim {
    fn drop(&mut self) {
        self.descriptors.held.fetch_sub(self.count, Ordering::Relaxed);
    }
}

/// An accept loop that waits for descriptors.
pub(crate) struct Shortage<'a>(&'a Descriptors);
impl Drop for Shortage<'_> {
    fn drop(&mut self) {
        self.0.waiting.fetch_sub(1, Ordering::Relaxed);
    }
}

fn lowest_free() -> Option<usize> {
    let probe = std::fs::File::open("/dev/null").ok()?;
    usize::try_from(probe.as_raw_fd()).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn limited(ceiling: usize) -> Arc<Descriptors> {
        Arc::new(Descriptors { ceiling, before: 10, ..Descriptors::default() })
    }

    #[test]
    fn claims_stop_at_the_reserve_and_come_back() {
        let descriptors = limited(16);
        let zero = 0;
        let mut held: Vec<Claim> = (0..3).map(|_| descriptors.claim(2, &zero).unwrap()).collect();
        assert!(descriptors.claim(2, &zero).is_none() && descriptors.claim(1, &zero).is_none());
        held[0].keep(1);
        assert!(descriptors.claim(2, &zero).is_none());
        let last = descriptors.claim(1, &zero).unwrap();
        drop((held, last));
        assert_eq!(descriptors.held.load(Ordering::Relaxed), 0);
    }

    #[test]
    fn a_shortage_is_said_once_a_minute() {
        let (descriptors, start) = (limited(16), Instant::now());
        let said = |second| descriptors.may_say(start + Duration::from_secs(second));
        assert_eq!([0, 1, 59, 60, 61, 119, 120].map(said), [true, false, false, true, false, false, true]);
    }

    #[test]
    fn descriptors_of_others_count_by_their_numbers() {
        let descriptors = limited(16);
        assert!(descriptors.claim(1, &15).is_some() && descriptors.claim(1, &16).is_none());
    }
}

//! Connections to backends that wait for their next request (proxy rule 16).
use super::far::Far;
use super::site::{Protocol, Site};
use crate::conn::{Backend, Claim, Context};
use stado_fleet::directory::Route;
use stado_fleet::name::{LoopbackAddr, LoopbackHost};
use std::cell::Cell;
use std::collections::HashMap;
use std::sync::atomic::{AtomicU8, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// Threads that serve seldom meet in one lock.
const SHARDS: usize = 16;
/// Connections that one thread keeps for one backend.
const PER_BACKEND: usize = 256;

/// What a connection can be used for. A backend that has moved has another key, so nothing goes to where it was.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum Key {
    /// A loopback address of this host.
    Local(LoopbackAddr, Protocol),
    /// A route; its address in memory, which [`Idle`] keeps from being used for another.
    Fleet(usize, Protocol),
}
impl Key {
    /// `None` where nothing can be reached.
    pub(super) fn of(site: &Site) -> Option<Self> {
        match &site.backend {
            Backend::Local(addr) => Some(Self::Local(*addr, site.protocol)),
            Backend::Fleet(route) if route.local => Some(Self::Local(route.endpoint.addr, site.protocol)),
            Backend::Fleet(route) => Some(Self::Fleet(Arc::as_ptr(route).addr(), site.protocol)),
            Backend::None(_) => None,
        }
    }
}

struct Idle {
    far: Far,
    since: Instant,
    _route: Option<Arc<Route>>,
    _claim: Option<Claim>,
}

type Shard = HashMap<Key, Vec<Idle>>;

/// Idle connections of all backends.
#[derive(Default)]
pub struct Pool {
    shards: [Mutex<Shard>; SHARDS],
    /// Which loopback family answered last, for backends named `localhost`.
    families: Mutex<HashMap<LoopbackAddr, Arc<AtomicU8>>>,
}
impl std::fmt::Debug for Pool {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Pool").field("idle", &self.idle()).finish()
    }
}

impl Pool {
    /// The connection that was used last: the others can then grow old. `surely`: the request may not be sent twice, so the
    /// kernel is asked whether the backend has closed it.
    pub(super) fn take(&self, key: &Key, surely: bool) -> Option<Far> {
        loop {
            let mut idle = self.shard().get_mut(key)?.pop()?;
            if idle.far.is_silent(surely) {
                return Some(idle.far);
            }
        }
    }

    /// Keeps a connection whose last answer is complete.
    pub(super) fn give(&self, key: Key, site: &Site, far: Far, context: &Context) {
        let Some(claim) = far.claim(context) else { return };
        let route = match &site.backend {
            Backend::Fleet(route) => Some(Arc::clone(route)),
            _ => None,
        };
        let idle = Idle { far, since: Instant::now(), _route: route, _claim: claim };
        let mut shard = self.shard();
        let kept = shard.entry(key).or_default();
        if kept.len() < PER_BACKEND {
            kept.push(idle);
        }
    }

    /// Closes what the backend has closed, and what was idle for `longest`.
    pub(super) fn sweep(&self, longest: Duration) {
        let now = Instant::now();
        for shard in &self.shards {
            let mut shard = lock(shard);
            shard.retain(|_, idle| {
                idle.retain_mut(|idle| now.duration_since(idle.since) < longest && idle.far.is_silent(false));
                !idle.is_empty()
            });
        }
    }

    /// Closes all.
    pub(super) fn clear(&self) {
        for shard in &self.shards {
            lock(shard).clear();
        }
    }

    /// How many there are.
    pub fn idle(&self) -> usize {
        self.shards.iter().map(|shard| lock(shard).values().map(Vec::len).sum::<usize>()).sum()
    }

    /// Where it is remembered which family of `localhost` answered.
    pub(super) fn family(&self, site: &Site) -> Arc<AtomicU8> {
        let addr = match &site.backend {
            Backend::Local(addr) => *addr,
            Backend::Fleet(route) => route.endpoint.addr,
            Backend::None(_) => return Arc::default(),
        };
        if addr.host != LoopbackHost::Localhost {
            return Arc::default();
        }
        Arc::clone(lock(&self.families).entry(addr).or_default())
    }

    /// This thread's.
    fn shard(&self) -> MutexGuard<'_, Shard> {
        static NEXT: AtomicUsize = AtomicUsize::new(0);
        thread_local! {
            static MINE: Cell<usize> = Cell::new(NEXT.fetch_add(1, Ordering::Relaxed));
        }
        let mine = MINE.try_with(Cell::get).unwrap_or_default();
        let [first, ..] = &self.shards;
        lock(self.shards.get(mine % SHARDS).unwrap_or(first))
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

//! Sessions by what they are for: found, or opened once however many ask.
use super::config::LinkConfig;
use super::error::{LinkError, Stage};
use super::handler::lock;
use super::session::{self, Seat, Session};
use crate::fault::Class;
use crate::name::{ConnectionPath, TargetName};
use std::collections::HashMap;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, Weak};
use std::time::Duration;
use tokio::sync::{Semaphore, watch};

/// Handshakes in flight in this process, and how long one counts: one that computes takes milliseconds, one that waits
/// for a silent host must not keep others out.
const HANDSHAKES: usize = 4;
const HANDSHAKE_SLOT: Duration = Duration::from_secs(2);

/// What a session is for. Other declared paths make another session: the old one ends with its streams.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) struct Key {
    pub(super) host: TargetName,
    pub(super) paths: Arc<[ConnectionPath]>,
    pub(super) purpose: Purpose,
}

/// Exec never shares a session with relays, and relays to different endpoints never share one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum Purpose {
    Exec,
    Relay(SocketAddr),
}

type Outcome = Result<Arc<Session>, LinkError>;

#[derive(Debug)]
enum Slot {
    Ready(Arc<Session>),
    Opening(watch::Receiver<Option<Outcome>>),
}

#[derive(Debug)]
pub(super) struct Pool {
    config: LinkConfig,
    slots: Mutex<HashMap<Key, Slot>>,
    /// One handshake at a time per host; entries go when nobody uses them.
    hosts: Mutex<HashMap<TargetName, Weak<Semaphore>>>,
    handshakes: Arc<Semaphore>,
}

impl Pool {
    pub(super) fn new(config: LinkConfig) -> Arc<Self> {
        Arc::new(Self {
            config,
            slots: Mutex::default(),
            hosts: Mutex::default(),
            handshakes: Arc::new(Semaphore::new(HANDSHAKES)),
        })
    }

    pub(super) fn config(&self) -> &LinkConfig {
        &self.config
    }

    /// A place on the session for `key`, opened if there is none. No lock is held while it opens, and it opens to its
    /// end even if the caller gives up: the next one finds it.
    pub(super) async fn seat(self: &Arc<Self>, key: &Key) -> Result<Seat, LinkError> {
        loop {
            let mut opening = match self.find_or_start(key) {
                Ok(seat) => return Ok(seat),
                Err(opening) => opening,
            };
            let outcome = opening.wait_for(Option::is_some).await.ok().and_then(|outcome| outcome.clone());
            match outcome {
                Some(Ok(session)) => {
                    if let Some(seat) = session.enter() {
                        return Ok(seat);
                    }
                }
                Some(Err(error)) => return Err(error),
                // Only when the runtime is going away.
                None => {
                    let why = "the opening of an SSH session was given up";
                    return Err(LinkError::new(Stage::Connect, Class::Unknown, why));
                }
            }
        }
    }

    fn find_or_start(self: &Arc<Self>, key: &Key) -> Result<Seat, watch::Receiver<Option<Outcome>>> {
        let mut slots = lock(&self.slots);
        match slots.get(key) {
            Some(Slot::Opening(opening)) => return Err(opening.clone()),
            Some(Slot::Ready(session)) => match session.enter() {
                Some(seat) => return Ok(seat),
                None => session.retire(),
            },
            None => {}
        }
        let (tell, opening) = watch::channel(None);
        slots.insert(key.clone(), Slot::Opening(opening.clone()));
        let (pool, key) = (self.clone(), key.clone());
        tokio::spawn(async move {
            let outcome = pool.establish(&key).await;
            pool.settle(&key, &outcome);
            let _ = tell.send(Some(outcome));
        });
        Err(opening)
    }

    fn settle(self: &Arc<Self>, key: &Key, outcome: &Outcome) {
        let mut slots = lock(&self.slots);
        match outcome {
            Ok(session) => {
                slots.insert(key.clone(), Slot::Ready(session.clone()));
                drop(slots);
                tokio::spawn(keep(Arc::downgrade(self), key.clone(), session.clone()));
            }
            Err(_) => {
                slots.remove(key);
            }
        }
    }

    async fn establish(&self, key: &Key) -> Outcome {
        let host = self.host(&key.host);
        let _one_per_host = host.acquire().await.ok();
        let slot = self.handshakes.clone().acquire_owned().await.ok();
        // Given back early when the host is slow.
        let timer = tokio::spawn(async move {
            tokio::time::sleep(HANDSHAKE_SLOT).await;
            drop(slot);
        });
        let outcome = self.first_path(&key.paths).await;
        timer.abort();
        outcome
    }

    async fn first_path(&self, paths: &[ConnectionPath]) -> Outcome {
        let mut failures = Vec::new();
        for path in paths {
            match session::establish(path, &self.config).await {
                Ok(session) => return Ok(Arc::new(session)),
                Err(error) => failures.push((path.name.clone(), error)),
            }
        }
        Err(LinkError::no_path(failures))
    }

    fn host(&self, host: &TargetName) -> Arc<Semaphore> {
        let mut hosts = lock(&self.hosts);
        if let Some(semaphore) = hosts.get(host).and_then(Weak::upgrade) {
            return semaphore;
        }
        hosts.retain(|_, semaphore| semaphore.strong_count() > 0);
        let semaphore = Arc::new(Semaphore::new(1));
        hosts.insert(host.clone(), Arc::downgrade(&semaphore));
        semaphore
    }

    /// Forgets `session`: the next caller gets another.
    pub(super) fn forget(&self, key: &Key, session: &Arc<Session>) {
        session.retire();
        let mut slots = lock(&self.slots);
        if matches!(slots.get(key), Some(Slot::Ready(held)) if Arc::ptr_eq(held, session)) {
            slots.remove(key);
        }
    }

    /// Ends every session.
    pub(super) async fn close(&self) {
        let slots = std::mem::take(&mut *lock(&self.slots));
        let sessions = slots.into_values().filter_map(|slot| match slot {
            Slot::Ready(session) => Some(session),
            Slot::Opening(_) => None,
        });
        futures_util::future::join_all(sessions.map(|s| async move { s.close().await })).await;
    }

    #[cfg(test)]
    pub(super) fn sessions(&self) -> Vec<Arc<Session>> {
        let ready = |slot: &Slot| match slot {
            Slot::Ready(session) => Some(session.clone()),
            Slot::Opening(_) => None,
        };
        lock(&self.slots).values().filter_map(ready).collect()
    }
}

/// Removes the session from the pool when it has ended, and ends it when nothing used it for long.
async fn keep(pool: Weak<Pool>, key: Key, session: Arc<Session>) {
    let Some(limit) = pool.upgrade().map(|p| p.config.timing.idle) else { return };
    loop {
        tokio::select! {
            () = session.facts.end.cancelled() => break,
            () = tokio::time::sleep(limit / 2) => {}
        }
        if pool.strong_count() == 0 || session.idle().is_some_and(|idle| idle >= limit) {
            break;
        }
    }
    if let Some(pool) = pool.upgrade() {
        pool.forget(&key, &session);
    }
    if session.idle().is_some() {
        session.close().await;
    }
}

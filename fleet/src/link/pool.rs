//! Sessions by what they are for: found, or opened once however many ask.
use super::config::LinkConfig;
use super::distance::Distances;
use super::error::{LinkError, Stage, seconds};
use super::handler::lock;
use super::keep;
use super::paths;
use super::session::{Seat, Session};
use super::standing::Standing;
use super::threads::Threads;
use crate::fault::Class;
use crate::name::{ConnectionPath, SshDestination, TargetName};
use std::collections::HashMap;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};
use tokio::runtime::Handle;
use tokio::sync::{Semaphore, watch};
use tokio::task::JoinHandle;

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
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) enum Purpose {
    Exec,
    Relay(SocketAddr),
    /// To lead to other hosts (ProxyJump), behind these ones.
    Jump(Arc<[SshDestination]>),
}

impl Purpose {
    /// Jump hosts in place of those that the configuration of the destination names.
    fn via(&self) -> Option<&[SshDestination]> {
        match self {
            Self::Jump(before) => Some(before),
            Self::Exec | Self::Relay(_) => None,
        }
    }
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
    /// Every host that was ever asked for: as many as a registry names.
    hosts: Mutex<HashMap<TargetName, Arc<Standing>>>,
    handshakes: Arc<Semaphore>,
    pub(super) distances: Distances,
    /// Whether somebody looks out for this machine's sleep.
    pub(super) watched: AtomicBool,
}

impl Pool {
    pub(super) fn new(config: LinkConfig) -> Arc<Self> {
        Arc::new(Self {
            config,
            slots: Mutex::default(),
            hosts: Mutex::default(),
            handshakes: Arc::new(Semaphore::new(HANDSHAKES)),
            distances: Distances::default(),
            watched: AtomicBool::new(false),
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
        // Whatever russh and the session start from within comes to live there too.
        self.spawn(&key.host.clone(), async move {
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
                tokio::spawn(keep::session(Arc::downgrade(self), key.clone(), session.clone()));
                if !self.watched.swap(true, Ordering::Relaxed) {
                    tokio::spawn(keep::awake(Arc::downgrade(self), super::wake::Slept::now));
                }
            }
            Err(_) => {
                slots.remove(key);
            }
        }
    }

    async fn establish(self: &Arc<Self>, key: &Key) -> Outcome {
        let asked = Instant::now();
        let host = self.host(&key.host);
        let _one_per_host = host.turn.acquire().await.ok();
        if let Some(error) = host.failed_since(asked) {
            return Err(error);
        }
        loop {
            host.due().await;
            match self.attempt(key, &host).await {
                Ok(session) => return Ok(Arc::new(session)),
                Err(error) => {
                    host.failed(&error, Instant::now(), rand::random());
                    if !host.worth_another(&error) {
                        return Err(error);
                    }
                }
            }
        }
    }

    async fn attempt(self: &Arc<Self>, key: &Key, host: &Arc<Standing>) -> Result<Session, LinkError> {
        let slot = self.handshakes.clone().acquire_owned().await.ok();
        // Given back early when the host is slow.
        let timer = tokio::spawn(async move {
            tokio::time::sleep(HANDSHAKE_SLOT).await;
            drop(slot);
        });
        let order = paths::order(key.paths.len(), host.answered_last(&key.paths));
        let outcome = paths::race(&key.paths, &order, key.purpose.via(), self).await;
        timer.abort();
        let (position, session) = outcome?;
        if host.answered(&key.paths, position) {
            tracing::warn!(
                target: "stado::fleet",
                "stado link: {} is reached over its path {} since no better one answers; those are tried again in between",
                key.host, session.path
            );
            tokio::spawn(keep::return_home(Arc::downgrade(self), key.clone(), host.clone()));
        }
        Ok(session)
    }

    /// How `host` stands.
    pub(super) fn host(&self, host: &TargetName) -> Arc<Standing> {
        let mut hosts = lock(&self.hosts);
        if let Some(known) = hosts.get(host) {
            return known.clone();
        }
        let new = Arc::new(Standing::new(self.config.threads.as_ref().map_or(0, Threads::turn)));
        hosts.insert(host.clone(), new.clone());
        new
    }

    /// Where the sessions to `host` live, when they have threads of their own.
    pub(super) fn runtime(&self, host: &TargetName) -> Option<Handle> {
        let threads = self.config.threads.as_ref()?;
        threads.of(self.host(host).thread)
    }

    /// Starts what belongs to a session of `host` where its sessions live.
    pub(super) fn spawn<T: Send + 'static>(
        &self,
        host: &TargetName,
        work: impl Future<Output = T> + Send + 'static,
    ) -> JoinHandle<T> {
        match self.runtime(host) {
            Some(runtime) => runtime.spawn(work),
            None => tokio::spawn(work),
        }
    }

    /// Nobody got a session to `host` in time.
    pub(super) fn late(&self, host: &TargetName, budget: Duration) -> LinkError {
        let known = self.host(host).why(Instant::now());
        let why = format!("no SSH session to {host} within {}{known}", seconds(budget));
        LinkError::new(Stage::Connect, Class::Timeout, why)
    }

    /// Every session that stands, and what it is for.
    pub(super) fn standing(&self) -> Vec<(Key, Arc<Session>)> {
        let slots = lock(&self.slots);
        let ready = slots.iter().filter_map(|(key, slot)| match slot {
            Slot::Ready(session) => Some((key.clone(), session.clone())),
            Slot::Opening(_) => None,
        });
        ready.collect()
    }

    /// This machine slept: pauses are over, and every session is asked once for a sign of life.
    pub(super) async fn woke(&self) {
        lock(&self.hosts).values().for_each(|host| host.fresh());
        let asked = self.standing().into_iter().map(|(key, session)| async move {
            if !session.probe(self.config.timing.probe).await {
                self.forget(&key, &session);
                session.cut("it did not outlive this host's sleep");
            }
        });
        futures_util::future::join_all(asked).await;
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
        self.standing().into_iter().map(|(_, session)| session).collect()
    }
}

//! How streams reach a host: through the multiplex where the far side runs Stado, over direct-tcpip channels elsewhere. The
//! choice is made once per session, by asking, and is remembered with its reason.
use super::choice::{Choice, ask};
use super::error::{LinkError, Stage, seconds};
use super::handler::lock;
use super::pool::Pool;
use super::relay::{Code, Multiplex, OpenError, Refusal};
use super::{RemoteStream, config::Timing};
use crate::fault::Class;
use crate::name::{ConnectionPath, TargetName};
use futures_util::FutureExt;
use futures_util::future::{BoxFuture, Shared};
use std::collections::HashMap;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::{Arc, Mutex, Weak};
use std::time::{Duration, Instant};
use tokio::time::timeout;

/// An endpoint that the far directory does not place is asked for again after this long.
const PLACE_AGAIN: Duration = Duration::from_secs(60);

/// How streams reach a host.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RoadReport {
    /// Host.
    pub host: TargetName,
    /// `multiplex` or `direct-tcpip`.
    pub carrier: &'static str,
    /// Path of the session.
    pub path: String,
    /// Why it is not the multiplex, or what was odd about it.
    pub reason: Option<String>,
    /// Round trip, once measured: through the multiplex, or of the session.
    pub rtt: Option<Duration>,
    /// Streams that are open in the multiplex.
    pub streams: usize,
}

#[derive(Debug, Default)]
pub(super) struct Roads(Mutex<HashMap<RoadKey, Arc<Road>>>);

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) struct RoadKey {
    pub(super) host: TargetName,
    pub(super) paths: Arc<[ConnectionPath]>,
    pub(super) command: Option<String>,
}

impl Roads {
    pub(super) fn of(&self, host: &TargetName, paths: &[ConnectionPath], command: Option<&str>) -> Arc<Road> {
        let key = RoadKey { host: host.clone(), paths: paths.into(), command: command.map(str::to_owned) };
        let mut roads = lock(&self.0);
        if let Some(road) = roads.get(&key) {
            return road.clone();
        }
        // Other paths or another command: what was declared before is not asked for again.
        roads.retain(|other, _| other.host != key.host);
        let road = Arc::new(Road { key: key.clone(), choice: Mutex::default(), direct: Mutex::default() });
        roads.insert(key, road.clone());
        road
    }

    pub(super) fn report(&self) -> Vec<RoadReport> {
        let mut all: Vec<_> = lock(&self.0).values().filter_map(|road| road.report()).collect();
        all.sort_by(|a, b| a.host.cmp(&b.host));
        all
    }

    pub(super) fn clear(&self) {
        lock(&self.0).clear();
    }
}

/// The road to one host.
pub(super) struct Road {
    key: RoadKey,
    choice: Mutex<Option<Deciding>>,
    /// Endpoints that the far side does not take into the multiplex, and why.
    direct: Mutex<HashMap<SocketAddr, (Instant, String)>>,
}

type Deciding = Shared<BoxFuture<'static, Result<Choice, LinkError>>>;

impl std::fmt::Debug for Road {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Road").field("key", &self.key).finish_non_exhaustive()
    }
}

impl Road {
    /// Opens a stream through the multiplex; `None` when the stream is to take a direct-tcpip channel.
    pub(super) async fn open(
        self: &Arc<Self>,
        pool: &Arc<Pool>,
        endpoint: SocketAddr,
        budget: Duration,
    ) -> Option<Result<Pin<Box<dyn RemoteStream>>, LinkError>> {
        let timing = &pool.config().timing;
        let until = Instant::now() + budget;
        let left = || until.saturating_duration_since(Instant::now());
        // Nothing of the client goes up before a stream is open: a dead multiplex is replaced once.
        for _ in 0..2 {
            if self.goes_direct(endpoint) {
                return None;
            }
            let multiplex = match timeout(left(), self.choose(pool)).await {
                Ok(Ok(Choice::Multiplex(multiplex))) => multiplex,
                Ok(Ok(Choice::Direct { .. })) => return None,
                Ok(Err(error)) => return Some(Err(error)),
                Err(_) => return Some(Err(pool.late(&self.key.host, budget))),
            };
            let destination = &multiplex.session.destination;
            match timeout(left().min(timing.open), multiplex.open(endpoint, timing)).await {
                Ok(Ok(stream)) => return Some(Ok(Box::pin(stream))),
                Ok(Err(OpenError::Refused(refusal))) if refusal.code == Code::NotPlaced => {
                    self.note_direct(endpoint, refusal);
                    return None;
                }
                Ok(Err(OpenError::Refused(refusal))) => {
                    let sentence =
                        format!("SSH destination {destination} refused channel to {endpoint}: {}", refusal.words());
                    let tried = matches!(refusal.code, Code::Refused | Code::Unreachable);
                    let stage = if tried { Stage::Service } else { Stage::Open };
                    return Some(Err(LinkError::new(stage, refusal.class(), sentence)));
                }
                Ok(Err(OpenError::Lost)) => multiplex.session.retire(),
                Err(_) => {
                    let sentence = format!(
                        "SSH destination {destination} did not answer the opening of a channel to {endpoint} within {}",
                        seconds(timing.open)
                    );
                    return Some(Err(LinkError::new(Stage::Open, Class::Timeout, sentence)));
                }
            }
        }
        None
    }

    fn goes_direct(&self, endpoint: SocketAddr) -> bool {
        let mut direct = lock(&self.direct);
        direct.retain(|_, (since, _)| since.elapsed() < PLACE_AGAIN);
        direct.contains_key(&endpoint)
    }

    fn note_direct(&self, endpoint: SocketAddr, refusal: Refusal) {
        let sentence = refusal.sentence;
        tracing::warn!(
            target: "stado::fleet",
            "stado link: streams to {endpoint} on {} take direct-tcpip channels: {sentence}", self.key.host
        );
        lock(&self.direct).insert(endpoint, (Instant::now(), sentence));
    }

    /// The choice that holds, made once however many ask; it is made to its end even if they give up.
    async fn choose(self: &Arc<Self>, pool: &Arc<Pool>) -> Result<Choice, LinkError> {
        let deciding = {
            let mut slot = lock(&self.choice);
            let held = slot.as_ref().filter(|deciding| match deciding.peek() {
                None => true,
                Some(made) => made.as_ref().is_ok_and(Choice::holds),
            });
            match held {
                Some(deciding) => deciding.clone(),
                None => slot.insert(self.decide(pool)).clone(),
            }
        };
        deciding.await
    }

    fn decide(self: &Arc<Self>, pool: &Arc<Pool>) -> Deciding {
        let (key, pool, road) = (self.key.clone(), pool.clone(), Arc::downgrade(self));
        let task = pool.clone().spawn(&self.key.host, async move {
            let made = ask(&key, &pool).await;
            match &made {
                Ok(Choice::Multiplex(multiplex)) => {
                    let timing = pool.config().timing.clone();
                    tokio::spawn(tidy(road, Arc::downgrade(multiplex), timing));
                }
                Ok(Choice::Direct { why, .. }) => tracing::info!(
                    target: "stado::fleet",
                    "stado link: streams to {} take direct-tcpip channels: {why}", key.host
                ),
                Err(_) => {}
            }
            made
        });
        let made = task.map(|made| {
            let given_up = |_| LinkError::new(Stage::Connect, Class::Unknown, "the choice of a carrier was given up");
            made.map_err(given_up).and_then(|made| made)
        });
        made.boxed().shared()
    }

    fn report(&self) -> Option<RoadReport> {
        let made = lock(&self.choice).as_ref()?.peek()?.clone().ok()?;
        let host = self.key.host.clone();
        Some(match made {
            Choice::Multiplex(multiplex) => {
                let not_placed = lock(&self.direct)
                    .iter()
                    .next()
                    .map(|(endpoint, (_, why))| format!("streams to {endpoint} take direct-tcpip channels: {why}"));
                RoadReport {
                    host,
                    carrier: "multiplex",
                    path: multiplex.session.path.clone(),
                    reason: not_placed.or_else(|| multiplex.chatter.clone()),
                    rtt: multiplex.rtt(),
                    streams: multiplex.streams(),
                }
            }
            Choice::Direct { why, path, session, .. } => RoadReport {
                host,
                carrier: "direct-tcpip",
                path: path.to_string(),
                reason: Some(why.to_string()),
                rtt: session.upgrade().and_then(|session| session.rtt.get().copied().flatten()),
                streams: 0,
            },
        })
    }

    /// Lets go of a multiplex.
    fn forget(&self, multiplex: &Weak<Multiplex>) {
        let mut slot = lock(&self.choice);
        let is_it = slot.as_ref().and_then(|deciding| deciding.peek()).is_some_and(|made| match made {
            Ok(Choice::Multiplex(held)) => std::ptr::eq(Arc::as_ptr(held), multiplex.as_ptr()),
            _ => false,
        });
        if is_it {
            *slot = None;
        }
    }
}

/// Lets a multiplex go when it has ended or nobody has used it for long.
async fn tidy(road: Weak<Road>, multiplex: Weak<Multiplex>, timing: Timing) {
    loop {
        let Some(held) = multiplex.upgrade() else { return };
        let over = tokio::select! {
            () = held.ended() => true,
            () = tokio::time::sleep(timing.idle / 2) => held.idle().is_some_and(|idle| idle >= timing.idle),
        };
        drop(held);
        if over {
            if let Some(road) = road.upgrade() {
                road.forget(&multiplex);
            }
            return;
        }
        if road.strong_count() == 0 {
            return;
        }
    }
}

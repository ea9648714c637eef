//! Holds a watch on the authority, so that a change is read when it is stored and not with the next tick. The watch only
//! wakes the loop: what is read, and what becomes of it, is the same either way.
use super::held::{Held, HeldReader};
use stado_fleet::authority::{Changes, Holding, RemoteAuthority, Source, Teller, Told, Watch, WatchEnded, next_source};
use stado_fleet::fault::{Class, Faulty};
use stado_fleet::link::{Link, RemoteStream};
use stado_fleet::name::{StoreVersion, TargetName};
use stado_fleet::store::RegistryStore;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::{Notify, watch};
use tokio::time::{Instant, timeout};

/// For the start of the command, connecting included.
const START: Duration = Duration::from_secs(30);
/// Between two attempts, at first and at most; drawn from the whole range, so that a fleet does not come back at once.
const BASE: Duration = Duration::from_millis(500);
const CAP: Duration = Duration::from_secs(30);
/// A watch that was held for so long was a good one: its end costs no more than the first pause.
const STABLE: Duration = Duration::from_secs(20);
/// The first pause after a good watch is drawn up to here: an authority that starts again has lost all of its fleet at once.
/// Meanwhile every host reads as ever, when its own time comes.
const SPREAD: Duration = Duration::from_secs(3);
/// A store's watch that has not failed by then is held.
const HEARD: Duration = Duration::from_secs(3);
/// A watch is taken anew after this long, on whatever path and session are the best by then.
const HOLD: Duration = Duration::from_secs(900);
/// An authority that knows no watch is asked again after this long: it may have been replaced by a newer build.
const ASK_AGAIN: Duration = Duration::from_secs(600);
/// What this host holds is said again after this long, so that silence means something.
const SAY_AGAIN: Duration = Duration::from_secs(60);
/// A change of it is said within this: a new generation changes it on every host of a fleet at once.
const SAY_WITHIN: Duration = Duration::from_secs(2);

/// What is followed, and who is woken.
#[derive(Clone)]
pub struct Follow {
    /// This host's store.
    pub store: Arc<dyn RegistryStore>,
    /// The way to a remote authority.
    pub link: Link,
    /// What this host holds.
    pub held: HeldReader,
    /// Where changes go that are told.
    pub changes: Arc<Changes>,
    /// The loop that reads.
    pub wake: Arc<Notify>,
    /// Told how changes are heard of, for those who look at the state.
    pub heard_by: watch::Sender<HeardBy>,
    /// What this host holds and refuses, for the authority.
    pub holding: watch::Receiver<Option<Holding>>,
}

/// How changes are heard of.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum HeardBy {
    /// Nothing is held yet.
    #[default]
    Nothing,
    /// By a watch.
    Watch,
    /// By reading every `refresh_seconds` alone: why.
    Reading(String),
}

impl Follow {
    /// Follows the authority that the held snapshot names, whichever that is, until it is dropped.
    pub async fn run(mut self) {
        loop {
            let Some(held) = self.held.borrow_and_update().clone() else {
                if self.held.changed().await.is_err() {
                    return;
                }
                continue;
            };
            let source = next_source(&held.snapshot, &held.target, self.store.clone());
            let mut moved = self.held.clone();
            tokio::select! {
                () = self.follow(&source) => {}
                () = another(&mut moved, &source, &self.store) => {}
            }
        }
    }

    /// Never ends by itself.
    async fn follow(&self, source: &Source) {
        match source {
            Source::Store(store) if store.shared() && store.tells() => self.store(store.as_ref()).await,
            Source::Store(store) if store.shared() => {
                // An object API has no better way to tell of a change than to be read, which the loop does.
                self.hear(HeardBy::Reading(format!("{} tells of no changes", store.location())));
                std::future::pending().await
            }
            // The loop itself looks at a directory of this host.
            Source::Store(_) => {
                self.hear(HeardBy::Watch);
                std::future::pending().await
            }
            Source::Remote(authority) => self.remote(authority).await,
        }
    }

    /// A store that other hosts write too, and that tells of it. What it told last is what is waited on: a version that is
    /// refused is not told over and over.
    async fn store(&self, store: &dyn RegistryStore) {
        let mut seen = self.version();
        let mut failures = 0_u32;
        loop {
            let told = {
                let watch = store.watch(seen.as_ref());
                tokio::pin!(watch);
                match timeout(HEARD, &mut watch).await {
                    Ok(told) => told,
                    // It is waiting, so it is held.
                    Err(_) => {
                        failures = 0;
                        self.hear(HeardBy::Watch);
                        watch.await
                    }
                }
            };
            match told {
                Ok(version) => {
                    failures = 0;
                    self.hear(HeardBy::Watch);
                    seen.clone_from(&version);
                    self.tell(None, Told { version, change: None });
                }
                Err(error) => {
                    failures = failures.saturating_add(1);
                    self.hear(HeardBy::Reading(error.sentence));
                    tokio::time::sleep(pause(failures, rand::random())).await;
                }
            }
        }
    }

    async fn remote(&self, authority: &RemoteAuthority) {
        let mut failures = 0_u32;
        loop {
            let began = Instant::now();
            let ended = self.hold(authority).await;
            let was_good = began.elapsed() >= STABLE;
            failures = if was_good { 1 } else { failures.saturating_add(1) };
            let pause = match &ended {
                None => Duration::ZERO,
                Some(WatchEnded::Lost(_)) if was_good => SPREAD.mul_f64(rand::random()),
                Some(WatchEnded::Lost(_)) => pause(failures, rand::random()),
                Some(WatchEnded::Unknown(why)) => {
                    tracing::info!(
                        target: "stado::fleet",
                        "stado resolver: changes are found by reading alone, every refresh_seconds: {why}"
                    );
                    ASK_AGAIN.mul_f64(0.5 + rand::random::<f64>() / 2.0)
                }
            };
            if let Some(ended) = ended {
                self.hear(HeardBy::Reading(ended.to_string()));
            }
            tokio::time::sleep(pause).await;
        }
    }

    /// One watch, until it ends; `None` when it is time for another.
    async fn hold(&self, authority: &RemoteAuthority) -> Option<WatchEnded> {
        let command = authority.verb("resolver watch");
        let started = self.link.exec_stream(&authority.target, &authority.paths, &command, START).await;
        let stream = match started {
            Ok(stream) => stream,
            // A host that runs no second command on a session will not do so later either.
            Err(error) if error.class() == Class::Refused => return Some(WatchEnded::Unknown(error.to_string())),
            Err(error) => return Some(WatchEnded::Lost(error.to_string())),
        };
        let holding = async {
            let mut watch = Watch::begin(stream).await?;
            self.hear(HeardBy::Watch);
            let teller = watch.teller();
            let hearing = async {
                loop {
                    self.tell(Some(&authority.target), watch.next().await?);
                }
            };
            tokio::select! {
                ended = hearing => ended,
                () = self.say(teller) => Ok(()),
            }
        };
        let ended: Result<Result<(), WatchEnded>, _> =
            timeout(HOLD.mul_f64(0.5 + rand::random::<f64>() / 2.0), holding).await;
        self.changes.clear();
        ended.ok()?.err()
    }

    /// Says what this host holds: at once, when it changes, and now and then. Never ends by itself: that a watch is lost is
    /// noticed where it is read.
    async fn say(&self, teller: Option<Teller<Pin<Box<dyn RemoteStream>>>>) {
        let mut holding = self.holding.clone();
        if let Some(mut teller) = teller {
            loop {
                let now = holding.borrow_and_update().clone();
                if let Some(now) = now
                    && teller.say(&now).await.is_err()
                {
                    break;
                }
                match timeout(SAY_AGAIN, holding.changed()).await {
                    Ok(Err(_)) => break,
                    Ok(Ok(())) | Err(_) => tokio::time::sleep(SAY_WITHIN.mul_f64(rand::random())).await,
                }
            }
        }
        std::future::pending().await
    }

    /// Says how changes are heard of. When a watch is held anew, the loop reads (what was stored meanwhile was not told) and
    /// publishes. When one is lost it does not: an authority that starts again would be read by its whole fleet at once.
    fn hear(&self, how: HeardBy) {
        let watched = how == HeardBy::Watch;
        let is_new = self.heard_by.send_if_modified(|now| {
            let is_new = std::mem::discriminant(now) != std::mem::discriminant(&how);
            *now = how;
            is_new
        });
        if is_new && watched {
            self.wake.notify_one();
        }
    }

    fn version(&self) -> Option<StoreVersion> {
        self.held.borrow().as_ref().map(|held| held.snapshot.store_version.clone())
    }

    /// Wakes the loop, unless it holds that version. `by`: the authority that told it; a shared store tells no changes.
    fn tell(&self, by: Option<&TargetName>, told: Told) {
        if told.version == self.version() {
            return;
        }
        if let (Some(by), Some(change)) = (by, told.change) {
            self.changes.push(by, change);
        }
        self.wake.notify_one();
    }
}

/// Waits until what is held names another source.
async fn another(held: &mut HeldReader, source: &Source, store: &Arc<dyn RegistryStore>) {
    let same = |held: &Option<Arc<Held>>| {
        let next = held.as_ref().map(|held| next_source(&held.snapshot, &held.target, store.clone()));
        match (&next, source) {
            (Some(Source::Remote(next)), Source::Remote(now)) => next == now,
            (Some(Source::Store(_)), Source::Store(_)) => true,
            _ => false,
        }
    };
    if held.wait_for(|held| !same(held)).await.is_err() {
        std::future::pending().await
    }
}

/// Full jitter, drawn after the cap.
fn pause(failures: u32, draw: f64) -> Duration {
    BASE.saturating_mul(1 << failures.saturating_sub(1).min(16)).min(CAP).mul_f64(draw.clamp(0.0, 1.0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_double_to_their_cap_and_are_drawn_from_the_whole_range() {
        let whole = |failures| pause(failures, 1.0);
        assert_eq!([whole(1), whole(2), whole(7), whole(400)], [BASE, 2 * BASE, CAP, CAP]);
        assert_eq!(pause(400, 0.0), Duration::ZERO);
    }
}

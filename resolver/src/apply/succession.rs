//! Beside the loop: a standby takes over what its authority remembers; an authority that was promoted tells the one before it;
//! and one that was replaced while it was away finds out, and follows.
use super::held::{Held, HeldReader};
use stado_fleet::authority::{
    RegistryError, RemoteAuthority, Source, Successor, follow_successor, mirror, next_source, standbys, successor,
    tell_before,
};
use stado_fleet::link::Link;
use stado_fleet::name::TargetName;
use stado_fleet::store::RegistryStore;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::Notify;

/// Between two looks, where nothing calls for one earlier.
const EVERY: Duration = Duration::from_secs(30);

/// What it looks at.
#[derive(Clone)]
pub struct Succession {
    /// This host's store.
    pub store: Arc<dyn RegistryStore>,
    /// The way to other hosts.
    pub link: Link,
    /// What this host holds.
    pub held: HeldReader,
    /// The loop that reads.
    pub wake: Arc<Notify>,
}

/// What was said, so that it is said once.
#[derive(Default)]
struct Said {
    /// The epoch of which the authority before knows.
    told: Option<u64>,
    trouble: Option<String>,
}

impl Succession {
    /// Looks on each change and now and then, until it is dropped.
    pub async fn run(mut self) {
        let mut said = Said::default();
        loop {
            let held = self.held.borrow_and_update().clone();
            if let Some(held) = held.filter(|_| !self.store.shared()) {
                let looked = self.look(&held, &mut said).await;
                let trouble = looked.err().map(|error| error.sentence);
                if let Some(trouble) = trouble.as_ref().filter(|trouble| said.trouble.as_ref() != Some(*trouble)) {
                    tracing::warn!(target: "stado::fleet", "stado resolver: {trouble}");
                }
                said.trouble = trouble;
            }
            let changed = tokio::time::timeout(EVERY, self.held.changed());
            if changed.await.is_ok_and(|changed| changed.is_err()) {
                return;
            }
        }
    }

    async fn look(&self, held: &Held, said: &mut Said) -> Result<(), RegistryError> {
        let registry = &held.snapshot.valid.registry;
        let Some(directory) = &registry.directory else { return Ok(()) };
        if directory.authority_target != held.target {
            return self.stand_by(held).await;
        }
        let hosts = standbys(registry, Some(&held.target));
        if let Some(next) = successor(&hosts, registry.succession.epoch, &self.link).await {
            return self.follow(held, &next).await;
        }
        match &registry.succession.after {
            Some(before) if said.told != Some(registry.succession.epoch) => self.tell(held, before, said).await,
            _ => Ok(()),
        }
    }

    /// Holds what the authority remembers.
    async fn stand_by(&self, held: &Held) -> Result<(), RegistryError> {
        let (Some(history), true) =
            (self.store.history(), held.snapshot.valid.registry.succession.standbys.contains(&held.target))
        else {
            return Ok(());
        };
        let source = next_source(&held.snapshot, &held.target, self.store.clone());
        mirror(&source, &self.link, history).await.map(|_| ()).map_err(|error| {
            let sentence = format!("what the authority remembers is not taken over: {}", error.sentence);
            RegistryError::new(error.class, sentence)
        })
    }

    /// Another host was promoted while this one was away.
    async fn follow(&self, held: &Held, next: &Successor) -> Result<(), RegistryError> {
        let Some(stored) = self.store.read().await? else { return Ok(()) };
        follow_successor(self.store.as_ref(), &stored.version, next).await?;
        tracing::warn!(
            target: "stado::fleet",
            "stado resolver: {} was promoted in the place of {} (authority epoch {}) while this host was away; it follows now, \
             and what its own registry said (generation {}) is in `stado registry history --here`",
            next.target, held.target, next.epoch, stored.version
        );
        self.wake.notify_one();
        Ok(())
    }

    /// Whoever was the authority before has to know, or it serves what it had.
    async fn tell(&self, held: &Held, before: &TargetName, said: &mut Said) -> Result<(), RegistryError> {
        let registry = &held.snapshot.valid.registry;
        let host = standbys(registry, Some(&held.target)).into_iter().find(|host| host.target == *before);
        let Some(host) = host else { return Ok(()) };
        let source = Source::Remote(RemoteAuthority::from(host));
        tell_before(&source, &self.link, &held.snapshot.valid.document).await.map_err(|error| {
            let sentence = format!("{before}, which was the authority before, is not told yet: {}", error.sentence);
            RegistryError::new(error.class, sentence)
        })?;
        said.told = Some(registry.succession.epoch);
        tracing::info!(target: "stado::fleet", "stado resolver: {before} knows that it was replaced");
        Ok(())
    }
}

//! Which endpoints the directory places on this host, as far as this host knows.
use crate::cmd::fleet::Fleet;
use stado_fleet::admit::Snapshot;
use stado_fleet::authority::{self, Source};
use stado_fleet::directory::Directory;
use stado_fleet::document::Registry;
use stado_fleet::link::relay::{Admit, Admitting, Code, Refusal};
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// What was read is believed for so long; what it does not place is looked for again at once.
const BELIEVED: Duration = Duration::from_secs(30);

/// Admits what the directory places here. Whoever runs this over SSH may run any command of this account: the directory
/// keeps a relay to what it is for, and is no wall against its own user.
pub(super) struct Placed {
    fleet: Fleet,
    held: Mutex<Option<(Instant, Arc<Directory>)>>,
}

impl Placed {
    pub(super) fn new(fleet: Fleet) -> Self {
        Self { fleet, held: Mutex::new(None) }
    }

    fn believed(&self, endpoint: SocketAddr) -> bool {
        let held = self.held.lock().unwrap_or_else(PoisonError::into_inner);
        let fresh = held.as_ref().filter(|(read, _)| read.elapsed() < BELIEVED);
        fresh.is_some_and(|(_, directory)| directory.places_here(endpoint))
    }

    async fn judge(&self, endpoint: SocketAddr) -> Result<(), String> {
        if self.believed(endpoint) {
            return Ok(());
        }
        let directory = self.read().await?;
        let (placed, generation) = (directory.places_here(endpoint), directory.generation().map_or(0, |g| g.0));
        let host = directory.host().clone();
        *self.held.lock().unwrap_or_else(PoisonError::into_inner) = Some((Instant::now(), directory));
        placed.then_some(()).ok_or_else(|| {
            format!("service directory generation {generation} places no service at {endpoint} on {host}")
        })
    }

    /// This host's own store when it is the authority, else its copy.
    async fn read(&self) -> Result<Arc<Directory>, String> {
        let fleet = &self.fleet;
        let me = |registry: &Registry| fleet.host.target.clone().or_else(|| fleet.me(registry).ok().flatten());
        let here = authority::here(&me, &fleet.store, &fleet.last_good).await.map_err(|error| error.to_string())?;
        let snapshot: Option<Snapshot> = match &here.source {
            Source::Store(_) => authority::fetch(&here.source, &fleet.link).await.map_err(|error| error.to_string())?,
            Source::Remote(_) => fleet.copy().map(|copy| copy.snapshot),
        };
        let snapshot = snapshot.ok_or("this host holds no service directory yet, so it places no endpoint here")?;
        let registry = snapshot.valid.registry.clone();
        let host = me(&registry).ok_or_else(|| {
            format!("no target of the registry is this host (\"{}\"), so nothing is placed here", fleet.host.hostname)
        })?;
        Ok(Arc::new(Directory::build(registry, host)))
    }
}

impl Admit for Placed {
    fn admit(&self, endpoint: SocketAddr) -> Admitting<'_> {
        Box::pin(async move { self.judge(endpoint).await.map_err(|sentence| Refusal::new(Code::NotPlaced, sentence)) })
    }
}

//! Which endpoints the directory places on this host, as far as this host knows.
use super::belief::Belief;
use super::ends::Ends;
use crate::client::Api;
use crate::cmd::fleet::Fleet;
use stado_fleet::admit::Snapshot;
use stado_fleet::authority::{self, Source};
use stado_fleet::directory::{Directory, Lent};
use stado_fleet::document::Registry;
use stado_fleet::ledger;
use stado_fleet::link::relay::{Admit, Admitting, Code, Explaining, Grant, Refusal, withdrawn};
use std::net::SocketAddr;
use std::time::Duration;

/// What was read is believed for so long; what it does not place is looked for again at once.
pub(super) const BELIEVED: Duration = Duration::from_secs(30);
/// Between two looks at what this host's resolver holds: a stream that is no longer allowed ends within it.
const LOOK: Duration = Duration::from_millis(300);

/// Admits what the directory places here. Whoever runs this over SSH may run any command of this account: the directory
/// keeps a relay to what it is for, and is no wall against its own user. A host that came in by `fleet door` may run nothing
/// else, and is held to what the directory gives it.
pub(super) struct Placed {
    fleet: Fleet,
    /// Of the host that asks, where it is known.
    key: Option<String>,
    held: Belief<Directory, String>,
    ends: Ends,
}

impl Placed {
    /// `daemon`: this host's, which knows what became of connections to its frontends.
    pub(super) fn new(fleet: Fleet, key: Option<String>, daemon: Api) -> Self {
        Self { fleet, key, held: Belief::new(BELIEVED), ends: Ends::new(daemon) }
    }

    /// Reads again what this host's resolver has news of, as long as streams go by it. Never returns.
    pub(super) async fn follow(&self) {
        let mut known = None;
        loop {
            tokio::time::sleep(LOOK).await;
            // Streams listen; without any, the next one reads.
            if !self.held.is_watched() {
                continue;
            }
            let paths = self.fleet.host.published.clone();
            let look = move || {
                let publisher = ledger::publisher(&paths).ok()?;
                publisher.alive().map(|state| (state.generation, state.store_version.clone()))
            };
            let now = tokio::task::spawn_blocking(look).await.ok().flatten();
            if now.is_none() || now == known {
                continue;
            }
            // What cannot be read now is read at the next look.
            if self.held.renew(self.read()).await.is_ok() {
                known = now;
            }
        }
    }

    async fn judge(&self, endpoint: SocketAddr) -> Result<Lent, Refusal> {
        let lends = |directory: &Directory| lend(directory, self.key.as_deref(), endpoint);
        let read = self.held.get(|held| lends(held).is_ok(), self.read()).await;
        lends(&*read.map_err(|why| Refusal::new(Code::NotPlaced, why))?)
    }

    fn grant(&self, lent: Lent) -> Grant {
        let (held, key) = (self.held.watch(), self.key.clone());
        Box::pin(async move {
            let why = withdrawn(held, |read| still(read.as_ref().map(|read| &*read.what), key.as_deref(), &lent)).await;
            let (service, host) = (lent.service(), lent.host());
            tracing::info!(target: "stado::fleet", "stado relay: a stream of {host} to {service} was ended: {why}");
        })
    }

    /// This host's own store when it is the authority, else its copy.
    async fn read(&self) -> Result<Directory, String> {
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
        Ok(Directory::build(registry, host))
    }
}

fn lend(directory: &Directory, key: Option<&str>, endpoint: SocketAddr) -> Result<Lent, Refusal> {
    let Some(key) = key else {
        return directory.lend_to_anybody(endpoint).ok_or_else(|| {
            let (generation, host) = (directory.generation().map_or(0, |g| g.0), directory.host());
            let why = format!("service directory generation {generation} places no service at {endpoint} on {host}");
            Refusal::new(Code::NotPlaced, why)
        });
    };
    let host = directory.registry().host_of_key(key).ok_or_else(|| Refusal::new(Code::Forbidden, STRANGER));
    directory.lend(endpoint, Some(host?)).map_err(|why| Refusal::new(Code::Forbidden, why))
}

fn still(directory: Option<&Directory>, key: Option<&str>, lent: &Lent) -> Result<(), String> {
    let Some(directory) = directory else { return Ok(()) };
    if key.is_some_and(|key| directory.registry().host_of_key(key).is_none()) {
        return Err(STRANGER.to_owned());
    }
    directory.still_lends(lent)
}

/// A host that has left.
const STRANGER: &str = "the registry names no host that has this key any more";

impl Admit for Placed {
    fn admit(&self, endpoint: SocketAddr) -> Admitting<'_> {
        Box::pin(async move { self.judge(endpoint).await.map(|lent| self.grant(lent)) })
    }

    fn why_ended(&self, endpoint: SocketAddr, client: SocketAddr) -> Explaining<'_> {
        let published = self.held.last().and_then(|directory| directory.published_at(endpoint));
        Box::pin(self.ends.why(published, endpoint, client))
    }
}

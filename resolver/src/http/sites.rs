//! Who stands behind which hostname: what the mesh and the fleet claim → the table in force.
//!
//! A service of the mesh wins over one of the fleet, whose hostname is made here and not asked for. What loses is listed
//! with the winner's name. A change rebuilds only the sites that it changes.
use super::site::{Protocol, Site};
use super::stats::SiteStats;
use super::table::Routes;
use crate::conn::ledger::Ledger;
use crate::conn::{Backend, FrontendId};
use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::sync::watch;

/// What is claimed of a hostname.
#[derive(Debug, Clone)]
pub(crate) struct Facts {
    pub(crate) service: Arc<str>,
    /// For an adapter of the fleet; a service of the mesh has none.
    pub(crate) consumer: Option<Arc<str>>,
    pub(crate) host: Arc<str>,
    pub(crate) protocol: Protocol,
    pub(crate) backend: Backend,
    /// Since when, where the claimant knows it; else since the backend was first claimed here.
    pub(crate) since: Option<jiff::Timestamp>,
    pub(crate) budget: Duration,
}

/// A service that another one keeps from its hostname.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Shaded {
    /// Which.
    pub service: Arc<str>,
    /// Its consumer, for an adapter of the fleet.
    pub consumer: Option<Arc<str>>,
    /// Why it is not reached by hostname.
    pub reason: String,
}

/// The claims, and the table that they make.
#[derive(Debug)]
pub struct Sites {
    routes: Arc<Routes>,
    ledger: Ledger,
    claims: Mutex<Claims>,
    shaded: watch::Sender<Vec<Shaded>>,
}

/// The mesh comes first.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
struct Key {
    of_fleet: bool,
    service: Arc<str>,
    consumer: Option<Arc<str>>,
}

#[derive(Debug, Default)]
struct Claims {
    sites: HashMap<Key, Arc<Site>>,
    by_host: HashMap<Arc<str>, BTreeSet<Key>>,
    /// Claims that have no hostname at all, with the reason.
    nameless: Vec<Shaded>,
    contested: BTreeMap<Key, String>,
}

impl Sites {
    /// No claims yet.
    pub(crate) fn new(ledger: Ledger) -> Self {
        Self { routes: Arc::default(), ledger, claims: Mutex::default(), shaded: watch::Sender::default() }
    }

    /// The table, as it changes.
    pub fn routes(&self) -> Arc<Routes> {
        Arc::clone(&self.routes)
    }

    /// What is not reached by hostname although it would be, and why.
    pub fn shaded(&self) -> watch::Receiver<Vec<Shaded>> {
        self.shaded.subscribe()
    }

    /// Makes the table follow what `current` tells of a service of the mesh. Asking under the lock makes the last word of a
    /// name its last state.
    pub(crate) fn set(&self, service: &str, current: impl FnOnce() -> Option<Facts>) {
        let mut claims = self.claims();
        let key = Key { of_fleet: false, service: service.into(), consumer: None };
        let site = current().map(|facts| self.site(facts, claims.sites.get(&key)));
        self.change(&mut claims, vec![(key, site)]);
    }

    /// Makes the table follow the adapters of the fleet; `nameless` are those that no hostname can be made for. Service and
    /// consumer of those that are no longer claimed.
    pub(crate) fn set_fleet(&self, all: Vec<Facts>, nameless: Vec<Shaded>) -> Vec<(Arc<str>, Arc<str>)> {
        let mut claims = self.claims();
        claims.nameless = nameless;
        let mut changes: Vec<(Key, Option<Arc<Site>>)> = Vec::with_capacity(all.len());
        let mut kept = HashSet::new();
        for facts in all {
            let key = Key { of_fleet: true, service: Arc::clone(&facts.service), consumer: facts.consumer.clone() };
            let site = self.site(facts, claims.sites.get(&key));
            if kept.insert(key.clone()) {
                changes.push((key, Some(site)));
            }
        }
        let gone = claims.sites.keys().filter(|key| key.of_fleet && !kept.contains(*key));
        let gone: Vec<Key> = gone.cloned().collect();
        let left = gone.iter().filter_map(|key| Some((Arc::clone(&key.service), key.consumer.clone()?))).collect();
        changes.extend(gone.into_iter().map(|key| (key, None)));
        self.change(&mut claims, changes);
        left
    }

    /// Ends the requests of a service and consumer, for this reason.
    pub(crate) fn withdraw(&self, service: &str, consumer: &str, why: &str) {
        self.ledger.withdraw(service, consumer, why);
    }

    /// The site that `facts` make: the one that stands already, where nothing changed.
    fn site(&self, facts: Facts, before: Option<&Arc<Site>>) -> Arc<Site> {
        let Facts { service, consumer, host, protocol, backend, since, budget } = facts;
        // A hostname is no address of its own: see `FrontendId::is_hostname`.
        let bind = SocketAddr::new(Ipv4Addr::LOCALHOST.into(), 0);
        let frontend = Arc::new(FrontendId { service: Arc::clone(&service), consumer: consumer.clone(), bind });
        let stats: Arc<SiteStats> = before.map(|site| Arc::clone(&site.stats)).unwrap_or_default();
        let slot = before.map_or_else(|| self.ledger.slot(&frontend), |site| Arc::clone(&site.slot));
        let now = jiff::Timestamp::now();
        let site = Site {
            service,
            consumer,
            host,
            protocol,
            backend,
            since: since.unwrap_or(now),
            budget,
            frontend,
            slot,
            stats,
        };
        match before {
            Some(before) if site.same_as(before) && since.is_none_or(|since| since == before.since) => {
                Arc::clone(before)
            }
            _ => Arc::new(site),
        }
    }

    fn change(&self, claims: &mut Claims, changes: Vec<(Key, Option<Arc<Site>>)>) {
        let mut hosts: BTreeSet<Arc<str>> = BTreeSet::new();
        for (key, site) in changes {
            hosts.extend(claims.put(key, site));
        }
        if !hosts.is_empty() {
            let mut table = self.routes.load().as_ref().clone();
            for host in hosts {
                table.set(&host, claims.winner(&host).cloned());
                claims.contest(&host);
            }
            self.routes.store(table);
        }
        let shaded = claims.shaded();
        self.shaded.send_if_modified(|told| {
            let changed = *told != shaded;
            *told = shaded;
            changed
        });
    }

    fn claims(&self) -> MutexGuard<'_, Claims> {
        self.claims.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Claims {
    /// Enters or removes one claim; returns the hostnames whose answer may be another one now.
    fn put(&mut self, key: Key, site: Option<Arc<Site>>) -> Vec<Arc<str>> {
        let before = match &site {
            Some(site) => self.sites.insert(key.clone(), Arc::clone(site)),
            None => self.sites.remove(&key),
        };
        if let (Some(before), Some(site)) = (&before, &site)
            && Arc::ptr_eq(before, site)
        {
            return Vec::new();
        }
        let mut hosts = Vec::new();
        if let Some(before) = before {
            if let Some(keys) = self.by_host.get_mut(&before.host) {
                keys.remove(&key);
                if keys.is_empty() {
                    self.by_host.remove(&before.host);
                }
            }
            self.contested.remove(&key);
            hosts.push(Arc::clone(&before.host));
        }
        if let Some(site) = site {
            self.by_host.entry(Arc::clone(&site.host)).or_default().insert(key);
            hosts.push(Arc::clone(&site.host));
        }
        hosts
    }

    fn winner(&self, host: &str) -> Option<&Arc<Site>> {
        self.sites.get(self.by_host.get(host)?.first()?)
    }

    /// Says of everyone but the first who has the hostname. Consumers of one service share it.
    fn contest(&mut self, host: &str) {
        let Some(keys) = self.by_host.get(host) else { return };
        let Some(winner) = keys.first() else { return };
        for key in keys {
            if key == winner || (key.of_fleet && winner.of_fleet && key.service == winner.service) {
                self.contested.remove(key);
            } else {
                let place = if winner.of_fleet { "of the fleet" } else { "of this machine's mesh" };
                let owner = &winner.service;
                let reason = format!("hostname {host} is already owned by service {owner} {place}");
                self.contested.insert(key.clone(), reason);
            }
        }
    }

    fn shaded(&self) -> Vec<Shaded> {
        let contested = self.contested.iter().map(|(key, reason)| Shaded {
            service: Arc::clone(&key.service),
            consumer: key.consumer.clone(),
            reason: reason.clone(),
        });
        self.nameless.iter().cloned().chain(contested).collect()
    }
}

#[cfg(test)]
#[path = "sites_tests.rs"]
mod tests;

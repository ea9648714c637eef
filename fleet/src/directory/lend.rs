//! What this host lends to others: which of its endpoints a host may reach, and for how long (docs/bridge.md).
use super::{Directory, NoRoute};
use crate::document::{DirectoryService, Registry, Target};
use crate::name::{LogicalName, TargetName};
use std::collections::{HashMap, HashSet};
use std::net::SocketAddr;

/// What a stream was let in for, and for whom.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Lent {
    services: Vec<LogicalName>,
    host: Option<TargetName>,
}

impl Lent {
    /// The service, for a sentence or a count; the first where several share the endpoint.
    pub fn service(&self) -> &str {
        self.services.first().map_or("", LogicalName::as_str)
    }

    /// The host that asked, by its name or as nobody's.
    pub fn host(&self) -> &str {
        self.host.as_ref().map_or("", TargetName::as_str)
    }
}

impl Directory {
    /// Lets `host` reach `endpoint` of this host: a service is placed there, and a host of the fleet has an adapter of its own for
    /// it. Of a key that is no host's nothing more is known than that it may come in.
    ///
    /// # Errors
    /// Why not, in one sentence.
    pub fn lend(&self, endpoint: SocketAddr, host: Option<&TargetName>) -> Result<Lent, String> {
        let placed = self.placed(endpoint, |service| service.active_host == self.host);
        let generation = self.generation().map_or(0, |g| g.0);
        let Some(first) = placed.first() else {
            return Err(format!(
                "service directory generation {generation} places no service at {endpoint} on {}; declare the endpoint with \
                 this host as active_host first",
                self.host
            ));
        };
        let may: Vec<LogicalName> = placed.iter().filter(|service| self.uses(host, service)).cloned().collect();
        if may.is_empty() {
            let why = self.why_not(host, first);
            return Err(format!("service directory generation {generation} does not let {endpoint} be reached: {why}"));
        }
        Ok(Lent { services: may, host: host.cloned() })
    }

    /// Lets whoever asks reach `endpoint` of this host, of which no more is known than that it may come in: where the directory
    /// declares it for any service, also one that another host serves now.
    pub fn lend_to_anybody(&self, endpoint: SocketAddr) -> Option<Lent> {
        let services = self.placed(endpoint, |_| true);
        (!services.is_empty()).then_some(Lent { services, host: None })
    }

    /// Whether a stream that was let in may go on. A service that moved away goes on where it is: a changed endpoint moves new
    /// connections only.
    ///
    /// # Errors
    /// Why not, in one sentence.
    pub fn still_lends(&self, lent: &Lent) -> Result<(), String> {
        let known = |service: &LogicalName| self.services.contains_key(service);
        if lent.services.iter().any(|service| known(service) && self.uses(lent.host.as_ref(), service)) {
            return Ok(());
        }
        match lent.services.iter().find(|service| known(service)).or(lent.services.first()) {
            Some(service) => Err(self.why_not(lent.host.as_ref(), service)),
            None => Ok(()),
        }
    }

    /// The service of this host's mesh that the directory publishes at an address of this host, which serves it.
    pub fn published_at(&self, endpoint: SocketAddr) -> Option<String> {
        let mut here = self.declared_at(endpoint).filter(|(_, service)| service.active_host == self.host);
        here.find_map(|(_, service)| Some(service.published.as_ref()?.mesh.to_string()))
    }

    /// Services that the directory declares at an address of this host, and that are `wanted`.
    fn placed(&self, endpoint: SocketAddr, wanted: impl Fn(&DirectoryService) -> bool) -> Vec<LogicalName> {
        self.declared_at(endpoint).filter(|(_, service)| wanted(service)).map(|(name, _)| name.clone()).collect()
    }

    fn declared_at(&self, endpoint: SocketAddr) -> impl Iterator<Item = (&LogicalName, &DirectoryService)> {
        let services = self.registry.directory.iter().flat_map(|d| &d.services);
        services.filter(move |(_, service)| {
            let declared = service.endpoints.get(&self.host);
            declared.is_some_and(|declared| declared.addr.candidates().contains(&endpoint))
        })
    }

    fn uses(&self, host: Option<&TargetName>, service: &LogicalName) -> bool {
        let Some(host) = host else { return true };
        let all = self.uses.get_or_init(|| uses(&self.registry));
        all.get(host).is_some_and(|services| services.contains(service))
    }

    fn why_not(&self, host: Option<&TargetName>, service: &LogicalName) -> String {
        match host.filter(|_| self.services.contains_key(service)) {
            Some(host) => {
                format!("{host} has no adapter for {service}; `stado service use {service}` there gives it one")
            }
            None => NoRoute::UnknownService(service.to_string()).to_string(),
        }
    }
}

/// The services that each host has an adapter for. A valid registry has none whose consumer may not use its service.
fn uses(registry: &Registry) -> HashMap<TargetName, HashSet<LogicalName>> {
    let used = |target: &Target| {
        let adapters = target.resolver.iter().flat_map(|resolver| &resolver.adapters);
        (target.name.clone(), adapters.map(|adapter| adapter.service.clone()).collect())
    };
    registry.targets.values().map(used).collect()
}

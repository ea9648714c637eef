//! The immutable index (service, consumer, host) → route, built once per change.
mod lend;

pub use lend::Lent;

use crate::document::{DirectoryService, Registry};
use crate::fault::{Blame, Class, Faulty};
use crate::name::{ConnectionPath, ConsumerId, Endpoint, Generation, LogicalName, TargetName};
use std::collections::{HashMap, HashSet};
use std::sync::{Arc, OnceLock};

/// Where a service is, as seen from one host.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Route {
    /// Service.
    pub service: LogicalName,
    /// Placed on.
    pub active_host: TargetName,
    /// Its address there.
    pub endpoint: Endpoint,
    /// Capabilities of the asking consumer.
    pub capabilities: Vec<String>,
    /// How to reach the host; empty when it is this host. Shared by all routes to it.
    pub paths: Arc<[ConnectionPath]>,
    /// Whether the active host is this host.
    pub local: bool,
    /// `stado_command` of the active host.
    pub stado_command: Option<String>,
}

/// Why the directory gives no route. `Display` is the sentence of fleet contract §4.4.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum NoRoute {
    /// Not in the directory.
    #[error("unknown logical service \"{0}\"")]
    UnknownService(String),
    /// Consumer is not declared.
    #[error("consumer \"{consumer}\" is not authorized for service \"{service}\"")]
    NotAuthorized {
        /// Service.
        service: LogicalName,
        /// Consumer.
        consumer: String,
    },
    /// A placement transaction holds it.
    #[error("service \"{service}\" is unavailable during placement transaction for \"{profile}\"")]
    InTransaction {
        /// Service.
        service: LogicalName,
        /// Profile.
        profile: String,
    },
    /// No endpoint on the active host.
    #[error("service \"{0}\" has no endpoint on its active host")]
    NoEndpoint(LogicalName),
}

impl Faulty for NoRoute {
    fn blame(&self) -> Blame {
        match self {
            Self::UnknownService(_) => Blame::Caller,
            Self::NotAuthorized { .. } => Blame::Credentials,
            Self::InTransaction { .. } | Self::NoEndpoint(_) => Blame::Remote,
        }
    }
    fn class(&self) -> Class {
        match self {
            Self::UnknownService(_) => Class::NotFound,
            Self::NotAuthorized { .. } => Class::Auth,
            Self::InTransaction { .. } => Class::InfraDown,
            Self::NoEndpoint(_) => Class::Config,
        }
    }
}

/// The index for one host.
#[derive(Debug)]
pub struct Directory {
    host: TargetName,
    registry: Arc<Registry>,
    services: HashMap<LogicalName, Entry>,
    /// What other hosts may use, once somebody asks.
    uses: OnceLock<HashMap<TargetName, HashSet<LogicalName>>>,
}

/// One service: what each of its consumers gets.
#[derive(Debug)]
struct Entry {
    service: LogicalName,
    /// Why no consumer gets a route, when that is so; asked only after the consumer is known to be authorized.
    withheld: Option<NoRoute>,
    /// Sorted by consumer. Few services have many, and a list of two is found faster than it is hashed.
    routes: Box<[(ConsumerId, Option<Arc<Route>>)]>,
}

impl Directory {
    /// Builds the index as seen from `host`.
    pub fn build(registry: Arc<Registry>, host: TargetName) -> Self {
        let far = registry.targets.values().filter(|target| target.name != host);
        let paths = far.map(|target| (&target.name, target.paths.as_slice().into())).collect();
        let view = View { registry: &registry, host: &host, paths, none: [].into() };
        let services = registry.directory.iter().flat_map(|d| &d.services);
        let services = services.map(|(name, service)| (name.clone(), view.entry(name, service))).collect();
        Self { host, services, registry, uses: OnceLock::new() }
    }

    /// The host it was built for.
    pub fn host(&self) -> &TargetName {
        &self.host
    }

    /// The registry behind it.
    pub fn registry(&self) -> &Arc<Registry> {
        &self.registry
    }

    /// Generation; `None` when the registry has no directory.
    pub fn generation(&self) -> Option<Generation> {
        self.registry.directory.as_ref().map(|d| d.generation)
    }

    /// The route for one consumer. A hash lookup and a short search; nothing is copied.
    pub fn resolve(&self, service: &str, consumer: &str) -> Result<Arc<Route>, NoRoute> {
        let entry = self.services.get(service).ok_or_else(|| NoRoute::UnknownService(service.to_owned()))?;
        let not_authorized =
            || NoRoute::NotAuthorized { service: entry.service.clone(), consumer: consumer.to_owned() };
        let at = entry.routes.binary_search_by(|(known, _)| known.as_str().cmp(consumer));
        let (_, route) = at.ok().and_then(|at| entry.routes.get(at)).ok_or_else(not_authorized)?;
        match (&entry.withheld, route) {
            (None, Some(route)) => Ok(route.clone()),
            (Some(why), _) => Err(why.clone()),
            (None, None) => Err(NoRoute::NoEndpoint(entry.service.clone())),
        }
    }
}

/// The registry as one host sees it, while the index is built.
struct View<'r> {
    registry: &'r Registry,
    host: &'r TargetName,
    /// Of every other host.
    paths: HashMap<&'r TargetName, Arc<[ConnectionPath]>>,
    none: Arc<[ConnectionPath]>,
}

impl View<'_> {
    fn entry(&self, name: &LogicalName, service: &DirectoryService) -> Entry {
        let withheld = self
            .registry
            .transaction_over(name, service)
            .map(|profile| NoRoute::InTransaction { service: name.clone(), profile });
        let routes = service
            .consumers
            .iter()
            .map(|(consumer, capabilities)| (consumer.clone(), self.route(name, service, capabilities).map(Arc::new)));
        let mut routes: Box<[_]> = routes.collect();
        routes.sort_unstable_by(|(a, _), (b, _)| a.cmp(b));
        Entry { service: name.clone(), withheld, routes }
    }

    fn route(&self, name: &LogicalName, service: &DirectoryService, capabilities: &[String]) -> Option<Route> {
        let host = &service.active_host;
        let endpoint = *service.endpoints.get(host)?;
        Some(Route {
            service: name.clone(),
            active_host: host.clone(),
            endpoint,
            capabilities: capabilities.to_vec(),
            paths: Arc::clone(self.paths.get(host).unwrap_or(&self.none)),
            local: host == self.host,
            stado_command: self.registry.targets.get(host).and_then(|t| t.stado_command.clone()),
        })
    }
}

impl Registry {
    /// The host of the fleet that has this key, as `type base64`.
    pub fn host_of_key(&self, key: &str) -> Option<&TargetName> {
        let mut targets = self.targets.values();
        targets.find(|target| target.resolver_keys.iter().any(|own| own == key)).map(|target| &target.name)
    }

    /// The profile whose transaction holds the service: the one it names, or one that lists it.
    pub fn transaction_over(&self, name: &LogicalName, service: &DirectoryService) -> Option<String> {
        let holds = |profile: &String| {
            service.placement_profile.as_ref() == Some(profile)
                || self.profiles.get(profile).is_some_and(|services| services.contains(name))
        };
        self.transactions.iter().map(|t| &t.profile).find(|profile| holds(profile)).cloned()
    }
}

#[cfg(test)]
mod tests;

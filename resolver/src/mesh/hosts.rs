//! Hostnames of http services: the one that a registration gets, and what the router is told of it.
use super::clock::Now;
use super::error::Refusal;
use super::record::{Kind, Place, Record};
use super::{Mesh, names};
use crate::http::{Facts, Listening, Protocol, Sites, hostname};
use stado_fleet::name::ServiceName;
use stado_fleet::wire::CertificateList;
use std::sync::Arc;
use std::time::Duration;

/// Why there is no URL as long as nobody has started a router.
pub(super) const NO_ROUTER: &str = "the HTTP router is off; --http-enabled (http.enabled in the file) turns it on";

/// A dial of a mesh service takes at most this long, as at its frontend (design, choices).
const DIAL_BUDGET: Duration = Duration::from_secs(3);

impl Mesh {
    /// What the router looks requests up in.
    pub fn sites(&self) -> Arc<Sites> {
        Arc::clone(&self.sites)
    }

    /// Where the router listens.
    pub fn router(&self) -> Arc<Listening> {
        self.router.load_full()
    }

    /// What the router's certificates are; none without a router.
    pub async fn certificates(&self) -> CertificateList {
        let Some(tell) = self.router().certificates.clone() else { return CertificateList::default() };
        // An error would mean that reading the files panicked.
        tokio::task::spawn_blocking(move || tell()).await.unwrap_or_default()
    }

    /// Makes `listening` what URLs are made from; whoever listens is told of every http service's address.
    pub fn set_router(&self, listening: Listening) {
        let before = self.router.swap(Arc::new(listening));
        if before.shows_the_same(&self.router.load()) {
            return;
        }
        let http: Vec<ServiceName> = {
            let core = self.read();
            let http = core.registry.iter().filter(|(_, record)| record.kind == Kind::Http);
            http.map(|(name, _)| name.clone()).collect()
        };
        http.iter().for_each(|name| self.tell(name));
    }

    /// The hostname that a registration of `name` asks for, else the one that it has, else one label of its name.
    pub(crate) fn hostname(&self, name: &ServiceName, wish: &str) -> Result<String, Refusal> {
        if !wish.trim().is_empty() {
            return names::hostname(wish);
        }
        if let Some(host) = self.read().registry.get(name).and_then(|record| record.hostname.clone()) {
            return Ok(host);
        }
        let made = hostname::of_service(name.as_str()).map_err(Refusal::Request)?;
        names::hostname(&made)
    }

    /// Makes the router follow what the core says of `name`.
    pub(super) fn settle_host(&self, name: &ServiceName) {
        self.sites.set(name.as_str(), || facts(name, self.read().registry.get(name)?));
    }

    /// Enters an http service of an earlier run.
    pub(super) fn remember_host(&self, name: ServiceName, host: String, reason: &str, now: Now) {
        self.write().registry.remember(name.clone(), Kind::Http, Place::Host(host), reason, now);
        self.settle_host(&name);
    }
}

fn facts(name: &ServiceName, record: &Record) -> Option<Facts> {
    Some(Facts {
        service: name.as_str().into(),
        consumer: None,
        host: record.hostname.as_deref()?.into(),
        protocol: Protocol::of(&record.app_protocol),
        backend: record.stands_behind(),
        since: Some(record.since.wall),
        budget: DIAL_BUDGET,
    })
}

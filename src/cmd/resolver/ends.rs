//! What this host's daemon knows of connections to its frontends that ended without a word.
use super::placed::BELIEVED;
use crate::client::Api;
use stado_fleet::wire::{Frontend, Service};
use std::collections::HashMap;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// For what the daemon of this host knows of a connection.
const EXPLAINED: Duration = Duration::from_millis(500);
const AGAIN: Duration = Duration::from_millis(10);

/// Asks the daemon of this host why connections ended.
pub(super) struct Ends {
    daemon: Api,
    frontends: Mutex<Frontends>,
}

/// Names of services by their frontends, as they were last listed.
#[derive(Default)]
struct Frontends {
    listed: Option<Instant>,
    names: HashMap<SocketAddr, String>,
}

impl Ends {
    pub(super) fn new(daemon: Api) -> Self {
        Self { daemon: daemon.with_timeout(EXPLAINED), frontends: Mutex::default() }
    }

    /// What the daemon says of the connection that came from `client` to the frontend at `endpoint`, which is that of the service
    /// `published` where the directory knows it.
    pub(super) async fn why(
        &self,
        published: Option<String>,
        endpoint: SocketAddr,
        client: SocketAddr,
    ) -> Option<String> {
        let name = match published {
            Some(name) => name,
            None => self.frontend(endpoint).await?,
        };
        let until = Instant::now() + EXPLAINED;
        let client = client.to_string();
        loop {
            let service = self.daemon.inspect(&name).await.ok()?;
            // Such a connection is closed before it is in any list.
            if service.status != "ready" {
                return Some(format!("no backend: {}", service.reason.unwrap_or_default()));
            }
            let ended = self.daemon.connections(&name).await.ok()?.ended;
            if let Some(ended) = ended.into_iter().find(|ended| ended.client == client) {
                return ended.reason;
            }
            // The daemon closes its book a moment after its client sees the end.
            if Instant::now() >= until {
                return None;
            }
            tokio::time::sleep(AGAIN).await;
        }
    }

    /// The service of the frontend at `endpoint`.
    async fn frontend(&self, endpoint: SocketAddr) -> Option<String> {
        let known = {
            let frontends = self.frontends.lock().unwrap_or_else(PoisonError::into_inner);
            let fresh = frontends.listed.is_some_and(|listed| listed.elapsed() < BELIEVED);
            fresh.then(|| frontends.names.get(&endpoint).cloned())
        };
        if let Some(known) = known {
            return known;
        }
        // A host without a daemon has no frontends either.
        let services = self.daemon.list().await.unwrap_or_default();
        let at = |service: Service| {
            let Frontend { host, port, .. } = service.frontend;
            Some((SocketAddr::new(host.parse().ok()?, port), service.name))
        };
        let names: HashMap<SocketAddr, String> = services.into_iter().filter_map(at).collect();
        // Both halves of a loopback pair are one frontend, which is listed by the first.
        let found =
            names.get(&endpoint).or_else(|| names.get(&SocketAddr::from((Ipv4Addr::LOCALHOST, endpoint.port()))));
        let found = found.cloned();
        let mut frontends = self.frontends.lock().unwrap_or_else(PoisonError::into_inner);
        *frontends = Frontends { listed: Some(Instant::now()), names };
        if let Some(found) = &found {
            frontends.names.insert(endpoint, found.clone());
        }
        found
    }
}

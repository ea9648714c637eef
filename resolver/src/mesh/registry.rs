//! Who owns which name: the pure core. It does no I/O, takes `now` as an argument, and hands out copies
//! (`mesh.md`, data model and ownership; mesh contract §1.5, steps 8 to 10).
use super::clock::Now;
use super::error::Refusal;
use super::record::{Kind, Place, Publication, Record};
use stado_fleet::name::ServiceName;
use std::collections::{BTreeMap, HashMap};
use std::net::SocketAddr;

/// All names of one mesh.
#[derive(Debug, Default)]
pub(super) struct Registry {
    services: BTreeMap<ServiceName, Record>,
    hostnames: HashMap<String, ServiceName>,
    backend_ports: HashMap<u16, usize>,
}

impl Registry {
    /// One record.
    pub(super) fn get(&self, name: &ServiceName) -> Option<&Record> {
        self.services.get(name)
    }

    /// All records, by name.
    pub(super) fn iter(&self) -> impl Iterator<Item = (&ServiceName, &Record)> {
        self.services.iter()
    }

    /// Whether some current backend listens on `port`, so that no frontend may take it (proxy rule 4).
    pub(super) fn is_backend_port(&self, port: u16) -> bool {
        self.backend_ports.contains_key(&port)
    }

    /// Enters a name of an earlier run, without a producer. A name that is known already is left alone.
    pub(super) fn remember(&mut self, name: ServiceName, kind: Kind, place: Place, reason: &str, now: Now) {
        let (frontend, hostname) = match place {
            Place::Port(addr) => (Some(addr), None),
            Place::Host(host) => (None, Some(host)),
        };
        if self.services.contains_key(&name) || hostname.as_ref().is_some_and(|h| self.hostnames.contains_key(h)) {
            return;
        }
        if let Some(host) = &hostname {
            self.hostnames.insert(host.clone(), name.clone());
        }
        let record = Record {
            kind,
            app_protocol: String::new(),
            source: None,
            owner_key: String::new(),
            producer_id: String::new(),
            container_id: String::new(),
            backend: None,
            frontend,
            hostname,
            publish: false,
            reason: reason.into(),
            note: None,
            since: now,
        };
        self.services.insert(name, record);
    }

    /// Enters what another process knew of a name.
    pub(super) fn take_up(&mut self, name: ServiceName, record: Record) {
        if let Some(host) = &record.hostname {
            self.hostnames.insert(host.clone(), name.clone());
        }
        if let Some(backend) = &record.backend {
            *self.backend_ports.entry(backend.port).or_default() += 1;
        }
        self.services.insert(name, record);
    }

    /// Whether `claim` may be published now: kind and hostname fixed, hostname unique, name not held by another owner.
    pub(super) fn check(&self, claim: &Publication) -> Result<(), Refusal> {
        let name = &claim.name;
        let known = self.services.get(name);
        if let Some(record) = known.filter(|r| r.is_settled()) {
            if record.kind != claim.kind {
                let kind = record.kind.as_str();
                return conflict(format!(
                    "service {name} already exists with kind {kind}; kind is immutable until daemon restart"
                ));
            }
            if record.hostname != claim.hostname {
                let host = record.hostname.as_deref().unwrap_or_default();
                return conflict(format!(
                    "service {name} already owns hostname {host}; hostname is immutable until daemon restart"
                ));
            }
        }
        // Also a name that only an earlier run knew keeps its hostname, as it keeps its port.
        if let Some(owner) = self.hostname_owner(claim) {
            let host = claim.hostname.as_deref().unwrap_or_default();
            return conflict(format!("hostname {host} is already owned by service {owner}"));
        }
        match known {
            // A producer may change its own owner key: a container that is renamed is still that container.
            Some(record)
                if record.backend.is_some()
                    && record.owner_key != claim.owner_key
                    && record.producer_id != claim.producer_id =>
            {
                conflict(format!("service {name} is already owned by another registration"))
            }
            _ => Ok(()),
        }
    }

    /// Makes `claim` the current publication of its name, with the port it was given.
    pub(super) fn publish(
        &mut self,
        claim: Publication,
        frontend: Option<SocketAddr>,
        now: Now,
    ) -> Result<(), Refusal> {
        self.check(&claim)?;
        let old = self.forget(&claim.name);
        if let Some(host) = &claim.hostname {
            self.hostnames.insert(host.clone(), claim.name.clone());
        }
        *self.backend_ports.entry(claim.backend.port).or_default() += 1;
        let record = Record {
            kind: claim.kind,
            app_protocol: claim.app_protocol,
            source: Some(claim.source),
            owner_key: claim.owner_key,
            producer_id: claim.producer_id,
            container_id: claim.container_id,
            backend: Some(claim.backend),
            frontend,
            hostname: claim.hostname,
            publish: claim.publish,
            reason: "".into(),
            note: None,
            since: old.filter(|r| r.backend.is_some()).map_or(now, |r| r.since),
        };
        self.services.insert(claim.name, record);
        Ok(())
    }

    /// Takes away the backend of `name` if `producer_id` still is its current producer. `false`: a stale goodbye.
    pub(super) fn withdraw(&mut self, name: &ServiceName, producer_id: &str, reason: &str, now: Now) -> bool {
        let Some(record) = self.services.get_mut(name) else { return false };
        if record.producer_id != producer_id {
            return false;
        }
        let Some(backend) = record.backend.take() else { return false };
        record.reason = reason.into();
        record.since = now;
        release(&mut self.backend_ports, backend.port);
        true
    }

    /// The names whose current producer is `producer_id`, with a backend or without.
    pub(super) fn names_of(&self, producer_id: &str) -> Vec<ServiceName> {
        let of = self.services.iter().filter(|(_, record)| record.producer_id == producer_id);
        of.map(|(name, _)| name.clone()).collect()
    }

    /// Notes something worth showing beside what `producer_id` published.
    pub(super) fn note(&mut self, name: &ServiceName, producer_id: &str, note: Option<&str>) {
        if let Some(record) = self.services.get_mut(name).filter(|record| record.producer_id == producer_id) {
            record.note = note.map(str::to_owned);
        }
    }

    /// Says why a name without a backend has none; nothing for a ready one.
    pub(super) fn explain(&mut self, name: &ServiceName, reason: &str) {
        if let Some(record) = self.services.get_mut(name).filter(|r| r.backend.is_none()) {
            record.reason = reason.into();
        }
    }

    /// Gives `name` another address. Without a backend, its time of absence begins anew there.
    pub(super) fn move_frontend(&mut self, name: &ServiceName, frontend: SocketAddr, now: Now) {
        let Some(record) = self.services.get_mut(name) else { return };
        record.frontend = Some(frontend);
        if record.backend.is_none() {
            record.reason = "moved to another port, no producer since".into();
            record.since = now;
        }
    }

    /// Removes a name with all that is known of it.
    pub(super) fn forget(&mut self, name: &ServiceName) -> Option<Record> {
        let record = self.services.remove(name)?;
        if let Some(host) = &record.hostname {
            self.hostnames.remove(host);
        }
        if let Some(backend) = &record.backend {
            release(&mut self.backend_ports, backend.port);
        }
        Some(record)
    }

    /// Gives the record of `from` the name `to`; its address, backend and owner stay.
    pub(super) fn rename(&mut self, from: &ServiceName, to: &ServiceName) -> Result<(), Refusal> {
        if self.services.contains_key(to) {
            return conflict(format!("service {to} already exists; forget it first, or choose another name"));
        }
        let record = self.services.remove(from).ok_or_else(|| Refusal::NoService(from.to_string()))?;
        if let Some(host) = &record.hostname {
            self.hostnames.insert(host.clone(), to.clone());
        }
        self.services.insert(to.clone(), record);
        Ok(())
    }

    /// Names with a port and without a backend since at least `grace`.
    pub(super) fn idle(&self, grace: std::time::Duration, now: Now) -> impl Iterator<Item = &ServiceName> {
        self.services.iter().filter_map(move |(name, record)| {
            let idle = record.backend.is_none() && now.tick.saturating_sub(record.since.tick) >= grace;
            (idle && record.frontend.is_some()).then_some(name)
        })
    }

    fn hostname_owner(&self, claim: &Publication) -> Option<&ServiceName> {
        let owner = claim.hostname.as_ref().and_then(|host| self.hostnames.get(host));
        owner.filter(|owner| **owner != claim.name)
    }
}

fn conflict<T>(text: String) -> Result<T, Refusal> {
    Err(Refusal::Conflict(text))
}

fn release(ports: &mut HashMap<u16, usize>, port: u16) {
    if let Some(count) = ports.get_mut(&port) {
        *count -= 1;
        if *count == 0 {
            ports.remove(&port);
        }
    }
}

#[cfg(test)]
#[path = "registry_tests.rs"]
mod tests;

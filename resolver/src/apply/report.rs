//! Tells others how the fleet side stands: the state file, and a watch for the daemon's own announcements.
use super::follow::HeardBy;
use super::held::Held;
use super::state::{Listeners, Phase, Progress, compose};
use crate::publish::Publisher;
use stado_fleet::authority::Holding;
use stado_fleet::ledger::{LinkState, Unserved};
use stado_fleet::link::{Link, RoadReport};
use std::collections::BTreeSet;
use std::net::SocketAddr;
use std::sync::Arc;
use tokio::sync::watch;

/// How the fleet side stands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FleetReport {
    /// Phase.
    pub phase: Phase,
    /// Why it is not serving.
    pub reason: Option<String>,
    /// This host, once known.
    pub target: Option<String>,
    /// Directory generation held.
    pub generation: Option<u64>,
    /// Resolution API.
    pub api: Option<SocketAddr>,
    /// Adapters that serve.
    pub adapters: usize,
    /// What does not, with reasons.
    pub unserved: Vec<Unserved>,
    /// Things worth saying.
    pub warnings: Vec<String>,
}

/// What is, and is not, served outside the walk: the mesh, the gate, containers, the object API.
#[derive(Debug, Clone, Default)]
pub struct Elsewhere {
    /// What makes this host less than ready.
    pub unserved: Vec<Unserved>,
    /// What is worth saying, and was logged where it was found.
    pub warnings: Vec<String>,
    /// The same, of the router.
    pub router: Vec<String>,
    /// The same, of what this host publishes.
    pub bridge: Vec<String>,
    /// The same, of invitations.
    pub invitations: Vec<String>,
    /// The object API of this daemon, when it serves one.
    pub object_api: Option<String>,
    /// The index of what is served by hostname.
    pub index: Option<String>,
    /// Its namespaces that are closed.
    pub closed: Vec<Unserved>,
}

/// Where reports go.
pub struct Reporter {
    publisher: Publisher,
    report: watch::Sender<Option<FleetReport>>,
    elsewhere: watch::Receiver<Elsewhere>,
    link: Link,
    heard_by: watch::Sender<HeardBy>,
    holding: watch::Sender<Option<Holding>>,
    said: BTreeSet<String>,
}

impl Reporter {
    /// Over a started publisher.
    pub fn new(
        publisher: Publisher,
        report: watch::Sender<Option<FleetReport>>,
        elsewhere: watch::Receiver<Elsewhere>,
        link: Link,
        heard_by: watch::Sender<HeardBy>,
        holding: watch::Sender<Option<Holding>>,
    ) -> Self {
        Self { publisher, report, elsewhere, link, heard_by, holding, said: BTreeSet::new() }
    }

    /// Publishes what holds now.
    pub fn publish(
        &mut self,
        progress: &Progress,
        held: Option<Arc<Held>>,
        mut listeners: Listeners,
        last_good_refusal: Option<&'static str>,
    ) {
        self.say_warnings(&listeners.warnings);
        let (object_api, index) = {
            let elsewhere = self.elsewhere.borrow();
            (elsewhere.object_api.clone(), elsewhere.index.clone())
        };
        {
            let elsewhere = self.elsewhere.borrow();
            listeners.unserved.extend(elsewhere.unserved.iter().chain(&elsewhere.closed).cloned());
            let more = elsewhere.warnings.iter().chain(&elsewhere.router).chain(&elsewhere.bridge);
            listeners.warnings.extend(more.chain(&elsewhere.invitations).cloned());
        }
        let report = FleetReport {
            phase: progress.phase,
            reason: progress.reason.clone(),
            target: held.as_ref().map(|held| held.target.to_string()),
            generation: held.as_ref().and_then(|held| held.directory.generation()).map(|g| g.0),
            api: listeners.api_bind,
            adapters: listeners.adapters.len(),
            unserved: listeners.unserved.clone(),
            warnings: listeners.warnings.clone(),
        };
        self.tell_holding(progress, held.as_deref());
        let progress = progress.clone();
        let changes = match &*self.heard_by.borrow() {
            HeardBy::Nothing => None,
            HeardBy::Watch => Some("watched".to_owned()),
            HeardBy::Reading(why) => Some(format!("read every refresh_seconds: {why}")),
        };
        let links = self.link.roads().into_iter().map(link_state).collect();
        self.publisher.update(move |state| {
            compose(state, &progress, held.as_deref(), listeners, last_good_refusal);
            state.links = links;
            state.changes = changes;
            state.object_api = object_api;
            state.index = index;
        });
        self.report.send_if_modified(|last| {
            let changed = last.as_ref() != Some(&report);
            *last = Some(report);
            changed
        });
    }

    /// For the authority, which keeps a list of who holds what.
    fn tell_holding(&self, progress: &Progress, held: Option<&Held>) {
        let holding = held.map(|held| Holding {
            target: held.target.to_string(),
            state: progress.phase.as_str().to_owned(),
            generation: held.directory.generation().map(|g| g.0),
            store_version: Some(held.snapshot.store_version.to_string()),
            epoch: held.epoch(),
            refused: progress.refused.clone(),
        });
        self.holding.send_if_modified(|told| {
            let changed = *told != holding;
            *told = holding;
            changed
        });
    }

    /// Each warning once, for as long as it holds.
    fn say_warnings(&mut self, warnings: &[String]) {
        let now: BTreeSet<String> = warnings.iter().cloned().collect();
        for warning in now.difference(&self.said) {
            tracing::warn!(target: "stado::fleet", "stado resolver: {warning}");
        }
        self.said = now;
    }

    /// The writer of the published files.
    pub fn publisher(&mut self) -> &mut Publisher {
        &mut self.publisher
    }

    /// The last word of this process: what it no longer serves, and why.
    pub async fn end(self, phase: Phase, reason: String) {
        let progress = Progress { phase, reason: Some(reason), ..Progress::default() };
        self.publisher.finish(move |state| compose(state, &progress, None, Listeners::default(), None)).await;
    }
}

fn link_state(road: RoadReport) -> LinkState {
    LinkState {
        host: road.host.to_string(),
        carrier: road.carrier.to_owned(),
        path: road.path,
        reason: road.reason,
        rtt_us: road.rtt.map(|rtt| u64::try_from(rtt.as_micros()).unwrap_or(u64::MAX)),
        streams: u64::try_from(road.streams).unwrap_or(u64::MAX),
    }
}

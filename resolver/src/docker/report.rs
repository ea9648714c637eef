//! What people are told: each refusal with the time it holds since, each line at most once a minute.
use super::engine::About;
use super::refusal::Refusal;
use jiff::Timestamp;
use stado_fleet::wire::{EngineReport, Refused, RefusedList};
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::time::Duration;
use tokio::time::Instant;

/// Container id, service, label.
type Key = (String, String, String);

/// The ledger of refusals, and the engine's state.
#[derive(Debug)]
pub(super) struct Report {
    engine: EngineReport,
    refused: BTreeMap<Key, Refused>,
    said: HashMap<String, Instant>,
    /// What the log said of the engine last.
    told: String,
    /// Labels without a meaning that the log named, by container id.
    unknown: BTreeSet<(String, String)>,
    repeat: Duration,
}

impl Report {
    pub(super) fn new(endpoint: String, now: Timestamp, repeat: Duration) -> Self {
        let engine = EngineReport { status: "degraded".into(), since: stamp(now), endpoint, ..EngineReport::default() };
        let (refused, said, unknown) = (BTreeMap::new(), HashMap::new(), BTreeSet::new());
        Self { engine, refused, said, told: String::new(), unknown, repeat }
    }

    /// The engine answers.
    pub(super) fn up(&mut self, about: &About, now: Timestamp) {
        let since = if self.engine.status == "connected" { self.engine.since.clone() } else { stamp(now) };
        let (endpoint, version) = (about.endpoint.clone(), about.version.clone());
        self.engine = EngineReport { status: "connected".into(), since, endpoint, version, reached: true, error: None };
    }

    /// The engine does not answer.
    pub(super) fn down(&mut self, place: String, error: String, now: Timestamp) {
        if self.engine.status == "connected" {
            self.engine.since = stamp(now);
        }
        self.engine.status = "degraded".into();
        self.engine.endpoint = place;
        self.engine.error = Some(error);
    }

    /// Logs what the engine is now, unless the log's last word says so already. A line that was said less than a minute
    /// ago waits, and is said then if it is still true: the last word is never one that does not hold any more.
    pub(super) fn tell_engine(&mut self, at: Instant) {
        let EngineReport { status, endpoint, version, reached, error, .. } = self.engine.clone();
        let line = match &error {
            Some(error) => format!("docker_degraded {error}"),
            None if status == "connected" => format!("docker_connected {endpoint} {version}"),
            None => return,
        };
        if self.told == line || !self.may_say(line.clone(), at) {
            return;
        }
        self.told = line;
        match error {
            None => tracing::info!(target: "stado::mesh", engine = endpoint, version, "docker_connected"),
            Some(error) if reached => tracing::warn!(target: "stado::mesh", error, "docker_degraded"),
            // A machine without an engine is no trouble.
            Some(error) => tracing::info!(target: "stado::mesh", error, "docker_degraded"),
        }
    }

    /// What is refused now. Times of what was refused before are kept.
    pub(super) fn refused(&mut self, all: impl IntoIterator<Item = Refusal>, now: Timestamp, at: Instant) {
        let mut next = BTreeMap::new();
        for refusal in all {
            let key = (refusal.container_id.clone(), refusal.service.clone(), refusal.label.clone());
            let reason = refusal.reason();
            let before = self.refused.get(&key).filter(|before| before.reason == reason);
            let since = before.map_or_else(|| stamp(now), |before| before.since.clone());
            if before.is_none() && self.may_say(format!("docker_refused {} {reason}", refusal.container_id), at) {
                say(&refusal, &reason);
            }
            next.insert(key, row(&refusal, reason, since));
        }
        self.refused = next;
    }

    /// Labels that mean nothing, all of them: container id, container name, label. Each is named once in the life of its
    /// container. Returns how many are new.
    pub(super) fn unknown_labels<'a>(&mut self, all: impl Iterator<Item = (&'a str, &'a str, &'a str)>) -> usize {
        let before = std::mem::take(&mut self.unknown);
        let mut new = 0;
        for (id, container, label) in all {
            let key = (id.to_owned(), label.to_owned());
            if !before.contains(&key) {
                new += 1;
                tracing::warn!(target: "stado::mesh", container, label, "docker_label_unknown");
            }
            self.unknown.insert(key);
        }
        new
    }

    /// The whole, for `GET /v1/refused`.
    pub(super) fn list(&self) -> RefusedList {
        let mut refused: Vec<Refused> = self.refused.values().cloned().collect();
        refused.sort_by(|a, b| (&a.container, &a.service, &a.label).cmp(&(&b.container, &b.service, &b.label)));
        RefusedList { docker: Some(self.engine.clone()), refused }
    }

    fn may_say(&mut self, line: String, at: Instant) -> bool {
        let repeat = self.repeat;
        self.said.retain(|_, said| at.saturating_duration_since(*said) < repeat);
        if self.said.contains_key(&line) {
            return false;
        }
        self.said.insert(line, at);
        true
    }
}

fn say(refusal: &Refusal, reason: &str) {
    let Refusal { container, service, .. } = refusal;
    let remedy = refusal.remedy();
    if refusal.is_superseded() {
        tracing::info!(target: "stado::mesh", container, service, reason, "docker_superseded");
    } else {
        tracing::warn!(target: "stado::mesh", container, service, reason, remedy, "docker_refused");
    }
}

fn row(refusal: &Refusal, reason: String, since: String) -> Refused {
    Refused {
        source: "docker".into(),
        service: refusal.service.clone(),
        container: refusal.container.clone(),
        container_id: refusal.container_id.clone(),
        label: refusal.label.clone(),
        remedy: refusal.remedy(),
        served: refusal.is_served(),
        reason,
        since,
    }
}

fn stamp(now: Timestamp) -> String {
    Timestamp::from_second(now.as_second()).unwrap_or(now).to_string()
}

#[cfg(test)]
#[path = "report_tests.rs"]
mod tests;

//! What is known of each labelled container, and which are to be inspected when. Pure: `now` is passed in.
use super::backoff::NOT_PUBLISHED;
use super::claims::{Verdict, judge};
use super::container::Container;
use super::engine::{Event, Listed, What};
use super::labels;
use super::plan::Judged;
use super::reach::Reach;
use super::refusal::{Refusal, Why};
use std::collections::{BTreeMap, BTreeSet, HashSet};
use tokio::time::Instant;

/// All known containers.
#[derive(Debug, Default)]
pub(super) struct Book {
    entries: BTreeMap<String, Entry>,
    due: BTreeSet<(Instant, String)>,
    births: u64,
    allow_exposed: bool,
    pub(super) reach: Reach,
}

/// One container.
#[derive(Debug)]
struct Entry {
    /// Tells this entry from a former one of the same container.
    birth: u64,
    name: String,
    digest: String,
    asks_for: BTreeSet<String>,
    container: Option<Container>,
    verdict: Verdict,
    due: Option<Instant>,
    asked: bool,
    /// It changed while it was asked for.
    again: bool,
    /// Inspections that found the port not published yet.
    tries: usize,
    /// The schedule has ended once without the port: it is a refusal until the port is there.
    exhausted: bool,
    error: Option<String>,
}

/// An inspection to make.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Question {
    /// The container.
    pub(super) id: String,
    birth: u64,
}

/// A container that ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Gone {
    /// The container.
    pub(super) id: String,
    /// Why its services have no backend now.
    pub(super) reason: String,
    /// It had a claim to services.
    pub(super) served: bool,
}

impl Book {
    pub(super) fn new(allow_exposed: bool) -> Self {
        Self { allow_exposed, ..Self::default() }
    }

    /// Takes a list of everything that runs. Returns what is no longer in it.
    pub(super) fn listed(&mut self, list: Vec<Listed>, now: Instant) -> Vec<Gone> {
        let there: BTreeSet<&str> = list.iter().map(|listed| listed.id.as_str()).collect();
        let missing: Vec<String> = self.entries.keys().filter(|id| !there.contains(id.as_str())).cloned().collect();
        let gone = missing.iter().map(|id| self.remove(id, "is gone")).collect();
        for listed in list {
            let Some(entry) = self.entries.get_mut(&listed.id) else {
                self.enter(listed, now);
                continue;
            };
            // An entry that an event made has no digest yet; it was inspected because of the event.
            let changed = !entry.digest.is_empty() && entry.digest != listed.digest;
            entry.digest = listed.digest;
            entry.asks_for = listed.asks_for;
            if changed || entry.error.is_some() {
                entry.tries = 0;
                self.change(&listed.id, now);
            }
        }
        gone
    }

    /// Containers that an earlier watcher knew. They are inspected, and are gone if the first list does not have them.
    pub(super) fn resume(&mut self, containers: Vec<(String, String)>, now: Instant) {
        for (id, name) in containers {
            self.enter(Listed { id, name, asks_for: BTreeSet::new(), digest: String::new() }, now);
        }
    }

    /// Whether a container was not inspected yet.
    pub(super) fn is_unread(&self) -> bool {
        self.entries.values().any(|entry| entry.container.is_none() && entry.error.is_none())
    }

    /// All containers, with their names.
    pub(super) fn known(&self) -> Vec<(String, String)> {
        self.entries.iter().map(|(id, entry)| (id.clone(), entry.name.clone())).collect()
    }

    /// Everything is to be inspected, for what a list does not show.
    pub(super) fn doubt_all(&mut self, now: Instant) {
        let all: Vec<String> = self.entries.keys().cloned().collect();
        for id in all {
            self.change(&id, now);
        }
    }

    /// Takes an event. Returns the container that ended with it.
    pub(super) fn event(&mut self, event: Event, now: Instant) -> Option<Gone> {
        let known = self.entries.contains_key(&event.container);
        match event.what {
            What::Ended(how) if known && !self.is_stale(&event) => Some(self.remove(&event.container, how)),
            What::Ended(_) if !known => None,
            // Containers that did not opt in are none of our business.
            _ if !known && !event.attributes.is_empty() && !labels::enabled(&event.attributes) => None,
            _ => {
                if !known {
                    let name = event.attributes.get("name").cloned().unwrap_or_default();
                    let asks_for = labels::asks_for(&event.attributes);
                    self.enter(Listed { id: event.container.clone(), name, asks_for, digest: String::new() }, now);
                }
                if let Some(entry) = self.entries.get_mut(&event.container) {
                    entry.tries = 0;
                }
                self.change(&event.container, now);
                None
            }
        }
    }

    /// A goodbye from before the container's last start. The inspection that follows tells.
    fn is_stale(&self, event: &Event) -> bool {
        let started = self.entries.get(&event.container).and_then(|entry| entry.container.as_ref()?.started_at);
        matches!((started, event.at), (Some(started), Some(at)) if at < started)
    }

    /// The next inspection that is due, at most one of a container at a time.
    pub(super) fn next(&mut self, now: Instant) -> Option<Question> {
        let (at, id) = self.due.first()?.clone();
        if at > now {
            return None;
        }
        self.due.pop_first();
        let entry = self.entries.get_mut(&id)?;
        entry.due = None;
        entry.asked = true;
        Some(Question { id, birth: entry.birth })
    }

    /// When the next inspection is due.
    pub(super) fn next_at(&self) -> Option<Instant> {
        self.due.first().map(|(at, _)| *at)
    }

    /// Takes the answer to a question. Returns the container if it ended.
    pub(super) fn answered(
        &mut self,
        question: &Question,
        answer: Result<Option<Container>, String>,
        now: Instant,
    ) -> Option<Gone> {
        let (allow_exposed, reach) = (self.allow_exposed, self.reach.clone());
        let entry = self.entries.get_mut(&question.id).filter(|entry| entry.birth == question.birth)?;
        entry.asked = false;
        let again = std::mem::take(&mut entry.again);
        match answer {
            Err(error) => entry.error = Some(error),
            Ok(None) => return Some(self.remove(&question.id, "was removed")),
            Ok(Some(container)) => {
                entry.error = None;
                entry.name.clone_from(&container.name);
                // One that runs and did not opt in stays, and comes to nothing: it is not to be asked for with every list.
                if container.phase == super::container::Phase::Stopped {
                    return Some(self.remove(&question.id, "does not run"));
                }
                entry.verdict = reach.apply(&container, judge(&container, allow_exposed));
                entry.container = Some(container);
                self.plan_retry(&question.id, now);
            }
        }
        if again {
            self.change(&question.id, now);
        }
        None
    }

    fn plan_retry(&mut self, id: &str, now: Instant) {
        let Some(entry) = self.entries.get_mut(id) else { return };
        if !entry.verdict.retry {
            entry.tries = 0;
            entry.exhausted = false;
            return;
        }
        match NOT_PUBLISHED.get(entry.tries) {
            Some(delay) => {
                entry.tries += 1;
                self.schedule(id, now + *delay);
            }
            None => entry.exhausted = true,
        }
    }

    /// Forgets all questions that are under way: their engine is gone.
    pub(super) fn interrupted(&mut self, now: Instant) {
        let asked: Vec<String> = self.entries.iter().filter(|(_, e)| e.asked).map(|(id, _)| id.clone()).collect();
        for id in asked {
            if let Some(entry) = self.entries.get_mut(&id) {
                entry.asked = false;
                entry.again = false;
                self.births += 1;
                entry.birth = self.births;
            }
            self.schedule(&id, now);
        }
    }

    /// All containers that were inspected.
    pub(super) fn judged(&self) -> impl Iterator<Item = Judged<'_>> {
        self.entries
            .values()
            .filter_map(|entry| Some(Judged { container: entry.container.as_ref()?, verdict: &entry.verdict }))
    }

    /// Names that are asked for by containers of which nothing is known yet, good or bad.
    pub(super) fn awaited(&self) -> HashSet<&str> {
        let unknown = self.entries.values().filter(|entry| entry.container.is_none() && entry.error.is_none());
        unknown.flat_map(|entry| entry.asks_for.iter().map(String::as_str)).collect()
    }

    /// Containers that the engine does not tell about.
    pub(super) fn failures(&self) -> impl Iterator<Item = Refusal> {
        self.entries.iter().filter_map(|(id, entry)| {
            let error = entry.error.clone()?;
            Some(Refusal {
                container_id: id.clone(),
                container: entry.name.clone(),
                service: String::new(),
                label: String::new(),
                why: Why::NotInspected(error),
            })
        })
    }

    /// Labels under our prefix that mean nothing: container id, container name, label.
    pub(super) fn unknown_labels(&self) -> impl Iterator<Item = (&str, &str, &str)> {
        self.entries.iter().flat_map(|(id, entry)| {
            entry.verdict.unknown.iter().map(|label| (id.as_str(), entry.name.as_str(), label.as_str()))
        })
    }

    /// Whether a refusal may still turn out to be none: the port is waited for.
    pub(super) fn is_pending(&self, refusal: &Refusal) -> bool {
        matches!(refusal.why, Why::NotPublished { shared_network: None, .. })
            && self.entries.get(&refusal.container_id).is_some_and(|entry| entry.verdict.retry && !entry.exhausted)
    }

    fn enter(&mut self, listed: Listed, now: Instant) {
        self.births += 1;
        let entry = Entry {
            birth: self.births,
            name: listed.name,
            digest: listed.digest,
            asks_for: listed.asks_for,
            container: None,
            verdict: Verdict::default(),
            due: None,
            asked: false,
            again: false,
            tries: 0,
            exhausted: false,
            error: None,
        };
        self.entries.insert(listed.id.clone(), entry);
        self.schedule(&listed.id, now);
    }

    fn change(&mut self, id: &str, now: Instant) {
        match self.entries.get_mut(id) {
            Some(entry) if entry.asked => entry.again = true,
            Some(_) => self.schedule(id, now),
            None => {}
        }
    }

    fn schedule(&mut self, id: &str, at: Instant) {
        let Some(entry) = self.entries.get_mut(id) else { return };
        if let Some(before) = entry.due.replace(at) {
            self.due.remove(&(before, id.to_owned()));
        }
        self.due.insert((at, id.to_owned()));
    }

    fn remove(&mut self, id: &str, how: &str) -> Gone {
        let entry = self.entries.remove(id);
        if let Some(at) = entry.as_ref().and_then(|entry| entry.due) {
            self.due.remove(&(at, id.to_owned()));
        }
        let served = entry.as_ref().is_some_and(|entry| !entry.verdict.claims.is_empty());
        let name = entry.map(|entry| entry.name).filter(|name| !name.is_empty());
        let shown = name.unwrap_or_else(|| super::container::short(id).to_owned());
        Gone { id: id.to_owned(), reason: format!("its container {shown} {how}"), served }
    }
}

#[cfg(test)]
#[path = "book_tests.rs"]
mod tests;

//! All containers → who has which service, and who has not. Pure (proxy rule 25).
//!
//! Of several running containers with one owner key the one that started last has the services, whatever order the engine
//! lists them in; so nothing flips. Of several owners of one name the one that has it keeps it, whichever of its containers
//! that is; a name that nobody has goes to the one that started first, once every container that asks for it is known.
use super::claims::{Claim, Verdict};
use super::container::Container;
use super::refusal::{Refusal, Why};
use stado_fleet::name::ServiceName;
use std::collections::{BTreeMap, HashMap, HashSet};

/// A container with its verdict.
#[derive(Debug, Clone, Copy)]
pub struct Judged<'a> {
    /// The container.
    pub container: &'a Container,
    /// What it comes to.
    pub verdict: &'a Verdict,
}

/// Who has which service.
#[derive(Debug, Default)]
pub struct Plan {
    /// Services with their containers.
    pub wanted: BTreeMap<ServiceName, Wanted>,
    /// Everything that is not served, with its reason.
    pub refused: Vec<Refusal>,
}

/// A service that a container is to have.
#[derive(Debug, Clone, PartialEq)]
pub struct Wanted {
    /// Container id: the producer.
    pub container_id: String,
    /// Container name, for people.
    pub container: String,
    /// What it claims.
    pub claim: Claim,
}

/// Who has a name now, or had it last.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Holder<'a> {
    /// Container id.
    pub container_id: &'a str,
    /// Owner: it has the name, also while its container is replaced.
    pub owner_key: &'a str,
}

/// Plans. `holder` tells who has a name; `awaited` are names that containers ask for which nothing is known of yet.
pub fn plan<'a>(
    all: impl IntoIterator<Item = Judged<'a>>,
    mut holder: impl FnMut(&ServiceName) -> Option<Holder<'a>>,
    awaited: &HashSet<&str>,
) -> Plan {
    let mut plan = Plan::default();
    let mut all: Vec<Judged<'a>> = all.into_iter().collect();
    all.sort_by_key(|judged| age(judged.container));
    let newest = newest(&all);
    let mut by_name: BTreeMap<ServiceName, Vec<Wanted>> = BTreeMap::new();
    for judged in &all {
        plan.refused.extend(judged.verdict.refused.iter().cloned());
        for claim in &judged.verdict.claims {
            match newest.get(claim.owner_key.as_str()).filter(|by| by.id != judged.container.id) {
                Some(by) => plan.refused.push(superseded(judged.container, claim, by)),
                None => by_name.entry(claim.name.clone()).or_default().push(wanted(judged.container, claim)),
            }
        }
    }
    for (name, candidates) in by_name {
        match holder(&name).and_then(|holder| holder.among(&candidates)) {
            Some(kept) => plan.settle(name, candidates, kept),
            None if awaited.contains(name.as_str()) => {}
            None => plan.settle(name, candidates, 0),
        }
    }
    plan
}

impl Holder<'_> {
    /// The candidate that is the same container, else the same owner.
    fn among(&self, candidates: &[Wanted]) -> Option<usize> {
        let itself = candidates.iter().position(|c| c.container_id == self.container_id);
        itself.or_else(|| candidates.iter().position(|c| c.claim.owner_key == self.owner_key))
    }
}

impl Plan {
    fn settle(&mut self, name: ServiceName, candidates: Vec<Wanted>, kept: usize) {
        let owner = candidates.get(kept).map(|w| format!("{} (container {})", w.claim.owner_key, w.container));
        for (at, candidate) in candidates.into_iter().enumerate() {
            if at == kept {
                self.wanted.insert(name.clone(), candidate);
                continue;
            }
            self.refused.push(Refusal {
                container_id: candidate.container_id,
                container: candidate.container,
                service: name.to_string(),
                label: String::new(),
                why: Why::NameTaken { owner: owner.clone().unwrap_or_default() },
            });
        }
    }
}

/// The last started container of each owner key. `all` is sorted by age.
fn newest<'a>(all: &[Judged<'a>]) -> HashMap<&'a str, &'a Container> {
    let claims = all.iter().flat_map(|j| j.verdict.claims.iter().map(|c| (c.owner_key.as_str(), j.container)));
    claims.collect()
}

/// Oldest first; the id decides between equals, so that the order never depends on the engine's list.
fn age(container: &Container) -> (Option<jiff::Timestamp>, String) {
    (container.started_at, container.id.clone())
}

fn superseded(container: &Container, claim: &Claim, by: &Container) -> Refusal {
    Refusal::of(container, claim.name.as_str(), Why::Superseded { by: by.shown().to_owned(), id: by.id.clone() })
}

fn wanted(container: &Container, claim: &Claim) -> Wanted {
    Wanted { container_id: container.id.clone(), container: container.shown().to_owned(), claim: claim.clone() }
}

#[cfg(test)]
#[path = "plan_tests.rs"]
mod tests;

//! May this snapshot replace the held one; pure (design, rule 2). Only validity and these rules decide, never age.
use crate::fault::{Blame, Class, Faulty};
use crate::name::StoreVersion;
use crate::validate::Valid;
use std::sync::Arc;

/// One validated document with its store version.
#[derive(Debug, Clone)]
pub struct Snapshot {
    /// The valid document.
    pub valid: Arc<Valid>,
    /// Its version in the store (`last-known-good` when recovered).
    pub store_version: StoreVersion,
}

/// What to do with a valid snapshot.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Admission {
    /// Same document: only freshness moved.
    Unchanged,
    /// Same directory, or none before and after; other parts changed.
    Changed,
    /// A newer directory generation, or the first one.
    NewGeneration,
}

/// Why it may not replace the held one. `Display` is the sentence of fleet contract §4.3 or §3.4.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct Refused(pub String);

impl Faulty for Refused {
    fn blame(&self) -> Blame {
        Blame::Remote
    }
    fn class(&self) -> Class {
        Class::Refused
    }
}

/// Decides. A refused snapshot leaves the held one in place.
pub fn admit(held: Option<&Snapshot>, new: &Snapshot) -> Result<Admission, Refused> {
    let Some(held) = held else {
        return Ok(first(new));
    };
    if held.valid.document.same_as(&new.valid.document) {
        return Ok(Admission::Unchanged);
    }
    refuse_empty_fleet(held, new)?;
    if of_a_later_authority(held, new)? {
        // Its generations count from its own start: what the earlier one did after that is not in it.
        return Ok(Admission::NewGeneration);
    }
    compare_directories(held, new)
}

/// Whether it is the registry of an authority that was promoted since; that of one which was replaced is refused.
fn of_a_later_authority(held: &Snapshot, new: &Snapshot) -> Result<bool, Refused> {
    let (old, next) = (&held.valid.registry.succession, &new.valid.registry.succession);
    if next.epoch >= old.epoch {
        return Ok(next.epoch > old.epoch && new.valid.registry.directory.is_some());
    }
    let who = |snapshot: &Snapshot| snapshot.valid.document.authority().unwrap_or("nobody").to_owned();
    let (now, before) = (who(held), who(new));
    let since = old.since.as_deref().map(|since| format!(" since {since}")).unwrap_or_default();
    Err(Refused(format!(
        "registry of authority epoch {} rejected: it is what {before} held before it was replaced, and this host holds \
         authority epoch {} ({now}{since}). {before} serves an old registry: start its resolver, or run `stado registry self` \
         there, and it follows {now}",
        next.epoch, old.epoch
    )))
}

fn first(new: &Snapshot) -> Admission {
    if new.valid.registry.directory.is_some() { Admission::NewGeneration } else { Admission::Changed }
}

/// A document that names no hosts is what an outage looks like from here. The sentence is that of the recorded copy (§3.4).
fn refuse_empty_fleet(held: &Snapshot, new: &Snapshot) -> Result<(), Refused> {
    let known = held.valid.registry.targets.len();
    if known == 0 || !new.valid.registry.targets.is_empty() {
        return Ok(());
    }
    Err(Refused(format!(
        "the authority served a registry naming no hosts and the recorded copy names {known}; keeping the recorded copy, \
         because an empty fleet is what an outage looks like from here and the fallback exists for outages"
    )))
}

fn compare_directories(held: &Snapshot, new: &Snapshot) -> Result<Admission, Refused> {
    let generation = |snapshot: &Snapshot| snapshot.valid.registry.directory.as_ref().map(|d| d.generation);
    match (generation(held), generation(new)) {
        (None, None) => Ok(Admission::Changed),
        (None, Some(_)) => Ok(Admission::NewGeneration),
        (Some(old), None) => Err(Refused(format!(
            "service directory removal rejected: the held registry carries directory generation {old} and the one just \
             read carries no service_directory; push a registry that carries one"
        ))),
        (Some(old), Some(new)) if new < old => {
            Err(Refused(format!("service directory rollback rejected: generation {new} < {old}")))
        }
        (Some(old), Some(new)) if new > old => Ok(Admission::NewGeneration),
        (Some(_), Some(_)) if held.valid.document.same_directory(&new.valid.document) => Ok(Admission::Changed),
        (Some(generation), Some(_)) => {
            Err(Refused(format!("service directory changed without advancing generation {generation}")))
        }
    }
}

#[cfg(test)]
mod tests;

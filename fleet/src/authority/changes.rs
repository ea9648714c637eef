//! Changes that were told and not applied yet.
use super::{Change, RegistryError};
use crate::admit::Snapshot;
use crate::name::{StoreVersion, TargetName};
use std::collections::VecDeque;
use std::sync::{Mutex, PoisonError};

/// Whoever is further behind reads the document.
const KEPT: usize = 32;

/// Between a watch that hears of changes and the loop that applies them.
#[derive(Debug, Default)]
pub struct Changes(Mutex<VecDeque<(TargetName, Change)>>);

impl Changes {
    /// Keeps a change that an authority told.
    pub fn push(&self, by: &TargetName, change: Change) {
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if kept.len() >= KEPT {
            kept.pop_front();
        }
        kept.push_back((by.clone(), change));
    }

    /// Forgets what is kept: the watch that told it has ended, and another one may miss what comes between.
    pub fn clear(&self) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clear();
    }

    /// Takes what an authority told that leads on from a version, in order; what is older is forgotten, and what another one told:
    /// that one is not the authority any more.
    pub fn since(&self, by: &TargetName, held: &StoreVersion) -> Vec<Change> {
        let all = std::mem::take(&mut *self.0.lock().unwrap_or_else(PoisonError::into_inner));
        let mut way: Vec<Change> = Vec::new();
        for change in all.into_iter().filter(|(told_by, _)| told_by == by).map(|(_, change)| change) {
            let at = way.last().map_or(held, |last| &last.to);
            if change.from == *at {
                way.push(change);
            } else if change.from == *held {
                // A version that came back: the shorter way.
                way = vec![change];
            }
        }
        way
    }

    /// The snapshot that changes make of what is held.
    ///
    /// # Errors
    /// One does not fit: the whole document is to be read.
    pub async fn apply(way: Vec<Change>, held: Snapshot, location: &str) -> Result<Snapshot, RegistryError> {
        let mut snapshot = held;
        for change in way {
            snapshot = change.apply(snapshot, location.to_owned()).await?;
        }
        Ok(snapshot)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn change(from: &str, to: &str) -> Change {
        Change::read(&json!({"store_version": to, "from": from, "digest": "", "edit": {}})).unwrap()
    }

    #[test]
    fn only_what_leads_on_from_what_is_held_is_taken_and_once() {
        let changes = Changes::default();
        let (control, other): (TargetName, TargetName) = ("control".parse().unwrap(), "other".parse().unwrap());
        for (from, to) in [("a", "b"), ("b", "c"), ("c", "d"), ("x", "y")] {
            changes.push(&control, change(from, to));
        }
        let way = changes.since(&control, &"b".parse().unwrap());
        assert_eq!(way.iter().map(|c| c.to.as_str()).collect::<Vec<_>>(), ["c", "d"]);
        assert!(changes.since(&control, &"b".parse().unwrap()).is_empty());
        (0..100).for_each(|n| changes.push(&control, change(&format!("v{n}"), &format!("v{}", n + 1))));
        assert!(changes.since(&control, &"v0".parse().unwrap()).is_empty(), "too far behind");
        changes.push(&other, change("b", "z"));
        assert!(changes.since(&control, &"b".parse().unwrap()).is_empty(), "another authority's word");
    }
}

//! Document → all findings at once; pure (fleet contract §1.6). One file per section of the contract.
//!
//! Reading and checking are one pass: each section gives the typed view of what it could read, and says what it could not.
//! The findings stand in the order of the contract, so that the first one is the sentence that other readers would give.
mod at;
mod directory;
mod document;
mod endpoint;
mod enrollment;
mod fleets;
mod identity;
mod placed;
mod placement;
mod ports;
mod read;
mod resolver;
mod route;
mod succession;
mod targets;
#[cfg(test)]
mod tests;
mod transactions;

use crate::document::{Document, Registry};
use crate::fault::{Blame, Class, Faulty};
use at::{At, Findings};
use std::sync::Arc;

/// One thing that is wrong, with the contract's sentence.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finding {
    /// Where (`registry.targets[2].name`); empty where the sentence names its subject itself.
    pub location: String,
    /// What (`must be a lowercase target identifier`).
    pub sentence: String,
}

impl std::fmt::Display for Finding {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        if self.location.is_empty() {
            return f.write_str(&self.sentence);
        }
        write!(f, "{}: {}", self.location, self.sentence)
    }
}

/// All findings of one document, never empty; `Display` is the first one, and how many more there are.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub struct Invalid(pub Vec<Finding>);

impl std::fmt::Display for Invalid {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.0.as_slice() {
            [] => f.write_str("the registry is not valid"),
            [only] => only.fmt(f),
            [first, _] => write!(f, "{first} (and 1 more finding)"),
            [first, rest @ ..] => write!(f, "{first} (and {} more findings)", rest.len()),
        }
    }
}

impl Faulty for Invalid {
    fn blame(&self) -> Blame {
        Blame::Caller
    }
    fn class(&self) -> Class {
        Class::Config
    }
}

/// A document that passed validation, with its typed view.
#[derive(Debug, Clone)]
pub struct Valid {
    /// The document.
    pub document: Document,
    /// The typed view.
    pub registry: Arc<Registry>,
}

/// Validates the whole document.
pub fn validate(document: Document) -> Result<Valid, Invalid> {
    let (registry, findings) = examine(&document);
    match registry {
        Some(registry) if findings.is_empty() => Ok(Valid { document, registry: Arc::new(registry) }),
        _ => Err(Invalid(findings)),
    }
}

/// Reads all sections. Without a registry there is at least one finding.
fn examine(document: &Document) -> (Option<Registry>, Vec<Finding>) {
    let mut head = Findings::default();
    let root_at = At::ROOT;
    let Some(root) = read::object(document.value(), root_at, &mut head) else {
        return (None, head.0);
    };
    let [mut rest, mut directory_out, mut resolver_out, mut placement_out, mut tail] =
        [(); 5].map(|()| Findings::default());
    document::check(root, &mut head);
    let mut targets = targets::read(root, &mut head);
    document::check_coordinators(root, &mut rest);
    let profiles = placement::read(root, &targets, &mut placement_out);
    let transactions = transactions::read(root, &targets, &profiles, &mut placement_out);
    let directory = directory::read(root, &targets, &profiles, &mut directory_out);
    resolver::read(root, &mut targets, &mut resolver_out);
    ports::check(root, &targets, &mut resolver_out);
    fleets::check(root, &mut tail);
    enrollment::check(root, &mut tail);
    let succession = succession::read(root, &targets, &mut tail);
    document::check_duplicates(document, &mut tail);

    let registry = Registry {
        targets: targets.into_typed(),
        directory,
        transactions,
        profiles: profiles.into_services(),
        succession,
    };
    let findings =
        [head, rest, directory_out, resolver_out, placement_out, tail].into_iter().flat_map(|f| f.0).collect();
    (Some(registry), findings)
}

//! The guards of `registry push` (fleet contract §6.2): what a push may not do by accident.
use crate::document::Document;
use crate::fault::{Blame, Class, Faulty};
use crate::name::StoreVersion;

/// Why a push is refused before any swap; `Display` is the contract's sentence.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct GuardRefusal(pub String);

impl Faulty for GuardRefusal {
    fn blame(&self) -> Blame {
        Blame::Caller
    }
    fn class(&self) -> Class {
        Class::Refused
    }
}

/// Which guards the caller switched off.
#[derive(Debug, Clone, Copy, Default)]
pub struct Overrides {
    /// `--force`.
    pub force: bool,
    /// `--allow-empty-fleet`.
    pub allow_empty_fleet: bool,
}

/// The guards of §6.2, in order. Creating a registry passes all of them.
pub fn guard_push(
    held: Option<(&Document, &StoreVersion)>,
    next: &Document,
    overrides: Overrides,
) -> Result<(), GuardRefusal> {
    let Some((held, version)) = held else { return Ok(()) };
    earlier_authority(held, next)?;
    if !overrides.force {
        deleted_keys(held, version, next)?;
        directory_generation(held, next)?;
    }
    // Erasing every host is never only a forced push: it has a word of its own.
    if !overrides.allow_empty_fleet {
        empty_fleet(held, version, next)?;
    }
    Ok(())
}

fn refuse(why: String) -> Result<(), GuardRefusal> {
    Err(GuardRefusal(format!("registry upload refused: {why}")))
}

fn deleted_keys(held: &Document, version: &StoreVersion, next: &Document) -> Result<(), GuardRefusal> {
    let keys = held.value().as_object().into_iter().flat_map(|map| map.keys());
    let gone: Vec<&str> = keys.filter(|key| next.section(key).is_none()).map(String::as_str).collect();
    if gone.is_empty() {
        return Ok(());
    }
    refuse(format!(
        "it would delete the top-level key(s) {} that generation {version} carries. A document written by a build that does \
         not know a key loses it this way; pull the registry, edit that copy and push it, or pass --force only if the \
         deletion is the intent.",
        gone.join(", ")
    ))
}

fn directory_generation(held: &Document, next: &Document) -> Result<(), GuardRefusal> {
    let (Some(carried), Some(pushed)) = (held.generation(), next.generation()) else { return Ok(()) };
    if pushed < carried {
        return refuse(format!(
            "its service directory is generation {pushed} and the registry already carries {carried}. An older copy would \
             put routes back that were changed since; pull the registry, edit that copy and push it, or pass --force only \
             if going back is the intent."
        ));
    }
    if pushed == carried && !held.same_directory(next) {
        return refuse(format!(
            "it changes the service directory but leaves its generation at {pushed}, the number the registry already \
             carries. No resolver takes a directory that changes under one number; raise service_directory.generation, or \
             pass --force only if you know why."
        ));
    }
    Ok(())
}

/// Not crossed by `--force`: other hosts write with it, and theirs may be a copy from before.
fn earlier_authority(held: &Document, next: &Document) -> Result<(), GuardRefusal> {
    if next.epoch() >= held.epoch() {
        return Ok(());
    }
    refuse(format!(
        "it is of authority epoch {}, and the registry already is of epoch {} ({}). It would hand the fleet back to an \
         authority that was replaced; pull the registry, edit that copy and push it.",
        next.epoch(),
        held.epoch(),
        held.authority().unwrap_or("nobody")
    ))
}

fn empty_fleet(held: &Document, version: &StoreVersion, next: &Document) -> Result<(), GuardRefusal> {
    let declared = held.target_count();
    if declared == 0 || next.target_count() > 0 {
        return Ok(());
    }
    refuse(format!(
        "generation {version} declares {declared} target(s) and this document declares none. An empty fleet is what a lost \
         file looks like; pass --allow-empty-fleet if erasing every target is genuinely what you mean."
    ))
}

//! Which registry was given to this host and not taken into force. Pure: `now` is passed in.
use stado_fleet::admit::Snapshot;
use stado_fleet::authority::RegistryError;
use stado_fleet::ledger::{RefusedRegistry, stamp};

/// A valid one that may not replace what is held, or has no place for this host.
pub(super) fn refused(from: &str, given: &Snapshot, why: &str, now: jiff::Timestamp) -> RefusedRegistry {
    let registry = &given.valid.registry;
    RefusedRegistry {
        from: from.to_owned(),
        generation: registry.directory.as_ref().map(|directory| directory.generation.0),
        store_version: Some(given.store_version.to_string()),
        epoch: Some(registry.succession.epoch).filter(|epoch| *epoch > 0),
        reason: why.to_owned(),
        since: stamp(now),
    }
}

/// One that is not valid; `None` for a read that brought no document.
pub(super) fn rejected(from: &str, error: &RegistryError, now: jiff::Timestamp) -> Option<RefusedRegistry> {
    let given = error.rejected.as_ref()?;
    Some(RefusedRegistry {
        from: from.to_owned(),
        generation: given.generation,
        store_version: Some(given.version.to_string()),
        epoch: Some(given.epoch).filter(|epoch| *epoch > 0),
        reason: error.sentence.clone(),
        since: stamp(now),
    })
}

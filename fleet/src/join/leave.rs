//! A host leaves: the registry names it no more, and with that no other host takes its key; then it forgets the fleet.
use super::{OwnConfig, keep};
use crate::authority::{Exec, RegistryError, Source, again_while_moved, commit_edit, fetch_for_write};
use crate::edit::{check_write, remove_host};
use crate::fault::Class;
use crate::name::TargetName;
use std::path::Path;

/// Takes `target` out of the registry. `false`: it was out already.
///
/// # Errors
/// A host that still serves something, or is the authority; a registry that cannot be read or written.
pub async fn strike(source: &Source, exec: &dyn Exec, target: &TargetName) -> Result<bool, RegistryError> {
    again_while_moved(|| strike_once(source, exec, target), |error| error.class).await
}

async fn strike_once(source: &Source, exec: &dyn Exec, target: &TargetName) -> Result<bool, RegistryError> {
    let read = fetch_for_write(source, exec).await?;
    let (held, version) = read.ok_or_else(|| RegistryError::absent(&source.location()))?;
    let edited = match remove_host(&held, target.as_str()) {
        Ok(edited) => edited,
        Err(error) if error.class == Class::NotFound => return Ok(false),
        Err(error) => return Err(RegistryError::new(error.class, error.sentence)),
    };
    check_write(Some(&held), &edited.document).map_err(|e| RegistryError::new(Class::Refused, e.to_string()))?;
    commit_edit(source, exec, &version, &edited.document).await?;
    Ok(true)
}

/// Takes from `~/.stado` what the fleet left there: who this host is, the copy, the pinned keys. Its own key stays: nobody
/// takes it any more.
///
/// # Errors
/// A file that cannot be read, written or removed, as a sentence.
pub fn forget(stado_home: &Path) -> Result<(), String> {
    OwnConfig::new(stado_home).change(|own| {
        own.shift_remove("target");
    })?;
    keep(&stado_home.join("known_hosts"), &[], true).map_err(|e| e.to_string())?;
    for name in ["cache/registry-last-good.meta.json", "cache/registry-last-good.json", "joining.json", "joining-key"] {
        let file = stado_home.join(name);
        match std::fs::remove_file(&file) {
            Err(e) if e.kind() != std::io::ErrorKind::NotFound => {
                return Err(format!("cannot remove {}: {e}", file.display()));
            }
            _ => {}
        }
    }
    Ok(())
}

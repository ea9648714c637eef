//! The first copy on a new host: a person names the authority (`registry pull --from`).
use super::exec::Exec;
use super::{RegistryError, RemoteAuthority, Source, fetch};
use crate::admit::Snapshot;
use crate::fault::Class;
use crate::last_good::LastGood;
use crate::link;
use crate::name::SshDestination;
use jiff::Timestamp;

/// Reads the snapshot at `destination` by the `stado` at `command` (absolute), whose host key the link verifies, and makes
/// it this host's copy: from then on the authority is the one that the copy names.
pub async fn first_copy(
    destination: SshDestination,
    command: &str,
    exec: &dyn Exec,
    last_good: &LastGood,
    now: Timestamp,
) -> Result<Snapshot, RegistryError> {
    if !command.starts_with('/') || command.split('/').any(|part| part == "..") {
        return Err(RegistryError::new(Class::Usage, "--command must be an absolute path without '..'"));
    }
    // The host has no name yet; the link only keeps sessions apart by it.
    let target = "first-copy".parse().map_err(|e| RegistryError::new(Class::Unknown, format!("first-copy {e}")))?;
    let paths = link::single_path(destination);
    let source = Source::Remote(RemoteAuthority {
        target,
        command: command.to_owned(),
        paths,
        shared: None,
        epoch: 0,
        standbys: Vec::new(),
    });
    let snapshot = fetch(&source, exec).await?.ok_or_else(|| RegistryError::absent(&source.location()))?;
    let (last_good, recorded) = (last_good.clone(), snapshot.clone());
    let written = tokio::task::spawn_blocking(move || last_good.seed(&recorded, now));
    match written.await {
        Ok(Ok(())) => Ok(snapshot),
        Ok(Err(e)) => Err(RegistryError::new(Class::Config, e.sentence)),
        Err(e) => Err(RegistryError::new(Class::Unknown, e.to_string())),
    }
}

//! A published service goes to another host that publishes it too.
use super::super::{Draft, EditError, Edited};
use super::entry::{self, is_published, names, text};
use crate::document::Document;
use serde_json::Value;

/// What a move did.
#[derive(Debug, Clone)]
pub struct Moved {
    /// Where connections went.
    pub from: String,
    /// Name of the service in the mesh of the host where they go now.
    pub mesh: String,
    /// The next document.
    pub edited: Edited,
}

/// Makes `to`, which stands by, the active host; the one that was active stands by then. A service that is there already
/// is no change.
///
/// # Errors
/// A service that no mesh publishes, and a host that does not stand by for it.
pub fn move_published(document: &Document, service: &str, to: &str) -> Result<Moved, EditError> {
    let mut draft = Draft::of(document)?;
    let mesh = entry::unit(draft.target(to)?, service).map(|unit| text(unit, "mesh").to_owned());
    let entry = draft.service(service)?;
    if !is_published(service, entry) {
        return Err(EditError::refused(format!(
            "no mesh publishes {service}: {}; `stado placement move` moves services with their units and state",
            entry::not_ours(service, entry)
        )));
    }
    let from = text(entry, "active_host").to_owned();
    if from == to {
        return Ok(Moved { from, mesh: mesh.unwrap_or_default(), edited: draft.finish_directory()? });
    }
    let Some(mesh) = mesh.filter(|_| names(entry, "standby", to)) else {
        return Err(EditError::refused(format!(
            "{to} does not stand by for {service}; run it there too, and `stado service publish NAME --as {service} \
             --standby` on {to}"
        )));
    };
    let at = format!("registry.service_directory.services.{service}");
    let (left, taken) = (entry::take(entry, "endpoints", &from), entry::take(entry, "standby", to));
    if let Some(taken) = taken {
        entry::object(entry, "endpoints", &at)?.insert(to.to_owned(), taken);
    }
    if let Some(left) = left {
        entry::object(entry, "standby", &at)?.insert(from.clone(), left);
    }
    entry.insert("active_host".into(), Value::from(to));
    Ok(Moved { from, mesh, edited: draft.finish_directory()? })
}

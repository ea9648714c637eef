//! A host takes back what it published.
use super::super::{Draft, EditError, Edited};
use super::entry::{self, is_published, names, text};
use crate::document::Document;
use serde_json::Value;

/// What taking back did.
#[derive(Debug, Clone)]
pub struct Unpublished {
    /// Whether the directory no longer has the service; else only the host no longer stands by for it.
    pub gone: bool,
    /// Hosts whose adapters went with it.
    pub adapters: Vec<String>,
    /// The next document.
    pub edited: Edited,
}

/// Takes what `host` published out of the directory: its standing by, or the service itself with every adapter.
///
/// # Errors
/// A service that `host` does not publish, and one that another host stands by for: it is to be moved first.
pub fn unpublish(document: &Document, service: &str, host: &str) -> Result<Unpublished, EditError> {
    let mut draft = Draft::of(document)?;
    let entry = draft.service(service)?;
    if !is_published(service, entry) {
        return Err(EditError::refused(format!(
            "no mesh publishes {service}: {}; it is edited by hand",
            entry::not_ours(service, entry)
        )));
    }
    let active = text(entry, "active_host").to_owned();
    let stands_by = names(entry, "standby", host);
    if active != host && !stands_by {
        return Err(EditError::refused(format!(
            "{service} is published by {active}, not by {host}; take it back there, or with --host {active} if that host \
             will not come back"
        )));
    }
    let standbys = entry::standbys(entry);
    if active == host && !standbys.is_empty() {
        let other = entry::named(&standbys);
        return Err(EditError::refused(format!(
            "{service} goes to {host}, and {other} can take it over: move it first with `stado service move {service} --to \
             HOST`, or take theirs back"
        )));
    }
    if stands_by {
        entry::take(entry, "standby", host);
        entry::drop_unit(draft.target(host)?, service);
        return Ok(Unpublished { gone: false, adapters: Vec::new(), edited: draft.finish_directory()? });
    }
    if let Some(services) = draft.directory()?.get_mut("services").and_then(Value::as_object_mut) {
        services.shift_remove(service);
    }
    entry::drop_unit(draft.target(host)?, service);
    let of_it = |_: &str, adapter: &Value| adapter.get("service").and_then(Value::as_str) == Some(service);
    let adapters = entry::drop_adapters(&mut draft, of_it)?;
    Ok(Unpublished { gone: true, adapters, edited: draft.finish_directory()? })
}

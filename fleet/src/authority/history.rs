//! Earlier versions, read from whoever keeps them: this host's store, or the authority over SSH.
use super::exec::{Exec, quoted, quoted_if_needed};
use super::fetch::off_thread;
use super::{RegistryError, RemoteAuthority, Source, envelope};
use crate::document::Document;
use crate::fault::Class;
use crate::link::{ExecLimits, ExecOutput};
use crate::name::StoreVersion;
use crate::store::history::{History, Version};
use crate::store::{RegistryStore, StoreError};
use serde::{Deserialize, Serialize};
use std::time::Duration;

const SCHEMA: &str = "stado.registry-history.v1";
/// As for a snapshot.
const LARGEST: usize = 64 << 20;
const DEADLINE: Duration = Duration::from_secs(60);
const BLINK: Duration = Duration::from_secs(2);

/// What `registry history --json` prints.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct HistoryReport {
    /// `stado.registry-history.v1`.
    pub schema: String,
    /// Where.
    pub location: String,
    /// Newest first.
    pub versions: Vec<Version>,
}

/// The remembered versions, newest first.
pub async fn history(source: &Source, exec: &dyn Exec) -> Result<HistoryReport, RegistryError> {
    let location = source.location();
    match source {
        Source::Store(store) => {
            let versions = kept(store.as_ref())?.versions().await?;
            Ok(HistoryReport { schema: SCHEMA.into(), location, versions })
        }
        Source::Remote(authority) => {
            let output = ask(authority, exec, "history", "registry history --here --json").await?;
            let heard = envelope::find::<HistoryReport>(&output.stdout).map_err(|e| invalid(&e))?;
            Ok(HistoryReport { location, ..heard.answer })
        }
    }
}

/// One remembered version's document.
pub async fn content(source: &Source, exec: &dyn Exec, version: &StoreVersion) -> Result<Document, RegistryError> {
    let forgotten = || {
        let sentence = format!(
            "{} does not remember generation {version}; `stado registry history` lists what it does",
            source.location()
        );
        RegistryError::new(Class::NotFound, sentence)
    };
    let bytes = match source {
        Source::Store(store) => kept(store.as_ref())?.content(version).await?.ok_or_else(forgotten)?,
        Source::Remote(authority) => {
            let verb = format!("registry history --here --content {}", quoted_if_needed(version.as_str()));
            let output = ask(authority, exec, "history", &verb).await?;
            let heard = envelope::find::<envelope::Envelope<'_>>(&output.stdout).map_err(|e| invalid(&e))?;
            match heard.answer.document {
                Some(document) if heard.answer.store_version == *version => document.get().as_bytes().into(),
                _ => return Err(invalid("another version answered")),
            }
        }
    };
    let location = source.location();
    off_thread(move || Document::parse(bytes).map_err(|e| RegistryError::invalid(&location, &e))).await
}

/// One remembered version as other hosts read it: one line, as a snapshot.
pub async fn content_line(store: &dyn RegistryStore, version: &StoreVersion) -> Result<String, RegistryError> {
    let location = store.location();
    let bytes = kept(store)?.content(version).await?;
    let bytes = bytes.ok_or_else(|| {
        RegistryError::new(Class::NotFound, format!("{location} does not remember generation {version}"))
    })?;
    let version = serde_json::Value::String(version.to_string());
    off_thread(move || {
        let document = Document::parse(bytes).map_err(|e| RegistryError::invalid(&location, &e))?;
        Ok(format!(r#"{{"store_version":{version},"document":{}}}"#, document.value()))
    })
    .await
}

fn kept(store: &dyn RegistryStore) -> Result<&dyn History, RegistryError> {
    store.history().ok_or_else(|| {
        let sentence = format!("the store at {} keeps no history; ask on the authority", store.location());
        RegistryError::from(StoreError { sentence, class: Class::Config })
    })
}

/// Runs a verb on the authority that prints `what` there.
pub(super) async fn ask(
    authority: &RemoteAuthority,
    exec: &dyn Exec,
    what: &str,
    verb: &str,
) -> Result<ExecOutput, RegistryError> {
    let command = format!("{} {verb}", quoted(&authority.command));
    let limits = ExecLimits { stdout: LARGEST, deadline: DEADLINE };
    let run = exec.exec(&authority.target, &authority.paths, &command, &[], limits);
    let place = format!("registry authority {}", authority.target);
    let output = crate::czekam::when_long(BLINK, &format!("registry {what}"), &place, "ssh", run).await;
    let output = output.map_err(|e| {
        RegistryError::new(e.class, format!("the {what} of registry authority {} was not read: {e}", authority.target))
    })?;
    match output.status {
        Some(0) => Ok(output),
        status => {
            let status = status.map_or("no exit status".to_owned(), |s| s.to_string());
            let stderr = String::from_utf8_lossy(&output.stderr);
            let class = if output.status == Some(69) { Class::InfraDown } else { Class::Refused };
            let sentence = format!("registry authority {} exited with {status}: {}", authority.target, stderr.trim());
            Err(RegistryError::new(class, sentence))
        }
    }
}

fn invalid(why: &str) -> RegistryError {
    RegistryError::new(Class::Refused, format!("invalid registry authority response: {why}"))
}

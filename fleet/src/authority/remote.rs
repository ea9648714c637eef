//! One snapshot from an authority on another host (fleet contract §3.2).
use super::envelope::{self, Envelope};
use super::exec::{Exec, quoted, quoted_if_needed};
use super::{RegistryError, RemoteAuthority, newer};
use crate::fault::Class;
use crate::link::{ExecLimits, ExecOutput, LinkError, Stage};
use crate::name::StoreVersion;
use crate::store::Stored;
use std::time::Duration;

const SNAPSHOT: &str = "resolver snapshot";
/// Largest snapshot that is read. Older readers stop at 1 MiB.
const LARGEST: usize = 64 << 20;
/// From connect to last byte.
const DEADLINE: Duration = Duration::from_secs(60);
/// A read that takes longer is announced.
const BLINK: Duration = Duration::from_secs(2);

/// What an authority answered.
pub(super) enum Answered {
    /// The document and its version.
    Whole(Stored),
    /// It still is at the version that was held.
    Unchanged,
}

/// Reads the document's bytes and version, or that nothing changed since `held`. Every path is tried in order; then, when
/// the transport failed, all once more on new sessions: a session that died unnoticed must not keep a reader from a
/// healthy authority (§8.9).
pub(super) async fn read(
    authority: &RemoteAuthority,
    exec: &dyn Exec,
    held: Option<&StoreVersion>,
) -> Result<Answered, RegistryError> {
    if authority.paths.is_empty() {
        return Err(RegistryError::new(Class::Config, "registry authority has no SSH connection path"));
    }
    if let Some(held) = held.filter(|_| newer::asks(authority)) {
        let since = format!("{SNAPSHOT} --if-newer-than {}", quoted_if_needed(held.as_str()));
        let output = waited(authority, exec, &since).await?;
        if output.status == Some(0) {
            return answered(authority, output, Some(held));
        }
        // An authority before this flag refuses it; one that fails for another reason fails again and says why.
        let whole = answered(authority, waited(authority, exec, SNAPSHOT).await?, None)?;
        newer::forget(authority);
        return Ok(whole);
    }
    answered(authority, waited(authority, exec, SNAPSHOT).await?, None)
}

/// One look at a host that may have been promoted: its own store, asked once.
pub(super) async fn glance(
    host: &RemoteAuthority,
    exec: &dyn Exec,
    deadline: Duration,
) -> Result<Stored, RegistryError> {
    let command = host.verb(SNAPSHOT);
    let limits = ExecLimits { stdout: LARGEST, deadline };
    let run = exec.exec(&host.target, &host.paths, &command, &[], limits);
    let output = tokio::time::timeout(deadline + Duration::from_secs(1), run).await;
    let output = output.map_err(|_| late(&format!("command on {}", host.target)))?.map_err(|e| failed(&e).error)?;
    match answered(host, output, None)? {
        Answered::Whole(stored) => Ok(stored),
        Answered::Unchanged => {
            Err(RegistryError::new(Class::Refused, "invalid registry authority response: unchanged"))
        }
    }
}

async fn waited(authority: &RemoteAuthority, exec: &dyn Exec, verb: &str) -> Result<ExecOutput, RegistryError> {
    let place = format!("registry authority {}", authority.target);
    crate::czekam::when_long(BLINK, "registry snapshot", &place, "ssh", twice(authority, exec, verb)).await
}

async fn twice(authority: &RemoteAuthority, exec: &dyn Exec, verb: &str) -> Result<ExecOutput, RegistryError> {
    let first = match once(authority, exec, verb).await {
        Ok(output) => return Ok(output),
        Err(first) => first,
    };
    if !first.again {
        return Err(first.error);
    }
    once(authority, exec, verb).await.map_err(|second| {
        let (first, second) = (first.error.sentence, second.error);
        let sentence = format!("{first}; second authority read on a fresh SSH session failed: {second}");
        RegistryError { sentence, ..second }
    })
}

/// A failed transport, and whether new sessions may do better.
struct Failed {
    error: RegistryError,
    again: bool,
}

async fn once(authority: &RemoteAuthority, exec: &dyn Exec, verb: &str) -> Result<ExecOutput, Failed> {
    let command = format!("{} {verb}", quoted(&authority.command));
    let limits = ExecLimits { stdout: LARGEST, deadline: DEADLINE };
    let run = exec.exec(&authority.target, &authority.paths, &command, &[], limits);
    // The link keeps the deadline and knows the destination; this one only bounds a link that does not.
    match tokio::time::timeout(DEADLINE + Duration::from_secs(1), run).await {
        Ok(Ok(output)) => Ok(output),
        Ok(Err(e)) => Err(failed(&e)),
        Err(_) => {
            let paths: Vec<_> = authority.paths.iter().map(|p| p.destination.to_string()).collect();
            Err(Failed { error: late(&format!("command on {}", paths.join(", "))), again: false })
        }
    }
}

fn late(what: &str) -> RegistryError {
    let sentence = format!("authority {what} gave no complete answer within {}s", DEADLINE.as_secs());
    RegistryError::new(Class::Timeout, sentence)
}

fn failed(e: &LinkError) -> Failed {
    let (error, again) = match (e.stage, e.class) {
        (Stage::Limit, _) => (
            RegistryError::new(Class::Refused, format!("registry authority snapshot exceeds {} MiB", LARGEST >> 20)),
            false,
        ),
        (Stage::Exec, Class::Timeout) => (RegistryError::new(Class::Timeout, format!("authority {e}")), false),
        (Stage::Exec, class) => (RegistryError::new(class, format!("registry authority SSH failed: {e}")), true),
        (stage, class) => {
            // A refused key stays refused; a path that was down or silent may answer the second time.
            let hopeless = class == Class::Auth || (stage == Stage::Connect && class == Class::Config);
            (RegistryError::unreached(class, e.causes().to_owned()), !hopeless)
        }
    };
    Failed { error, again }
}

fn answered(
    authority: &RemoteAuthority,
    output: ExecOutput,
    held: Option<&StoreVersion>,
) -> Result<Answered, RegistryError> {
    if output.status != Some(0) {
        let status = output.status.map_or("no exit status".to_owned(), |s| s.to_string());
        let stderr = String::from_utf8_lossy(&output.stderr);
        let class = if output.status == Some(69) { Class::InfraDown } else { Class::Unknown };
        let sentence = format!("registry authority exited with {status}: {}", stderr.trim());
        return Err(RegistryError::new(class, sentence));
    }
    let invalid = |e: String| RegistryError::new(Class::Refused, format!("invalid registry authority response: {e}"));
    let heard = envelope::find::<Envelope<'_>>(&output.stdout).map_err(invalid)?;
    if let Some(warning) = heard.warning(&format!("registry authority {}", authority.target)) {
        tracing::warn!(target: "stado::fleet", "{warning}");
    }
    match heard.answer {
        Envelope { store_version, document: Some(document), unchanged: false } => {
            Ok(Answered::Whole(Stored { bytes: document.get().as_bytes().into(), version: store_version }))
        }
        Envelope { store_version, document: None, unchanged: true } if held == Some(&store_version) => {
            Ok(Answered::Unchanged)
        }
        Envelope { document: None, .. } => Err(invalid("missing field `document`".to_owned())),
        Envelope { .. } => Err(invalid("`document` beside `unchanged`".to_owned())),
    }
}

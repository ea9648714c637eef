//! The authority takes a host in that shows an invitation.
use super::wire::VERSION;
use super::{Candidate, Shelf, Use, Verdict, Welcome};
use crate::authority::{Exec, RegistryError, Source, again_while_moved, commit_edit, fetch_for_write};
use crate::document::Document;
use crate::edit::{Member, add_member, check_write, is_member};
use crate::fault::Class;
use crate::name::TargetName;
use jiff::Timestamp;
use serde_json::Value;

/// A candidate, and what is known of it beside its own words.
#[derive(Debug, Clone)]
pub struct Presented {
    /// The public half of the invitation's secret, which the candidate proved to have.
    pub invitation: String,
    /// Address that it comes from.
    pub from: String,
    /// What it says.
    pub candidate: Candidate,
}

/// Takes the host in: the invitation is used from here on by this host and no other, and the host is a target of the
/// registry. The same host may ask again, whatever was cut; a refusal by the registry leaves the invitation open.
///
/// # Errors
/// A refusal is of class `Refused` or `Config`, with a sentence for the candidate; others say what failed.
pub async fn admit(
    shelf: &Shelf,
    source: &Source,
    exec: &dyn Exec,
    presented: &Presented,
    now: Timestamp,
) -> Result<Welcome, RegistryError> {
    let Presented { invitation, from, candidate } = presented;
    let refused = |sentence: String| RegistryError::new(Class::Refused, sentence);
    if candidate.version != VERSION {
        let sentence = format!(
            "this host speaks version {} of joining and the authority {VERSION}: install the same stado on both",
            candidate.version
        );
        return Err(refused(sentence));
    }
    let key =
        russh::keys::PublicKey::from_openssh(&candidate.key).map_err(|_| refused("the key is no public key".into()))?;
    let (target, host) = (candidate.name.clone(), candidate.key.clone());
    let used = Use { target, key: host.clone(), from: from.clone(), at: now, let_in: false };
    let verdict = on_shelf(shelf, invitation.clone(), move |book, invitation| book.show(invitation, used)).await?;
    if let Verdict::Refused(sentence) = verdict {
        let print = key.fingerprint(russh::keys::HashAlg::Sha256);
        tracing::warn!(target: "stado::fleet", "stado fleet: {} from {from} with {print} was not let in: {sentence}", candidate.name);
        return Err(refused(sentence));
    }
    let known = match &verdict {
        Verdict::Known(name) => Some(name),
        _ => None,
    };
    match declare(source, exec, candidate, known).await {
        Ok(mut welcome) => {
            welcome.again |= verdict != Verdict::Taken;
            if known.is_none() {
                on_shelf(shelf, invitation.clone(), move |book, invitation| book.let_in(invitation, &host)).await?;
            }
            let print = key.fingerprint(russh::keys::HashAlg::Sha256);
            tracing::info!(target: "stado::fleet", "stado fleet: {} joined from {from} with {print}", candidate.name);
            Ok(welcome)
        }
        Err(error) => {
            if verdict == Verdict::Taken && matches!(error.class, Class::Refused | Class::Config | Class::Usage) {
                on_shelf(shelf, invitation.clone(), move |book, invitation| book.reopen(invitation, &host)).await?;
            }
            Err(error)
        }
    }
}

async fn on_shelf<T: Send + 'static>(
    shelf: &Shelf,
    invitation: String,
    change: impl FnOnce(&mut super::Book, &str) -> T + Send + 'static,
) -> Result<T, RegistryError> {
    let shelf = shelf.clone();
    let changed = tokio::task::spawn_blocking(move || shelf.change(|book| change(book, &invitation))).await;
    changed.unwrap_or_else(|e| Err(RegistryError::new(Class::Unknown, e.to_string())))
}

/// Writes the host into the registry, again as long as other writers are first. `known`: as what its invitation has let it
/// in already, which it does once.
async fn declare(
    source: &Source,
    exec: &dyn Exec,
    candidate: &Candidate,
    known: Option<&TargetName>,
) -> Result<Welcome, RegistryError> {
    again_while_moved(|| declare_once(source, exec, candidate, known), |error| error.class).await
}

async fn declare_once(
    source: &Source,
    exec: &dyn Exec,
    candidate: &Candidate,
    known: Option<&TargetName>,
) -> Result<Welcome, RegistryError> {
    let read = fetch_for_write(source, exec).await?;
    let (held, version) = read.ok_or_else(|| RegistryError::absent(&source.location()))?;
    let refused = |e: &dyn std::fmt::Display| RegistryError::new(Class::Refused, e.to_string());
    allowed(&held, "allow_join").map_err(|e| refused(&e))?;
    if let Some(name) =
        known.filter(|name| **name != candidate.name || !is_member(&held, name.as_str(), &candidate.key))
    {
        let sentence = format!(
            "this invitation has let this host in as {name} before, and the registry has it no more: an invitation lets a host in \
             once. Ask for another one (`stado fleet invite` on the host that keeps the registry)"
        );
        return Err(refused(&sentence));
    }
    let edited = add_member(&held, &member(candidate), false).map_err(|e| refused(&e))?;
    let authority = held.authority().and_then(|name| name.parse().ok());
    let authority = authority.ok_or_else(|| refused(&"the registry here names no authority"))?;
    let welcome = |version: String, again| Welcome {
        version: VERSION,
        target: candidate.name.clone(),
        authority,
        store_version: version,
        again,
    };
    if !edited.changed {
        return Ok(welcome(version.as_str().to_owned(), true));
    }
    check_write(Some(&held), &edited.document).map_err(|e| refused(&e))?;
    let committed = commit_edit(source, exec, &version, &edited.document).await?;
    Ok(welcome(committed.version.as_str().to_owned(), false))
}

fn member(candidate: &Candidate) -> Member {
    Member {
        name: candidate.name.to_string(),
        release_platform: candidate.release_platform.clone(),
        ssh: candidate.ssh.clone(),
        command: candidate.command.clone(),
        host_keys: candidate.host_keys.clone(),
        key: candidate.key.clone(),
    }
}

/// What `enrollment` of the registry says of a step; a missing section allows everything.
pub fn allowed(document: &Document, switch: &str) -> Result<(), String> {
    let said = document.section("enrollment").and_then(|e| e.get(switch)).and_then(Value::as_bool);
    match said {
        Some(false) => Err(format!("the registry does not allow it: enrollment.{switch} is false")),
        _ => Ok(()),
    }
}

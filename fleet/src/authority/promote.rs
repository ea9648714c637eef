//! A host becomes the authority by an explicit act. The one moment that counts is the write of its own store: before it nothing
//! has changed here, after it this host is the authority, whoever still has to hear of it. Made again after any interruption, it
//! goes on from where it was.
use super::commit::commit;
use super::exec::Exec;
use super::fetch::off_thread;
use super::successor::successor;
use super::{RegistryError, RemoteAuthority, Source, remote};
use crate::document::Document;
use crate::edit::{Promotion, check_write, promote as promoted};
use crate::fault::Class;
use crate::last_good::Copy;
use crate::name::{StoreVersion, TargetName};
use crate::store::{Expected, RegistryStore, Stored, Swap};
use jiff::Timestamp;
use std::sync::Arc;

/// From a copy the directory's generation rises by this much: the authority before may have gone on for a while, and readers
/// that know no epochs take no generation that goes back.
const GAP: u64 = 100;

/// Who asks.
#[derive(Debug, Clone)]
pub struct PromoteRequest {
    /// This host.
    pub me: TargetName,
    /// Absolute path of `stado` here.
    pub command: String,
    /// Whether this host's copy may be promoted although the authority does not answer.
    pub from_copy: bool,
}

/// What was done.
#[derive(Debug, Clone)]
pub struct Promoted {
    /// The registry under its authority, which is this host.
    pub document: Document,
    /// Its version in this host's store.
    pub version: StoreVersion,
    /// Whether this host was the authority already.
    pub already: bool,
    /// Who was it before, and whether it was told; why not, when it was not.
    pub before: Option<(TargetName, Result<(), String>)>,
}

/// The registry that this host is to serve, and what its author before knows of it.
struct Next {
    document: Document,
    before: Option<(TargetName, Result<(), String>)>,
}

/// Promotes this host. `source` is where it reads the registry now, `store` its own.
///
/// # Errors
/// The authority does not answer and `from_copy` was not said; another host was promoted; this host is none of the registry's;
/// the write failed.
pub async fn promote(
    source: &Source,
    store: &Arc<dyn RegistryStore>,
    copy: Option<&Copy>,
    exec: &dyn Exec,
    request: &PromoteRequest,
    now: Timestamp,
) -> Result<Promoted, RegistryError> {
    if store.shared() && !store.direct() {
        return Err(RegistryError::new(
            Class::Config,
            format!(
                "this host's store is {}, which another host keeps: an authority needs a store of its own (storage.backend local, \
                 s3 or etcd)",
                store.location()
            ),
        ));
    }
    let copied = copy.map(|copy| copy.snapshot.valid.document.clone());
    let next = match source {
        Source::Store(own) => match own.read().await? {
            None => unfinished(copied, request, &own.location())?,
            Some(stored) => {
                let held = parsed(&stored, &own.location()).await?;
                if held.authority() == Some(request.me.as_str()) {
                    let (document, version) = (held, stored.version);
                    return Ok(Promoted { document, version, already: true, before: None });
                }
                let document = raised(&held, request, now, 1).await?;
                // One swap of the store that all share: who was it before reads the same.
                let committed = commit(source, exec, Some(&stored.version), &document).await?;
                return Ok(Promoted { document, version: committed.version, already: false, before: None });
            }
        },
        Source::Remote(authority) => take_over(source, authority, copied, exec, request, now).await?,
    };
    let version = keep(store.as_ref(), &next.document).await?;
    let before = match next.before {
        Some((target, Err(why))) => {
            let told = tell_before(source, exec, &next.document).await.map_err(|e| format!("{why}; {e}"));
            Some((target, told))
        }
        before => before,
    };
    Ok(Promoted { document: next.document, version, already: false, before })
}

/// The copy names this host, and its own store is empty: a promotion that was interrupted after the authority was told.
fn unfinished(copied: Option<Document>, request: &PromoteRequest, location: &str) -> Result<Next, RegistryError> {
    match copied.filter(|copy| copy.epoch() > 0 && copy.authority() == Some(request.me.as_str())) {
        Some(document) => Ok(Next { document, before: None }),
        None => Err(RegistryError::new(
            Class::NotFound,
            format!(
                "no registry document at {location}, and no copy of one: there is nothing to promote. A host that stands by \
                 has a copy (`stado registry pull --from [user@]host --command /abs/stado`); a new fleet begins with `stado \
                 registry import`"
            ),
        )),
    }
}

/// From another host: with it, when it answers, so that no write of anybody is lost; else from the copy.
async fn take_over(
    source: &Source,
    authority: &RemoteAuthority,
    copied: Option<Document>,
    exec: &dyn Exec,
    request: &PromoteRequest,
    now: Timestamp,
) -> Result<Next, RegistryError> {
    let unread = match remote::read(authority, exec, None).await {
        Ok(remote::Answered::Whole(stored)) => {
            let held = parsed(&stored, &source.location()).await?;
            let before = Some((authority.target.clone(), Ok(())));
            if held.authority() == Some(request.me.as_str()) {
                // It was told, and this host has not kept it yet.
                return Ok(Next { document: held, before });
            }
            still_named(authority, &held)?;
            let document = raised(&held, request, now, 1).await?;
            // First there: from then on it takes no write that this host would not have.
            commit(source, exec, Some(&stored.version), &document).await?;
            return Ok(Next { document, before });
        }
        Ok(remote::Answered::Unchanged) => {
            return Err(RegistryError::new(Class::Refused, "invalid registry authority response: unchanged"));
        }
        Err(unread) => unread,
    };
    if let Some(other) = successor(&authority.standbys, authority.epoch, exec).await {
        let sentence = format!(
            "{} was promoted in the place of {} already (authority epoch {}); run `stado registry self` here to follow it, and \
             promote this host then, if it is to take over from {}",
            other.target, authority.target, other.epoch, other.target
        );
        return Err(RegistryError::new(Class::Refused, sentence));
    }
    let Some(copy) = copied.filter(|_| request.from_copy) else {
        let sentence = format!(
            "{unread}. Nothing was changed. If {} is gone for good, or for too long, promote this host from its copy with \
             `stado registry promote --from-copy`; what was written there after the copy was read is not in it",
            authority.target
        );
        return Err(RegistryError::new(unread.class, sentence));
    };
    let document = raised(&copy, request, now, GAP).await?;
    Ok(Next { document, before: Some((authority.target.clone(), Err(unread.sentence))) })
}

/// The authority itself names another one by now.
fn still_named(authority: &RemoteAuthority, held: &Document) -> Result<(), RegistryError> {
    match held.authority() {
        Some(named) if named != authority.target.as_str() => Err(RegistryError::new(
            Class::Refused,
            format!(
                "{} names {named} as the authority by now (authority epoch {}); run `stado registry self` here to follow it, and \
                 promote this host then",
                authority.target,
                held.epoch()
            ),
        )),
        _ => Ok(()),
    }
}

/// The next document, fit to be written.
async fn raised(
    held: &Document,
    request: &PromoteRequest,
    now: Timestamp,
    gap: u64,
) -> Result<Document, RegistryError> {
    let (held, request) = (held.clone(), request.clone());
    off_thread(move || {
        let since = now.strftime("%Y-%m-%dT%H:%M:%SZ").to_string();
        let promotion = Promotion { target: &request.me, command: &request.command, since: &since, gap };
        let next = promoted(&held, &promotion).map_err(|e| RegistryError::new(e.class, e.sentence))?.document;
        let told = check_write(Some(&held), &next).map_err(|e| RegistryError::new(Class::Config, e.to_string()))?;
        if let Some(line) = told {
            tracing::warn!(target: "stado::fleet", "{line}");
        }
        Ok(next)
    })
    .await
}

/// Writes this host's own store: the moment of the promotion.
async fn keep(store: &dyn RegistryStore, document: &Document) -> Result<StoreVersion, RegistryError> {
    let location = store.location();
    let held = store.read().await?;
    let expected = match &held {
        None => Expected::Absent,
        Some(stored) => {
            let own = parsed(stored, &location).await?;
            if own.same_as(document) {
                return Ok(stored.version.clone());
            }
            if own.epoch() >= document.epoch() {
                return Err(RegistryError::new(
                    Class::Refused,
                    format!(
                        "this host's own registry at {location} is of authority epoch {} ({}), and not before the epoch {} that it \
                         would be promoted to. Nothing was written here: look at both with `stado registry history`",
                        own.epoch(),
                        own.authority().unwrap_or("nobody"),
                        document.epoch()
                    ),
                ));
            }
            Expected::Version(stored.version.clone())
        }
    };
    match store.swap(expected, document.bytes().to_vec()).await? {
        Swap::Applied(version) => Ok(version),
        Swap::Unknown(e) => Err(e.into()),
        Swap::Conflict { .. } | Swap::Absent => Err(RegistryError::new(
            Class::Moved,
            format!("the registry at {location} changed meanwhile; run `stado registry promote` again"),
        )),
    }
}

/// Tells an authority that was replaced: its own store gets the registry that names its successor, conditional on what it
/// holds, which stays in its history.
///
/// # Errors
/// It does not answer, or refuses. It is told when it is back.
pub async fn tell_before(source: &Source, exec: &dyn Exec, document: &Document) -> Result<(), RegistryError> {
    let Source::Remote(authority) = source else { return Ok(()) };
    let remote::Answered::Whole(stored) = remote::read(authority, exec, None).await? else { return Ok(()) };
    if parsed(&stored, &source.location()).await?.epoch() >= document.epoch() {
        return Ok(());
    }
    let Err(error) = commit(source, exec, Some(&stored.version), document).await else { return Ok(()) };
    // It may have found out by itself meanwhile.
    match remote::read(authority, exec, None).await? {
        remote::Answered::Whole(stored) if parsed(&stored, &source.location()).await?.epoch() >= document.epoch() => {
            Ok(())
        }
        _ => Err(error),
    }
}

async fn parsed(stored: &Stored, location: &str) -> Result<Document, RegistryError> {
    let (bytes, location) = (Arc::clone(&stored.bytes), location.to_owned());
    off_thread(move || Document::parse(bytes).map_err(|e| RegistryError::invalid(&location, &e))).await
}

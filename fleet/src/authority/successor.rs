//! An authority that was promoted in another's place: found by its readers when the one they know does not answer, and by the
//! one that was replaced when it comes back.
use super::exec::Exec;
use super::fetch::off_thread;
use super::locate::{RemoteAuthority, Source, Standby, next_of, standbys};
use super::{RegistryError, remote};
use crate::document::{Document, Registry};
use crate::fault::Class;
use crate::name::{StoreVersion, TargetName};
use crate::store::{Expected, RegistryStore, Stored, Swap};
use crate::validate::{Valid, validate};
use futures_util::future::join_all;
use std::sync::Arc;
use std::time::Duration;

/// For one look at a host that may have been promoted.
const GLANCE: Duration = Duration::from_secs(10);

/// Who was promoted, and its registry.
#[derive(Debug, Clone)]
pub struct Successor {
    /// The authority now.
    pub target: TargetName,
    /// Its epoch.
    pub epoch: u64,
    /// Its registry.
    pub stored: Stored,
}

/// Of the hosts that may have been promoted, the one that was, beyond an epoch; the last of several. A host is believed when
/// its own registry names itself.
pub async fn successor(hosts: &[Standby], beyond: u64, exec: &dyn Exec) -> Option<Successor> {
    let looks = hosts.iter().map(|host| async move {
        let host = RemoteAuthority::from(host.clone());
        let stored = remote::glance(&host, exec, GLANCE).await.ok()?;
        let bytes = Arc::clone(&stored.bytes);
        let read =
            off_thread(move || Document::parse(bytes).map_err(|e| RegistryError::new(Class::Config, e.to_string())));
        let document = read.await.ok()?;
        let (epoch, names_itself) = (document.epoch(), document.authority() == Some(host.target.as_str()));
        (epoch > beyond && names_itself).then_some(Successor { target: host.target, epoch, stored })
    });
    join_all(looks).await.into_iter().flatten().max_by_key(|found| found.epoch)
}

/// Who was promoted in the place of the authority whose registry these bytes are, if anybody.
pub(super) async fn replaced_by(stored: &Stored, exec: &dyn Exec) -> Option<Successor> {
    let (hosts, epoch) = declared(stored).await?;
    successor(&hosts, epoch, exec).await
}

/// The standbys that a stored registry declares, and its epoch. Cheap where it declares none.
async fn declared(stored: &Stored) -> Option<(Vec<Standby>, u64)> {
    if !mentions_succession(stored) {
        return None;
    }
    let bytes = Arc::clone(&stored.bytes);
    let read = off_thread(move || {
        let unusable = |e: &dyn std::fmt::Display| RegistryError::new(Class::Config, e.to_string());
        let valid = validate(Document::parse(bytes).map_err(|e| unusable(&e))?).map_err(|e| unusable(&e))?;
        Ok((standbys(&valid.registry, None), valid.registry.succession.epoch))
    });
    read.await.ok().filter(|(hosts, _)| !hosts.is_empty())
}

/// A look that costs no parsing: most registries know no succession.
fn mentions_succession(stored: &Stored) -> bool {
    std::str::from_utf8(&stored.bytes).is_ok_and(|text| text.contains("\"succession\""))
}

/// Puts the successor's registry in the place of what a replaced authority held, which stays in the history: from then on this
/// host's own store names who it follows, to itself and to whoever still asks it.
pub async fn follow_successor(
    store: &dyn RegistryStore,
    held: &StoreVersion,
    next: &Successor,
) -> Result<(), RegistryError> {
    match store.swap(Expected::Version(held.clone()), next.stored.bytes.to_vec()).await? {
        Swap::Applied(_) => Ok(()),
        Swap::Unknown(e) => Err(e.into()),
        Swap::Conflict { .. } | Swap::Absent => Err(RegistryError::new(
            Class::Moved,
            format!("the registry at {} changed while it was handed to {}", store.location(), next.target),
        )),
    }
}

/// The registry in this host's own directory, where it knows a succession.
pub async fn own_succession(store: &dyn RegistryStore) -> Option<Valid> {
    if store.shared() {
        return None;
    }
    let stored = store.read().await.ok()??;
    if !mentions_succession(&stored) {
        return None;
    }
    off_thread(move || {
        let unusable = |e: &dyn std::fmt::Display| RegistryError::new(Class::Config, e.to_string());
        validate(Document::parse(stored.bytes).map_err(|e| unusable(&e))?).map_err(|e| unusable(&e))
    })
    .await
    .ok()
}

/// Where the registry is after a promotion that this host's copy does not know of: in its own store when that says that this
/// host was promoted; at the authority that its own store names, when this host was replaced. `me` tells which target of a
/// registry this host is.
pub async fn settled(
    source: Source,
    me: &(dyn Fn(&Registry) -> Option<TargetName> + Sync),
    store: &Arc<dyn RegistryStore>,
) -> Source {
    let Some(own) = own_succession(store.as_ref()).await else { return source };
    let Some(me) = me(&own.registry) else { return source };
    let (epoch, mine) = (own.registry.succession.epoch, own.document.authority() == Some(me.as_str()));
    match &source {
        Source::Remote(authority) if mine && epoch > authority.epoch => Source::Store(Arc::clone(store)),
        Source::Store(_) if !mine && epoch > 0 => next_of(&own.registry, &me, Arc::clone(store)),
        _ => source,
    }
}

/// What a write is told that came to an authority which was replaced.
pub(super) fn refused_write(epoch: u64, next: &Successor, followed: Result<(), RegistryError>) -> RegistryError {
    let then = match followed {
        Ok(()) => format!("This host follows {} from now on: make the change again, and it is made there", next.target),
        Err(e) => format!("This host could not be made to follow it ({e}): make the change on {}", next.target),
    };
    RegistryError::new(
        Class::Refused,
        format!(
            "registry write refused: this host's registry is of authority epoch {epoch}, and {} was promoted in its place \
             (authority epoch {}). Nothing was written. {then}",
            next.target, next.epoch
        ),
    )
}

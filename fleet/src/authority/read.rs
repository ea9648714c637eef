//! What a verb reads: the authority's snapshot, the store, or this host's copy, and what it says about that.
use super::exec::Exec;
use super::fetch::fetch_told;
use super::{RegistryError, RemoteAuthority, SharedStore, Source, locate, settled};
use crate::admit::Snapshot;
use crate::document::Registry;
use crate::fault::Class;
use crate::last_good::{Copy, LastGood};
use crate::name::TargetName;
use crate::store::RegistryStore;
use jiff::Timestamp;
use std::sync::Arc;
use std::time::Duration;

/// Where an answer came from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Origin {
    /// This host's configured store.
    Store,
    /// The authority, over SSH.
    Authority,
    /// This host's last-known-good copy.
    LastGood,
}

/// A snapshot with its origin, and the lines to print on standard error first.
#[derive(Debug, Clone)]
pub struct Answer {
    /// The snapshot.
    pub snapshot: Snapshot,
    /// Where it came from.
    pub origin: Origin,
    /// When it was read from the authority; now, unless it is the copy.
    pub read_at: Timestamp,
    /// Where the registry is; for a copy, where it was not answered.
    pub source: Source,
    /// Lines for standard error, in order.
    pub notices: Vec<String>,
    /// Why the authority did not answer, when the copy did.
    pub cause: Option<String>,
}

/// What a verb reads with.
#[derive(Clone)]
pub struct Reading<'a> {
    /// This host's identity, when it has one.
    pub me: Option<&'a TargetName>,
    /// The configured store.
    pub store: Arc<dyn RegistryStore>,
    /// This host's copy.
    pub last_good: &'a LastGood,
    /// The link.
    pub exec: &'a dyn Exec,
    /// Whether the copy may answer: only for verbs that do nothing but read (§3.4).
    pub copy_may_answer: bool,
    /// A read that takes longer is given up, as an authority that does not answer; `None` leaves it to the deadlines below.
    pub patience: Option<Duration>,
}

/// Reads the registry for a verb. The authority is named by this host's copy; a snapshot that cannot be read there is
/// followed by a store that other hosts share, and by the copy where the verb allows it. A good read is recorded.
pub async fn read_for_verbs(reading: Reading<'_>, now: Timestamp) -> Result<Answer, RegistryError> {
    let Here { source, copy, mut notices } = here(&|_| reading.me.cloned(), &reading.store, reading.last_good).await?;
    let cause = match read_source(&reading, &source, &mut notices).await {
        Ok((snapshot, origin)) => {
            let recorded = keep(&reading, origin, &snapshot, now).await;
            notices.extend(recorded);
            return Ok(Answer { snapshot, origin, read_at: now, source, notices, cause: None });
        }
        Err(cause) => cause,
    };
    // A host whose registry is its own directory has no copy to answer from (§3.4).
    let outage = matches!(source, Source::Remote(_)) || reading.store.shared();
    match copy.filter(|_| reading.copy_may_answer && outage) {
        Some(copy) => {
            notices.push(copy.notice(now, &cause.sentence));
            let (snapshot, read_at) = (copy.snapshot, copy.read_at);
            let cause = Some(cause.sentence);
            Ok(Answer { snapshot, origin: Origin::LastGood, read_at, source, notices, cause })
        }
        None => Err(cause),
    }
}

/// Where this host reads and writes.
#[derive(Debug, Clone)]
pub struct Here {
    /// The source.
    pub source: Source,
    /// The copy that named it.
    pub copy: Option<Copy>,
    /// Lines for standard error.
    pub notices: Vec<String>,
}

/// Locates the authority through this host's copy (§3.1), for readers and writers. A copy that cannot be read names
/// nobody: then a store that has a registry counts, and an empty local one does not, since a write would found a second
/// fleet there. `me` tells which target of the copy this host is.
pub async fn here(
    me: &(dyn Fn(&Registry) -> Option<TargetName> + Sync),
    store: &Arc<dyn RegistryStore>,
    last_good: &LastGood,
) -> Result<Here, RegistryError> {
    let copy = {
        let last_good = last_good.clone();
        blocking(move || last_good.read()).await
    };
    match copy {
        Ok(copy) => {
            let known = copy.as_ref().and_then(|c| me(&c.snapshot.valid.registry));
            let source = locate(copy.as_ref(), known.as_ref(), Arc::clone(store));
            let source = settled(source, me, store).await;
            Ok(Here { source, copy, notices: Vec::new() })
        }
        Err(e) if store.shared() || store.read().await?.is_some() => {
            Ok(Here { source: Source::Store(Arc::clone(store)), copy: None, notices: vec![e] })
        }
        Err(e) => {
            let sentence = format!(
                "{e}; until then nothing on this host names the registry authority: read it again with `stado registry \
                 pull --from [user@]host --command /abs/stado`"
            );
            Err(RegistryError::new(Class::Config, sentence))
        }
    }
}

async fn read_source(
    reading: &Reading<'_>,
    source: &Source,
    notices: &mut Vec<String>,
) -> Result<(Snapshot, Origin), RegistryError> {
    let fetching = fetch_told(source, reading.exec, None);
    let told = match reading.patience {
        None => fetching.await,
        Some(patience) => tokio::time::timeout(patience, fetching).await.map_err(|_| {
            let sentence = format!("{} did not answer within {}s", source.location(), patience.as_secs());
            RegistryError::new(Class::Timeout, sentence)
        })?,
    };
    notices.extend(told.notices);
    let absent = || match source {
        Source::Remote(RemoteAuthority { shared: Some(SharedStore(store)), .. }) => store.location(),
        _ => source.location(),
    };
    told.result?.ok_or_else(|| RegistryError::absent(&absent()))
}

/// Records what was read from the authority. A local directory is not recorded: a copy of it would outlive this host's
/// identity and send its own reads over SSH.
async fn keep(reading: &Reading<'_>, origin: Origin, snapshot: &Snapshot, now: Timestamp) -> Option<String> {
    if origin == Origin::Store && !reading.store.shared() {
        return None;
    }
    let (last_good, snapshot) = (reading.last_good.clone(), snapshot.clone());
    let recorded = blocking(move || last_good.record(&snapshot, now).map_err(|e| e.sentence));
    recorded.await.err()
}

async fn blocking<T: Send + 'static>(work: impl FnOnce() -> Result<T, String> + Send + 'static) -> Result<T, String> {
    tokio::task::spawn_blocking(work).await.unwrap_or_else(|e| Err(e.to_string()))
}

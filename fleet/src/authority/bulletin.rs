//! What the readers of a store are told: the store is watched, read and compared once, however many of them there are.
use super::change::Change;
use crate::name::StoreVersion;
use crate::store::{RegistryStore, Stored};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::sync::watch;

/// A burst of changes is told once.
const COALESCE: Duration = Duration::from_millis(30);
/// After a store that did not answer.
const PAUSE: Duration = Duration::from_secs(5);
/// A change with a longer line is not told: its readers read the document.
pub(super) const LARGEST: usize = 256 * 1024;

/// A stored version, as readers are told of it.
#[derive(Debug)]
pub(super) struct News {
    /// `None`: there is no document any more.
    pub(super) version: Option<StoreVersion>,
    line: String,
    /// The version that the change applies to, and its line.
    change: Option<(StoreVersion, String)>,
}

impl News {
    fn new(stored: Option<&Stored>, change: Option<Change>) -> Self {
        let version = stored.map(|stored| stored.version.clone());
        let line =
            serde_json::json!({ "store_version": version.as_ref().map(StoreVersion::as_str) }).to_string() + "\n";
        let change = change.map(|change| (change.from.clone(), change.line() + "\n"));
        Self { version, line, change: change.filter(|(_, line)| line.len() <= LARGEST) }
    }

    /// The line for a reader, with the change where that reader has been told of the version before.
    pub(super) fn line(&self, told: Option<&StoreVersion>) -> &str {
        match &self.change {
            Some((from, line)) if told == Some(from) => line,
            _ => &self.line,
        }
    }
}

type Latest = Option<Arc<News>>;

/// Tells of one store. Nothing is watched while nobody listens.
#[derive(Debug)]
pub struct Bulletin {
    store: Arc<dyn RegistryStore>,
    open: Arc<Mutex<Option<watch::Sender<Latest>>>>,
}

impl Bulletin {
    /// Of a store.
    pub fn new(store: Arc<dyn RegistryStore>) -> Self {
        Self { store, open: Arc::default() }
    }

    /// Hears what is told from now on, and what was told last. Needs a runtime.
    pub(super) fn subscribe(&self) -> watch::Receiver<Latest> {
        let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(tell) = open.as_ref() {
            return tell.subscribe();
        }
        let (tell, hear) = watch::channel(None);
        *open = Some(tell.clone());
        tokio::spawn(follow(self.store.clone(), tell, self.open.clone()));
        hear
    }
}

async fn follow(
    store: Arc<dyn RegistryStore>,
    tell: watch::Sender<Latest>,
    open: Arc<Mutex<Option<watch::Sender<Latest>>>>,
) {
    let mut held: Option<Stored> = None;
    loop {
        tokio::select! {
            next = next(store.as_ref(), held.as_ref()) => {
                let news = compared(held.take(), next.as_ref()).await;
                tell.send_replace(Some(Arc::new(news)));
                held = next;
                tokio::time::sleep(COALESCE).await;
            }
            () = tell.closed() => {
                let mut open = open.lock().unwrap_or_else(PoisonError::into_inner);
                // Unless somebody came at this very moment.
                if tell.receiver_count() == 0 {
                    *open = None;
                    return;
                }
            }
        }
    }
}

/// What is stored, once it is at another version than `held`. An outage of the store is for those who read it to report.
async fn next(store: &dyn RegistryStore, held: Option<&Stored>) -> Option<Stored> {
    let before = held.map(|held| &held.version);
    loop {
        if let Ok(version) = store.watch(before).await
            && version.as_ref() != before
            && let Ok(stored) = store.read().await
            && stored.as_ref().map(|stored| &stored.version) != before
        {
            return stored;
        }
        tokio::time::sleep(PAUSE).await;
    }
}

/// Parsing two documents takes long enough to hold up other tasks.
async fn compared(before: Option<Stored>, after: Option<&Stored>) -> News {
    let change = match (before, after.cloned()) {
        (Some(before), Some(after)) => {
            tokio::task::spawn_blocking(move || Change::between(&before, &after)).await.ok().flatten()
        }
        _ => None,
    };
    News::new(after, change)
}

//! What every store has to do, whatever engine is behind it. Each engine's tests run all of it over an empty store.
#![allow(clippy::unwrap_used, clippy::panic, reason = "only tests build this module")]
use super::{Expected, RegistryStore, Stored, Swap};
use std::sync::Arc;

fn text(stored: &Stored) -> &str {
    std::str::from_utf8(&stored.bytes).unwrap()
}

/// The four outcomes, in one story.
pub async fn a_swap_is_applied_conflicts_or_finds_nothing(store: &dyn RegistryStore) {
    assert!(store.read().await.unwrap().is_none());
    let never = Expected::Version("never".parse().unwrap());
    assert!(matches!(store.swap(never.clone(), b"x".to_vec()).await.unwrap(), Swap::Absent));
    assert!(store.read().await.unwrap().is_none());

    let Swap::Applied(one) = store.swap(Expected::Absent, b"one".to_vec()).await.unwrap() else { panic!() };
    let read = store.read().await.unwrap().unwrap();
    assert_eq!((text(&read), &read.version), ("one", &one));

    for expected in [Expected::Absent, never] {
        let Swap::Conflict { found } = store.swap(expected, b"two".to_vec()).await.unwrap() else { panic!() };
        assert!(found.is_none() || found.as_ref() == Some(&one), "{found:?}");
    }
    assert_eq!(text(&store.read().await.unwrap().unwrap()), "one");

    let Swap::Applied(two) = store.swap(Expected::Version(one.clone()), b"two".to_vec()).await.unwrap() else {
        panic!()
    };
    let read = store.read().await.unwrap().unwrap();
    assert_eq!((text(&read), &read.version), ("two", &two));
    let stale = store.swap(Expected::Version(one), b"three".to_vec()).await.unwrap();
    assert!(matches!(stale, Swap::Conflict { .. }));
}

/// Two hundred writers at once lose nothing, and each is refused only by another's success.
pub async fn two_hundred_writers_at_once_lose_nothing(store: Arc<dyn RegistryStore>) {
    writers_at_once_lose_nothing(store, 200).await;
}

/// The same with so many.
pub async fn writers_at_once_lose_nothing(store: Arc<dyn RegistryStore>, count: u32) {
    store.swap(Expected::Absent, b"0".to_vec()).await.unwrap();
    let writers: Vec<_> = (0..count).map(|_| tokio::spawn(increment(Arc::clone(&store)))).collect();
    let mut attempts = 0;
    for writer in writers {
        attempts += writer.await.unwrap();
    }
    assert_eq!(text(&store.read().await.unwrap().unwrap()), count.to_string());
    // Each success refuses at most every writer that is still at work, once: 200 + 199 + … + 1.
    assert!(attempts <= count * (count + 1) / 2, "{attempts}");
}

/// Reads, adds one, swaps; until it is applied. The number of attempts.
async fn increment(store: Arc<dyn RegistryStore>) -> u32 {
    for attempt in 1.. {
        let held = store.read().await.unwrap().unwrap();
        let next = text(&held).parse::<u32>().unwrap() + 1;
        match store.swap(Expected::Version(held.version), next.to_string().into_bytes()).await.unwrap() {
            Swap::Applied(_) => return attempt,
            Swap::Conflict { .. } => {}
            other => panic!("{other:?}"),
        }
    }
    unreachable!()
}

/// Of many creators exactly one creates.
pub async fn exactly_one_creates(store: Arc<dyn RegistryStore>) {
    let creators: Vec<_> = (0..50u32)
        .map(|n| {
            let store = Arc::clone(&store);
            tokio::spawn(async move { store.swap(Expected::Absent, n.to_string().into_bytes()).await.unwrap() })
        })
        .collect();
    let mut created = Vec::new();
    for (n, creator) in creators.into_iter().enumerate() {
        if let Swap::Applied(version) = creator.await.unwrap() {
            created.push((n.to_string(), version));
        }
    }
    let read = store.read().await.unwrap().unwrap();
    assert_eq!(created, [(text(&read).to_owned(), read.version.clone())]);
}

/// A watcher is told of a change after the version it holds, whether it came before or while it watches, and of nothing
/// else.
pub async fn a_watcher_sees_the_next_version(store: Arc<dyn RegistryStore>) {
    let watch = |held: Option<crate::name::StoreVersion>| {
        let store = Arc::clone(&store);
        tokio::spawn(async move { store.watch(held.as_ref()).await.unwrap() })
    };
    let first = watch(None);
    let Swap::Applied(one) = store.swap(Expected::Absent, b"one".to_vec()).await.unwrap() else { panic!() };
    assert_eq!(first.await.unwrap(), Some(one.clone()));

    let (held, other) = (watch(Some(one.clone())), watch(None));
    assert_eq!(other.await.unwrap(), Some(one.clone()), "a version that is there already");
    assert!(!held.is_finished(), "nothing has changed");
    let Swap::Applied(two) = store.swap(Expected::Version(one.clone()), b"two".to_vec()).await.unwrap() else {
        panic!()
    };
    assert_eq!(held.await.unwrap(), Some(two.clone()));
    assert_eq!(watch(Some(one)).await.unwrap(), Some(two));
}

//! A part of the daemon that could not start with the rest: it is tried again until what was in its way is gone. One retry
//! for all of them (design, rule 1).
use super::outside::Outside;
use std::fmt::Display;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio_util::task::AbortOnDropHandle;

/// First wait between attempts; each further one is twice as long.
const FIRST: Duration = Duration::from_secs(1);
/// Longest wait.
const MOST: Duration = Duration::from_secs(10);

/// What a part is called, and where it is to be.
#[derive(Debug, Clone)]
pub(super) struct Place {
    /// Name among unserved things.
    pub(super) what: &'static str,
    /// Address or path.
    pub(super) bind: String,
}

/// A part of the daemon, which may come later.
#[derive(Debug)]
pub(super) struct Part<T> {
    slot: Slot<T>,
    coming: Option<AbortOnDropHandle<()>>,
}

/// Where a part is when it has come.
#[derive(Debug)]
pub(super) struct Slot<T>(Arc<Mutex<Option<T>>>);

impl<T> Clone for Slot<T> {
    fn clone(&self) -> Self {
        Self(self.0.clone())
    }
}

impl<T> Slot<T> {
    pub(super) fn new() -> Self {
        Self(Arc::new(Mutex::new(None)))
    }

    fn lock(&self) -> MutexGuard<'_, Option<T>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Changes it, if it is there.
    pub(super) fn with_mut<R>(&self, change: impl FnOnce(&mut T) -> R) -> Option<R> {
        self.lock().as_mut().map(change)
    }

    /// Looks at it, if it is there.
    pub(super) fn with<R>(&self, look: impl FnOnce(&T) -> R) -> Option<R> {
        self.lock().as_ref().map(look)
    }
}

impl<T: Send + 'static> Part<T> {
    /// A part that nobody asked for.
    pub(super) fn none() -> Self {
        Self { slot: Slot::new(), coming: None }
    }

    /// A part that is there.
    pub(super) fn here(part: T) -> Self {
        Self::none().filled(part)
    }

    fn filled(self, part: T) -> Self {
        *self.slot.lock() = Some(part);
        self
    }

    /// What the first attempt gave, in `slot`; after a failure `attempt` is made until it succeeds. Outsiders are told.
    pub(super) fn start<E, F, Fut>(
        slot: Slot<T>,
        first: Result<T, E>,
        place: Place,
        outside: Option<Outside>,
        attempt: F,
    ) -> Self
    where
        E: Display + Send + 'static,
        F: FnMut() -> Fut + Send + 'static,
        Fut: Future<Output = Result<T, E>> + Send + 'static,
    {
        let part = Self { slot, coming: None };
        let error = match first {
            Ok(here) => return part.filled(here),
            Err(error) => error.to_string(),
        };
        tracing::warn!(target: "stado::fleet", "stado {} at {} is not served; it is tried again: {error}", place.what, place.bind);
        if let Some(outside) = &outside {
            outside.not_served(&place, &error);
        }
        let coming = tokio::spawn(retry(part.slot.clone(), error, place, outside, attempt));
        Self { coming: Some(AbortOnDropHandle::new(coming)), ..part }
    }

    /// Where it is, or will be.
    pub(super) fn slot(&self) -> &Slot<T> {
        &self.slot
    }

    /// Tries no more, and gives the part, if it is there.
    pub(super) async fn take(self) -> Option<T> {
        if let Some(coming) = self.coming {
            coming.abort();
            // Cancelled, or done: nothing fills the slot from now on.
            let _ = coming.await;
        }
        self.slot.lock().take()
    }
}

async fn retry<T, E, F, Fut>(slot: Slot<T>, mut said: String, place: Place, outside: Option<Outside>, mut attempt: F)
where
    E: Display,
    F: FnMut() -> Fut,
    Fut: Future<Output = Result<T, E>>,
{
    let mut wait = FIRST;
    loop {
        tokio::time::sleep(wait).await;
        wait = (wait * 2).min(MOST);
        let error = match attempt().await {
            Ok(here) => {
                *slot.lock() = Some(here);
                break;
            }
            Err(error) => error.to_string(),
        };
        if error != said {
            tracing::warn!(target: "stado::fleet", "stado {} at {} is still not served: {error}", place.what, place.bind);
            if let Some(outside) = &outside {
                outside.not_served(&place, &error);
            }
            said = error;
        }
    }
    tracing::info!(target: "stado::fleet", "stado {} at {} is served now", place.what, place.bind);
    if let Some(outside) = &outside {
        outside.served(place.what);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::apply::report::Elsewhere;
    use std::sync::atomic::{AtomicUsize, Ordering};
    use tokio::sync::watch;

    /// A part that comes with its `successful`-th attempt, the first of them made here.
    fn part(successful: usize, outside: &Outside) -> (Part<usize>, Arc<AtomicUsize>) {
        let asked = Arc::new(AtomicUsize::new(0));
        let count = asked.clone();
        let attempt = move || {
            let n = count.fetch_add(1, Ordering::Relaxed) + 1;
            std::future::ready(if n == successful { Ok(n) } else { Err(format!("held by {}", n / 2)) })
        };
        let place = Place { what: "gate", bind: "127.0.0.1:1".into() };
        let first = if successful == 0 { Ok(0) } else { Err("held".to_owned()) };
        (Part::start(Slot::new(), first, place, Some(outside.clone()), attempt), asked)
    }

    fn outside() -> (Outside, watch::Receiver<Elsewhere>) {
        let (tell, told) = watch::channel(Elsewhere::default());
        (Outside::new(tell), told)
    }

    #[tokio::test(start_paused = true)]
    async fn a_part_that_comes_late_is_unserved_until_then_with_the_reason_of_now() {
        let (outside, told) = outside();
        let (part, asked) = part(5, &outside);
        let reason = || told.borrow().unserved.first().map(|row| row.reason.clone());
        assert_eq!(reason().as_deref(), Some("held"));
        tokio::time::sleep(Duration::from_millis(7500)).await;
        assert_eq!((reason().as_deref(), asked.load(Ordering::Relaxed)), (Some("held by 1"), 3));
        assert_eq!(told.borrow().unserved.len(), 1, "one row, whatever the reason becomes");
        assert_eq!(part.slot().with(|n| *n), None);
        tokio::time::sleep(Duration::from_secs(60)).await;
        assert_eq!((reason(), part.slot().with(|n| *n)), (None, Some(5)));
        tokio::time::sleep(Duration::from_secs(600)).await;
        assert_eq!(asked.load(Ordering::Relaxed), 5, "and no more");
        assert_eq!(part.take().await, Some(5));
    }

    #[tokio::test(start_paused = true)]
    async fn it_is_tried_for_ever_at_most_ten_seconds_apart_and_not_after_it_was_taken() {
        let (outside, _told) = outside();
        let (part, asked) = part(usize::MAX, &outside);
        tokio::time::sleep(Duration::from_secs(3600)).await;
        let attempts = asked.load(Ordering::Relaxed);
        assert!((355..370).contains(&attempts), "{attempts}");
        assert_eq!(part.take().await, None);
        tokio::time::sleep(Duration::from_secs(3600)).await;
        assert_eq!(asked.load(Ordering::Relaxed), attempts);
    }

    #[tokio::test(start_paused = true)]
    async fn a_part_that_starts_is_never_unserved() {
        let (outside, told) = outside();
        let (part, _) = part(0, &outside);
        assert!(told.borrow().unserved.is_empty());
        assert_eq!(part.take().await, Some(0));
    }
}

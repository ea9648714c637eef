//! Something that was read and is believed for a while, and read once for all who ask meanwhile.
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};
use tokio::sync::watch;

/// What was read last; who watches hears of what is read after it.
#[derive(Debug)]
pub(super) struct Belief<T, E> {
    read: watch::Sender<Option<Read<T>>>,
    /// The reading after it, if that failed.
    failed: Mutex<Option<(Instant, E)>>,
    /// Whose turn it is to read.
    turn: tokio::sync::Mutex<()>,
    lasts: Duration,
}

/// What was read, and when its reading began.
#[derive(Debug)]
pub(super) struct Read<T> {
    began: Instant,
    pub(super) what: Arc<T>,
}

impl<T, E: Clone> Belief<T, E> {
    /// Of something that is believed for as long as it `lasts`.
    pub(super) fn new(lasts: Duration) -> Self {
        Self { read: watch::Sender::new(None), failed: Mutex::default(), turn: tokio::sync::Mutex::default(), lasts }
    }

    /// What is held, if it is believed still and says what is `wanted`; else what is read now. Those who ask while it is being
    /// read get what the next reading finds: a thousand who come at once cause two readings, whatever those find.
    pub(super) async fn get(
        &self,
        wanted: impl Fn(&T) -> bool,
        read: impl Future<Output = Result<T, E>>,
    ) -> Result<Arc<T>, E> {
        if let Some(held) = self.believed(&wanted) {
            return Ok(held);
        }
        let asked = Instant::now();
        let _turn = self.turn.lock().await;
        if let Some(answer) = self.since(asked) {
            return answer;
        }
        if let Some(held) = self.believed(&wanted) {
            return Ok(held);
        }
        self.keep(read).await
    }

    /// Reads anew, whatever is held.
    pub(super) async fn renew(&self, read: impl Future<Output = Result<T, E>>) -> Result<Arc<T>, E> {
        let _turn = self.turn.lock().await;
        self.keep(read).await
    }

    /// What was read last, however old it is.
    pub(super) fn last(&self) -> Option<Arc<T>> {
        self.read.borrow().as_ref().map(|read| read.what.clone())
    }

    /// What is read from now on, beginning with what is held.
    pub(super) fn watch(&self) -> watch::Receiver<Option<Read<T>>> {
        self.read.subscribe()
    }

    /// Whether anybody watches.
    pub(super) fn is_watched(&self) -> bool {
        self.read.receiver_count() > 0
    }

    /// Of whose turn it is.
    async fn keep(&self, read: impl Future<Output = Result<T, E>>) -> Result<Arc<T>, E> {
        let began = Instant::now();
        let answer = read.await.map(Arc::new);
        *self.failed.lock().unwrap_or_else(PoisonError::into_inner) =
            answer.as_ref().err().map(|why| (began, why.clone()));
        if let Ok(new) = &answer {
            self.read.send_replace(Some(Read { began, what: new.clone() }));
        }
        answer
    }

    fn believed(&self, wanted: impl Fn(&T) -> bool) -> Option<Arc<T>> {
        let last = self.read.borrow();
        let held = last.as_ref().filter(|read| read.began.elapsed() < self.lasts && wanted(&read.what))?;
        Some(held.what.clone())
    }

    /// What a reading found that began since then.
    fn since(&self, asked: Instant) -> Option<Result<Arc<T>, E>> {
        let failed = self.failed.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((began, why)) = failed.as_ref() {
            return (*began >= asked).then(|| Err(why.clone()));
        }
        let last = self.read.borrow();
        last.as_ref().filter(|read| read.began >= asked).map(|read| Ok(read.what.clone()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::cell::Cell;
    use std::rc::Rc;
    use tokio::task::{LocalSet, spawn_local, yield_now};

    const LONG: Duration = Duration::from_secs(3600);

    /// Gives how many readings there have been, slowly.
    async fn read(readings: Rc<Cell<usize>>) -> Result<usize, String> {
        readings.set(readings.get() + 1);
        let nth = readings.get();
        yield_now().await;
        Ok(nth)
    }

    #[tokio::test]
    async fn a_thousand_who_ask_at_once_cause_one_reading_and_one_more_if_it_does_not_satisfy_them() {
        let (belief, readings) = (Rc::new(Belief::new(LONG)), Rc::new(Cell::new(0)));
        let all_ask = |satisfied: bool| {
            let (belief, readings) = (belief.clone(), readings.clone());
            let ask = move || {
                let (belief, readings) = (belief.clone(), readings.clone());
                spawn_local(async move { *belief.get(|_| satisfied, read(readings)).await.unwrap() })
            };
            async move {
                let mut got = Vec::new();
                for asked in (0..1000).map(|_| ask()).collect::<Vec<_>>() {
                    got.push(asked.await.unwrap());
                }
                got
            }
        };
        LocalSet::new()
            .run_until(async {
                assert_eq!(all_ask(true).await, [1; 1000]);
                // What was read after they asked is their answer, whether they like it or not.
                assert!(all_ask(false).await.iter().all(|nth| [2, 3].contains(nth)));
                assert!(readings.get() <= 3, "{}", readings.get());
            })
            .await;
    }

    #[tokio::test]
    async fn what_is_old_is_read_anew() {
        let (belief, readings) = (Belief::new(Duration::ZERO), Rc::new(Cell::new(0)));
        for nth in 1..=3 {
            assert_eq!(*belief.get(|_| true, read(readings.clone())).await.unwrap(), nth);
        }
    }

    async fn failing(readings: Rc<Cell<usize>>) -> Result<(), String> {
        read(readings).await?;
        Err("gone".to_owned())
    }

    #[tokio::test]
    async fn a_reading_that_fails_fails_for_all_who_waited_for_it() {
        let (belief, readings) = (Rc::new(Belief::new(LONG)), Rc::new(Cell::new(0)));
        LocalSet::new()
            .run_until(async {
                let ask = |_| {
                    let (belief, readings) = (belief.clone(), readings.clone());
                    spawn_local(async move { belief.get(|()| true, failing(readings)).await })
                };
                for asked in (0..1000).map(ask).collect::<Vec<_>>() {
                    assert_eq!(asked.await.unwrap(), Err("gone".to_owned()));
                }
            })
            .await;
        assert!(readings.get() <= 2, "{}", readings.get());
    }

    #[tokio::test]
    async fn a_failed_reading_is_told_and_leaves_what_was_held() {
        let belief = Belief::new(LONG);
        assert_eq!(belief.get(|_| true, async { Ok::<_, &str>(7) }).await, Ok(Arc::new(7)));
        assert_eq!(belief.get(|_| false, async { Err("gone") }).await, Err("gone"));
        assert_eq!(belief.get(|_| true, async { Err("not asked for") }).await, Ok(Arc::new(7)));
    }
}

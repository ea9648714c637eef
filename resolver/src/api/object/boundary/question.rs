//! One question to the vault: asked by one request at a time, shared by those that come while it is young, refused at once to
//! those that come later.
use super::PATIENCE;
use super::verifier::Asked;
use stado_fleet::czekam;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::sync::watch;
use tokio::time::{Instant, sleep};

#[derive(Debug)]
pub(super) struct Question<T> {
    state: Mutex<State<T>>,
    recheck: Duration,
}

#[derive(Debug)]
enum State<T> {
    /// Nobody asks.
    Idle,
    /// Somebody asks.
    Asking(watch::Receiver<Stage<T>>),
    /// The answer holds.
    Settled(T),
    /// It failed; until then nobody asks again.
    Closed { cause: String, until: Instant },
}

#[derive(Debug, Clone)]
enum Stage<T> {
    Young,
    /// Announced by this line, and not answered yet.
    Held(String),
    Done(Result<T, String>),
}

impl<T: Clone + Send + Sync + 'static> Question<T> {
    pub(super) fn new(recheck: Duration) -> Self {
        Self { state: Mutex::new(State::Idle), recheck }
    }

    /// Whether its answer holds.
    pub(super) fn is_settled(&self) -> bool {
        matches!(*self.state(), State::Settled(_))
    }

    /// Whether nothing speaks against asking it.
    pub(super) fn is_open(&self) -> bool {
        match &*self.state() {
            State::Closed { .. } => false,
            State::Asking(stage) => !matches!(*stage.borrow(), Stage::Held(_)),
            State::Idle | State::Settled(_) => true,
        }
    }

    /// The answer, or why there is none now. `work` is begun at once, if at all, and goes on when nobody waits for it.
    pub(super) fn ask<W>(
        self: &Arc<Self>,
        asked: Asked,
        work: W,
    ) -> impl Future<Output = Result<T, String>> + Send + use<T, W>
    where
        W: Future<Output = Result<T, String>> + Send + 'static,
    {
        let known = self.begin(asked, work);
        async move {
            let mut stages = known?;
            loop {
                match &*stages.borrow_and_update() {
                    Stage::Young => {}
                    Stage::Held(line) => return Err(line.clone()),
                    Stage::Done(answer) => return answer.clone(),
                }
                if stages.changed().await.is_err() {
                    return Err("the question to the vault was given up".into());
                }
            }
        }
    }

    /// Those who ask now, or the answer that is known without them.
    fn begin(
        self: &Arc<Self>,
        asked: Asked,
        work: impl Future<Output = Result<T, String>> + Send + 'static,
    ) -> Result<watch::Receiver<Stage<T>>, String> {
        let mut state = self.state();
        match &*state {
            State::Settled(answer) => return Ok(watch::channel(Stage::Done(Ok(answer.clone()))).1),
            State::Closed { cause, until } if Instant::now() < *until => return Err(cause.clone()),
            State::Asking(stages) => return Ok(stages.clone()),
            State::Idle | State::Closed { .. } => {}
        }
        let (tell, stages) = watch::channel(Stage::Young);
        *state = State::Asking(stages.clone());
        drop(state);
        tokio::spawn(self.clone().run(asked, work, tell));
        Ok(stages)
    }

    async fn run(
        self: Arc<Self>,
        asked: Asked,
        work: impl Future<Output = Result<T, String>> + Send,
        tell: watch::Sender<Stage<T>>,
    ) {
        let mut wait = czekam::quietly(&asked.what, &asked.place, "vault");
        tokio::pin!(work);
        let early = tokio::select! {
            biased;
            answer = &mut work => Some(answer),
            () = sleep(PATIENCE) => None,
        };
        let answer = match early {
            Some(answer) => answer,
            None => {
                let line = wait.announce();
                (asked.told)(Some(&line));
                tell.send_replace(Stage::Held(line));
                work.await
            }
        };
        let (next, answer) = match answer {
            Ok(answer) => {
                wait.done();
                (asked.told)(None);
                (if asked.keeps { State::Settled(answer.clone()) } else { State::Idle }, Ok(answer))
            }
            Err(cause) => {
                let cause = wait.failed(&cause);
                (asked.told)(Some(&cause));
                (State::Closed { cause: cause.clone(), until: Instant::now() + self.recheck }, Err(cause))
            }
        };
        *self.state() = next;
        tell.send_replace(Stage::Done(answer));
    }

    fn state(&self) -> MutexGuard<'_, State<T>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

//! Asks again and again: the daemon, the fleet's side of this host, and who is connected to the service whose story is told.
//! Each for itself, so that one that is silent holds nothing else up.
use crate::args::StatusArgs;
use crate::client::Api;
use crate::cmd::fleet;
use crate::cmd::resolver::{Binds, Watched};
use crate::cmd::status::{self, Fleet, Seen};
use crate::config::Env;
use stado_fleet::wire::ConnectionList;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;
use tokio::time::{Instant, sleep_until, timeout};

/// An authority that answers at once is heard before the first report.
const AT_ONCE: Duration = Duration::from_millis(500);

/// What was heard.
#[derive(Debug)]
pub(super) enum News {
    /// All but the fleet's side.
    Daemon(Box<Seen>),
    Fleet(Fleet),
    Connections(Box<ConnectionList>),
}

pub(super) struct Feed {
    api: Api,
    env: Arc<Env>,
    every: Duration,
    daemon: Asking<Seen>,
    fleet: Asking<(Option<Watched>, Fleet)>,
    watched: Option<Watched>,
    connections: Asking<Option<ConnectionList>>,
    followed: Option<String>,
}

impl Feed {
    pub(super) fn new(api: Api, env: &Env, every: Duration) -> Self {
        Self {
            api,
            env: Arc::new(env.clone()),
            every,
            daemon: Asking::default(),
            fleet: Asking::default(),
            watched: None,
            connections: Asking::default(),
            followed: None,
        }
    }

    /// Asks for the connections of another service, or of none.
    pub(super) fn follow(&mut self, service: Option<&str>) {
        if self.followed.as_deref() != service {
            self.followed = service.map(str::to_owned);
            self.connections = Asking::default();
        }
    }

    /// How long the daemon has been asked without an answer.
    pub(super) fn silent(&self) -> Duration {
        self.daemon.waits()
    }

    /// The next answer. Nothing is lost when nobody waits for it any more.
    pub(super) async fn next(&mut self) -> News {
        let Self { api, env, every, daemon, fleet, watched, connections, followed } = self;
        let ask_daemon = || -> Answer<Seen> {
            let (api, env) = (api.clone(), Arc::clone(env));
            Box::pin(async move { status::daemon(&api, &env).await })
        };
        let ask_fleet = || -> Answer<(Option<Watched>, Fleet)> { Box::pin(look(watched.take(), Arc::clone(env))) };
        let ask_connections = || -> Answer<Option<ConnectionList>> {
            let (api, name) = (api.clone(), followed.clone().unwrap_or_default());
            Box::pin(async move { api.connections(&name).await.ok() })
        };
        tokio::select! {
            seen = daemon.next(*every, ask_daemon) => News::Daemon(Box::new(seen)),
            (again, seen) = fleet.next(*every, ask_fleet) => {
                *watched = again;
                News::Fleet(seen)
            }
            // A daemon of the first version does not know, and the page does without.
            list = connections.next(*every, ask_connections), if followed.is_some() => {
                News::Connections(Box::new(list.unwrap_or_default()))
            }
        }
    }
}

/// What `resolver status --watch` says, from settings that may have been mended since.
async fn look(watched: Option<Watched>, env: Arc<Env>) -> (Option<Watched>, Fleet) {
    let mut watched = match watched {
        Some(watched) => watched,
        None => match fleet::Fleet::open(&env) {
            Ok(fleet) => {
                let mut watched = Watched::begin(fleet);
                let _ = timeout(AT_ONCE, watched.answered()).await;
                watched
            }
            Err(failure) => return (None, status::told(Err(failure))),
        },
    };
    let report = watched.report(&StatusArgs::default(), Binds::Believed).await;
    let again = report.is_ok().then_some(watched);
    (again, status::told(report))
}

type Answer<T> = Pin<Box<dyn Future<Output = T>>>;

/// One question that is asked at most every so often.
struct Asking<T> {
    running: Option<Answer<T>>,
    asked: Option<Instant>,
}

impl<T> Default for Asking<T> {
    fn default() -> Self {
        Self { running: None, asked: None }
    }
}

impl<T> Asking<T> {
    /// The next answer. Whoever stops waiting for it may go on later.
    async fn next(&mut self, every: Duration, ask: impl FnOnce() -> Answer<T>) -> T {
        if self.running.is_none() {
            if let Some(asked) = self.asked {
                sleep_until(asked + every).await;
            }
            self.asked = Some(Instant::now());
        }
        let answer = self.running.get_or_insert_with(ask).await;
        self.running = None;
        answer
    }

    fn waits(&self) -> Duration {
        match (&self.running, self.asked) {
            (Some(_), Some(asked)) => asked.elapsed(),
            _ => Duration::ZERO,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_question_is_asked_once_at_a_time_and_its_answer_is_not_lost() {
        let mut asking: Asking<u32> = Asking::default();
        let mut asked = 0;
        let every = Duration::from_secs(2);
        let ask = |asked: &mut u32| -> Answer<u32> {
            *asked += 1;
            let n = *asked;
            Box::pin(async move {
                tokio::time::sleep(Duration::from_secs(5)).await;
                n
            })
        };
        assert!(timeout(Duration::from_secs(1), asking.next(every, || ask(&mut asked))).await.is_err());
        assert_eq!(asking.waits(), Duration::from_secs(1));
        assert_eq!(asking.next(every, || ask(&mut asked)).await, 1, "the first question goes on");
        assert_eq!(asking.waits(), Duration::ZERO);
        let before = Instant::now();
        assert_eq!(asking.next(every, || ask(&mut asked)).await, 2);
        assert_eq!(before.elapsed(), Duration::from_secs(5), "an answer that took longer is asked for again at once");
    }
}

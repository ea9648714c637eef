//! The task that keeps one registration alive: heartbeats, re-registration, back-off (mesh contract §2).
use super::api::Api;
use super::backoff::Backoff;
use super::error::Error;
use super::handle::{RegistrationInfo, State};
use super::options::FirstAttempt;
use jiff::Timestamp;
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};
use stado_fleet::wire::{RegisterRequest, RegisterResponse};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::sync::watch;
use tokio::time::{Instant, sleep};

/// Lease assumed when a daemon names none.
const DEFAULT_TTL: Duration = Duration::from_secs(15);
const SHORTEST_INTERVAL: Duration = Duration::from_secs(1);

/// Makes registrations of one request.
pub(super) struct Creator {
    pub(super) api: Api,
    request: RegisterRequest,
    random: StdRng,
    /// Key of a creation whose answer was lost: the next attempt asks for the same registration.
    unanswered: Option<String>,
}

impl Creator {
    pub(super) fn new(api: Api, request: RegisterRequest) -> Self {
        Self { api, request, random: StdRng::from_os_rng(), unanswered: None }
    }

    async fn create(&mut self) -> Result<RegisterResponse, Error> {
        let key = match self.unanswered.take() {
            Some(key) => key,
            None => format!("{:032x}", self.random.random::<u128>()),
        };
        let outcome = self.api.register(&self.request, Some(&key)).await;
        if matches!(outcome, Err(Error::Unreachable { .. })) {
            self.unanswered = Some(key);
        }
        outcome
    }

    /// The first registration, tried again as asked.
    pub(super) async fn first(&mut self, attempts: FirstAttempt) -> Result<RegisterResponse, Error> {
        let end = match attempts {
            FirstAttempt::RetryFor(time) => Instant::now().checked_add(time),
            _ => None,
        };
        let mut backoff = Backoff::default();
        loop {
            let error = match self.create().await {
                Ok(response) => return Ok(response),
                Err(error) => error,
            };
            if attempts == FirstAttempt::Once || !error.may_pass() {
                return Err(error);
            }
            let wait = backoff.next(&mut self.random);
            if end.is_some_and(|end| Instant::now() + wait > end) {
                return Err(error);
            }
            tracing::debug!(target: "stado::client", service = self.request.name, %error, ?wait, "first registration failed");
            sleep(wait).await;
        }
    }
}

/// The registration as it stands; shared by the task and the handle.
pub(super) struct Current {
    pub(super) info: RegistrationInfo,
    pub(super) token: String,
}

impl From<RegisterResponse> for Current {
    fn from(response: RegisterResponse) -> Self {
        let ttl = u64::try_from(response.ttl_seconds).ok().filter(|s| *s > 0).map_or(DEFAULT_TTL, Duration::from_secs);
        let info = RegistrationInfo {
            registration_id: response.registration_id,
            name: response.name,
            endpoint: response.frontend.endpoint(),
            expires_at: response.expires_at.parse().ok(),
            ttl,
        };
        Self { info, token: response.lease_token }
    }
}

/// What the task and the handle share.
pub(super) struct Shared {
    current: Mutex<Current>,
    pub(super) state: watch::Sender<State>,
}

impl Shared {
    pub(super) fn new(current: Current) -> Self {
        Self { current: Mutex::new(current), state: watch::Sender::new(State::Registered) }
    }

    pub(super) fn with<T>(&self, read: impl FnOnce(&mut Current) -> T) -> T {
        read(&mut self.current.lock().unwrap_or_else(PoisonError::into_inner))
    }

    pub(super) fn credentials(&self) -> (String, String) {
        self.with(|current| (current.info.registration_id.clone(), current.token.clone()))
    }
}

/// Whether the last renewal made a new registration necessary.
enum Renewal {
    Renewed,
    Forgotten(Error),
}

pub(super) struct Keeper {
    pub(super) creator: Creator,
    pub(super) shared: Arc<Shared>,
    pub(super) stop: watch::Receiver<bool>,
}

impl Keeper {
    /// Runs until the handle is closed or dropped.
    pub(super) async fn run(mut self) {
        let mut failing: Option<(Backoff, Timestamp)> = None;
        loop {
            let wait = match &mut failing {
                None => self.shared.with(|c| interval(c.info.ttl)),
                Some((backoff, _)) => backoff.next(&mut self.creator.random),
            };
            tokio::select! {
                biased;
                _ = self.stop.wait_for(|stop| *stop) => break,
                () = sleep(wait) => {}
            }
            let renewal = tokio::select! {
                biased;
                _ = self.stop.wait_for(|stop| *stop) => break,
                renewal = renew(&self.creator.api, &self.shared) => renewal,
            };
            // A creation is not cut short by a close: what it made could then not be deleted.
            let outcome = match renewal {
                Ok(Renewal::Renewed) => Ok(()),
                Ok(Renewal::Forgotten(cause)) => self.create_again(&cause).await,
                Err(error) => Err(error),
            };
            match outcome {
                Ok(()) => {
                    failing = None;
                    self.registered();
                }
                Err(error) => {
                    let (_, since) = failing.get_or_insert_with(|| (Backoff::default(), Timestamp::now()));
                    self.failed(error, *since);
                }
            }
        }
        self.shared.state.send_replace(State::Closed);
    }

    async fn create_again(&mut self, cause: &Error) -> Result<(), Error> {
        tracing::debug!(target: "stado::client", service = self.creator.request.name, %cause, "registering again");
        let made = Current::from(self.creator.create().await?);
        self.shared.with(|current| *current = made);
        Ok(())
    }

    /// Also after a renewal that changed nothing for the application: then nobody is woken.
    fn registered(&self) {
        self.shared.state.send_if_modified(|state| {
            let changed = !matches!(state, State::Registered);
            *state = State::Registered;
            changed
        });
    }

    fn failed(&self, error: Error, since: Timestamp) {
        tracing::warn!(target: "stado::client", service = self.creator.request.name, %error, "registration not renewed");
        let error = Arc::new(error);
        let state =
            if error.is_conflict() { State::Conflict { error, since } } else { State::Retrying { error, since } };
        self.shared.state.send_replace(state);
    }
}

async fn renew(api: &Api, shared: &Shared) -> Result<Renewal, Error> {
    let (id, token) = shared.credentials();
    match api.heartbeat(&id, &token).await {
        Ok(response) => {
            shared.with(|current| current.info.expires_at = response.expires_at.parse().ok());
            Ok(Renewal::Renewed)
        }
        // 404: the daemon restarted, or the lease ran out. 401: what we hold is not what the daemon gave.
        Err(error @ Error::Api { status: 401 | 404, .. }) => Ok(Renewal::Forgotten(error)),
        Err(error) => Err(error),
    }
}

fn interval(ttl: Duration) -> Duration {
    (ttl / 3).max(SHORTEST_INTERVAL)
}

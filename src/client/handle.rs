//! A registration that a program holds.
use super::api::{Api, default_socket};
use super::error::Error;
use super::keeper::{Creator, Keeper, Shared};
use super::options::RegistrationOptions;
use jiff::Timestamp;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::{Mutex, watch};
use tokio::task::JoinHandle;
use tokio::time::timeout;

/// How long a close waits for the task, and then for the daemon.
const CLOSE_LIMIT: Duration = Duration::from_secs(2);

/// What is known about a registration, never the token.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RegistrationInfo {
    /// Id of the current registration; changes when the program had to register again.
    pub registration_id: String,
    /// Service name.
    pub name: String,
    /// Stable address: a URL for http services, else `host:port`.
    pub endpoint: String,
    /// End of the lease as last renewed, when the daemon told it.
    pub expires_at: Option<Timestamp>,
    /// Lease length.
    pub ttl: Duration,
}

/// How a registration stands.
#[derive(Debug, Clone)]
pub enum State {
    /// The daemon knows the registration.
    Registered,
    /// The daemon is away or refuses; tried again 100 ms to 5 s apart.
    Retrying {
        /// The latest error.
        error: Arc<Error>,
        /// When the trouble began.
        since: Timestamp,
    },
    /// Another owner holds the name; tried again 100 ms to 5 s apart.
    Conflict {
        /// The daemon's refusal.
        error: Arc<Error>,
        /// When the trouble began.
        since: Timestamp,
    },
    /// Closed or dropped; nothing renews the lease any more.
    Closed,
}

/// A registration kept alive by a task of the current runtime. [`Handle::close`] ends and deletes it; dropping the
/// handle only ends the heartbeats, and the lease then runs out.
pub struct Handle {
    api: Api,
    shared: Arc<Shared>,
    stop: watch::Sender<bool>,
    task: Mutex<Option<JoinHandle<()>>>,
}

/// Registers and keeps the registration alive. Must be called inside a tokio runtime with time and I/O.
///
/// ```no_run
/// # async fn example() -> Result<(), stado::client::Error> {
/// use stado::client::{RegistrationOptions, State, register};
/// let handle = register(RegistrationOptions::new("checkout.api", "127.0.0.1:49382")).await?;
/// println!("stable address: {}", handle.endpoint());
/// let mut changes = handle.changes();
/// while changes.changed().await.is_ok() {
///     match &*changes.borrow_and_update() {
///         State::Registered => println!("registered"),
///         State::Retrying { error, since } | State::Conflict { error, since } => println!("{error}, since {since}"),
///         State::Closed => break,
///     }
/// }
/// # Ok(()) }
/// ```
pub async fn register(options: RegistrationOptions) -> Result<Handle, Error> {
    let request = options.request()?;
    let api = Api::new(options.socket.unwrap_or_else(default_socket));
    let mut creator = Creator::new(api.clone(), request);
    let response = creator.first(options.first_attempt).await?;
    let shared = Arc::new(Shared::new(response.into()));
    let stop = watch::Sender::new(false);
    let keeper = Keeper { creator, shared: Arc::clone(&shared), stop: stop.subscribe() };
    let task = Mutex::new(Some(tokio::spawn(keeper.run())));
    Ok(Handle { api, shared, stop, task })
}

impl Handle {
    /// The stable address that others use.
    pub fn endpoint(&self) -> String {
        self.shared.with(|current| current.info.endpoint.clone())
    }

    /// The registration as it stands.
    pub fn info(&self) -> RegistrationInfo {
        self.shared.with(|current| current.info.clone())
    }

    /// How the registration stands.
    pub fn state(&self) -> State {
        self.shared.state.borrow().clone()
    }

    /// A view of the state that can be awaited. It ends with [`State::Closed`].
    pub fn changes(&self) -> watch::Receiver<State> {
        self.shared.state.subscribe()
    }

    /// Ends the heartbeats and deletes the registration. Takes at most about four seconds with an unresponsive daemon
    /// and never fails: what could not be deleted ends with its lease. A second call does nothing.
    pub async fn close(&self) {
        self.stop.send_replace(true);
        let Some(mut task) = self.task.lock().await.take() else { return };
        if timeout(CLOSE_LIMIT, &mut task).await.is_err() {
            task.abort();
            self.shared.state.send_replace(State::Closed);
        }
        let (id, token) = self.shared.credentials();
        let _ = timeout(CLOSE_LIMIT, self.api.deregister(&id, &token)).await;
    }
}

impl Drop for Handle {
    fn drop(&mut self) {
        self.stop.send_replace(true);
    }
}

impl std::fmt::Debug for Handle {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Handle").field("info", &self.info()).field("state", &self.state()).finish_non_exhaustive()
    }
}

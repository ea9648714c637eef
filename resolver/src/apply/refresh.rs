//! The loop that reads the registry and walks what it reads. A read never holds up anything else: while one is under way,
//! adapters and markers are kept as before, and a mute channel ends by the read's own deadline.
use super::api_slot::ApiBindError;
use super::given;
use super::held::Arrival;
use super::read::{Read, Reading, changed};
use super::recover;
use super::report::Reporter;
use super::schedule::{Schedule, next_tick};
use super::state::{Phase, Progress};
use super::walk::{Walk, WalkError};
use stado_fleet::admit::Snapshot;
use stado_fleet::authority::{RegistryError, Source, locate, next_source};
use stado_fleet::fault::Class;
use stado_fleet::last_good::Copy;
use stado_fleet::ledger::RefusedRegistry;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::Notify;
use tokio::task::JoinHandle;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

/// The resolution API of a host that has no registry yet (design, choices: an empty HOME).
pub const DEFAULT_API: SocketAddr = SocketAddr::new(std::net::IpAddr::V4(Ipv4Addr::LOCALHOST), 17600);
/// At start the copy is served when the authority has not answered by then; the read goes on.
const START_PATIENCE: Duration = Duration::from_secs(3);

/// The loop ended by an error that stops the daemon; its parts are to be closed.
pub struct Failed {
    /// The error.
    pub error: ApiBindError,
    /// What has to be closed, and the reporter of the last word.
    pub parts: Box<(Walk, Reporter)>,
}

/// The loop of one daemon.
pub struct Refresh {
    walk: Walk,
    reading: Reading,
    reporter: Reporter,
    schedule: Schedule,
    progress: Progress,
    wake: Arc<Notify>,
    /// The copy, while nothing is held.
    copy: Option<Copy>,
    /// Why the copy cannot be used, while nothing is held.
    copy_lost: Option<String>,
    said_start: bool,
    handed: Option<Handed>,
    /// What was read last and is not taken into force.
    refused: Option<RefusedRegistry>,
}

/// What another process had in force.
#[derive(Debug, Clone)]
pub struct Handed {
    /// The registry, when there was one.
    pub snapshot: Option<(Snapshot, Arrival)>,
}

impl Refresh {
    /// Nothing read yet. `wake` makes the loop read at once.
    pub fn new(walk: Walk, reading: Reading, reporter: Reporter, wake: Arc<Notify>) -> Self {
        let (schedule, progress) = (Schedule::default(), Progress::default());
        Self {
            walk,
            reading,
            reporter,
            schedule,
            progress,
            wake,
            copy: None,
            copy_lost: None,
            said_start: false,
            handed: None,
            refused: None,
        }
    }

    /// Serves what another process had in force, before anything is read.
    pub fn with_handed(mut self, handed: Option<Handed>) -> Self {
        self.handed = handed;
        self
    }

    /// Reads, walks and publishes until `stop`; then gives itself back, to be closed or to run again.
    pub async fn run(mut self: Box<Self>, stop: CancellationToken) -> Result<Box<Self>, Failed> {
        if let Some(handed) = self.handed.take() {
            self.take_up(handed).await;
        }

        loop {
            match self.round(&stop).await {
                Ok(true) => {}
                Ok(false) => return Ok(self),
                Err(error) => return Err(Failed { error, parts: Box::new((self.walk, self.reporter)) }),
            }
        }
    }

    /// What has to be closed, and who says the last word.
    pub fn into_parts(self: Box<Self>) -> (Walk, Reporter) {
        (self.walk, self.reporter)
    }

    /// What is served, and who publishes it, while the loop does not run.
    pub fn parts(&mut self) -> (&Walk, &mut Reporter) {
        (&self.walk, &mut self.reporter)
    }

    async fn take_up(&mut self, handed: Handed) {
        let taken = match handed.snapshot {
            Some((snapshot, arrival)) => self.walk.take(snapshot, arrival).await.map_err(|error| error.to_string()),
            None => {
                let bind = self.walk.settings().api_bind.unwrap_or(DEFAULT_API);
                let served = self.walk.serve_api(bind, jiff::Timestamp::now()).await;
                served.map_err(|error| error.to_string())
            }
        };
        match taken {
            Ok(()) => self.serving(),
            // The first read tells what is to be done about it.
            Err(why) => {
                tracing::warn!(target: "stado::fleet", "stado resolver: what was handed over is not served: {why}")
            }
        }
        self.walk.started();
        self.publish();
    }

    /// One read and the wait for the next. `false`: told to stop.
    async fn round(&mut self, stop: &CancellationToken) -> Result<bool, ApiBindError> {
        let started = Instant::now();
        let mut read = self.start_read().await;
        let outcome = tokio::select! {
            biased;
            () = stop.cancelled() => None,
            outcome = self.attend(&mut read, started) => Some(outcome?),
        };
        let Some(outcome) = outcome else {
            read.abort();
            return Ok(false);
        };
        let watch = outcome.as_ref().ok().and_then(Read::watch);
        self.conclude(outcome).await?;
        self.publish();
        let next = next_tick(started, self.schedule.interval(), Instant::now());
        tokio::select! {
            biased;
            () = stop.cancelled() => return Ok(false),
            () = self.wake.notified() => {}
            () = changed(watch) => {}
            () = tokio::time::sleep_until(next) => {}
        }
        Ok(true)
    }

    /// Starts a read in a task of its own.
    async fn start_read(&mut self) -> JoinHandle<Read> {
        let held = self.walk.held();
        let store = self.reading.store.clone();
        let (source, me) = match &held {
            Some(held) => (next_source(&held.snapshot, &held.target, store), Some(held.target.clone())),
            None => {
                self.look_for_copy().await;
                let me = recover::me(self.copy.as_ref(), &self.walk.settings().host);
                (locate(self.copy.as_ref(), me.as_ref(), store), me)
            }
        };
        self.reading.start(source, me, held)
    }

    /// Reads the copy; one that cannot be used is said once.
    async fn look_for_copy(&mut self) {
        let (copy, lost) = match recover::copy(&self.walk.settings().last_good).await {
            Ok(copy) => (copy, None),
            Err(sentence) => (None, Some(sentence)),
        };
        if let Some(sentence) = lost.as_ref().filter(|_| self.copy_lost.is_none()) {
            tracing::warn!(target: "stado::fleet", "stado resolver recovery: {sentence}");
        }
        self.copy = copy;
        self.copy_lost = lost;
    }

    /// Nobody ever said that this host belongs to a fleet: it has no name, and neither holds a copy nor lost one.
    fn home_is_empty(&self) -> bool {
        self.walk.held().is_none()
            && self.copy.is_none()
            && self.copy_lost.is_none()
            && self.walk.settings().host.target.is_none()
            && self.walk.settings().host.asked.is_none()
    }

    /// Waits for a read, and meanwhile keeps adapters and markers, and serves the copy when a start takes too long.
    async fn attend(
        &mut self,
        read: &mut JoinHandle<Read>,
        started: Instant,
    ) -> Result<Result<Read, String>, ApiBindError> {
        let patience = started + START_PATIENCE;
        loop {
            let waiting_for_copy = self.walk.held().is_none() && self.copy.is_some();
            let pause = if waiting_for_copy {
                patience
            } else {
                next_tick(started, self.schedule.interval().max(Duration::from_secs(1)), Instant::now())
            };
            tokio::select! {
                biased;
                done = &mut *read => return Ok(done.map_err(|error| format!("the registry read ended early: {error}"))),
                () = tokio::time::sleep_until(pause) => {}
            }
            if waiting_for_copy {
                let cause = "no answer yet, and the read goes on";
                if let Some(refusal) = self.recover(cause).await? {
                    tracing::warn!(target: "stado::fleet", "stado resolver recovery: {refusal}");
                    self.copy = None;
                }
            } else {
                self.walk.again().await;
            }
            if self.walk.held().is_some() {
                self.publish();
            }
        }
    }

    /// Serves the copy, when there is one. `Some`: why it cannot be served.
    async fn recover(&mut self, cause: &str) -> Result<Option<String>, ApiBindError> {
        let Some(copy) = self.copy.take() else { return Ok(None) };
        tracing::warn!(target: "stado::fleet", "stado resolver recovery: {}", copy.notice(jiff::Timestamp::now(), cause));
        let arrival = Arrival::Recovered { read_at: copy.read_at };
        match self.walk.take(recover::snapshot(copy), arrival).await {
            Ok(()) => {
                self.serving();
                Ok(None)
            }
            Err(WalkError::Refused(why)) => Ok(Some(why)),
            Err(WalkError::Api(error)) => Err(error),
        }
    }

    async fn conclude(&mut self, read: Result<Read, String>) -> Result<(), ApiBindError> {
        let (source, outcome) = match read {
            Ok(Read { source, outcome }) => (Some(source), outcome),
            Err(lost) => (None, Err(RegistryError::new(Class::Unknown, lost))),
        };
        let location = source.as_ref().map_or_else(|| self.reading.store.location(), Source::location);
        match outcome {
            Ok(Some(snapshot)) => {
                let given = snapshot.clone();
                let copied = source.as_ref().is_some_and(|source| self.reading.belongs_into_copy(source));
                let known = self.copy.as_ref().filter(|_| copied && self.walk.held().is_none());
                if let Some(refused) = known.and_then(|copy| recover::refuses(copy, &snapshot)) {
                    self.refuse(given::refused(&location, &given, &refused, jiff::Timestamp::now()));
                    return self.unread(&RegistryError::new(Class::Refused, refused)).await;
                }
                match self.walk.take(snapshot, Arrival::Read { record: copied }).await {
                    Ok(()) => {
                        self.refused = None;
                        let recovered = self.schedule.succeed();
                        recovered.iter().for_each(|line| tracing::info!(target: "stado::fleet", "{line}"));
                        self.serving();
                        Ok(())
                    }
                    Err(WalkError::Refused(why)) => {
                        self.refuse(given::refused(&location, &given, &why, jiff::Timestamp::now()));
                        self.failed(&why).await;
                        Ok(())
                    }
                    Err(WalkError::Api(error)) => Err(error),
                }
            }
            Ok(None) if self.home_is_empty() => self.serve_without_registry().await,
            Ok(None) => self.unread(&RegistryError::absent(&location)).await,
            Err(error) => {
                if let Some(rejected) = given::rejected(&location, &error, jiff::Timestamp::now()) {
                    self.refuse(rejected);
                }
                if let Some(Source::Remote(authority)) = source.filter(|_| recover::is_outage(&error)) {
                    let refusals = self.reading.refusals.as_ref();
                    recover::record_refusal(refusals, &authority.target, "authority_unreachable", &error.sentence)
                        .await;
                }
                self.unread(&error).await
            }
        }
    }

    fn refuse(&mut self, given: RefusedRegistry) {
        self.refused = Some(given.or_since(self.refused.as_ref()));
    }

    /// Leaves a record once what is held is past its window, whatever keeps it from being confirmed.
    async fn record_stale(&self) {
        let Some(held) = self.walk.held().filter(|held| held.stale(jiff::Timestamp::now())) else { return };
        let Some(directory) = &held.snapshot.valid.registry.directory else { return };
        let sentence = format!("service directory cache is stale (store generation {})", held.snapshot.store_version);
        let refusals = self.reading.refusals.as_ref();
        recover::record_refusal(refusals, &directory.authority_target, "directory_cache_stale", &sentence).await;
    }

    /// A read that brought nothing: the copy, while nothing is held; else what is held goes on.
    async fn unread(&mut self, error: &RegistryError) -> Result<(), ApiBindError> {
        if self.walk.held().is_some() {
            self.failed(&error.sentence).await;
            return Ok(());
        }
        let recovered = self.recover(&error.sentence).await?;
        match recovered.or_else(|| self.copy_lost.clone()) {
            None if self.walk.held().is_some() => {}
            None => self.failed(&error.sentence).await,
            Some(copy) => {
                let both = format!("registry authority failed ({error}); recovery registry failed ({copy})");
                self.failed(&both).await;
            }
        }
        Ok(())
    }

    /// An empty home: the mesh alone, and the resolution API where it is expected.
    async fn serve_without_registry(&mut self) -> Result<(), ApiBindError> {
        let declared = self.walk.settings().api_bind;
        self.walk.want_api(declared.is_some());
        let served = self.walk.serve_api(declared.unwrap_or(DEFAULT_API), jiff::Timestamp::now()).await;
        self.schedule.succeed();
        self.progress = Progress { phase: Phase::Serving, ..Progress::default() };
        self.walk.started();
        match served {
            Err(error) if declared.is_some() => Err(error),
            _ => Ok(()),
        }
    }

    fn serving(&mut self) {
        if let Some(held) = self.walk.held() {
            self.schedule.declare(held.policy.refresh_seconds);
        }
        self.say_start();
        self.walk.started();
        self.progress = Progress { phase: Phase::Serving, ..Progress::default() };
    }

    /// The line of a first snapshot in force.
    fn say_start(&mut self) {
        let Some(held) = self.walk.held().filter(|_| !self.said_start) else { return };
        self.said_start = true;
        let listeners = self.walk.listeners();
        let api = listeners.api_bind.map_or_else(|| "-".to_owned(), |bind| bind.to_string());
        let (adapters, policy) = (listeners.adapters.len(), &held.policy);
        tracing::info!(
            target: "stado::fleet",
            "stado resolver target={} api={api} adapters={adapters} refresh={}s max-stale={}s", held.target, policy.refresh_seconds, policy.max_stale_seconds
        );
    }

    async fn failed(&mut self, why: &str) {
        let line = self.schedule.fail(why);
        tracing::warn!(target: "stado::fleet", "{line}");
        self.walk.again().await;
        self.walk.started();
        let next = jiff::Timestamp::now().checked_add(self.schedule.interval()).ok();
        self.progress = Progress {
            phase: Phase::BackingOff,
            reason: Some(why.to_owned()),
            attempt: self.schedule.failed(),
            next_attempt_at: next,
            refused: None,
        };
        self.record_stale().await;
    }

    fn publish(&mut self) {
        self.progress.refused.clone_from(&self.refused);
        let (held, listeners) = (self.walk.held(), self.walk.listeners());
        self.reporter.publish(&self.progress, held, listeners, self.walk.last_good_refusal());
    }
}

//! One snapshot through the walk: identity → admit → last_good → markers → API → adapters.
use super::actuate::{Adapters, LentAdapter};
use super::api_slot::{ApiBindError, ApiSlot};
use super::held::{self, Arrival, Held};
use super::markers;
use super::pins::{PinFiles, Pins};
use super::plan::AdapterId;
use super::state::Listeners;
use super::store_address::StoreAddress;
use super::want::{Inputs, Wanted, ignored_keys, want};
use crate::conn::{Bound, Ending, HeldGeneration};
use crate::daemon::identity::{Host, identify};
use stado_fleet::admit::{Admission, Snapshot};
use stado_fleet::document::ResolverPolicy;
use stado_fleet::forwards::Forwards;
use stado_fleet::last_good::LastGood;
use stado_fleet::ledger::Unserved;
use stado_fleet::name::TargetName;
use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::watch;

/// What a walk needs to know of its host; fixed for the daemon's life.
#[derive(Debug, Clone)]
pub struct Settings {
    /// Who this host may be.
    pub host: Host,
    /// `storage.stado.url`, when it is a loopback address.
    pub store_address: Option<StoreAddress>,
    /// `api_bind` of the configuration; outranks the registry's.
    pub api_bind: Option<SocketAddr>,
    /// This host's copy.
    pub last_good: LastGood,
    /// This host's markers.
    pub forwards: Forwards,
    /// Where the keys of the fleet's hosts are kept.
    pub pins: PinFiles,
}

/// Why a snapshot is not served.
#[derive(Debug, thiserror::Error)]
pub enum WalkError {
    /// What is held stays in force.
    #[error("{0}")]
    Refused(String),
    /// The first resolution API of this process could not be bound.
    #[error(transparent)]
    Api(#[from] ApiBindError),
}

/// What this host applies snapshots to.
pub struct Walk {
    settings: Settings,
    adapters: Adapters,
    api: ApiSlot,
    generation: HeldGeneration,
    held: watch::Sender<Option<Arc<Held>>>,
    /// Whether an API that cannot be bound is an error of the start.
    starting: bool,
    api_is_asked_for: bool,
    /// A newer directory whose markers are not all written yet.
    unsaid: Option<u64>,
    last_good_refusal: Option<&'static str>,
    unwritten: Vec<Unserved>,
    pins: Pins,
}

impl Walk {
    /// Nothing applied yet.
    pub fn new(
        settings: Settings,
        adapters: Adapters,
        api: ApiSlot,
        generation: HeldGeneration,
        held: watch::Sender<Option<Arc<Held>>>,
    ) -> Self {
        Self {
            pins: Pins::new(settings.pins.clone()),
            settings,
            adapters,
            api,
            generation,
            held,
            starting: true,
            api_is_asked_for: true,
            unsaid: None,
            last_good_refusal: None,
            unwritten: Vec::new(),
        }
    }

    /// What is in force.
    pub fn held(&self) -> Option<Arc<Held>> {
        self.held.borrow().clone()
    }

    /// The fixed part.
    pub fn settings(&self) -> &Settings {
        &self.settings
    }

    /// Whether somebody asked for the resolution API, by a registry or an `api_bind`. One that nobody asked for is served
    /// where its port is free, and is not missed where it is not: that may be another person's daemon on this machine.
    pub fn want_api(&mut self, asked: bool) {
        self.api_is_asked_for = asked;
    }

    /// From now on an API that cannot be bound is unserved and stops nothing.
    pub fn started(&mut self) {
        self.starting = false;
    }

    /// Takes a valid snapshot into force, or says why not.
    pub async fn take(&mut self, snapshot: Snapshot, arrival: Arrival) -> Result<(), WalkError> {
        let now = jiff::Timestamp::now();
        let before = self.held();
        let (target, policy) = self.place(&snapshot).map_err(WalkError::Refused)?;
        let admission = held::admission(before.as_deref(), &snapshot).map_err(WalkError::Refused)?;
        if arrival == (Arrival::Read { record: true }) {
            self.record(&snapshot, now).await;
        }
        let held = held::next(before.as_deref(), snapshot, admission, target, policy, arrival);
        if let (Admission::NewGeneration, Some(generation)) = (admission, held.directory.generation()) {
            self.unsaid = Some(generation.0);
        }
        self.serve(held, now).await
    }

    /// Which target this host is in the document, and what it is to serve.
    fn place(&self, snapshot: &Snapshot) -> Result<(TargetName, ResolverPolicy), String> {
        let registry = &snapshot.valid.registry;
        let target = identify(registry, &self.settings.host).map_err(|error| error.to_string())?;
        if registry.directory.is_none() {
            return Err("registry.service_directory is required".to_owned());
        }
        let policy = registry.targets.get(&target).and_then(|t| t.resolver.clone());
        policy
            .map(|policy| (target, policy))
            .ok_or_else(|| "registry target has no service_resolver configuration".to_owned())
    }

    async fn record(&mut self, snapshot: &Snapshot, now: jiff::Timestamp) {
        let (last_good, snapshot) = (self.settings.last_good.clone(), snapshot.clone());
        let recorded = tokio::task::spawn_blocking(move || last_good.record(&snapshot, now)).await;
        let refusal = recorded.ok().and_then(Result::err);
        if let Some(refusal) = &refusal
            && self.last_good_refusal != Some(refusal.kind)
        {
            tracing::warn!(target: "stado::fleet", "{refusal}");
        }
        self.last_good_refusal = refusal.map(|refusal| refusal.kind);
    }

    /// Everything that depends on the held snapshot, once more: missing markers, unserved adapters, the API.
    pub async fn again(&mut self) {
        if let Some(held) = self.held()
            && let Err(error) = self.serve(Held::clone(&held), jiff::Timestamp::now()).await
        {
            tracing::warn!(target: "stado::fleet", "stado resolver: {error}");
        }
    }

    async fn serve(&mut self, held: Held, now: jiff::Timestamp) -> Result<(), WalkError> {
        // Before anything is dialled through what is new.
        self.pins.keep(held.directory.registry(), &held.target).await;
        self.keep_markers(&held).await;
        let api_bind = self.settings.api_bind.unwrap_or(held.policy.api_bind);
        self.want_api(true);
        self.serve_api(api_bind, now).await?;
        if let Some(generation) = held.directory.generation() {
            self.generation.set(generation.0);
        }
        let known_before = self.known_binds(&held);
        let wanted = self.wanted(&held, api_bind);
        self.adapters.apply(&wanted, &|service, consumer| held.forbids(service, consumer), now).await;
        let held = Held { binds: Arc::new(self.adapters.binds()), ..held };
        if self.known_binds(&held) != known_before {
            // The allocator gave an adapter its first port, or another one.
            self.keep_markers(&held).await;
        }
        self.say_generation();
        self.held.send_replace(Some(Arc::new(held)));
        Ok(())
    }

    /// The API at `bind`; an error only while the daemon starts.
    pub async fn serve_api(&mut self, bind: SocketAddr, now: jiff::Timestamp) -> Result<(), ApiBindError> {
        let said = self.api.unserved().is_some();
        match self.api.ensure(bind, now).await {
            Err(error) if self.starting => Err(error),
            Err(error) => {
                if !said {
                    tracing::warn!(target: "stado::fleet", "{error}");
                }
                Ok(())
            }
            Ok(()) => {
                if said {
                    tracing::info!(target: "stado::fleet", "stado resolver serves the resolution API at {bind} now");
                }
                Ok(())
            }
        }
    }

    fn wanted(&self, held: &Held, api_bind: SocketAddr) -> Vec<Wanted> {
        let on_authority =
            held.directory.registry().directory.as_ref().is_some_and(|d| d.authority_target == held.target);
        want(&Inputs {
            adapters: &held.policy.adapters,
            resolve: &|service, consumer| held.directory.resolve(service.as_str(), consumer.as_str()),
            remembered: &|id| self.adapters.bind_of(id),
            api_bind: Some(api_bind),
            store: self.settings.store_address.as_ref().filter(|_| on_authority),
            loops: &|address, service| self.adapters.loops(address, service),
        })
    }

    /// Address of every declared adapter, as far as it is known.
    fn known_binds(&self, held: &Held) -> BTreeMap<AdapterId, SocketAddr> {
        let ids = held.policy.adapters.iter().map(AdapterId::of);
        ids.filter_map(|id| self.adapters.bind_of(&id).map(|bind| (id, bind))).collect()
    }

    async fn keep_markers(&mut self, held: &Held) {
        let (registry, binds) = (held.directory.registry(), self.known_binds(held));
        let unwritten = markers::keep(&self.settings.forwards, registry, &held.target, binds).await;
        for Unserved { service, bind, reason, .. } in unwritten.iter().filter(|row| !self.unwritten.contains(row)) {
            tracing::warn!(target: "stado::fleet", "stado resolver does not serve the {service} at {bind}: {reason}");
        }
        self.unwritten = unwritten;
    }

    /// Said once the markers follow the newer directory.
    fn say_generation(&mut self) {
        if self.unwritten.is_empty()
            && let Some(generation) = self.unsaid.take()
        {
            tracing::info!(target: "stado::fleet", "stado resolver loaded directory generation {generation}");
        }
    }

    /// Why the copy is not refreshed, as a kind of §3.4.
    pub fn last_good_refusal(&self) -> Option<&'static str> {
        self.last_good_refusal
    }

    /// What is published of listeners and warnings.
    pub fn listeners(&self) -> Listeners {
        let mut warnings: Vec<String> =
            self.held().and_then(|held| ignored_keys(&held.policy.adapters)).into_iter().collect();
        warnings.extend(self.api.warning());
        warnings.extend(self.pins.warning());
        warnings.extend(self.adapters.warnings());
        let mut unserved = self.adapters.unserved();
        match self.api.unserved() {
            Some(row) if !self.api_is_asked_for => warnings.push(format!(
                "this host serves its mesh without a resolution API: {} To have one beside another daemon's, set `api_bind` \
                 in ~/.stado/config.json",
                row.reason
            )),
            row => unserved.extend(row),
        }
        unserved.extend(self.unwritten.iter().cloned());
        Listeners { api_bind: self.api.bind(), adapters: self.adapters.states(), unserved, warnings }
    }

    /// Uses listeners that another process handed over.
    pub fn inherit(&mut self, adapters: BTreeMap<AdapterId, Bound>, api: Option<Bound>) {
        self.adapters.inherit(adapters);
        self.api.inherit(api);
    }

    /// The adapters with their listeners, to hand them over to another process.
    pub fn lend(&self) -> Vec<LentAdapter> {
        self.adapters.lend()
    }

    /// The resolution API, to hand it over.
    pub fn api(&self) -> &ApiSlot {
        &self.api
    }

    /// Another process serves all this: accepting ends at once, streams end by themselves, answers under way within `grace`.
    pub async fn leave(self, grace: Duration) -> Vec<Ending> {
        tokio::join!(self.api.close(grace), self.adapters.leave()).1
    }

    /// Ends everything this walk serves: accepting at once, streams within `grace`.
    pub async fn close(self, grace: Duration) {
        tokio::join!(self.api.close(grace), self.adapters.close(grace));
    }
}

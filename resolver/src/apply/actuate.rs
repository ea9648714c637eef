//! The adapters of this host as they run: carries out a plan, one adapter at a time, and remembers what is not served.
use super::plan::{Action, AdapterId, Running, plan};
use super::ports::Ports;
use super::want::Wanted;
use crate::conn::{self, Backend, BindError, Bound, Ending, Families, Frontend, FrontendId, Lent};
use stado_fleet::ledger::{AdapterState, Unserved, stamp};
use stado_fleet::name::{ConsumerId, LogicalName};
use std::collections::{BTreeMap, BTreeSet};
use std::net::SocketAddr;
use std::time::Duration;

/// Why the directory does not allow a consumer a service, when it does not.
pub type Forbidden<'a> = dyn Fn(&LogicalName, &ConsumerId) -> Option<String> + Send + Sync + 'a;

#[derive(Debug)]
struct Serving {
    frontend: Frontend,
    bind: SocketAddr,
    backend: Backend,
    budget: Duration,
}

/// An adapter with its open listeners.
pub struct LentAdapter {
    /// Which.
    pub id: AdapterId,
    /// Where it listens.
    pub bind: SocketAddr,
    /// Why one loopback family is missing.
    pub missing_half: Option<String>,
    /// The listeners.
    pub listeners: Vec<Lent>,
}

/// All adapters of this host.
#[derive(Debug)]
pub struct Adapters {
    context: conn::Context,
    ports: Ports,
    serving: BTreeMap<AdapterId, Serving>,
    unserved: BTreeMap<AdapterId, (String, jiff::Timestamp)>,
    /// Adapters whose service is declared to be where this resolver itself listens.
    led_back: BTreeSet<AdapterId>,
    /// Listeners that another process, or another adapter, left to these, until they serve.
    inherited: BTreeMap<AdapterId, Bound>,
    /// Streams of adapters that no longer accept.
    ending: Vec<(AdapterId, Ending)>,
}

impl Adapters {
    /// None yet.
    pub fn new(context: conn::Context, ports: Ports) -> Self {
        Self {
            context,
            ports,
            serving: BTreeMap::new(),
            unserved: BTreeMap::new(),
            led_back: BTreeSet::new(),
            inherited: BTreeMap::new(),
            ending: Vec::new(),
        }
    }

    /// Uses these instead of binding when the adapters are wanted the next time; the others are closed then.
    pub fn inherit(&mut self, listeners: BTreeMap<AdapterId, Bound>) {
        self.inherited = listeners;
    }

    /// All open listeners, to hand them over to another process.
    pub fn lend(&self) -> Vec<LentAdapter> {
        let lent = |(id, serving): (&AdapterId, &Serving)| LentAdapter {
            id: id.clone(),
            bind: serving.bind,
            missing_half: serving.frontend.missing_half(),
            listeners: serving.frontend.lend(),
        };
        self.serving.iter().map(lent).collect()
    }

    /// Stops all accepting. Open streams go on to their own ends.
    pub async fn leave(self) -> Vec<Ending> {
        let retiring = self.serving.into_values().map(|serving| serving.frontend.retire());
        let mut ending = futures_util::future::join_all(retiring).await;
        ending.extend(self.ending.into_iter().map(|(_, ending)| ending));
        ending.retain(|ending| !ending.is_over());
        ending
    }

    /// Brings what runs to what is wanted. A step that fails leaves its adapter unserved and the others alone; calling it
    /// again with the same wishes tries only what is not served. Streams of an adapter that is no longer wanted go on to
    /// their own ends, unless `forbidden` says why the directory no longer allows them.
    pub async fn apply(&mut self, wanted: &[Wanted], forbidden: &Forbidden<'_>, now: jiff::Timestamp) {
        self.ending.retain(|(_, ending)| !ending.is_over());
        self.led_back = wanted.iter().filter(|w| w.led_back).map(|w| w.id.clone()).collect();
        self.ports.reserve(wanted.iter().map(|w| &w.id));
        // What is not wanted any more must not stand in the way of what is.
        self.inherited.retain(|id, _| wanted.iter().any(|w| w.id == *id));
        let plan = plan(&self.running(), wanted);
        let mut unserved: Vec<(AdapterId, String)> = plan.unserved;
        let mut heirs = self.heirs(&plan.actions);
        for action in plan.actions {
            match action {
                Action::Close(id) => self.close_one(&id, heirs.remove(&id)).await,
                Action::SetBackend(id, backend) => self.set_backend(&id, backend),
                Action::Bind(id, backend, budget) => {
                    if let Err(reason) = self.bind_one(&id, backend, budget).await {
                        unserved.push((id, reason));
                    }
                }
            }
        }
        self.inherited.clear();
        self.end_forbidden(forbidden);
        unserved.extend(self.refusing());
        self.note_unserved(unserved, now);
    }

    /// Ends the streams that are left of adapters which the directory no longer allows.
    fn end_forbidden(&mut self, forbidden: &Forbidden<'_>) {
        let mut said = BTreeSet::new();
        for (id, ending) in std::mem::take(&mut self.ending) {
            let Some(why) = forbidden(&id.service, &id.consumer) else {
                self.ending.push((id, ending));
                continue;
            };
            if said.insert((id.service.clone(), id.consumer.clone())) {
                let (service, consumer) = (&id.service, &id.consumer);
                let ended = self.context.ledger.withdraw(service.as_str(), consumer.as_str(), &why);
                tracing::info!(target: "stado::fleet", "stado resolver service={service} consumer={consumer} ended {ended} connection(s): {why}");
            }
            ending.cut();
        }
    }

    /// Adapters that are bound and refuse each connection for a reason of the directory.
    fn refusing(&self) -> Vec<(AdapterId, String)> {
        let refuses = |(id, s): (&AdapterId, &Serving)| match &s.backend {
            Backend::None(why) => Some((id.clone(), why.to_string())),
            _ => None,
        };
        self.serving.iter().filter_map(refuses).collect()
    }

    fn running(&self) -> Vec<Running> {
        let running =
            |(id, s): (&AdapterId, &Serving)| Running { id: id.clone(), backend: s.backend.clone(), budget: s.budget };
        self.serving.iter().map(running).collect()
    }

    fn set_backend(&mut self, id: &AdapterId, backend: Backend) {
        if let Some(serving) = self.serving.get_mut(id) {
            serving.frontend.set_backend(backend.clone());
            serving.backend = backend;
        }
    }

    /// Adapters that leave and who listens next at their address: itself with another budget, or another consumer.
    fn heirs(&self, actions: &[Action]) -> BTreeMap<AdapterId, AdapterId> {
        let next = |leaving: &AdapterId| {
            let bind = self.serving.get(leaving)?.bind;
            actions.iter().find_map(|action| match action {
                Action::Bind(id, ..) if id == leaving || id.declared == Some(bind) => Some(id.clone()),
                _ => None,
            })
        };
        let leaving = actions.iter().filter_map(|action| match action {
            Action::Close(id) => Some((id.clone(), next(id)?)),
            _ => None,
        });
        leaving.collect()
    }

    /// Stops accepting; open streams go on until they end or the daemon stops. An heir goes on with the very listeners, so that
    /// clients find them open at any moment.
    async fn close_one(&mut self, id: &AdapterId, heir: Option<AdapterId>) {
        let Some(serving) = self.serving.remove(id) else { return };
        match heir {
            None => self.ending.push((id.clone(), serving.frontend.retire().await)),
            Some(heir) => {
                let (bound, ending) = serving.frontend.release().await;
                self.inherited.extend(bound.map(|bound| (heir, bound)));
                self.ending.push((id.clone(), ending));
            }
        }
    }

    async fn bind_one(&mut self, id: &AdapterId, backend: Backend, budget: Duration) -> Result<(), String> {
        let bound: Bound = match (self.inherited.remove(id), id.declared) {
            (Some(inherited), _) => inherited,
            (None, Some(addr)) => conn::bind(addr, Families::AtLeastOne).map_err(|error| refused(&error))?,
            (None, None) => self.ports.allocate(id).await?,
        };
        let bind = bound.addr;
        let (service, consumer) = (id.service.as_str().into(), Some(id.consumer.as_str().into()));
        let frontend_id = FrontendId { service, consumer, bind };
        let frontend = Frontend::start(bound, frontend_id, backend.clone(), budget, self.context.clone());
        self.serving.insert(id.clone(), Serving { frontend, bind, backend, budget });
        Ok(())
    }

    fn note_unserved(&mut self, unserved: Vec<(AdapterId, String)>, now: jiff::Timestamp) {
        let before = std::mem::take(&mut self.unserved);
        for (id, reason) in unserved {
            let since = before.get(&id).map(|(_, since)| *since);
            if since.is_none() {
                let (service, consumer, bind) = (&id.service, &id.consumer, self.shown_bind(&id));
                tracing::warn!(target: "stado::fleet", "stado resolver does not serve the {service} adapter for consumer {consumer} at {bind}: {reason}");
            }
            self.unserved.insert(id, (reason, since.unwrap_or(now)));
        }
        for id in before.keys().filter(|id| self.serving.contains_key(id) && !self.unserved.contains_key(id)) {
            let (service, consumer, bind) = (&id.service, &id.consumer, self.shown_bind(id));
            tracing::info!(target: "stado::fleet", "stado resolver serves the {service} adapter for consumer {consumer} at {bind} again");
        }
    }

    fn shown_bind(&self, id: &AdapterId) -> String {
        self.bind_of(id).map_or_else(|| "a port of its own".to_owned(), |bind| bind.to_string())
    }

    /// Address of an adapter, as far as it is known: declared, bound or remembered.
    pub fn bind_of(&self, id: &AdapterId) -> Option<SocketAddr> {
        id.declared.or_else(|| self.serving.get(id).map(|s| s.bind)).or_else(|| self.ports.remembered(id))
    }

    /// Why a service may not be at an address: this daemon itself listens there, neither for its mesh nor for an adapter, which
    /// may be about to leave.
    pub fn loops(&self, address: SocketAddr, service: &str) -> Option<String> {
        let reason = self.context.own.loops_apart_from_the_mesh(address, service)?;
        let adapter = self.serving.values().any(|s| s.bind == address || conn::other_half(s.bind) == Some(address));
        (!adapter).then_some(reason)
    }

    /// Bound adapters.
    pub fn binds(&self) -> BTreeMap<AdapterId, SocketAddr> {
        self.serving.iter().map(|(id, s)| (id.clone(), s.bind)).collect()
    }

    /// Bound adapters, as published.
    pub fn states(&self) -> Vec<AdapterState> {
        let state = |(id, s): (&AdapterId, &Serving)| AdapterState {
            service: id.service.to_string(),
            consumer: id.consumer.to_string(),
            bind: s.bind.to_string(),
        };
        self.serving.iter().map(state).collect()
    }

    /// Adapters that are not served, as published; one that is bound and refuses is listed as bound too.
    pub fn unserved(&self) -> Vec<Unserved> {
        let entry = |(id, (reason, since)): (&AdapterId, &(String, jiff::Timestamp))| Unserved {
            service: id.service.to_string(),
            consumer: id.consumer.to_string(),
            bind: self.shown_bind(id),
            reason: reason.clone(),
            since: Some(stamp(*since)),
            led_back: self.led_back.contains(id),
        };
        self.unserved.iter().map(entry).collect()
    }

    /// Missing loopback halves.
    pub fn warnings(&self) -> Vec<String> {
        let mut warnings: Vec<String> = self.ports.warning().into_iter().collect();
        for (id, serving) in &self.serving {
            let adapter = format!("the {} adapter for consumer {} at {}", id.service, id.consumer, serving.bind);
            if let Some(half) = serving.frontend.missing_half() {
                warnings.push(format!("{adapter} serves one loopback family only: {half}"));
            }
        }
        warnings
    }

    /// Stops all accepting, waits up to `grace` for streams to end, then resets the rest.
    pub async fn close(mut self, grace: Duration) {
        let serving = std::mem::take(&mut self.serving);
        let closing = serving.into_values().map(|s| s.frontend.close(grace));
        let ending = self.ending.into_iter().map(|(_, ending)| ending.close(grace));
        tokio::join!(futures_util::future::join_all(closing), futures_util::future::join_all(ending));
    }
}

/// The sentence for a port that could not be bound (fleet contract §4.1), with the advice that fits the cause.
pub fn refused(error: &BindError) -> String {
    let (ip, port) = (error.addr.ip(), error.addr.port());
    let advice = match error.source.kind() {
        std::io::ErrorKind::AddrInUse => format!(
            "Something else already holds this resolver port; find it with `lsof -nP -iTCP:{port} -sTCP:LISTEN` and stop \
             it before starting the resolver."
        ),
        std::io::ErrorKind::PermissionDenied => {
            format!("This account may not bind port {port}; declare a port from 1024 up, or grant it the right.")
        }
        std::io::ErrorKind::AddrNotAvailable => {
            format!(
                "{ip} is not an address of this host; declare 127.0.0.1 or an address that its loopback interface has."
            )
        }
        _ => "It is tried again on the next directory change and at every refresh.".to_owned(),
    };
    format!("{error}. {advice}")
}

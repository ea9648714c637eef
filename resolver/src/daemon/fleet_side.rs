//! The fleet side of a daemon: lock and state first, then the loop that reads, applies and publishes.
use super::DaemonError;
use super::config::FleetConfig;
use super::handover::obey::Obey;
use super::outside::Outside;
use crate::api::resolution::MetricsText;
use crate::apply::actuate::Adapters;
use crate::apply::api_slot::ApiSlot;
use crate::apply::follow::Follow;
use crate::apply::held::{Arrival, Held, HeldReader};
use crate::apply::pins::PinFiles;
use crate::apply::plan::AdapterId;
use crate::apply::ports::Ports;
use crate::apply::read::Reading;
use crate::apply::refresh::{DEFAULT_API, Failed, Handed, Refresh};
use crate::apply::report::{Elsewhere, FleetReport, Reporter};
use crate::apply::state::Phase;
use crate::apply::store_address::StoreAddress;
use crate::apply::succession::Succession;
use crate::apply::walk::{Settings, Walk};
use crate::bridge::Policy;
use crate::bridge::keeper::Keeper;
use crate::conn::ledger::Ledger;
use crate::conn::{self, Bound, OwnListeners};
use crate::http::FleetView;
use crate::mesh::{AdapterPorts, Allocator, Mesh};
use crate::publish::{Leavers, Published, Publisher};
use stado_fleet::admit::Snapshot;
use stado_fleet::authority::Changes;
use stado_fleet::disk::Lock;
use stado_fleet::forwards::Forwards;
use stado_fleet::join::Shelf;
use stado_fleet::last_good::LastGood;
use stado_fleet::ledger::PublishedPaths;
use stado_fleet::link::threads::Threads;
use stado_fleet::link::{Link, LinkConfig};
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use tokio::sync::{Notify, watch};
use tokio_util::sync::CancellationToken;
use tokio_util::task::AbortOnDropHandle;

/// What the loop gives back at its end.
pub(super) type Ended = Result<Box<Refresh>, Failed>;

/// A running fleet side. Dropping it ends the loop and closes what it serves, without a last word.
pub(super) struct FleetSide {
    /// `None` when the loop was lost.
    pub(super) task: Option<AbortOnDropHandle<Ended>>,
    /// Wakes the loop while it runs.
    follow: Follow,
    pub(super) stop: CancellationToken,
    /// Stops the loop alone.
    pause: CancellationToken,
    pub(super) home: PathBuf,
    paths: PublishedPaths,
    pub(super) leavers: Leavers,
    published: Option<Published>,
    /// Cancelled when the loop has ended, for whatever reason.
    pub(super) ended: CancellationToken,
    pub(super) link: Link,
    pub(super) own: OwnListeners,
    pub(super) ledger: Ledger,
    pub(super) held: HeldReader,
    /// Says what is held to those who go on once the loop has ended.
    holds: watch::Sender<Option<Arc<Held>>>,
    pub(super) wake: Arc<Notify>,
    reports: watch::Receiver<Option<FleetReport>>,
}

/// A fleet side that holds its lock and has published `starting`, before anything of it is bound.
pub(super) struct Prepared {
    config: FleetConfig,
    publishing: Publishing,
    link: Link,
    outside: Outside,
    elsewhere: watch::Receiver<Elsewhere>,
    holds: watch::Sender<Option<Arc<Held>>>,
    reports: watch::Sender<Option<FleetReport>>,
}

/// Who publishes until the loop runs.
enum Publishing {
    Here(Publisher),
    /// The process that hands its lock over.
    There {
        lock: Lock,
        pid: u32,
        ledger: Ledger,
    },
}

/// What another process handed over of its fleet side.
#[derive(Default)]
pub(super) struct Inherited {
    pub(super) adapters: BTreeMap<AdapterId, Bound>,
    pub(super) api: Option<Bound>,
    pub(super) snapshot: Option<(Snapshot, Arrival)>,
}

impl Prepared {
    /// Takes the lock, publishes `starting`, and makes the link.
    pub(super) async fn start(config: &FleetConfig, ledger: conn::ledger::Ledger) -> Result<Self, DaemonError> {
        let publisher = Publisher::start(config.paths.clone(), ledger).await?;
        publisher.update(|state| state.state = Phase::Starting.as_str().to_owned());
        // Before anything of this process is written there.
        LastGood::new(config.home.join("cache")).sweep();
        Forwards::new(&config.forwards_dir).sweep();
        Ok(Self::with(config, Publishing::Here(publisher)))
    }

    /// Goes on with the lock of process `pid`, which publishes until the loop runs here.
    pub(super) fn take_up(config: &FleetConfig, ledger: Ledger, lock: Lock, pid: u32) -> Self {
        Self::with(config, Publishing::There { lock, pid, ledger })
    }

    fn with(config: &FleetConfig, publishing: Publishing) -> Self {
        let threads = Some(Threads::for_each_processor("stado-road"));
        let link = Link::new(LinkConfig { threads, ..config.link.clone() });
        let (tell, elsewhere) = watch::channel(Elsewhere::default());
        let (holds, held) = watch::channel(None);
        let (reports, reported) = watch::channel(None);
        let outside = Outside::new(tell).seeing(FleetView { held, reports: reported });
        Self { config: config.clone(), publishing, link, outside, elsewhere, holds, reports }
    }

    /// The way to other hosts.
    pub(super) fn link(&self) -> &Link {
        &self.link
    }

    /// Where the daemon's other parts tell what they do not serve.
    pub(super) fn outside(&self) -> &Outside {
        &self.outside
    }

    /// Keeps from mesh services what the last-known-good copy declares for this host, before any is registered.
    pub(super) fn ports(&self, allocator: Arc<Allocator>) -> Ports {
        let remembered = AdapterPorts::open(&self.config.home.join("adapter-ports.json"), allocator.clone());
        let mut ports = Ports::new(allocator, remembered);
        let api = self.config.api_bind.unwrap_or(DEFAULT_API);
        ports.reserve_for(api.port(), "the resolution API");
        // A copy that cannot be read is reported by the loop, which reads it again.
        let copy = LastGood::new(self.config.home.join("cache")).read().ok().flatten();
        let policy = copy.and_then(|copy| {
            let registry = &copy.snapshot.valid.registry;
            let target = super::identity::identify(registry, &self.config.host()).ok()?;
            registry.targets.get(&target)?.resolver.clone()
        });
        if let Some(policy) = policy {
            let declared: Vec<AdapterId> = policy.adapters.iter().map(AdapterId::of).collect();
            ports.reserve(declared.iter());
        }
        ports
    }

    /// Starts the loop; with what another process had in force, before anything is read.
    pub(super) fn run(
        self,
        context: conn::Context,
        ports: Ports,
        metrics: Option<MetricsText>,
        inherited: Option<Inherited>,
    ) -> FleetSide {
        let Self { config, publishing, link, outside, elsewhere, holds: held_tx, reports: report_tx } = self;
        let publisher = match publishing {
            Publishing::Here(publisher) => publisher,
            Publishing::There { lock, pid, ledger } => Publisher::take_up(config.paths.clone(), ledger, lock, pid),
        };
        let (leavers, published) = (publisher.leavers(), publisher.published());
        let (held, reports) = (held_tx.subscribe(), report_tx.subscribe());
        let Outside { wake, stop, .. } = outside;
        let settings = Settings {
            host: config.host(),
            store_address: config.store_url.as_deref().and_then(StoreAddress::parse),
            api_bind: config.api_bind,
            last_good: LastGood::new(config.home.join("cache")),
            forwards: Forwards::new(&config.forwards_dir),
            pins: PinFiles {
                known_hosts: config.home.join("known_hosts"),
                account: config.account.clone().map(|account| (account, Shelf::new(&config.home))),
            },
        };
        let api = ApiSlot::new(held.clone(), metrics, context.own.clone(), context.ledger.clone());
        let (generation, holds) = (context.generation.clone(), held_tx.clone());
        let (own, ledger) = (context.own.clone(), context.ledger.clone());
        let mut walk = Walk::new(settings, Adapters::new(context, ports), api, generation, held_tx);
        let (heard_by, holding) = (watch::Sender::default(), watch::Sender::default());
        let changes = Arc::new(Changes::default());
        let follow = Follow {
            store: config.store.clone(),
            link: link.clone(),
            held: held.clone(),
            changes: changes.clone(),
            wake: wake.clone(),
            heard_by: heard_by.clone(),
            holding: holding.subscribe(),
        };
        let reading = Reading { store: config.store, link: link.clone(), changes, refusals: config.refusals };
        let handed = inherited.map(|Inherited { adapters, api, snapshot }| {
            walk.inherit(adapters, api);
            Handed { snapshot }
        });
        let reporter = Reporter::new(publisher, report_tx, elsewhere, link.clone(), heard_by, holding);
        let refresh = Refresh::new(walk, reading, reporter, wake.clone()).with_handed(handed);
        let mut side = FleetSide {
            task: None,
            follow,
            pause: CancellationToken::new(),
            ended: CancellationToken::new(),
            stop,
            home: config.home,
            paths: config.paths,
            leavers,
            published: Some(published),
            link,
            own,
            ledger,
            held,
            holds,
            wake,
            reports,
        };
        side.resume(Box::new(refresh));
        side
    }
}

impl FleetSide {
    /// Reports, as they change.
    pub(super) fn reports(&self) -> watch::Receiver<Option<FleetReport>> {
        self.reports.clone()
    }

    /// What a daemon that was taken over needs to end what the directory no longer allows.
    pub(super) fn obey(&self) -> Obey {
        let (holds, store) = (self.holds.clone(), self.follow.store.clone());
        Obey { holds, store, link: self.link.clone(), paths: self.paths.clone() }
    }

    /// Keeps the directory true to what `mesh` has of this host's publications, for as long as the handle lives and this
    /// side is not stopped.
    pub(super) fn keep_published(
        &self,
        mesh: impl Fn() -> Option<Arc<Mesh>> + Send + Sync + 'static,
        (outside, ledger): (Outside, Ledger),
        policy: Policy,
    ) -> AbortOnDropHandle<()> {
        let keeper = Keeper {
            mesh: Box::new(mesh),
            held: self.held.clone(),
            store: self.follow.store.clone(),
            link: self.link.clone(),
            ledger,
            policy,
            say: Box::new(move |warnings| outside.bridge_says(warnings)),
        };
        AbortOnDropHandle::new(tokio::spawn(keeper.run(self.stop.clone())))
    }

    /// Runs the loop, for the first time or after [`FleetSide::pause`].
    pub(super) fn resume(&mut self, mut refresh: Box<Refresh>) {
        refresh.parts().1.publisher().resume();
        (self.pause, self.ended) = (self.stop.child_token(), CancellationToken::new());
        let (told_to_stop, guard) = (self.pause.clone(), self.ended.clone().drop_guard());
        let follow = self.follow.clone();
        let succession = Succession {
            store: follow.store.clone(),
            link: follow.link.clone(),
            held: follow.held.clone(),
            wake: follow.wake.clone(),
        };
        self.task = Some(AbortOnDropHandle::new(tokio::spawn(async move {
            let _guard = guard;
            let _follow = AbortOnDropHandle::new(tokio::spawn(follow.run()));
            let _succession = AbortOnDropHandle::new(tokio::spawn(succession.run()));
            refresh.run(told_to_stop).await
        })));
    }

    /// Stops the loop. What it serves goes on serving, and what it published is published on. `None`: it had ended by itself.
    pub(super) async fn pause(&mut self) -> Option<Box<Refresh>> {
        self.pause.cancel();
        match self.task.take()?.await {
            Ok(Ok(refresh)) => Some(refresh),
            Ok(Err(failed)) => {
                self.task = Some(AbortOnDropHandle::new(tokio::spawn(std::future::ready(Err(failed)))));
                None
            }
            Err(_) => None,
        }
    }

    /// Returns once a state of this process is published, or cannot be.
    pub(super) async fn published(&mut self) {
        if let Some(published) = self.published.take() {
            published.done().await;
        }
    }
}

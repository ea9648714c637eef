//! The fleet side of a daemon: lock and state first, then the loop that reads, applies and publishes.
use super::DaemonError;
use super::config::FleetConfig;
use super::outside::Outside;
use crate::api::resolution::MetricsText;
use crate::apply::actuate::Adapters;
use crate::apply::api_slot::ApiSlot;
use crate::apply::held::{Held, HeldReader};
use crate::apply::plan::AdapterId;
use crate::apply::ports::Ports;
use crate::apply::read::Reading;
use crate::apply::refresh::{DEFAULT_API, Failed, Refresh};
use crate::apply::report::{Elsewhere, FleetReport, Reporter};
use crate::apply::state::Phase;
use crate::apply::store_address::StoreAddress;
use crate::apply::walk::{Settings, Walk};
use crate::conn;
use crate::http::FleetView;
use crate::mesh::{AdapterPorts, Allocator};
use crate::publish::Publisher;
use stado_fleet::forwards::Forwards;
use stado_fleet::last_good::LastGood;
use stado_fleet::link::Link;
use std::sync::Arc;
use tokio::sync::{Notify, watch};
use tokio_util::sync::CancellationToken;
use tokio_util::task::AbortOnDropHandle;

/// What the loop gives back at its end.
pub(super) type Ended = Result<(Walk, Reporter), Failed>;

/// A running fleet side. Dropping it ends the loop and closes what it serves, without a last word.
pub(super) struct FleetSide {
    pub(super) task: AbortOnDropHandle<Ended>,
    pub(super) stop: CancellationToken,
    /// Cancelled when the loop has ended, for whatever reason.
    pub(super) ended: CancellationToken,
    pub(super) link: Link,
    pub(super) held: HeldReader,
    pub(super) wake: Arc<Notify>,
    reports: watch::Receiver<Option<FleetReport>>,
}

/// A fleet side that holds its lock and has published `starting`, before anything of it is bound.
pub(super) struct Prepared {
    config: FleetConfig,
    publisher: Publisher,
    link: Link,
    outside: Outside,
    elsewhere: watch::Receiver<Elsewhere>,
    holds: watch::Sender<Option<Arc<Held>>>,
    reports: watch::Sender<Option<FleetReport>>,
}

impl Prepared {
    /// Takes the lock, publishes `starting`, and makes the link.
    pub(super) async fn start(config: &FleetConfig, ledger: conn::ledger::Ledger) -> Result<Self, DaemonError> {
        let publisher = Publisher::start(config.paths.clone(), ledger).await?;
        publisher.update(|state| state.state = Phase::Starting.as_str().to_owned());
        // Before anything of this process is written there.
        LastGood::new(config.home.join("cache")).sweep();
        Forwards::new(&config.forwards_dir).sweep();
        let link = Link::new(config.link.clone());
        let (tell, elsewhere) = watch::channel(Elsewhere::default());
        let (holds, held) = watch::channel(None);
        let (reports, reported) = watch::channel(None);
        let outside = Outside::new(tell).seeing(FleetView { held, reports: reported });
        Ok(Self { config: config.clone(), publisher, link, outside, elsewhere, holds, reports })
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
    pub(super) fn ports(&self, allocator: Arc<Allocator>) -> Result<Ports, DaemonError> {
        let remembered = AdapterPorts::open(&self.config.home.join("adapter-ports.json"), allocator.clone())?;
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
        Ok(ports)
    }

    /// Starts the loop.
    pub(super) fn run(self, context: conn::Context, ports: Ports, metrics: Option<MetricsText>) -> FleetSide {
        let Self { config, publisher, link, outside, elsewhere, holds: held_tx, reports: report_tx } = self;
        let (held, reports) = (held_tx.subscribe(), report_tx.subscribe());
        let Outside { wake, stop, .. } = outside;
        let settings = Settings {
            host: config.host(),
            store_address: config.store_url.as_deref().and_then(StoreAddress::parse),
            api_bind: config.api_bind,
            last_good: LastGood::new(config.home.join("cache")),
            forwards: Forwards::new(&config.forwards_dir),
        };
        let api = ApiSlot::new(held.clone(), metrics, context.own.clone());
        let generation = context.generation.clone();
        let walk = Walk::new(settings, Adapters::new(context, ports), api, generation, held_tx);
        let reading = Reading { store: config.store, link: link.clone(), refusals: config.refusals };
        let refresh = Refresh::new(walk, reading, Reporter::new(publisher, report_tx, elsewhere), wake.clone());
        let ended = CancellationToken::new();
        let (told_to_stop, guard) = (stop.clone(), ended.clone().drop_guard());
        let task = AbortOnDropHandle::new(tokio::spawn(async move {
            let _guard = guard;
            refresh.run(told_to_stop).await
        }));
        FleetSide { task, stop, ended, link, held, wake, reports }
    }
}

impl FleetSide {
    /// Reports, as they change.
    pub(super) fn reports(&self) -> watch::Receiver<Option<FleetReport>> {
        self.reports.clone()
    }
}

//! The fleet side of a daemon: lock and state first, then the loop that reads, applies and publishes.
use super::DaemonError;
use super::config::FleetConfig;
use crate::api::resolution::MetricsText;
use crate::apply::actuate::Adapters;
use crate::apply::api_slot::ApiSlot;
use crate::apply::held::HeldReader;
use crate::apply::plan::AdapterId;
use crate::apply::ports::Ports;
use crate::apply::read::Reading;
use crate::apply::refresh::{DEFAULT_API, Failed, Refresh};
use crate::apply::report::{Elsewhere, FleetReport, Reporter};
use crate::apply::state::Phase;
use crate::apply::store_address::StoreAddress;
use crate::apply::walk::{Settings, Walk};
use crate::conn;
use crate::docker;
use crate::mesh::{AdapterPorts, Allocator};
use crate::publish::Publisher;
use stado_fleet::disk;
use stado_fleet::forwards::Forwards;
use stado_fleet::last_good::LastGood;
use stado_fleet::ledger::Unserved;
use stado_fleet::link::Link;
use stado_fleet::wire::RefusedList;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::{Notify, watch};
use tokio_util::sync::CancellationToken;
use tokio_util::task::AbortOnDropHandle;

/// The shortest time between two tellings of what containers are refused.
const BETWEEN_TELLINGS: Duration = Duration::from_secs(1);

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
    elsewhere: watch::Sender<Elsewhere>,
}

/// A fleet side that holds its lock and has published `starting`, before anything of it is bound.
pub(super) struct Prepared {
    config: FleetConfig,
    publisher: Publisher,
    link: Link,
}

impl Prepared {
    /// Takes the lock, publishes `starting`, and makes the link.
    pub(super) async fn start(config: &FleetConfig, ledger: conn::ledger::Ledger) -> Result<Self, DaemonError> {
        disk::private_dir(&config.home)?;
        let publisher = Publisher::start(config.paths.clone(), ledger).await?;
        publisher.update(|state| state.state = Phase::Starting.as_str().to_owned());
        let link = Link::new(config.link.clone());
        Ok(Self { config: config.clone(), publisher, link })
    }

    /// The way to other hosts.
    pub(super) fn link(&self) -> &Link {
        &self.link
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
        let Self { config, publisher, link } = self;
        let (held_tx, held) = watch::channel(None);
        let (report_tx, reports) = watch::channel(None);
        let (elsewhere, elsewhere_rx) = watch::channel(Elsewhere::default());
        let (wake, stop) = (Arc::new(Notify::new()), CancellationToken::new());
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
        let refresh = Refresh::new(walk, reading, Reporter::new(publisher, report_tx, elsewhere_rx), wake.clone());
        let ended = CancellationToken::new();
        let (told_to_stop, guard) = (stop.clone(), ended.clone().drop_guard());
        let task = AbortOnDropHandle::new(tokio::spawn(async move {
            let _guard = guard;
            refresh.run(told_to_stop).await
        }));
        FleetSide { task, stop, ended, link, held, wake, reports, elsewhere }
    }
}

impl FleetSide {
    /// Reports, as they change.
    pub(super) fn reports(&self) -> watch::Receiver<Option<FleetReport>> {
        self.reports.clone()
    }

    /// Keeps the state file told about containers that are not served, as they change.
    pub(super) fn follow_refused(&self, mut refused: watch::Receiver<RefusedList>) {
        let (elsewhere, wake) = (self.elsewhere.clone(), self.wake.clone());
        let stop = self.stop.clone();
        tokio::spawn(async move {
            loop {
                let warnings = docker::warnings(&refused.borrow_and_update());
                let told = elsewhere.send_if_modified(|all| {
                    let changed = all.warnings != warnings;
                    all.warnings = warnings;
                    changed
                });
                if told {
                    wake.notify_one();
                }
                tokio::select! {
                    () = stop.cancelled() => return,
                    changed = refused.changed() => if changed.is_err() { return },
                }
                // A container that comes and goes changes the list often; each telling reads the registry once.
                tokio::select! {
                    () = stop.cancelled() => return,
                    () = tokio::time::sleep(BETWEEN_TELLINGS) => {}
                }
            }
        });
    }

    /// Adds something that another part of the daemon does not serve.
    pub(super) fn add_unserved(&self, unserved: Unserved) {
        self.elsewhere.send_modify(|all| all.unserved.push(unserved));
        self.wake.notify_one();
    }
}

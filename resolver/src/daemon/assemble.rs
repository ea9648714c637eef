//! Starts the parts of a daemon in their order: lock and state, mesh, fleet, gate. A part that cannot start is unserved
//! with its reason and tried again; only what [`super::run`] names stops the daemon.
use super::config::{Config, FleetConfig};
use super::fleet_side::{FleetSide, Prepared};
use super::gate_verbs::{GateVerbs, MeshOf};
use super::handover::behind::Behind;
use super::handover::build::Built;
use super::handover::reception::{self, Asking};
use super::handover::take::{self, Taking};
use super::mesh_side::{MeshSide, Others};
use super::objects_side::{ObjectsSide, start_objects};
use super::outside::Outside;
use super::part::{Part, Place, Slot};
use super::router_side::RouterSide;
use super::{DaemonError, Served};
use crate::api::resolution::MetricsText;
use crate::apply::report::FleetReport;
use crate::bridge::Policy;
use crate::conn::ledger::Ledger;
use crate::conn::{Bound, Context, Descriptors, NoFleet};
use crate::gate::{self, Gate};
use crate::http::hostname;
use crate::mesh::Allocator;
use stado_fleet::authority::{Bulletin, Holders};
use stado_fleet::join::Shelf;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::mpsc;
use tokio_util::task::AbortOnDropHandle;

/// What the mesh is called among unserved things.
const MESH: &str = "mesh";

/// A daemon that runs.
pub(super) struct Daemon {
    pub(super) mesh: Part<MeshSide>,
    pub(super) fleet: Option<FleetSide>,
    pub(super) gate: Part<Gate>,
    pub(super) objects: Part<ObjectsSide>,
    pub(super) ledger: Ledger,
    pub(super) version: &'static str,
    /// Processes that want to take over.
    pub(super) asks: mpsc::Receiver<Asking>,
    /// Daemons that were taken over and still have streams.
    pub(super) behind: Behind,
    pub(super) origin: Origin,
    grace: Duration,
    outside: Option<Outside>,
    store_location: Option<String>,
    publish: Policy,
    /// Keeps what this host publishes true; ends with its handle.
    _keeper: Option<AbortOnDropHandle<()>>,
}

/// How a daemon came to what it serves.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Origin {
    /// It was started.
    Started,
    /// It was to take over, and no daemon ran.
    NobodyToTakeOver,
    /// From this process, which still has that many streams.
    TookOver { pid: u32, streams: u64 },
}

impl Daemon {
    pub(super) async fn start(config: Config) -> Result<Self, DaemonError> {
        let ledger = Ledger::new();
        if !config.take_over {
            return Self::fresh(&config, ledger).await;
        }
        // What this process has open by itself is counted before thousands of listeners come to it.
        let descriptors = Arc::default();
        match take::take(&config).await? {
            Some(taking) => Self::take_over(&config, taking, ledger, descriptors).await,
            None => {
                let daemon = Self::fresh(&config, ledger).await?;
                Ok(Self { origin: Origin::NobodyToTakeOver, ..daemon })
            }
        }
    }

    async fn fresh(config: &Config, ledger: Ledger) -> Result<Self, DaemonError> {
        match &config.fleet {
            None => Self::start_mesh(config, ledger),
            Some(fleet) => Self::start_both(config, fleet, ledger).await,
        }
    }

    fn start_mesh(config: &Config, ledger: Ledger) -> Result<Self, DaemonError> {
        let behind = Behind::new(ledger.clone());
        let (door, asks) = reception::open(behind.clone());
        let context = Context::new(Arc::new(NoFleet), ledger.clone());
        let others = Others { link: None, outside: None, door };
        let mesh = MeshSide::start(config, context, allocator(config), others, || {})?;
        Ok(Self::of(config, ledger, asks, behind).with(Part::here(mesh), None, (Part::none(), Part::none()), None))
    }

    async fn start_both(config: &Config, fleet: &FleetConfig, ledger: Ledger) -> Result<Self, DaemonError> {
        let prepared = Prepared::start(fleet, ledger.clone()).await?;
        let (link, outside) = (prepared.link().clone(), prepared.outside().clone());
        let behind = Behind::new(ledger.clone());
        let (door, asks) = reception::open(behind.clone());
        let context = Context::new(Arc::new(link.clone()), ledger.clone());
        let allocator = allocator(config);
        let others = Others { link: Some(link), outside: Some(outside.clone()), door };
        let start = {
            let (config, context, allocator) = (config.clone(), context.clone(), allocator.clone());
            move |reserve: &mut dyn FnMut()| {
                MeshSide::start(&config, context.clone(), allocator.clone(), others.clone(), reserve)
            }
        };
        let mut ports = None;
        let first = start(&mut || ports = Some(prepared.ports(allocator.clone())));
        let ports = ports.unwrap_or_else(|| prepared.ports(allocator.clone()));
        let slot: Slot<MeshSide> = Slot::new();
        let text = metrics_text(&slot);
        let place = Place { what: MESH, bind: config.mesh.socket.display().to_string() };
        let mesh =
            Part::start(slot, first, place, Some(outside.clone()), move || std::future::ready(start(&mut || {})));
        let side = prepared.run(context, ports, Some(text), None);
        let gate = start_gate(fleet, (&side, mesh.slot()), outside.clone(), None).await;
        let objects = start_objects(fleet, &outside, None).await;
        Ok(Self::of(config, ledger, asks, behind).with(mesh, Some(side), (gate, objects), Some(outside)))
    }

    /// Builds everything from what the running daemon hands over, and serves once that one gives the word.
    async fn take_over(
        config: &Config,
        mut taking: Taking,
        ledger: Ledger,
        descriptors: Arc<Descriptors>,
    ) -> Result<Self, DaemonError> {
        let built = match Built::of(config, &mut taking, ledger, descriptors).await {
            Ok(built) => built,
            Err(why) => return Err(taking.give_up(why).await.into()),
        };
        let pid = built.pid;
        let (last, behind) = taking.ready().await?;
        built.ledger.merge_answers(&last.answers);
        let mut daemon = built.begin(config).await;
        daemon.origin = Origin::TookOver { pid, streams: last.leaving.streams };
        behind.into_iter().for_each(|remainder| daemon.behind.expect(remainder));
        if let Some(fleet) = &mut daemon.fleet {
            fleet.published().await;
        }
        let wire = taking.running().await?;
        daemon.mesh.slot().with(|side| side.kept.set(false));
        daemon.behind.follow(wire, last);
        Ok(daemon)
    }

    /// One that serves nothing yet.
    pub(super) fn of(config: &Config, ledger: Ledger, asks: mpsc::Receiver<Asking>, behind: Behind) -> Self {
        Self {
            mesh: Part::none(),
            fleet: None,
            gate: Part::none(),
            objects: Part::none(),
            ledger,
            version: config.version,
            asks,
            behind,
            origin: Origin::Started,
            grace: config.mesh.shutdown_timeout,
            outside: None,
            store_location: config.fleet.as_ref().map(|fleet| fleet.store.location()),
            publish: config.fleet.as_ref().map(|fleet| fleet.publish.clone()).unwrap_or_default(),
            _keeper: None,
        }
    }

    /// The same with its parts.
    pub(super) fn with(
        self,
        mesh: Part<MeshSide>,
        fleet: Option<FleetSide>,
        (gate, objects): (Part<Gate>, Part<ObjectsSide>),
        outside: Option<Outside>,
    ) -> Self {
        let leavers = fleet.as_ref().map(|side| side.leavers.clone());
        self.behind.tell(mesh.slot().with(|side| side.mesh.clone()).as_ref(), leavers);
        let keeper = fleet.as_ref().zip(outside.as_ref()).map(|(side, outside)| {
            let slot = mesh.slot().clone();
            let told = (outside.clone(), self.ledger.clone());
            side.keep_published(move || slot.with(|side| side.mesh.clone()), told, self.publish.clone())
        });
        Self { mesh, fleet, gate, objects, outside, _keeper: keeper, ..self }
    }

    /// How long streams may go on once the end was asked for.
    pub(super) fn grace(&self) -> Duration {
        self.mesh.slot().with(|side| side.mesh.tuning().shutdown_timeout).unwrap_or(self.grace)
    }

    /// What is served now.
    pub(super) fn served(&self, fleet: Option<FleetReport>) -> Served {
        let mesh = self.mesh.slot().with(|side| (side.socket.clone(), side.mesh.list().len()));
        let router = self.mesh.slot().with(|side| side.router.as_ref().map(|_| side.mesh.router())).flatten();
        let unserved = self.outside.as_ref().filter(|_| mesh.is_none()).and_then(|outside| outside.reason(MESH));
        let (socket, mesh_services) = mesh.unzip();
        Served {
            socket,
            mesh_unserved: unserved,
            mesh_services: mesh_services.unwrap_or(0),
            index: router.as_ref().and_then(|router| router.url(hostname::OWN)).map(|url| format!("{url}/")),
            router_unserved: router.and_then(|router| router.reason.as_deref().map(str::to_owned)),
            fleet,
            store_location: self.store_location.clone(),
            gate: self.gate.slot().with(Gate::local_addr),
            object_api: self.objects.slot().with(|side| side.url.clone()),
        }
    }

    /// What is open now: streams of frontends, connections of the router and of the object API, sessions of the gate.
    pub(super) fn open_streams(&self) -> usize {
        let sessions = self.gate.slot().with(Gate::open).unwrap_or(0);
        let objects = self.objects.slot().with(|side| side.server.open()).unwrap_or(0);
        let router = self.mesh.slot().with(|side| side.router.as_ref().map_or(0, RouterSide::connections)).unwrap_or(0);
        self.ledger.streams() + sessions + objects + router
    }
}

fn allocator(config: &Config) -> Arc<Allocator> {
    let mesh = &config.mesh;
    Arc::new(Allocator::new(mesh.frontend_host, mesh.port_min, mesh.port_max))
}

/// The measures of the mesh, for the resolution API. Without a mesh there are none: an empty page.
pub(super) fn metrics_text(slot: &Slot<MeshSide>) -> MetricsText {
    let page = slot.clone();
    Arc::new(move || page.with(|side| side.mesh.render_metrics()).unwrap_or_else(|| "# EOF\n".to_owned()))
}

/// The gate where it is configured, on the listener that was handed over if it is the one.
pub(super) async fn start_gate(
    config: &FleetConfig,
    (side, mesh): (&FleetSide, &Slot<MeshSide>),
    outside: Outside,
    handed: Option<Bound>,
) -> Part<Gate> {
    let Some(gate) = config.gate.clone() else { return Part::none() };
    let bind = gate.bind;
    let place = Place { what: "gate", bind: bind.to_string() };
    let verbs: Arc<dyn gate::Verbs> = Arc::new(GateVerbs {
        store: config.store.clone(),
        link: side.link.clone(),
        held: side.held.clone(),
        bulletin: Bulletin::new(config.store.clone()),
        holders: Holders::new(&config.home),
        own: side.own.clone(),
        ledger: side.ledger.clone(),
        wake: side.wake.clone(),
        shelf: Shelf::new(&config.home),
        joining: tokio::sync::Mutex::default(),
        mesh: MeshOf(Some(mesh.clone())),
    });
    outside.follow_invitations(Shelf::new(&config.home));
    // Port 0 is any port: the one it was.
    let handed = handed.filter(|bound| bound.addr == bind || (bind.port() == 0 && bound.addr.ip() == bind.ip()));
    let listener = handed.and_then(|bound| bound.into_listeners().into_iter().next());
    let first = match listener {
        Some(listener) => Gate::start_on(Arc::new(listener), gate.clone(), verbs.clone()).await,
        None => Gate::start(gate.clone(), verbs.clone()).await,
    };
    let start = move || Gate::start(gate.clone(), verbs.clone());
    Part::start(Slot::new(), first, place, Some(outside), start)
}

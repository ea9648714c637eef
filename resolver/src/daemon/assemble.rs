//! Starts the parts of a daemon in their order: lock and state, mesh, fleet, gate. A part that cannot start is unserved
//! with its reason and tried again; only what [`super::run`] names stops the daemon.
use super::config::{Config, FleetConfig};
use super::fleet_side::{FleetSide, Prepared};
use super::gate_verbs::GateVerbs;
use super::mesh_side::MeshSide;
use super::outside::Outside;
use super::part::{Part, Place, Slot};
use super::{DaemonError, Served};
use crate::apply::report::FleetReport;
use crate::conn::ledger::Ledger;
use crate::conn::{Context, NoFleet};
use crate::gate::{self, Gate};
use crate::http::hostname;
use crate::mesh::Allocator;
use std::sync::Arc;
use std::time::Duration;

/// What the mesh is called among unserved things.
const MESH: &str = "mesh";

/// A daemon that runs.
pub(super) struct Daemon {
    pub(super) mesh: Part<MeshSide>,
    pub(super) fleet: Option<FleetSide>,
    pub(super) gate: Part<Gate>,
    pub(super) grace: Duration,
    ledger: Ledger,
    outside: Option<Outside>,
    store_location: Option<String>,
}

impl Daemon {
    pub(super) async fn start(config: Config) -> Result<Self, DaemonError> {
        let ledger = Ledger::new();
        match &config.fleet {
            None => Self::start_mesh(&config, ledger),
            Some(fleet) => Self::start_both(&config, fleet, ledger).await,
        }
    }

    fn start_mesh(config: &Config, ledger: Ledger) -> Result<Self, DaemonError> {
        let context = Context::new(Arc::new(NoFleet), ledger.clone());
        let mesh = MeshSide::start(config, context, allocator(config), None, None, || {})?;
        Ok(Self {
            mesh: Part::here(mesh),
            fleet: None,
            gate: Part::none(),
            grace: config.mesh.shutdown_timeout,
            ledger,
            outside: None,
            store_location: None,
        })
    }

    async fn start_both(config: &Config, fleet: &FleetConfig, ledger: Ledger) -> Result<Self, DaemonError> {
        let prepared = Prepared::start(fleet, ledger.clone()).await?;
        let (link, outside) = (prepared.link().clone(), prepared.outside().clone());
        let context = Context::new(Arc::new(link.clone()), ledger.clone());
        let allocator = allocator(config);
        let start = {
            let (config, context, allocator) = (config.clone(), context.clone(), allocator.clone());
            let outside = outside.clone();
            move |reserve: &mut dyn FnMut()| {
                let (context, link, outside) = (context.clone(), Some(link.clone()), Some(outside.clone()));
                MeshSide::start(&config, context, allocator.clone(), link, outside, reserve)
            }
        };
        let mut ports = None;
        let first = start(&mut || ports = Some(prepared.ports(allocator.clone())));
        let ports = ports.unwrap_or_else(|| prepared.ports(allocator.clone()))?;
        let slot: Slot<MeshSide> = Slot::new();
        let page = slot.clone();
        // Without a mesh there are no measures: an empty page.
        let text = move || page.with(|side| side.mesh.render_metrics()).unwrap_or_else(|| "# EOF\n".to_owned());
        let place = Place { what: MESH, bind: config.mesh.socket.display().to_string() };
        let mesh =
            Part::start(slot, first, place, Some(outside.clone()), move || std::future::ready(start(&mut || {})));
        let side = prepared.run(context, ports, Some(Arc::new(text)));
        let gate = start_gate(fleet, &side, outside.clone()).await;
        Ok(Self {
            mesh,
            fleet: Some(side),
            gate,
            grace: config.mesh.shutdown_timeout,
            ledger,
            outside: Some(outside),
            store_location: Some(fleet.store.location()),
        })
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
        }
    }

    /// Streams that are open now.
    pub(super) fn open_streams(&self) -> usize {
        let active = self.ledger.all_counters().into_iter().map(|(_, _, counters)| counters.active);
        usize::try_from(active.sum::<u64>()).unwrap_or(usize::MAX)
    }
}

fn allocator(config: &Config) -> Arc<Allocator> {
    let mesh = &config.mesh;
    Arc::new(Allocator::new(mesh.frontend_host, mesh.port_min, mesh.port_max))
}

async fn start_gate(config: &FleetConfig, side: &FleetSide, outside: Outside) -> Part<Gate> {
    let Some(gate) = config.gate.clone() else { return Part::none() };
    let place = Place { what: "gate", bind: gate.bind.to_string() };
    let verbs: Arc<dyn gate::Verbs> = Arc::new(GateVerbs {
        store: config.store.clone(),
        link: side.link.clone(),
        held: side.held.clone(),
        wake: side.wake.clone(),
    });
    let start = move || Gate::start(gate.clone(), verbs.clone());
    let first = start().await;
    Part::start(Slot::new(), first, place, Some(outside), start)
}

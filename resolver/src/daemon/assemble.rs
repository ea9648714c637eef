//! Starts the parts of a daemon in their order: lock and state, mesh, fleet, gate. A part that cannot start is unserved
//! with its reason; only what [`super::run`] names stops the daemon.
use super::config::{Config, FleetConfig};
use super::fleet_side::{FleetSide, Prepared};
use super::gate_verbs::GateVerbs;
use super::mesh_side::MeshSide;
use super::{DaemonError, Served};
use crate::api::resolution::MetricsText;
use crate::apply::report::FleetReport;
use crate::conn::ledger::Ledger;
use crate::conn::{Context, NoFleet};
use crate::gate::Gate;
use crate::mesh::Allocator;
use stado_fleet::ledger::{Unserved, stamp};
use std::sync::Arc;
use std::time::Duration;

/// A daemon that runs.
pub(super) struct Daemon {
    pub(super) mesh: Option<MeshSide>,
    pub(super) fleet: Option<FleetSide>,
    pub(super) gate: Option<Gate>,
    pub(super) grace: Duration,
    ledger: Ledger,
    mesh_unserved: Option<String>,
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
        let mesh = MeshSide::start(config, context, None, |_| {})?;
        Ok(Self {
            mesh: Some(mesh),
            fleet: None,
            gate: None,
            grace: config.mesh.shutdown_timeout,
            ledger,
            mesh_unserved: None,
            store_location: None,
        })
    }

    async fn start_both(config: &Config, fleet: &FleetConfig, ledger: Ledger) -> Result<Self, DaemonError> {
        let prepared = Prepared::start(fleet, ledger.clone()).await?;
        let context = Context::new(Arc::new(prepared.link().clone()), ledger.clone());
        let mut ports = None;
        let started = MeshSide::start(config, context.clone(), Some(prepared.link().clone()), |allocator| {
            ports = Some(prepared.ports(allocator.clone()));
        });
        let (mesh, refused) = match started {
            Ok(mesh) => (Some(mesh), None),
            Err(error) => (None, Some(error.to_string())),
        };
        let ports = match ports.filter(|_| mesh.is_some()) {
            Some(ports) => ports?,
            None => {
                let m = &config.mesh;
                prepared.ports(Arc::new(Allocator::new(m.frontend_host, m.port_min, m.port_max)))?
            }
        };
        let metrics = mesh.as_ref().map(|side| {
            let mesh = side.mesh.clone();
            Arc::new(move || mesh.render_metrics()) as MetricsText
        });
        let side = prepared.run(context, ports, metrics);
        if let Some(reason) = &refused {
            tracing::warn!(target: "stado::mesh", reason = %reason, "mesh_unserved");
            side.add_unserved(not_served("mesh", config.mesh.socket.display().to_string(), reason));
        }
        if let (Some(bind), Some(reason)) =
            (config.metrics_bind, mesh.as_ref().and_then(|m| m.metrics_unserved.as_ref()))
        {
            side.add_unserved(not_served("metrics", bind.to_string(), reason));
        }
        if let Some(mesh) = &mesh {
            side.follow_refused(mesh.mesh.refused());
        }
        let gate = start_gate(fleet, &side).await;
        Ok(Self {
            mesh,
            fleet: Some(side),
            gate,
            grace: config.mesh.shutdown_timeout,
            ledger,
            mesh_unserved: refused,
            store_location: Some(fleet.store.location()),
        })
    }

    /// What is served now.
    pub(super) fn served(&self, fleet: Option<FleetReport>) -> Served {
        Served {
            socket: self.mesh.as_ref().map(|side| side.socket.clone()),
            mesh_unserved: self.mesh_unserved.clone(),
            mesh_services: self.mesh.as_ref().map_or(0, |side| side.mesh.list().len()),
            fleet,
            store_location: self.store_location.clone(),
            gate: self.gate.as_ref().map(Gate::local_addr),
        }
    }

    /// Streams that are open now.
    pub(super) fn open_streams(&self) -> usize {
        let active = self.ledger.all_counters().into_iter().map(|(_, _, counters)| counters.active);
        usize::try_from(active.sum::<u64>()).unwrap_or(usize::MAX)
    }
}

async fn start_gate(config: &FleetConfig, side: &FleetSide) -> Option<Gate> {
    let gate = config.gate.clone()?;
    let bind = gate.bind;
    let verbs = GateVerbs {
        store: config.store.clone(),
        link: side.link.clone(),
        held: side.held.clone(),
        wake: side.wake.clone(),
    };
    match Gate::start(gate, Arc::new(verbs)).await {
        Ok(gate) => Some(gate),
        Err(error) => {
            tracing::warn!(target: "stado::fleet", "stado gate is not served: {error}");
            side.add_unserved(not_served("gate", bind.to_string(), &error.to_string()));
            None
        }
    }
}

fn not_served(what: &str, bind: String, reason: &str) -> Unserved {
    Unserved {
        service: what.to_owned(),
        consumer: String::new(),
        bind,
        reason: reason.to_owned(),
        since: Some(stamp(jiff::Timestamp::now())),
    }
}

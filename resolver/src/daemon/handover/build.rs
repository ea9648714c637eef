//! A daemon from what was handed over: first everything that can fail, with nobody served; then, at the word, the rest.
use super::behind::Behind;
use super::reception;
use super::take::Taking;
use super::unpack::{Unpacked, unpack};
use crate::apply::ports::Ports;
use crate::conn::ledger::Ledger;
use crate::conn::{Bound, Context, Descriptors, NoFleet};
use crate::daemon::assemble::{Daemon, metrics_text, start_gate};
use crate::daemon::config::Config;
use crate::daemon::fleet_side::{self, Prepared};
use crate::daemon::mesh_side::{MeshSide, On, Others};
use crate::daemon::objects_side::start_objects;
use crate::daemon::part::Part;
use crate::daemon::router_side::RouterSide;
use crate::http::tls::Tls;
use crate::mesh::Mesh;
use std::sync::Arc;

/// A daemon that is ready to serve.
pub(in crate::daemon) struct Built {
    /// The process that hands over.
    pub(in crate::daemon) pid: u32,
    pub(in crate::daemon) ledger: Ledger,
    context: Context,
    on: On,
    fleet: Option<(Prepared, Ports, Option<fleet_side::Inherited>)>,
    gate: Option<Bound>,
    objects: Option<Bound>,
}

impl Built {
    /// Takes everything up, or says why it cannot.
    pub(in crate::daemon) async fn of(
        config: &Config,
        taking: &mut Taking,
        ledger: Ledger,
        descriptors: Arc<Descriptors>,
    ) -> Result<Self, String> {
        let unpacked = unpack(config, taking.parcel.clone(), std::mem::take(&mut taking.offers))?;
        let Unpacked {
            pid,
            mesh,
            mesh_lock,
            frontends,
            control,
            metrics,
            gate,
            objects,
            router,
            passed,
            resolver_lock,
            fleet,
            containers,
        } = unpacked;
        let prepared = match (&config.fleet, resolver_lock) {
            (None, _) => None,
            (Some(config), Some(lock)) => Some(Prepared::take_up(config, ledger.clone(), lock, pid)),
            // The one that hands over is a mesh alone.
            (Some(config), None) => Some(Prepared::start(config, ledger.clone()).await.map_err(|e| e.to_string())?),
        };
        let context = match &prepared {
            None => Context::new(Arc::new(NoFleet), ledger.clone()),
            Some(prepared) => Context::new(Arc::new(prepared.link().clone()), ledger.clone()),
        };
        let context = Context { descriptors, ..context };
        let mesh = Mesh::take_up(config.mesh.clone(), context.clone(), mesh, mesh_lock, frontends);
        let mesh = mesh.map_err(|error| error.to_string())?;
        let fleet = match prepared {
            None => None,
            Some(prepared) => {
                let ports = prepared.ports(mesh.allocator());
                Some((prepared, ports, fleet))
            }
        };
        if let Some(http) = config.http.as_ref().filter(|_| config.fleet.is_none()) {
            // Without a fleet a pair that does not load stops a start.
            Tls::load(http.tls.clone()).map_err(|error| error.to_string())?;
        }
        let on = On { mesh, socket: control, metrics, containers, router: None };
        config.inherited.receive(router, &passed);
        Ok(Self { pid, ledger, context, on, fleet, gate, objects })
    }

    /// Serves.
    pub(in crate::daemon) async fn begin(self, config: &Config) -> Daemon {
        let Self { ledger, context, mut on, fleet, gate, objects, .. } = self;
        let behind = Behind::new(ledger.clone());
        let (door, asks) = reception::open(behind.clone());
        on.mesh.begin();
        let (link, outside) = match &fleet {
            Some((prepared, ..)) => (Some(prepared.link().clone()), Some(prepared.outside().clone())),
            None => (None, None),
        };
        on.router = config.http.as_ref().and_then(|http| {
            let started = RouterSide::start(http, &config.inherited, &on.mesh, context.clone(), outside.as_ref());
            started.inspect_err(|error| tracing::warn!(target: "stado::mesh", error = %error, "router_not_served")).ok()
        });
        let others = Others { link, outside: outside.clone(), door };
        let mesh = Part::here(MeshSide::serve(config, on, context.own.clone(), others));
        let text = metrics_text(mesh.slot());
        let side = fleet.map(|(prepared, ports, inherited)| prepared.run(context, ports, Some(text), inherited));
        let gate = match (&config.fleet, &side, &outside) {
            (Some(fleet), Some(side), Some(outside)) => {
                start_gate(fleet, (side, mesh.slot()), outside.clone(), gate).await
            }
            _ => Part::none(),
        };
        let objects = match (&config.fleet, &outside) {
            (Some(fleet), Some(outside)) => start_objects(fleet, outside, objects).await,
            _ => Part::none(),
        };
        Daemon::of(config, ledger, asks, behind).with(mesh, side, (gate, objects), outside)
    }
}

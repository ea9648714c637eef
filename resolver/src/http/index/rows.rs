//! What the index shows, collected at the moment of asking.
use super::super::hostname;
use super::super::site::Site;
use super::super::sites::Sites;
use super::super::table::Table;
use super::picture::Scene;
use super::row::{Row, add_connections, add_requests, second};
use super::story::Story;
use crate::apply::held::{Held, HeldReader};
use crate::apply::plan::AdapterId;
use crate::apply::report::FleetReport;
use crate::conn::ledger::{Ledger, Overview};
use crate::http::Listening;
use crate::mesh::Mesh;
use stado_fleet::name::Scheme;
use stado_fleet::wire::{Overview as Everything, RouterReport};
use std::collections::HashMap;
use std::sync::{Arc, Weak};
use tokio::sync::watch;

/// How the fleet side stands.
#[derive(Debug, Clone)]
pub struct FleetView {
    /// What is held.
    pub held: HeldReader,
    /// What is not served, with reasons.
    pub reports: watch::Receiver<Option<FleetReport>>,
}

/// Where rows come from. It holds the mesh weakly: who reads keeps no daemon alive.
#[derive(Debug)]
pub struct Source {
    pub(super) mesh: Weak<Mesh>,
    pub(super) sites: Arc<Sites>,
    pub(super) ledger: Ledger,
    pub(super) fleet: Option<FleetView>,
}

/// Connections by service and consumer.
type Counted = HashMap<(Arc<str>, Option<Arc<str>>), Overview>;

impl Source {
    /// Over the services of `mesh` and the adapters of `fleet`, with connections counted in `ledger`.
    pub fn new(mesh: &Arc<Mesh>, ledger: Ledger, fleet: Option<FleetView>) -> Self {
        Self { mesh: Arc::downgrade(mesh), sites: mesh.sites(), ledger, fleet }
    }

    /// Everything at this moment, as the control API tells it.
    pub(crate) fn overview(&self) -> Everything {
        let listening = self.mesh.upgrade().map(|mesh| mesh.router()).unwrap_or_default();
        Everything {
            at_ms: jiff::Timestamp::now().as_millisecond(),
            pid: std::process::id(),
            router: RouterReport {
                index: listening.url(hostname::OWN).map(|url| format!("{url}/")),
                http: listening.http,
                https: listening.https,
                reason: listening.reason.as_deref().map(str::to_owned),
            },
            services: self.rows(),
        }
    }

    /// Every service, by name; those of the mesh before adapters of the same name.
    pub(super) fn rows(&self) -> Vec<Row> {
        let Some(mesh) = self.mesh.upgrade() else { return Vec::new() };
        let all = self.ledger.overview().into_iter();
        let counted: Counted = all.map(|seen| ((seen.service.clone(), seen.consumer.clone()), seen)).collect();
        let table = self.sites.routes().load();
        let mut rows = mesh_rows(&mesh, &table, &counted);
        if let Some(fleet) = &self.fleet {
            rows.extend(self.fleet_rows(fleet, &mesh.router(), &table, &counted));
        }
        rows.sort_by(|a, b| (&a.name, &b.from, &a.consumer).cmp(&(&b.name, &a.from, &b.consumer)));
        rows
    }

    /// What the picture of the fleet shows beside the rows; `None` as long as no registry is held.
    pub(super) fn scene(&self) -> Option<Scene> {
        let held = self.fleet.as_ref()?.held.borrow().clone()?;
        let names = held.directory.registry().targets.values().map(|target| target.name.to_string());
        let here = held.target.to_string();
        let stale = if held.stale(jiff::Timestamp::now()) { ", older than this host allows" } else { "" };
        let generation = held.directory.generation().map(|g| format!("directory generation {g}{stale}"));
        let others = names.filter(|name| *name != here).collect();
        Some(Scene { others, note: generation.unwrap_or_else(|| "no directory".to_owned()), here })
    }

    /// The story of the row with this id.
    pub(super) fn story(&self, id: &str) -> Option<Story> {
        let route = self.rows().into_iter().find(|row| row.id == id)?;
        let mut connections = self.ledger.connections(&route.name).unwrap_or_default();
        let same = |consumer: Option<&str>| consumer.unwrap_or_default() == route.consumer;
        connections.open.retain(|connection| same(connection.consumer.as_deref()));
        connections.ended.retain(|connection| same(connection.consumer.as_deref()));
        let mut waits = self.ledger.snapshot_waits();
        waits.retain(|wait| wait.service == route.name && wait.consumer == route.consumer);
        let paths = self.paths(&route);
        Some(Story { route, paths, waits, connections })
    }

    /// Names of the declared paths to the host of an adapter's service.
    fn paths(&self, route: &Row) -> Vec<String> {
        let held = self.fleet.as_ref().and_then(|fleet| fleet.held.borrow().clone());
        let way = held.and_then(|held| held.directory.resolve(&route.name, &route.consumer).ok());
        way.map(|way| way.paths.iter().map(|path| path.name.clone()).collect()).unwrap_or_default()
    }

    fn fleet_rows(&self, fleet: &FleetView, router: &Listening, table: &Table, counted: &Counted) -> Vec<Row> {
        let Some(held) = fleet.held.borrow().clone() else { return Vec::new() };
        let report = fleet.reports.borrow().clone();
        let adapters = held.policy.adapters.iter().map(AdapterId::of);
        adapters.map(|id| fleet_row(&id, &held, report.as_ref(), router, table, counted)).collect()
    }
}

fn mesh_rows(mesh: &Mesh, table: &Table, counted: &Counted) -> Vec<Row> {
    let all = mesh.overview().into_iter();
    all.map(|(seen, since)| {
        let service: Arc<str> = seen.name.as_str().into();
        let mut row = Row {
            id: format!("mesh/{}", seen.name),
            from: "mesh".into(),
            kind: seen.kind,
            state: if seen.backend.is_some() { "ready" } else { "unavailable" }.into(),
            address: seen.frontend.endpoint(),
            place: seen.backend.map(|b| host_port(&b.host, b.port)).unwrap_or_default(),
            since: second(since),
            reason: seen.reason.or(seen.note).unwrap_or_default(),
            name: seen.name,
            ..Row::default()
        };
        let site = table.get(&seen.hostname).filter(|site| site.service == service && site.consumer.is_none());
        add_counted(&mut row, &service, None, site, counted);
        row
    })
    .collect()
}

fn fleet_row(
    id: &AdapterId,
    held: &Held,
    report: Option<&FleetReport>,
    router: &Listening,
    table: &Table,
    counted: &Counted,
) -> Row {
    let (service, consumer): (Arc<str>, Arc<str>) = (id.service.as_str().into(), id.consumer.as_str().into());
    let bind = held.binds.get(id);
    let route = held.directory.resolve(&service, &consumer);
    let http = route.as_ref().is_ok_and(|route| route.endpoint.scheme == Scheme::Http);
    let made = hostname::of_service(&service).unwrap_or_default();
    let site = table.get(&made).filter(|site| site.service == service && site.consumer.is_some());
    let by_name = site.filter(|_| http).and_then(|site| router.url(&site.host));
    let scheme = if http { "http://" } else { "" };
    let unserved = report.and_then(|report| {
        let of_this = |u: &&stado_fleet::ledger::Unserved| u.service == *service && u.consumer == *consumer;
        report.unserved.iter().find(of_this)
    });
    let mut row = Row {
        id: format!("fleet/{id}"),
        name: service.to_string(),
        consumer: consumer.to_string(),
        from: "fleet".into(),
        kind: if http { "http" } else { "tcp" }.to_owned(),
        state: if bind.is_some() && route.is_ok() { "ready" } else { "unserved" }.into(),
        address: by_name.or_else(|| bind.map(|bind| format!("{scheme}{bind}"))).unwrap_or_default(),
        place: match &route {
            Ok(route) if route.local => route.endpoint.addr.to_string(),
            Ok(route) => format!("{} ({})", route.active_host, route.endpoint.addr),
            Err(_) => String::new(),
        },
        host: route
            .as_ref()
            .ok()
            .filter(|route| !route.local)
            .map(|route| route.active_host.to_string())
            .unwrap_or_default(),
        since: unserved
            .and_then(|u| u.since.clone())
            .or_else(|| site.map(|site| second(site.since)))
            .unwrap_or_default(),
        reason: match (&route, unserved) {
            (_, Some(unserved)) => unserved.reason.clone(),
            (Err(reason), None) => reason.to_string(),
            (Ok(_), None) => String::new(),
        },
        ..Row::default()
    };
    add_counted(&mut row, &service, Some(consumer), site, counted);
    row
}

fn add_counted(
    row: &mut Row,
    service: &Arc<str>,
    consumer: Option<Arc<str>>,
    site: Option<&Arc<Site>>,
    counted: &Counted,
) {
    if let Some(seen) = counted.get(&(Arc::clone(service), consumer.clone())) {
        add_connections(row, &seen.counters, seen.last_failure.as_ref());
    }
    if let Some(site) = site.filter(|site| site.consumer == consumer) {
        add_requests(row, &site.stats);
    }
}

fn host_port(host: &str, port: i64) -> String {
    if host.contains(':') { format!("[{host}]:{port}") } else { format!("{host}:{port}") }
}

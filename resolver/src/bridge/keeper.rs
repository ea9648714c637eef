//! Looks at mesh and directory whenever one of them changes, and writes what [`super::plan`] says.
use super::Policy;
use super::plan::{Inputs, Local, plan};
use super::reach::{Reach, Watch};
use crate::apply::held::{Held, HeldReader};
use crate::conn::ledger::{Ledger, Overview};
use crate::mesh::{Event, Mesh, Offer};
use stado_fleet::authority::{self, RegistryError, next_source};
use stado_fleet::edit::bridge::{self, NewPublication};
use stado_fleet::edit::check_write;
use stado_fleet::fault::Class;
use stado_fleet::link::Link;
use stado_fleet::name::LogicalName;
use stado_fleet::store::RegistryStore;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::broadcast;
use tokio::time::{Instant, sleep, sleep_until};
use tokio_util::sync::CancellationToken;

/// Between a change and the look at it: changes come in groups.
const SETTLE: Duration = Duration::from_millis(100);
/// Between two looks when nothing changes: what could not be written is tried again, and time passes.
const LOOK: Duration = Duration::from_secs(30);

/// What it works with. `mesh` is asked for each time: it may be served later than the fleet.
pub struct Keeper {
    /// The mesh of this daemon.
    pub mesh: Box<dyn Fn() -> Option<Arc<Mesh>> + Send + Sync>,
    /// What is held of the registry.
    pub held: HeldReader,
    /// The registry store of this host.
    pub store: Arc<dyn RegistryStore>,
    /// The way to the authority.
    pub link: Link,
    /// What was counted of connections.
    pub ledger: Ledger,
    /// What containers may do.
    pub policy: Policy,
    /// Told all warnings, whenever they change.
    pub say: Box<dyn Fn(Vec<String>) + Send + Sync>,
}

impl Keeper {
    /// Runs until `stop`.
    pub async fn run(mut self, stop: CancellationToken) {
        let (mut said, mut watch) = (Vec::new(), Watch::default());
        loop {
            let mesh = (self.mesh)();
            let mut changes = mesh.as_ref().map(|mesh| mesh.changes());
            let held = self.held.borrow_and_update().clone();
            if let Some(held) = held {
                let mut warnings = watch.look(&self.reaches(&held), jiff::Timestamp::now());
                if let Some(mesh) = mesh {
                    tokio::select! {
                        () = stop.cancelled() => return,
                        of_mesh = self.look(&mesh, &held) => warnings.extend(of_mesh),
                    }
                }
                if warnings != said {
                    (self.say)(warnings.clone());
                    said = warnings;
                }
            }
            let next = Instant::now() + LOOK;
            tokio::select! {
                () = stop.cancelled() => return,
                changed = self.held.changed() => if changed.is_err() { return },
                () = of_mesh(changes.as_mut()) => {}
                () = sleep_until(next) => {}
            }
            tokio::select! {
                () = stop.cancelled() => return,
                () = sleep(SETTLE) => {}
            }
        }
    }

    /// What this host saw of the published services that it uses.
    fn reaches(&self, held: &Held) -> Vec<Reach> {
        let Some(directory) = &held.directory.registry().directory else { return Vec::new() };
        let elsewhere = |service: &LogicalName| {
            let entry = directory.services.get(service)?;
            (entry.published.is_some() && entry.active_host != held.target).then(|| entry.active_host.to_string())
        };
        let mut all: BTreeMap<String, Reach> = BTreeMap::new();
        for Overview { service, consumer, last_reached, last_failure, .. } in self.ledger.overview() {
            let used = consumer.is_some().then(|| service.parse().ok()).flatten();
            let Some(host) = used.as_ref().and_then(elsewhere) else { continue };
            let refused = last_failure.filter(|failure| failure.refused);
            let failed = refused.map(|failure| (failure.at, failure.cause.to_string()));
            let reach = Reach { service: service.to_string(), host, reached: last_reached, failed };
            match all.get_mut(&*service) {
                None => drop(all.insert(reach.service.clone(), reach)),
                Some(known) => {
                    known.reached = known.reached.max(reach.reached);
                    known.failed = known.failed.take().max(reach.failed);
                }
            }
        }
        all.into_values().collect()
    }

    /// One comparison, and what follows from it. The warnings that hold.
    async fn look(&self, mesh: &Arc<Mesh>, held: &Held) -> Vec<String> {
        let published = bridge::publications(&held.snapshot.valid.document, held.target.as_str());
        mesh.keep_offered(published.iter().map(|publication| publication.mesh.clone()).collect());
        let locals = locals(mesh, &published).await;
        let (host, policy, now) = (held.target.as_str(), &self.policy, jiff::Timestamp::now());
        let plan = plan(&Inputs { host, published: &published, mesh: &locals, policy, now });
        mesh.withhold(plan.withheld);
        let mut warnings = plan.warnings;
        for new in plan.writes {
            if let Err(error) = self.write(held, &new).await {
                let service = &new.service;
                warnings.push(format!("{service} of this host's mesh cannot be published now: {error}"));
            }
        }
        warnings
    }

    async fn write(&self, held: &Held, new: &NewPublication) -> Result<(), RegistryError> {
        authority::again_while_moved(|| self.write_once(held, new), |error| error.class).await
    }

    async fn write_once(&self, held: &Held, new: &NewPublication) -> Result<(), RegistryError> {
        let source = next_source(&held.snapshot, &held.target, self.store.clone());
        let read = authority::fetch_for_write(&source, &self.link).await?;
        let (document, version) = read.ok_or_else(|| RegistryError::absent(&source.location()))?;
        let refused = |class, why: String| RegistryError::new(class, why);
        let done = bridge::publish(&document, new).map_err(|error| refused(error.class, error.sentence))?;
        if !done.edited.changed {
            return Ok(());
        }
        let next = done.edited.document;
        check_write(Some(&document), &next).map_err(|invalid| refused(Class::Config, invalid.to_string()))?;
        authority::commit_edit(&source, &self.link, &version, &next).await?;
        let (service, endpoint) = (&new.service, &new.endpoint);
        tracing::info!(target: "stado::fleet", "stado resolver published {service} at {endpoint}");
        Ok(())
    }
}

/// Everything of the mesh that is published, or asks to be.
async fn locals(mesh: &Arc<Mesh>, published: &[bridge::Resting]) -> Vec<Local> {
    let known: BTreeSet<&str> = published.iter().map(|publication| publication.mesh.as_str()).collect();
    let mut all = Vec::new();
    for offer in mesh.offers(|name, asks| asks || known.contains(name)) {
        let Offer { name, frontend, hostname, app_protocol, absent, asks } = offer;
        let endpoint = match (frontend, &hostname) {
            (Some(addr), _) => format!("tcp://{addr}").parse().ok(),
            // Its port is bound again at each start; asking for it gives one to what asks for the first time.
            (None, Some(_)) => match mesh.expose(&name).await {
                Ok(frontend) => format!("http://{}", frontend.endpoint()).parse().ok(),
                Err(_) => None,
            },
            (None, None) => None,
        };
        all.push(Local { name, endpoint, hostname, app_protocol, absent, asks });
    }
    all
}

/// Returns at the next change of the mesh; never without one.
async fn of_mesh(changes: Option<&mut broadcast::Receiver<Arc<Event>>>) {
    match changes {
        // Events that were missed are a change too; a mesh that is gone is looked for at the next tick.
        Some(changes) => match changes.recv().await {
            Ok(_) | Err(broadcast::error::RecvError::Lagged(_)) => {}
            Err(broadcast::error::RecvError::Closed) => std::future::pending().await,
        },
        None => std::future::pending().await,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::conn::ledger::Refusal;
    use crate::mesh::rig::{self, Home};
    use crate::mesh::{Backend, Kind, Publication, Source};
    use serde_json::{Value, json};
    use stado_fleet::admit::Snapshot;
    use stado_fleet::directory::Directory;
    use stado_fleet::document::Document;
    use stado_fleet::fault::{Blame, Hop};
    use stado_fleet::link::LinkConfig;
    use stado_fleet::store::Expected;
    use stado_fleet::store::local::LocalStore;
    use stado_fleet::validate::validate;
    use std::sync::Mutex;
    use tokio::sync::watch;

    fn registry() -> Value {
        json!({
            "schema_version": 2,
            "targets": [{"name": "me", "kind": "local", "release_platform": "linux-amd64", "ssh": "u@127.0.0.2",
                "service_resolver": {"api_bind": "127.0.0.1:1", "refresh_seconds": 5, "max_stale_seconds": 15, "adapters": []}}],
            "empty_directory": {"authority": {"target": "me", "command": "/opt/stado"}, "generation": 1}
        })
    }

    async fn held(store: &LocalStore) -> Arc<Held> {
        let stored = store.read().await.unwrap().unwrap();
        let valid = Arc::new(validate(Document::parse(stored.bytes).unwrap()).unwrap());
        let target: stado_fleet::name::TargetName = "me".parse().unwrap();
        Arc::new(Held {
            directory: Arc::new(Directory::build(valid.registry.clone(), target.clone())),
            policy: valid.registry.targets[&target].resolver.clone().unwrap(),
            snapshot: Snapshot { valid, store_version: stored.version },
            target,
            loaded_at: jiff::Timestamp::now(),
            fresh_at: None,
            binds: Arc::default(),
        })
    }

    async fn services(store: &LocalStore) -> Value {
        let bytes = store.read().await.unwrap().unwrap().bytes;
        let value: Value = serde_json::from_slice(&bytes).unwrap();
        value["service_directory"]["services"].clone()
    }

    fn of_container(name: &str, kind: Kind, port: u16) -> Publication {
        Publication {
            name: name.parse().unwrap(),
            kind,
            app_protocol: String::new(),
            source: Source::Docker,
            owner_key: format!("docker:{name}"),
            producer_id: name.into(),
            container_id: name.into(),
            backend: Backend {
                host: "127.0.0.1".into(),
                port,
                addr: format!("127.0.0.1:{port}").parse().unwrap(),
                via: None,
            },
            hostname: (kind == Kind::Http).then(|| format!("{name}.localhost")),
            publish: true,
        }
    }

    #[tokio::test]
    async fn a_container_that_asks_is_published_where_the_host_lets_it_and_its_recreation_writes_nothing() {
        let home = Home::new();
        let mesh = home.start();
        let store = Arc::new(LocalStore::open(home.dir.path().join("store")).unwrap());
        store.swap(Expected::Absent, registry().to_string().into_bytes()).await.unwrap();
        let (tell, hear) = watch::channel(Some(held(&store).await));
        let said = Arc::new(Mutex::new(Vec::new()));
        let (of_keeper, told) = (mesh.clone(), said.clone());
        let policy = Policy { labels: true, consumers: vec!["lap".into()] };
        let keeper = Keeper {
            mesh: Box::new(move || Some(of_keeper.clone())),
            held: hear,
            store: store.clone(),
            link: Link::new(LinkConfig::default()),
            ledger: Ledger::new(),
            policy,
            say: Box::new(move |warnings| *told.lock().unwrap() = warnings),
        };
        let stop = CancellationToken::new();
        let running = tokio::spawn(keeper.run(stop.clone()));
        let (db, web) = (rig::echo().await, rig::echo().await);
        let frontend = mesh.publish(of_container("db", Kind::Tcp, db), 0).await.unwrap();
        mesh.publish(of_container("web", Kind::Http, web), 0).await.unwrap();
        let deadline = Instant::now() + Duration::from_secs(20);
        let now = loop {
            let now = services(&store).await;
            if now["db"].is_object() && now["web"].is_object() {
                break now;
            }
            assert!(Instant::now() < deadline, "{now} {:?}", said.lock().unwrap());
            sleep(Duration::from_millis(10)).await;
        };
        assert_eq!(now["db"]["endpoints"]["me"]["url"], format!("tcp://127.0.0.1:{}", frontend.port));
        assert_eq!(now["db"]["consumers"], json!({"lap": {"capabilities": []}}));
        let exposed = mesh.expose("web").await.unwrap().port;
        assert_eq!(now["web"]["endpoints"]["me"]["url"], format!("http://127.0.0.1:{exposed}"));

        tell.send(Some(held(&store).await)).unwrap();
        let version = store.read().await.unwrap().unwrap().version;
        mesh.withdraw(&"db".parse().unwrap(), "db", "its container is gone");
        mesh.publish(of_container("db", Kind::Tcp, rig::echo().await), 0).await.unwrap();
        sleep(3 * SETTLE).await;
        assert_eq!(store.read().await.unwrap().unwrap().version, version);
        assert!(said.lock().unwrap().is_empty());
        stop.cancel();
        running.await.unwrap();
    }

    #[tokio::test]
    async fn a_publisher_that_this_host_has_not_reached_for_an_hour_is_said_with_what_takes_it_back() {
        let home = Home::new();
        let store = Arc::new(LocalStore::open(home.dir.path().join("store")).unwrap());
        let mut registry = registry();
        let desk = json!({"name": "desk", "kind": "local", "release_platform": "linux-amd64", "ssh": "u@127.0.0.3"});
        registry["targets"].as_array_mut().unwrap().push(desk);
        let of_desk = NewPublication {
            service: "orders".into(),
            host: "desk".into(),
            mesh: "checkout.db".into(),
            endpoint: "tcp://127.0.0.1:15432".parse().unwrap(),
            hostname: None,
            app_protocol: String::new(),
            consumers: Vec::new(),
            standby: false,
            at: "2026-12-01T00:00:00Z".into(),
        };
        let published = bridge::publish(&Document::from_value(registry), &of_desk).unwrap().edited.document;
        let want = bridge::NewUse { service: "orders".into(), host: "me".into(), consumer: None, port: None };
        let used = bridge::use_service(&published, &want).unwrap().edited.document;
        store.swap(Expected::Absent, used.bytes().to_vec()).await.unwrap();
        let held = held(&store).await;
        let ledger = Ledger::new();
        let keeper = Keeper {
            mesh: Box::new(|| None),
            held: watch::channel(Some(held.clone())).1,
            store: store.clone(),
            link: Link::new(LinkConfig::default()),
            ledger: ledger.clone(),
            policy: Policy::default(),
            say: Box::new(|_| ()),
        };
        let mut watch = Watch::default();
        let minutes = |minutes: i64| jiff::Timestamp::now() + jiff::SignedDuration::from_mins(minutes);
        let adapter = crate::conn::ledger::testing::Adapter::new(&ledger, "orders", "fleet");
        // One is kept open, so that what was counted of the service stays.
        let mut open = adapter.enter();
        open.opened();
        assert!(watch.look(&keeper.reaches(&held), minutes(0)).is_empty());
        let fail =
            || adapter.enter().refused(Refusal::Unreachable, "the host is down", (Blame::Remote, Hop::Session), true);
        fail();
        for (after, said) in [(1, 0), (59, 0), (62, 1)] {
            assert_eq!(watch.look(&keeper.reaches(&held), minutes(after)).len(), said, "after {after} minutes");
        }
        let said = watch.look(&keeper.reaches(&held), minutes(63)).remove(0);
        assert!(
            said.contains("(the host is down)") && said.contains("`stado service unpublish orders --host desk`"),
            "{said}"
        );
        adapter.enter().opened();
        assert!(watch.look(&keeper.reaches(&held), minutes(64)).is_empty(), "it was reached");
    }
}

//! An engine in memory: it runs what it is told to run, and can be away, silent, or unable to tell.
use crate::docker::container::{Binding, Container, Health, Phase};
use crate::docker::engine::{About, Answer, Connect, Engine, EngineError, Event, Listed, What};
use crate::docker::labels;
use futures_util::StreamExt;
use futures_util::stream::BoxStream;
use jiff::Timestamp;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicI64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;
use tokio::sync::broadcast;

#[derive(Debug)]
pub(super) struct Fake {
    world: Mutex<World>,
    events: Mutex<broadcast::Sender<Option<Event>>>,
    pub(super) connects: AtomicUsize,
    pub(super) inspections: AtomicUsize,
    clock: AtomicI64,
}

#[derive(Debug, Default)]
struct World {
    containers: BTreeMap<String, Container>,
    away: bool,
    silent: bool,
    mute: bool,
    /// Containers whose inspections take this long.
    slow: BTreeMap<String, Duration>,
}

impl Default for Fake {
    fn default() -> Self {
        Self {
            world: Mutex::default(),
            events: Mutex::new(broadcast::Sender::new(1024)),
            connects: AtomicUsize::new(0),
            inspections: AtomicUsize::new(0),
            clock: AtomicI64::new(1_700_000_000),
        }
    }
}

/// What a container is run with.
#[derive(Debug, Clone, Copy)]
pub(super) struct Run<'a> {
    pub(super) id: &'a str,
    /// Compose service; empty for a container without Compose.
    pub(super) service: &'a str,
    pub(super) name: &'a str,
    /// Host port; 0 is not published.
    pub(super) port: u16,
}

impl Fake {
    fn world(&self) -> MutexGuard<'_, World> {
        self.world.lock().unwrap()
    }

    /// The engine's clock goes on with every event.
    fn now(&self) -> Timestamp {
        Timestamp::from_second(self.clock.fetch_add(1, Ordering::Relaxed)).unwrap()
    }

    fn emit(&self, id: &str, what: What) {
        let at = Some(self.now());
        let attributes = self.world().containers.get(id).map(|c| c.labels.clone()).unwrap_or_default();
        self.send(Event { container: id.into(), what, at, attributes });
    }

    /// Sends an event as it is.
    pub(super) fn send(&self, event: Event) {
        if !self.world().mute {
            let _ = self.events.lock().unwrap().send(Some(event));
        }
    }

    pub(super) fn run(&self, run: Run<'_>) {
        let pairs =
            [("io.devmesh.enable", "true"), ("io.devmesh.name", run.name), ("io.devmesh.container-port", "5432")];
        let mut labels: BTreeMap<String, String> = pairs.iter().map(|(k, v)| ((*k).into(), (*v).into())).collect();
        if !run.service.is_empty() {
            labels.insert("com.docker.compose.project".into(), "it".into());
            labels.insert("com.docker.compose.service".into(), run.service.into());
        }
        let container = Container {
            id: run.id.into(),
            name: format!("c-{}", run.id),
            started_at: Some(self.now()),
            phase: Phase::Running,
            labels,
            ports: BTreeMap::from([("5432/tcp".to_owned(), published(run.port))]),
            ..Container::default()
        };
        self.world().containers.insert(run.id.into(), container);
        self.emit(run.id, What::Changed);
    }

    /// Changes a container and says so.
    pub(super) fn change(&self, id: &str, change: impl FnOnce(&mut Container)) {
        change(self.world().containers.get_mut(id).unwrap());
        self.emit(id, What::Changed);
    }

    pub(super) fn label(&self, id: &str, label: &str, value: &str) {
        self.change(id, |container| {
            container.labels.insert(label.into(), value.into());
        });
    }

    pub(super) fn publish(&self, id: &str, port: u16) {
        self.change(id, |container| {
            container.ports.insert("5432/tcp".into(), published(port));
        });
    }

    pub(super) fn health(&self, id: &str, health: Health) {
        self.change(id, |container| container.health = Some(health));
    }

    pub(super) fn remove(&self, id: &str) {
        self.emit(id, What::Ended("died"));
        self.world().containers.remove(id);
        self.emit(id, What::Ended("was removed"));
    }

    /// Nobody answers any more, and what is connected breaks off.
    pub(super) fn leave(&self) {
        self.world().away = true;
        let _ = self.events.lock().unwrap().send(None);
    }

    pub(super) fn come_back(&self) {
        self.world().away = false;
    }

    /// Takes every question and answers none.
    pub(super) fn hush(&self, silent: bool) {
        self.world().silent = silent;
    }

    /// Takes its time over inspections of a container.
    pub(super) fn slow(&self, id: &str, by: Duration) {
        self.world().slow.insert(id.into(), by);
    }

    /// Tells no events.
    pub(super) fn mute(&self) {
        self.world().mute = true;
    }

    async fn answer<T>(&self, look: impl FnOnce(&World) -> T) -> Result<T, EngineError> {
        tokio::task::yield_now().await;
        if self.world().silent {
            tokio::time::sleep(Duration::from_secs(10)).await;
            return Err(EngineError::away("the engine at fake did not answer within 10s"));
        }
        let world = self.world();
        if world.away {
            return Err(EngineError::away("the engine at fake is not there"));
        }
        Ok(look(&world))
    }
}

fn published(port: u16) -> Vec<Binding> {
    if port == 0 { Vec::new() } else { vec![Binding { ip: "127.0.0.1".into(), port: port.to_string() }] }
}

/// Finds the fake.
#[derive(Debug)]
pub(super) struct Door(pub(super) Arc<Fake>);

#[derive(Debug)]
struct Connected(Arc<Fake>);

impl Connect for Door {
    fn connect(&self) -> Answer<'_, Arc<dyn Engine>> {
        Box::pin(async move {
            self.0.connects.fetch_add(1, Ordering::Relaxed);
            self.0.answer(|_| ()).await?;
            Ok(Arc::new(Connected(self.0.clone())) as Arc<dyn Engine>)
        })
    }

    fn place(&self) -> String {
        "fake".into()
    }
}

impl Engine for Connected {
    fn about(&self) -> About {
        About { endpoint: "fake".into(), version: "1".into(), api: "1.41".into() }
    }

    fn list(&self) -> Answer<'_, Vec<Listed>> {
        let listed = |container: &Container| Listed {
            id: container.id.clone(),
            name: container.name.clone(),
            asks_for: labels::asks_for(&container.labels),
            digest: format!("{:?} {:?} {:?}", container.ports, container.phase, container.health),
        };
        Box::pin(self.0.answer(move |world| world.containers.values().map(listed).collect()))
    }

    fn inspect<'a>(&'a self, id: &'a str) -> Answer<'a, Option<Container>> {
        self.0.inspections.fetch_add(1, Ordering::Relaxed);
        Box::pin(async move {
            let slow = self.0.world().slow.get(id).copied();
            if let Some(slow) = slow {
                tokio::time::sleep(slow).await;
            }
            self.0.answer(|world| world.containers.get(id).cloned()).await
        })
    }

    fn events(&self, _since: Timestamp) -> BoxStream<'static, Result<Event, EngineError>> {
        let receiver = self.0.events.lock().unwrap().subscribe();
        let told = futures_util::stream::unfold(receiver, |mut receiver| async {
            let event = receiver.recv().await.ok()??;
            Some((Ok(event), receiver))
        });
        told.boxed()
    }
}

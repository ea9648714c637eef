//! The adapter against engines that can be made to do anything: `fake` behind the trait, `served` as HTTP on a socket.
mod fake;
mod lives;
mod outages;
mod served;
mod storm;

use super::watcher::Docker;
use super::{Config, Timing};
use crate::mesh::Mesh;
use crate::mesh::rig::Home;
use fake::Fake;
use stado_fleet::wire::{Inspect, Refused};
use std::sync::Arc;

/// A mesh with an adapter that watches a fake engine.
struct Rig {
    _home: Home,
    mesh: Arc<Mesh>,
    fake: Arc<Fake>,
    docker: Option<Docker>,
}

impl Rig {
    /// Nothing watches yet.
    fn new() -> Self {
        let home = Home::new();
        let mesh = home.start();
        Self { _home: home, mesh, fake: Arc::new(Fake::default()), docker: None }
    }

    fn watch(&mut self) {
        let door = Arc::new(fake::Door(self.fake.clone()));
        self.docker = Some(Docker::start_with(door, Config::default(), self.mesh.clone()));
    }

    fn inspect(&self, name: &str) -> Option<Inspect> {
        self.mesh.inspect(name).ok()
    }

    /// Backend port of a ready service.
    fn backend(&self, name: &str) -> Option<i64> {
        self.inspect(name)?.backend.map(|backend| backend.port)
    }

    fn frontend(&self, name: &str) -> u16 {
        self.inspect(name).unwrap().frontend.port
    }

    fn reason(&self, name: &str) -> String {
        self.inspect(name).and_then(|found| found.reason).unwrap_or_default()
    }

    fn refused(&self) -> Vec<Refused> {
        self.mesh.refused().borrow().refused.clone()
    }

    /// The engine's state, as health tells it.
    fn engine(&self) -> String {
        self.mesh.health().docker
    }
}

/// Waits on tokio's clock, paused or not, until `holds`; for at most `seconds` of it.
async fn within(seconds: u64, what: &str, mut holds: impl FnMut() -> bool) {
    let deadline = tokio::time::Instant::now() + std::time::Duration::from_secs(seconds);
    while !holds() {
        assert!(tokio::time::Instant::now() < deadline, "not within {seconds}s: {what}");
        tokio::time::sleep(std::time::Duration::from_millis(5)).await;
    }
}

/// Short waits, for tests on the real clock.
fn quick() -> Timing {
    use std::time::Duration;
    Timing {
        call: Duration::from_secs(2),
        list_every: Duration::from_millis(200),
        retry_first: Duration::from_millis(20),
        retry_most: Duration::from_millis(100),
        ..Timing::default()
    }
}

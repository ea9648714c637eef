//! Once a second: end leases that have run out, close frontends that nobody has stood behind for the grace period.
use super::Mesh;
use stado_fleet::name::ServiceName;
use std::sync::Arc;
use std::time::Duration;

const PERIOD: Duration = Duration::from_secs(1);

impl Mesh {
    pub(super) fn start_sweeper(self: &Arc<Self>) {
        let (mesh, stop) = (Arc::downgrade(self), self.stop.clone());
        tokio::spawn(async move {
            loop {
                tokio::select! {
                    () = stop.cancelled() => return,
                    () = tokio::time::sleep(PERIOD) => {}
                }
                let Some(mesh) = mesh.upgrade() else { return };
                // While it is handed over nothing changes here.
                let Some(_turn) = mesh.changes.try_enter() else { continue };
                mesh.end_expired();
                mesh.close_idle().await;
                mesh.frontends.bind_missing(|name| mesh.current_backend(name));
            }
        });
    }

    /// The reaper. A reaped name stays listed, and its port stays reserved from other names. What other hosts dial is left
    /// alone: a port that is closed can be taken by a stranger, and they would be led to it.
    pub(super) async fn close_idle(&self) {
        let (grace, now) = (self.tuning().idle_grace, self.clock.now());
        if grace.is_zero() {
            return;
        }
        // Collected first: the frontends' lock comes before the core's, never inside it.
        let idle: Vec<ServiceName> = self.read().registry.idle(grace, now).cloned().collect();
        for name in idle.into_iter().filter(|name| self.frontends.addr(name).is_some() && !self.is_offered(name)) {
            self.close_one(&name).await;
        }
    }

    async fn close_one(&self, name: &ServiceName) {
        // A name that is being registered now is not idle.
        let Some(_turn) = self.names.try_lock(name.as_str()) else { return };
        let now = self.clock.now();
        let why = {
            let mut core = self.write();
            if !core.registry.idle(self.tuning().idle_grace, now).any(|idle| idle == name) {
                return;
            }
            let before = core.registry.get(name).map(|record| record.reason.to_string()).unwrap_or_default();
            let why = format!("{before}; its port is closed until a producer returns, and kept for it");
            core.registry.explain(name, &why);
            why
        };
        let runtime = self.frontends.take(name);
        tracing::info!(target: "stado::mesh", service = %name, reason = why, "frontend_idle_closed");
        self.retire(runtime).await;
        self.settle(name);
    }
}

//! Values that a reload of the configuration changes while the mesh runs.
use super::{Mesh, Tuning};
use std::sync::{Arc, PoisonError};

impl Mesh {
    /// The values in force.
    pub fn tuning(&self) -> Tuning {
        *self.tuning.read().unwrap_or_else(PoisonError::into_inner)
    }

    /// Puts other values in force: for new registrations and assignments, for the reaper, and for the stop. What is bound
    /// stays bound.
    pub fn tune(&self, to: Tuning) {
        *self.tuning.write().unwrap_or_else(PoisonError::into_inner) = to;
        self.allocator.set_range(to.ports);
    }

    /// Follows the configuration's own reloads for as long as both live.
    pub(super) fn follow_tuning(self: &Arc<Self>) {
        let Some(mut changes) = self.config.tuning.clone() else { return };
        let (mesh, stop) = (Arc::downgrade(self), self.stop.clone());
        tokio::spawn(async move {
            loop {
                let changed = tokio::select! {
                    () = stop.cancelled() => return,
                    changed = changes.changed() => changed,
                };
                let (Ok(()), Some(mesh)) = (changed, mesh.upgrade()) else { return };
                let to = *changes.borrow_and_update();
                mesh.tune(to);
            }
        });
    }
}

#[cfg(test)]
mod tests {
    use super::super::Config;
    use super::super::rig::{Home, context, register, request, until};
    use super::*;
    use std::time::Duration;

    #[tokio::test]
    async fn a_reload_changes_what_comes_and_leaves_what_is_bound() {
        let home = Home::new();
        let (tell, hear) = tokio::sync::watch::channel(home.config().tuning());
        let mesh = Mesh::start(Config { tuning: Some(hear), ..home.config() }, context()).unwrap();
        let before = register(&mesh, "a").await;
        let last = home.config().port_max;
        let to = Tuning { ports: (last, last), lease_ttl: Duration::from_secs(60), ..home.config().tuning() };
        assert_eq!(before.ttl_seconds, 15);
        assert_ne!(before.frontend.port, last);
        tell.send(to).unwrap();
        until("the values are in force", || mesh.tuning() == to).await;
        let after = register(&mesh, "b").await;
        assert_eq!(after.ttl_seconds, 60);
        assert_eq!(after.frontend.port, last);
        assert_eq!(mesh.resolve("a").unwrap().frontend, before.frontend);
        let full = mesh.register(request("c", 9), None).await.unwrap_err();
        assert_eq!(full.to_string(), format!("no free frontend port in range {last}-{last}"));
    }
}

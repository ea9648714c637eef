//! Renewals and ends of registrations. Each end names the publication that it ends, so that a stale goodbye, a late
//! heartbeat or an expired lease never hurts a successor.
use super::Mesh;
use super::error::Refusal;
use super::events::Event;
use super::frontends::Runtime;
use super::lease::Lease;
use stado_fleet::name::ServiceName;
use stado_fleet::wire::HeartbeatResponse;

impl Mesh {
    /// `POST /v1/registrations/{id}/heartbeat`: renews for the registration's own length.
    pub fn heartbeat(&self, id: &str, token: Option<&str>) -> Result<HeartbeatResponse, Refusal> {
        let now = self.clock.now();
        let renewed = self.write().leases.renew(id, token, now);
        self.metrics.heartbeat(renewed.is_ok());
        Ok(HeartbeatResponse { expires_at: now.text_after(renewed?) })
    }

    /// `DELETE /v1/registrations/{id}`.
    pub fn deregister(&self, id: &str, token: Option<&str>) -> Result<(), Refusal> {
        let now = self.clock.now();
        let (lease, current) = {
            let mut core = self.write();
            let lease = core.leases.surrender(id, token, now)?;
            let current = core.registry.withdraw(&lease.name, id, "its producer deregistered", now);
            (lease, current)
        };
        let event = if current { "service_backend_removed" } else { "stale_registration_deleted" };
        tracing::info!(target: "stado::mesh", service = %lease.name, registration_id = id, "{event}");
        if current {
            self.settle(&lease.name);
        }
        Ok(())
    }

    /// Ends a publication without a lease. `false`: it was not the current one any more, and nothing changed.
    pub fn withdraw(&self, name: &ServiceName, producer_id: &str, reason: &str) -> bool {
        let now = self.clock.now();
        let current = self.write().registry.withdraw(name, producer_id, reason, now);
        if current {
            tracing::info!(target: "stado::mesh", service = %name, producer_id, "service_backend_removed");
            self.settle(name);
        }
        current
    }

    /// Ends every lease that has run out.
    pub(super) fn end_expired(&self) {
        let now = self.clock.now();
        let ended: Vec<(Lease, bool)> = {
            let mut core = self.write();
            let over = core.leases.expire(now);
            let end = |lease: Lease| {
                let reason = "its producer stopped renewing the lease";
                let current = core.registry.withdraw(&lease.name, &lease.id, reason, now);
                (lease, current)
            };
            over.into_iter().map(end).collect()
        };
        for (lease, current) in ended {
            let event = if current { "lease_expired" } else { "stale_lease_expired" };
            tracing::info!(target: "stado::mesh", service = %lease.name, registration_id = lease.id, "{event}");
            self.metrics.expired();
            if current {
                self.settle(&lease.name);
            }
        }
    }

    /// A producer whose lease has run out does not hold the name until the next sweep.
    pub(super) fn end_lapsed(&self, name: &ServiceName) {
        let now = self.clock.now();
        let lapsed = {
            let core = self.read();
            core.registry.get(name).is_some_and(|record| core.leases.is_over(&record.producer_id, now))
        };
        if lapsed {
            self.end_expired();
        }
    }

    /// Says that a name is gone.
    pub(super) fn removed(&self, name: &ServiceName, renamed_to: Option<ServiceName>) {
        self.settle_host(name);
        self.events.send(|| Some(Event::Removed { name: name.clone(), renamed_to }));
    }

    /// Stops accepting on a frontend that is no longer wanted and frees its port. Its streams go on to their own ends.
    pub(super) async fn retire(&self, runtime: Option<Runtime>) {
        if let Some(runtime) = runtime {
            runtime.retire().await;
        }
    }
}

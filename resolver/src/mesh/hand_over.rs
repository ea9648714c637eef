//! A mesh that goes to another process of this user, and one that came from there.
use super::allocator::Allocator;
use super::clock::Clock;
use super::error::MeshError;
use super::handed::{Handed, HandedLease, HandedRecord, Strange};
use super::{Config, Mesh, owner_label};
use crate::conn::{self, Bound, Ending};
use stado_fleet::disk::Lock;
use stado_fleet::name::ServiceName;
use std::fs::File;
use std::io;
use std::net::SocketAddr;
use std::sync::{Arc, MutexGuard, PoisonError};
use std::time::Duration;

/// One address of a name, with its open listeners.
pub(crate) struct Lent {
    pub(crate) service: ServiceName,
    /// The address that people are given.
    pub(crate) addr: SocketAddr,
    /// The address of these listeners; another one on a further address of this machine.
    pub(crate) bind: SocketAddr,
    pub(crate) missing_half: Option<String>,
    pub(crate) listeners: Vec<conn::Lent>,
}

/// All listeners of a name that were taken up, and serve nobody yet.
#[derive(Debug)]
pub(crate) struct Parked {
    pub(crate) service: ServiceName,
    /// The address that people are given.
    pub(crate) addr: SocketAddr,
    pub(crate) bound: Vec<Bound>,
}

impl Mesh {
    /// Lets no more change in, and saves what is not saved yet. `false`: a change that is under way does not end.
    pub(crate) async fn freeze(&self, patience: Duration) -> bool {
        if !self.changes.freeze(patience).await {
            return false;
        }
        self.save_all().await;
        true
    }

    /// Accepts nothing more, and closes nothing: who comes is taken by the other process, as soon as that begins.
    pub(crate) fn hold_accepting(&self) {
        self.frontends.hold().hold();
    }

    /// Goes on as before a [`Mesh::freeze`] and a [`Mesh::hold_accepting`].
    pub(crate) fn thaw(&self) {
        self.own_lock();
        self.frontends.hold().release();
        self.changes.thaw();
    }

    /// Everything that another process needs besides the descriptors. Only a frozen mesh stays as it is told here.
    pub(crate) fn hand_out(&self) -> Handed {
        let core = self.read();
        let records = core.registry.iter().map(|(name, record)| (name.to_string(), HandedRecord::of(record)));
        Handed {
            tick: self.clock.now().tick,
            ports: self.ports.entries(),
            hosts: self.hosts.entries(),
            exposed: self.exposed.entries(),
            records: records.collect(),
            leases: core.leases.iter().map(|(lease, answer)| HandedLease::of(lease, answer)).collect(),
            refused: self.refused.borrow().clone(),
        }
    }

    /// The listeners of all names.
    pub(crate) fn lend(&self) -> Vec<Lent> {
        self.frontends.lend()
    }

    /// A copy of the lock of the state file: it is held for as long as any copy lives.
    pub(crate) fn lend_lock(&self) -> io::Result<File> {
        match &*self.held_lock() {
            Some(lock) => lock.file().try_clone(),
            None => Err(io::Error::other("another process has the state file already")),
        }
    }

    fn held_lock(&self) -> MutexGuard<'_, Option<Lock>> {
        self.lock.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A mesh that another process handed over, with its lock and listeners. It serves nobody and changes nothing before
    /// [`Mesh::begin`].
    pub(crate) fn take_up(
        config: Config,
        context: conn::Context,
        handed: Handed,
        lock: Lock,
        parked: Vec<Parked>,
    ) -> Result<Arc<Self>, MeshError> {
        config.validate()?;
        let allocator = Arc::new(Allocator::new(config.frontend_host, config.port_min, config.port_max));
        let mesh = Self::assemble(config, context, allocator, lock, Clock::at(handed.tick))?;
        mesh.ports.align(handed.ports);
        mesh.hosts.align(handed.hosts);
        mesh.exposed.align(handed.exposed);
        for (name, port) in mesh.ports.entries().into_iter().chain(mesh.exposed.entries()) {
            if let (Ok(name), Ok(port)) = (name.parse::<ServiceName>(), u16::try_from(port)) {
                mesh.allocator.reserve(port, &owner_label(&name));
            }
        }
        let strange =
            |why: Strange| MeshError::Config(format!("the mesh that was handed over is not understood: {why}"));
        for (name, record) in handed.records {
            let name: ServiceName = name.parse().map_err(|error| strange(format!("service {name:?}: {error}")))?;
            mesh.write().registry.take_up(name.clone(), record.record().map_err(strange)?);
            mesh.settle_host(&name);
        }
        for lease in handed.leases {
            let (lease, answer) = lease.lease().map_err(strange)?;
            mesh.write().leases.take_up(lease, answer);
        }
        mesh.set_refused(handed.refused);
        *mesh.parked.lock().unwrap_or_else(PoisonError::into_inner) = parked;
        Ok(mesh)
    }

    /// Begins to serve what was taken up: from now on this process is the mesh.
    pub(crate) fn begin(self: &Arc<Self>) {
        self.own_lock();
        let parked = std::mem::take(&mut *self.parked.lock().unwrap_or_else(PoisonError::into_inner));
        for Parked { service, addr, bound } in parked {
            let wanted = |bound: &Bound| bound.addr == addr || self.config.also_bind.contains(&bound.addr.ip());
            let bound: Vec<Bound> = bound.into_iter().filter(wanted).collect();
            self.frontends.run(&service, addr, bound, &self.current_backend(&service));
        }
        self.start_sweeper();
        self.follow_tuning();
        let mesh = self.clone();
        tokio::spawn(async move { mesh.save_all().await });
    }

    /// The lock names its holder.
    fn own_lock(&self) {
        if let Some(Err(error)) = self.held_lock().as_ref().map(Lock::record_pid) {
            tracing::warn!(target: "stado::mesh", error = %error, "state_lock_not_renewed");
        }
    }

    /// The other process serves: nothing is accepted, changed or saved here any more. Open streams go on.
    pub(crate) async fn leave(&self) -> Vec<Ending> {
        self.changes.give_away();
        self.stop.cancel();
        // The other process may end before the last stream does: whoever starts then must find it free.
        drop(self.held_lock().take());
        let retiring = self.frontends.take_all().into_iter().map(|runtime| runtime.retire());
        let ending = futures_util::future::join_all(retiring).await;
        ending.into_iter().flatten().filter(|ending| !ending.is_over()).collect()
    }

    /// Ends what containers published, because nobody watches them any more.
    pub(crate) fn abandon_containers(&self, reason: &str) {
        let containers: Vec<String> = {
            let core = self.read();
            let of = core.registry.iter().filter(|(_, record)| record.source == Some(super::Source::Docker));
            of.map(|(_, record)| record.producer_id.clone()).collect()
        };
        for id in containers {
            self.withdraw_producer(&id, reason);
        }
    }
}

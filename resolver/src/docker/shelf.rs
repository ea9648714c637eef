//! What is published in the mesh, led to what is wanted: one change of a name at a time, several names at once.
use super::plan::{Holder, Wanted};
use super::refusal::{Refusal, Why};
use crate::mesh::{Mesh, Publication, Refusal as MeshRefusal, Source, Standing};
use stado_fleet::name::ServiceName;
use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use tokio::task::JoinSet;

/// Publications under way at a time: each may bind ports and wait for the disk.
const AT_ONCE: usize = 8;

/// What is published, and what is to be.
#[derive(Debug)]
pub(super) struct Shelf {
    mesh: Arc<Mesh>,
    wanted: BTreeMap<ServiceName, Wanted>,
    have: BTreeMap<ServiceName, Wanted>,
    /// Who had names whose containers ended: another running container of that owner comes first.
    had: BTreeMap<ServiceName, Wanted>,
    failed: BTreeMap<ServiceName, Failed>,
    /// What is being published.
    busy: BTreeMap<ServiceName, Wanted>,
    jobs: JoinSet<Done>,
    /// Why containers that ended while they were being published have no services.
    farewells: HashMap<String, String>,
}

#[derive(Debug)]
struct Failed {
    wanted: Wanted,
    reason: String,
    retry: bool,
}

/// A publication that ended.
#[derive(Debug)]
pub(super) struct Done {
    name: ServiceName,
    wanted: Wanted,
    outcome: Result<(), MeshRefusal>,
}

impl Shelf {
    pub(super) fn new(mesh: Arc<Mesh>) -> Self {
        Self {
            mesh,
            wanted: BTreeMap::new(),
            have: BTreeMap::new(),
            had: BTreeMap::new(),
            failed: BTreeMap::new(),
            busy: BTreeMap::new(),
            jobs: JoinSet::new(),
            farewells: HashMap::new(),
        }
    }

    /// Who has `name`, is being given it, or had it last.
    pub(super) fn holder(&self, name: &ServiceName) -> Option<Holder<'_>> {
        let has = self.have.get(name).or_else(|| self.busy.get(name)).or_else(|| self.had.get(name))?;
        Some(Holder { container_id: &has.container_id, owner_key: &has.claim.owner_key })
    }

    /// What is wanted from now on.
    pub(super) fn want(&mut self, wanted: BTreeMap<ServiceName, Wanted>) {
        self.failed.retain(|name, failed| wanted.get(name) == Some(&failed.wanted));
        self.wanted = wanted;
        self.step();
    }

    /// A container ended: its services lose their backend at once. `false`: it had none, a successor has them.
    pub(super) fn gone(&mut self, id: &str, reason: &str) -> bool {
        self.mesh.withdraw_producer(id, reason);
        let before = self.have.len();
        let all = std::mem::take(&mut self.have).into_iter();
        let (gone, kept): (BTreeMap<_, _>, _) = all.partition(|(_, have)| have.container_id == id);
        self.have = kept;
        self.had.extend(gone);
        if !self.busy.is_empty() {
            self.farewells.insert(id.to_owned(), reason.to_owned());
        }
        before != self.have.len()
    }

    /// What was refused is tried again, and what the mesh lost is published again.
    pub(super) fn check(&mut self) {
        for failed in self.failed.values_mut() {
            failed.retry = true;
        }
        let (mesh, busy) = (&self.mesh, &self.busy);
        self.have.retain(|name, have| {
            let standing = mesh.standing(name, &have.container_id);
            let ready = have.claim.held.is_none();
            busy.contains_key(name)
                || standing == Standing::Ready && ready
                || standing == Standing::Unavailable && !ready
        });
        self.step();
    }

    /// Waits for a publication to end; for ever when none is under way.
    pub(super) async fn done(&mut self) -> Done {
        loop {
            match self.jobs.join_next().await {
                Some(Ok(done)) => return done,
                // A lost job would leave its name busy for ever; jobs do not panic, and end with the runtime.
                Some(Err(_)) => {}
                None => std::future::pending().await,
            }
        }
    }

    /// Enters what `done` came to.
    pub(super) fn enter(&mut self, done: Done) {
        let Done { name, wanted, outcome } = done;
        self.busy.remove(&name);
        match outcome {
            Ok(()) => {
                self.failed.remove(&name);
                self.mesh.annotate(&name, &wanted.container_id, note(&wanted).as_deref());
                self.had.remove(&name);
                self.have.insert(name, wanted);
            }
            Err(refusal) => {
                let reason = refusal.to_string();
                self.failed.insert(name, Failed { wanted, reason, retry: false });
            }
        }
        self.step();
    }

    /// What is served here and asks in vain to be offered to the fleet.
    pub(super) fn withheld(&self) -> impl Iterator<Item = Refusal> {
        let names = self.mesh.withheld();
        self.have.iter().filter(move |(name, have)| have.claim.publish && names.contains(name.as_str())).map(
            |(name, have)| Refusal {
                container_id: have.container_id.clone(),
                container: have.container.clone(),
                service: name.to_string(),
                label: String::new(),
                why: Why::Withheld,
            },
        )
    }

    /// What the mesh refuses.
    pub(super) fn refused(&self) -> impl Iterator<Item = Refusal> {
        self.failed.iter().map(|(name, failed)| Refusal {
            container_id: failed.wanted.container_id.clone(),
            container: failed.wanted.container.clone(),
            service: name.to_string(),
            label: String::new(),
            why: Why::Mesh(failed.reason.clone()),
        })
    }

    fn step(&mut self) {
        self.take_back();
        for (name, wanted) in &self.wanted {
            if self.busy.len() >= AT_ONCE {
                return;
            }
            let tried = self.failed.get(name).is_some_and(|failed| !failed.retry);
            if tried || self.busy.contains_key(name) || self.have.get(name).is_some_and(|have| same(have, wanted)) {
                continue;
            }
            self.busy.insert(name.clone(), wanted.clone());
            self.jobs.spawn(publish(self.mesh.clone(), name.clone(), wanted.clone()));
        }
        if self.busy.is_empty() {
            self.farewells.clear();
        }
        self.note_health();
    }

    /// Ends what is not wanted any more. A name that goes to another container is left to its publication, which takes it
    /// over without a gap; unless the owner is another: an owner does not take a ready name from another.
    fn take_back(&mut self) {
        let (mesh, wanted, busy, farewells) = (&self.mesh, &self.wanted, &self.busy, &self.farewells);
        self.have.retain(|name, have| {
            let next = wanted.get(name);
            let kept = next.is_some_and(|next| {
                next.claim.owner_key == have.claim.owner_key || next.container_id == have.container_id
            });
            if kept || busy.contains_key(name) {
                return true;
            }
            let unpublished = || format!("its container {} no longer publishes it", have.container);
            let reason = farewells.get(&have.container_id).cloned().unwrap_or_else(unpublished);
            mesh.withdraw(name, &have.container_id, &reason);
            false
        });
    }

    /// The health of a container that is served whatever it says.
    fn note_health(&mut self) {
        for (name, wanted) in &self.wanted {
            let Some(have) = self.have.get_mut(name).filter(|have| have.container_id == wanted.container_id) else {
                continue;
            };
            if have.claim.health != wanted.claim.health {
                have.claim.health = wanted.claim.health;
                self.mesh.annotate(name, &have.container_id, note(have).as_deref());
            }
        }
    }
}

/// Whether nothing is to be done in the mesh.
fn same(have: &Wanted, wanted: &Wanted) -> bool {
    let mut have = have.clone();
    have.claim.health = wanted.claim.health;
    have == *wanted
}

fn note(wanted: &Wanted) -> Option<String> {
    wanted.claim.health.map(|health| format!("container {} is {health}", wanted.container))
}

async fn publish(mesh: Arc<Mesh>, name: ServiceName, wanted: Wanted) -> Done {
    let claim = wanted.claim.clone();
    let preferred = i64::from(claim.preferred_port);
    let publication = Publication {
        name: claim.name,
        kind: claim.kind,
        app_protocol: claim.app_protocol,
        source: Source::Docker,
        owner_key: claim.owner_key,
        producer_id: wanted.container_id.clone(),
        container_id: wanted.container_id.clone(),
        backend: claim.backend,
        hostname: claim.http_host,
        publish: claim.publish,
    };
    let outcome = match &claim.held {
        None => mesh.publish(publication, preferred).await,
        Some(reason) => mesh.hold(publication, preferred, reason).await,
    };
    Done { name, wanted, outcome: outcome.map(|_| ()) }
}

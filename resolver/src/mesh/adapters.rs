//! What an adapter needs besides publishing: to ask after what it published, to end all of a producer, and to say what
//! it does not publish.
use super::Mesh;
use stado_fleet::name::ServiceName;
use stado_fleet::wire::RefusedList;
use tokio::sync::watch;

/// What the mesh knows of a publication.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Standing {
    /// It is the current one and has its backend.
    Ready,
    /// It is the current one, without a backend.
    Unavailable,
    /// The name has another producer, or is forgotten.
    Gone,
}

impl Mesh {
    /// How what `producer_id` published under `name` stands.
    pub fn standing(&self, name: &ServiceName, producer_id: &str) -> Standing {
        match self.read().registry.get(name).filter(|record| record.producer_id == producer_id) {
            None => Standing::Gone,
            Some(record) if record.backend.is_some() => Standing::Ready,
            Some(_) => Standing::Unavailable,
        }
    }

    /// Ends everything whose current producer is `producer_id`, under whatever name it is by now.
    pub fn withdraw_producer(&self, producer_id: &str, reason: &str) {
        let names = self.read().registry.names_of(producer_id);
        for name in names {
            if !self.withdraw(&name, producer_id, reason) && self.standing(&name, producer_id) == Standing::Unavailable
            {
                self.write().registry.explain(&name, reason);
                self.settle(&name);
            }
        }
    }

    /// Shows `note` beside what `producer_id` published under `name`.
    pub fn annotate(&self, name: &ServiceName, producer_id: &str, note: Option<&str>) {
        self.write().registry.note(name, producer_id, note);
    }

    /// Makes `list` what `GET /v1/refused` answers.
    pub fn set_refused(&self, list: RefusedList) {
        self.refused.send_if_modified(|held| {
            let changed = *held != list;
            *held = list;
            changed
        });
    }

    /// What an adapter was asked to publish and does not; changes can be waited for.
    pub fn refused(&self) -> watch::Receiver<RefusedList> {
        self.refused.subscribe()
    }
}

//! What a daemon tells the person, or the supervisor, that started it.
use crate::apply::report::FleetReport;
use crate::apply::state::Phase;
use std::path::PathBuf;

/// An event of a daemon's life.
#[derive(Debug, Clone)]
pub enum Announcement {
    /// It serves what it can: the control socket answers, frontends and adapters are bound. Once.
    Up(Served),
    /// The fleet side reached `serving` after it was announced otherwise, or again after a failed read.
    Serving(Served),
    /// The fleet side no longer is `serving`: a read failed, and it is tried again.
    Unwell(Served),
    /// It no longer accepts, and waits for this many open streams.
    Draining(usize),
    /// Another process was to be taken over, and none runs.
    NobodyToTakeOver,
    /// Everything was taken over from another process, before [`Announcement::Up`].
    TookOver {
        /// That process.
        pid: u32,
        /// Streams that it still has.
        streams: u64,
    },
    /// Another process serves from now on; this one waits for its open streams.
    HandedOver {
        /// That process.
        pid: u32,
        /// Open streams, as the other process tells them too.
        streams: u64,
    },
}

/// What is served.
#[derive(Debug, Clone)]
pub struct Served {
    /// Control socket of the mesh; `None` when the mesh is another daemon's, with the reason in `mesh_unserved`.
    pub socket: Option<PathBuf>,
    /// Why the mesh is not served here.
    pub mesh_unserved: Option<String>,
    /// Names of the mesh, with or without a backend.
    pub mesh_services: usize,
    /// Where the index of services is; `None` without a router.
    pub index: Option<String>,
    /// Why the router is not served, or not all of it, although it was asked for.
    pub router_unserved: Option<String>,
    /// The fleet side; `None` for a mesh alone.
    pub fleet: Option<FleetReport>,
    /// Where the registry is read from when nothing else is known.
    pub store_location: Option<String>,
    /// Where the gate listens.
    pub gate: Option<std::net::SocketAddr>,
    /// Where the object API is.
    pub object_api: Option<String>,
}

impl Served {
    /// Whether everything that was asked for is served.
    pub fn is_ready(&self) -> bool {
        let fleet = self.fleet.as_ref().is_none_or(|f| f.phase == Phase::Serving && f.unserved.is_empty());
        self.mesh_unserved.is_none() && self.router_unserved.is_none() && fleet
    }

    /// Whether the fleet side, if there is one, serves: from the registry, or from a directory that it still holds.
    pub fn is_serving(&self) -> bool {
        self.fleet.as_ref().is_none_or(|fleet| fleet.phase == Phase::Serving || fleet.generation.is_some())
    }

    /// Three lines for a person: the mesh, the fleet, and what to type next.
    pub fn lines(&self) -> [String; 3] {
        [self.mesh_line(), self.fleet_line(), self.next_line()]
    }

    fn mesh_line(&self) -> String {
        match (&self.socket, &self.mesh_unserved) {
            (Some(socket), _) => {
                let known = counted(self.mesh_services, "service");
                format!("mesh: {known} known, control socket {}{}", socket.display(), self.router_words())
            }
            (None, Some(reason)) => format!("mesh: not served by this daemon: {reason}"),
            (None, None) => "mesh: not served by this daemon".to_owned(),
        }
    }

    fn router_words(&self) -> String {
        let index = self.index.as_ref().map(|url| format!(", listed at {url}"));
        let unserved = self.router_unserved.as_ref().map(|why| format!("; {why}"));
        index.into_iter().chain(unserved).collect()
    }

    fn fleet_line(&self) -> String {
        let Some(fleet) = &self.fleet else {
            return "fleet: none; this daemon serves the mesh of this host alone".to_owned();
        };
        let api = fleet.api.map_or_else(|| "no resolution API".to_owned(), |bind| format!("resolution API on {bind}"));
        let objects = self.object_api.as_ref().map_or_else(String::new, |url| format!(", object API at {url}"));
        let api = api + &objects;
        let unserved = match fleet.unserved.len() {
            0 => String::new(),
            n => format!(", {n} unserved"),
        };
        match (fleet.phase, &fleet.target, fleet.generation) {
            (Phase::Serving, Some(target), Some(generation)) => format!(
                "fleet: target {target}, directory generation {generation}, {}{unserved}, {api}",
                counted(fleet.adapters, "adapter")
            ),
            (Phase::Serving, ..) => {
                let location = self.store_location.as_deref().unwrap_or("the local store");
                format!("fleet: no registry yet at {location}{unserved}, {api}")
            }
            (phase, ..) => {
                let reason = fleet.reason.as_deref().unwrap_or("no reason known");
                format!("fleet: {}: {reason}; {}{unserved}, {api}", phase.as_str(), counted(fleet.adapters, "adapter"))
            }
        }
    }

    fn next_line(&self) -> String {
        let no_registry = self.fleet.as_ref().is_some_and(|f| f.phase == Phase::Serving && f.target.is_none());
        let trouble = !self.is_ready();
        match (&self.socket, trouble) {
            (_, true) => "next: `stado resolver status` says what is missing and why".to_owned(),
            (Some(_), false) if self.fleet.is_none() => {
                "next: `devmesh register --name web --backend 127.0.0.1:3000` in another terminal".to_owned()
            }
            (Some(_), false) if no_registry => "next: `stado service register --name web --backend 127.0.0.1:3000` in \
                                                another terminal, or `stado fleet init` to join hosts"
                .to_owned(),
            _ => "next: `stado service list` and `stado service directory show` in another terminal".to_owned(),
        }
    }
}

fn counted(n: usize, what: &str) -> String {
    format!("{n} {what}{}", if n == 1 { "" } else { "s" })
}

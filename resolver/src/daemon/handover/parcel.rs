//! What one daemon hands to the next, and the messages around it. A change of anything here raises
//! [`HAND_OVER_VERSION`](crate::api::control::HAND_OVER_VERSION).
use crate::mesh::handed::Handed;
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use stado_fleet::ledger::{AnswersFile, Leaving, Wait};
use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

/// What a descriptor is for. A new kind of listener is one more variant here, an offer in `give`, and a claim in `unpack`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Role {
    /// A frontend of a service; `addr` is the address that people are given.
    Mesh { service: String, addr: SocketAddr },
    /// An adapter; `declared` is its bind in the registry.
    Adapter { service: String, consumer: String, declared: Option<SocketAddr> },
    /// The control socket.
    Control,
    /// The metrics page.
    Metrics,
    /// The resolution API.
    ResolutionApi,
    /// The gate.
    Gate,
    /// The object API.
    ObjectApi,
    /// A port of the HTTP router.
    Router,
    /// The lock of the mesh's state file.
    MeshLock,
    /// `resolver-state.lock`.
    ResolverLock,
}

/// Descriptors of one role and one address; their number is `count`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct Offer {
    pub(crate) role: Role,
    /// Where they listen, for TCP listeners.
    pub(crate) bind: Option<SocketAddr>,
    /// Why the other loopback family is not among them.
    pub(crate) missing_half: Option<String>,
    pub(crate) count: usize,
}

/// What the next daemon says of itself. Paths are compared, so that two homes never mix.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct Ask {
    pub(crate) pid: u32,
    pub(crate) version: String,
    pub(crate) mesh_state: PathBuf,
    pub(crate) frontend_host: std::net::IpAddr,
    /// `~/.stado`, of a daemon with a fleet side.
    pub(crate) fleet_home: Option<PathBuf>,
}

/// Everything but the descriptors.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct Parcel {
    pub(crate) pid: u32,
    pub(crate) version: String,
    pub(crate) mesh: Handed,
    /// Which of the router's ports a service manager opened.
    pub(crate) passed: Vec<SocketAddr>,
    /// Containers that were watched: id and name.
    pub(crate) containers: Vec<(String, String)>,
    pub(crate) fleet: Option<FleetParcel>,
}

/// The fleet side.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct FleetParcel {
    /// The registry in force.
    pub(crate) held: Option<HeldParcel>,
}

/// A snapshot in force.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct HeldParcel {
    pub(crate) document: String,
    pub(crate) store_version: String,
    pub(crate) loaded_at: Timestamp,
    /// How long ago its source confirmed it; `None` for a copy.
    pub(crate) age: Option<Duration>,
}

/// What a daemon that was taken over still serves.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct Remainder {
    pub(crate) leaving: Leaving,
    pub(crate) waits: Vec<Wait>,
    pub(crate) answers: AnswersFile,
}

/// What the process that comes says.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Comer {
    /// It wants everything.
    TakeOver(Ask),
    /// It has the last batch.
    Got,
    /// It has built all and waits for the word.
    Ready,
    /// It cannot.
    Refused { why: String },
    /// It serves and publishes.
    Running,
    /// It was taken over, and still serves this. Said first on a connection of its own, or after a hand-over on the same
    /// connection, by the one that gave.
    Remains(Remainder),
}

/// What the process that serves says.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Server {
    /// It cannot be taken over by this one; it keeps serving.
    Refused { why: String },
    /// What it knows.
    Parcel(Box<Parcel>),
    /// Descriptors, in the order of the offers.
    Batch { offers: Vec<Offer> },
    /// That was all.
    All,
    /// From now on the other one serves and publishes. What changed meanwhile comes with it.
    Go { last: Remainder, behind: Vec<Remainder> },
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_are_read_as_they_were_written() {
        let offer = Offer {
            role: Role::Adapter { service: "db".into(), consumer: "shop".into(), declared: None },
            bind: Some("127.0.0.1:15432".parse().unwrap()),
            missing_half: Some("[::1]:15432 is held by pid 7 (nginx)".into()),
            count: 1,
        };
        let batch = Server::Batch { offers: vec![offer] };
        let text = serde_json::to_string(&batch).unwrap();
        assert_eq!(serde_json::from_str::<Server>(&text).unwrap(), batch);
        let go = Server::Go { last: Remainder::default(), behind: vec![Remainder::default()] };
        assert_eq!(serde_json::from_str::<Server>(&serde_json::to_string(&go).unwrap()).unwrap(), go);
        assert!(serde_json::from_str::<Comer>(r#""dance""#).is_err());
    }
}

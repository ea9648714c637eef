//! Who is connected to a service, and who was (an addition of Stado).
use serde::{Deserialize, Serialize};

/// Answer of `GET /v1/services/{name}/connections`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct ConnectionList {
    /// Service.
    pub service: String,
    /// What was counted since the service's first frontend in this run.
    pub counters: ConnectionCounters,
    /// Open now, the oldest first.
    pub open: Vec<Connection>,
    /// Ended, the latest first; a bounded number.
    pub ended: Vec<Connection>,
}

/// Counters of one service, over all its frontends and consumers.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct ConnectionCounters {
    /// Connections that reached a backend.
    pub opened: u64,
    /// Connections now, including those still being opened.
    pub active: u64,
    /// Refused, by reason.
    pub refused: RefusedCounters,
    /// Ended because the directory of the fleet no longer allows them.
    pub withdrawn: u64,
    /// Bytes from clients.
    pub bytes_up: u64,
    /// Bytes to clients.
    pub bytes_down: u64,
}

/// Connections that were not carried, by reason.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct RefusedCounters {
    /// There was no backend.
    pub no_backend: u64,
    /// The service had as many connections as it may have.
    pub limit: u64,
    /// The backend, or the way to it, refused or stayed silent.
    pub unreachable: u64,
    /// The backend was an address of the daemon itself.
    #[serde(rename = "loop")]
    pub looped: u64,
}

/// One connection.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Connection {
    /// Address it came from.
    pub client: String,
    /// Consumer, on an adapter of the fleet.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub consumer: Option<String>,
    /// When it was accepted, RFC 3339.
    pub since: String,
    /// How long it has lasted, or lasted, in milliseconds.
    pub duration_ms: u64,
    /// Bytes from the client.
    pub bytes_up: u64,
    /// Bytes to the client.
    pub bytes_down: u64,
    /// `opening`, `open`, `done`, `refused`, `client_reset`, `service_reset`, `lingered`,
    /// `withdrawn` or `cut`.
    pub outcome: String,
    /// Why, where there is more to say.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// Who has to act, when it did not end well: `caller`, `credentials`, `this_host`, `remote`, `service` or `stado`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub blame: Option<String>,
    /// Where on the way to the service it failed: `adapter`, `session`, `channel` or `service`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hop: Option<String>,
}

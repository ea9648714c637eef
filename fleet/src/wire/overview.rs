//! Everything that one host serves, with what was counted (an addition of Stado): one answer for `stado status`, for
//! `stado top` and for the router's index.
use serde::{Deserialize, Serialize};

/// Answer of `GET /v1/overview`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Overview {
    /// When it was made, in milliseconds since 1970: rates are made of two overviews.
    pub at_ms: i64,
    /// The daemon's process.
    pub pid: u32,
    /// The HTTP router.
    pub router: RouterReport,
    /// Sorted by name; services of the mesh before adapters of the same name.
    pub services: Vec<Standing>,
}

/// Where the HTTP router listens.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct RouterReport {
    /// URL of the page that lists the services.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub index: Option<String>,
    /// Port of plain HTTP, while it is held.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub http: Option<u16>,
    /// Port of HTTPS, while it is held.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub https: Option<u16>,
    /// Why there is none, or not what was asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

/// One service, or one adapter of the fleet: how it stands now.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Standing {
    /// The same for as long as the service is known.
    pub id: String,
    /// Name.
    pub name: String,
    /// Who uses it, for an adapter.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub consumer: String,
    /// `mesh` or `fleet`.
    pub from: String,
    /// `http` or `tcp`.
    pub kind: String,
    /// `ready`, `unavailable`, or `unserved`.
    pub state: String,
    /// What a client connects to: a URL or host and port; empty while there is none.
    pub address: String,
    /// Where it stands now; empty while it does nowhere.
    pub place: String,
    /// Host of the fleet that it stands on, when that is another one.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub host: String,
    /// Since when the state holds, RFC 3339.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub since: String,
    /// Why it is not ready, or something else worth knowing.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub reason: String,
    /// The last thing that went wrong on the way to it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_error: Option<LastError>,
    /// What was counted.
    pub traffic: Traffic,
}

/// The last thing that went wrong on the way to a service.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct LastError {
    /// When, RFC 3339.
    pub at: String,
    /// Why, in words.
    pub cause: String,
    /// Where on the way to it: `adapter`, `session`, `channel` or `service`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hop: Option<String>,
}

/// Counted since the service became known; the reader makes rates of them.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Traffic {
    /// Answered requests, of an http service.
    pub requests: u64,
    /// Of them, answered with 500 or more.
    pub failed: u64,
    /// Connections that reached the backend.
    pub opened: u64,
    /// Requests and connections now.
    pub active: u64,
    /// Bytes to it.
    pub bytes_up: u64,
    /// Bytes from it.
    pub bytes_down: u64,
}

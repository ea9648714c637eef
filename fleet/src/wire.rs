//! Types of the local mesh API on the Unix socket (mesh contract §1.3). Field order is the order on the wire.
//! The client library needs only this module.
mod connections;
mod overview;

pub use connections::{Connection, ConnectionCounters, ConnectionList, RefusedCounters};
pub use overview::{LastError, Overview, RouterReport, Standing, Traffic};

use serde::{Deserialize, Serialize};

/// A frontend: `host` and `port` always present (`""` and `0` for http services), `url` only for http.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Frontend {
    /// Bound host.
    #[serde(default)]
    pub host: String,
    /// Bound port.
    #[serde(default)]
    pub port: u16,
    /// URL of an http service.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub url: String,
}

impl Frontend {
    /// What a person connects to: the URL, else `host:port`, else the empty text when there is no port.
    pub fn endpoint(&self) -> String {
        if !self.url.is_empty() {
            self.url.clone()
        } else if self.port == 0 {
            String::new()
        } else if self.host.contains(':') {
            format!("[{}]:{}", self.host, self.port)
        } else {
            format!("{}:{}", self.host, self.port)
        }
    }
}

/// A backend address as a producer wrote it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct BackendAddr {
    /// Host.
    #[serde(default)]
    pub host: String,
    /// Port.
    #[serde(default)]
    pub port: i64,
}

/// A service without backend internals.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Service {
    /// Name.
    pub name: String,
    /// `tcp` or `http`.
    pub kind: String,
    /// Display hint.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub app_protocol: String,
    /// `ready` or `unavailable`.
    pub status: String,
    /// Stable address.
    pub frontend: Frontend,
    /// Why the service is unavailable (an addition of Stado).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// Since when the status holds, RFC 3339 (an addition of Stado).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub since: Option<String>,
    /// Something worth knowing beside it: why an http service has no address now (an addition of Stado).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
}

impl Service {
    /// The address, which an http service has only while the router is there.
    ///
    /// # Errors
    /// Why there is none, in one sentence.
    pub fn address(&self) -> Result<String, String> {
        match self.frontend.endpoint() {
            endpoint if !endpoint.is_empty() => Ok(endpoint),
            _ => {
                let why = self.note.as_deref().unwrap_or("no address");
                Err(format!("service {} is {} and has {why}", self.name, self.status))
            }
        }
    }

    /// The service has a name and an address, and nothing behind it now: in one sentence.
    pub fn unavailable(&self) -> String {
        let why = self.reason.as_ref().map(|reason| format!(": {reason}")).unwrap_or_default();
        format!("service {} has no registered backend (status {}){why}", self.name, self.status)
    }
}

/// Answer of `GET /v1/services`.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct ServiceList {
    /// Sorted by name.
    pub services: Vec<Service>,
    /// The `?owner=` that was applied, so that a client can tell a daemon that does not know it (an addition of Stado).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub owner: Option<String>,
}

/// Answer of `GET /v1/services/{name}/inspect`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Inspect {
    /// Name.
    pub name: String,
    /// `tcp` or `http`.
    pub kind: String,
    /// Display hint.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub app_protocol: String,
    /// `ready` or `unavailable`.
    pub status: String,
    /// Stable address.
    pub frontend: Frontend,
    /// Current backend; absent when unavailable.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub backend: Option<BackendAddr>,
    /// `process`, `manual` or `docker`.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub source: String,
    /// Logical owner.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub owner_key: String,
    /// Concrete publication.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub producer_id: String,
    /// Container, docker only.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub docker_container_id: String,
    /// Hostname, http only.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub hostname: String,
    /// Where the way to it ends while it is unavailable: `service`, or `adapter` (an addition of Stado).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hop: Option<String>,
    /// Why the service is unavailable (an addition of Stado).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// Since when the status holds, RFC 3339 (an addition of Stado).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub since: Option<String>,
    /// Something worth knowing beside it, such as what a container's health check says (an addition of Stado).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
}

/// Answer of `GET /v1/refused` (an addition of Stado): what an adapter was asked to publish and does not.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct RefusedList {
    /// The container engine; absent when the adapter is off.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub docker: Option<EngineReport>,
    /// Sorted by container, then service.
    pub refused: Vec<Refused>,
}

/// Answer of `GET /v1/certificates` (an addition of Stado): what the HTTP router's certificates are.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct CertificateList {
    /// Whether HTTPS is served with them.
    pub served: bool,
    /// In the order in which they are looked through.
    pub certificates: Vec<Certificate>,
    /// Why HTTPS is not served although it was asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub refused: Option<String>,
}

/// One certificate of the HTTP router.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Certificate {
    /// Its file, or the folder of the local authority.
    pub source: String,
    /// What it is for; empty when nothing is loaded from it.
    pub names: Vec<String>,
    /// When it ends, RFC 3339.
    pub not_after: Option<String>,
    /// What is wrong with it, such as the error of the last reload, and what to do.
    pub problem: Option<String>,
    /// Since when, RFC 3339.
    pub since: Option<String>,
}

/// How the container engine is reached.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct EngineReport {
    /// `connected` or `degraded`.
    pub status: String,
    /// Since when, RFC 3339.
    pub since: String,
    /// Where it listens, as `DOCKER_HOST` writes it.
    pub endpoint: String,
    /// Its version, once it was reached.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub version: String,
    /// Whether it was reached at least once in this run.
    pub reached: bool,
    /// Why it is not reached.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
}

/// One thing that is not served.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Refused {
    /// `docker`.
    pub source: String,
    /// Service, as far as it is named.
    pub service: String,
    /// Container name.
    pub container: String,
    /// Container id.
    pub container_id: String,
    /// The label that is wrong, when one is.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub label: String,
    /// Why.
    pub reason: String,
    /// What to do.
    pub remedy: String,
    /// Since when, RFC 3339.
    pub since: String,
    /// The service is served on this host; what is asked for beside that is refused.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub served: bool,
}

impl Refused {
    /// What is refused, and why.
    pub fn sentence(&self) -> String {
        let what = if self.served { "offered to the fleet" } else { "served" };
        let named = if self.service.is_empty() { String::new() } else { format!(" as {}", self.service) };
        format!("is not {what}{named}: {}", self.reason)
    }
}

/// Body of `POST /v1/registrations`. The server reads it by its own strict, case-insensitive reader.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RegisterRequest {
    /// Name (required).
    #[serde(default)]
    pub name: String,
    /// `tcp` when empty.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub kind: String,
    /// Display hint.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub app_protocol: String,
    /// `process` when empty; or `manual`.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub source: String,
    /// Where the producer listens (required).
    #[serde(default)]
    pub backend: BackendAddr,
    /// Advisory frontend port.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub preferred_port: i64,
    /// Lease length in seconds; the daemon's default when zero or less.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub ttl_seconds: i64,
    /// Hostname of an http service.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub http_host: String,
}

fn is_zero(n: &i64) -> bool {
    *n == 0
}

/// Answer of `POST /v1/registrations`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct RegisterResponse {
    /// 24 characters `[0-9A-Z]`.
    #[serde(default)]
    pub registration_id: String,
    /// 64 lower-case hex characters; shown once.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub lease_token: String,
    /// Name.
    #[serde(default)]
    pub name: String,
    /// Stable address.
    #[serde(default)]
    pub frontend: Frontend,
    /// RFC 3339, UTC, whole seconds.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub expires_at: String,
    /// Effective lease length in seconds.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub ttl_seconds: i64,
}

/// Answer of a heartbeat.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct HeartbeatResponse {
    /// RFC 3339, UTC, whole seconds.
    #[serde(default)]
    pub expires_at: String,
}

/// Answer of `GET /v1/health`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Health {
    /// Always `ok`.
    pub status: String,
    /// Version of the daemon.
    pub version: String,
    /// `disabled`, `connected` or `degraded`.
    pub docker: String,
    /// Daemons that were taken over and still have streams (an addition of Stado).
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub leaving: Vec<Leaving>,
}

/// A daemon that another one took over from: it lives until its last stream ends.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Leaving {
    /// Process.
    pub pid: u32,
    /// Streams that are open.
    pub streams: u64,
    /// When it was taken over, RFC 3339.
    pub since: String,
}

/// The one error envelope: `{"error":{"code":…,"message":…}}`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ErrorEnvelope {
    /// The error.
    pub error: ApiError,
}

/// A stable code and a sentence; clients branch on the code only.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ApiError {
    /// Stable code (mesh contract §1.4).
    pub code: String,
    /// Sentence for people.
    pub message: String,
}

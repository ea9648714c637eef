//! The typed view of a valid registry (fleet contract §1). Shapes only: they are filled by `crate::validate`.
use crate::name::{ConnectionPath, ConsumerId, Endpoint, Generation, LogicalName, TargetName};
use indexmap::IndexMap;

/// The typed registry of a valid document. Built by [`crate::validate::validate`] only.
#[derive(Debug, Clone)]
pub struct Registry {
    /// Targets in document order.
    pub targets: IndexMap<TargetName, Target>,
    /// The service directory, when the document has one.
    pub directory: Option<ServiceDirectory>,
    /// Placement transactions by profile: services of these profiles are refused.
    pub transactions: Vec<PlacementTransaction>,
    /// Placement profiles by name → services.
    pub profiles: IndexMap<String, Vec<LogicalName>>,
    /// Who may follow the authority, and how often one has.
    pub succession: Succession,
}

/// `succession`, a key of ours: who may follow the authority, and how often one has. A registry without it is of epoch 0.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Succession {
    /// Raised by each promotion; a registry of an earlier epoch is that of an authority that was replaced.
    pub epoch: u64,
    /// Hosts that hold what the authority holds, and may be promoted.
    pub standbys: Vec<TargetName>,
    /// The authority of the epoch before.
    pub after: Option<TargetName>,
    /// When this epoch began, RFC 3339 UTC.
    pub since: Option<String>,
}

/// One host.
#[derive(Debug, Clone)]
pub struct Target {
    /// Identity.
    pub name: TargetName,
    /// `local`, `gcp` or `vast`.
    pub kind: String,
    /// Connection paths in order: `ssh` as `primary`, then the fallbacks.
    pub paths: Vec<ConnectionPath>,
    /// Declared hostnames (may carry a user part: `user@host`).
    pub hostnames: Vec<String>,
    /// Path of `stado` there (a key of ours), if declared.
    pub stado_command: Option<String>,
    /// Keys by which the host is known when it is reached (keys of ours), each as `type base64`.
    pub host_keys: Vec<String>,
    /// Keys with which its resolver comes in elsewhere (keys of ours), each as `type base64`.
    pub resolver_keys: Vec<String>,
    /// The resolver policy, when declared.
    pub resolver: Option<ResolverPolicy>,
}

/// `service_resolver` of a target (fleet contract §1.4).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ResolverPolicy {
    /// Resolution API.
    pub api_bind: std::net::SocketAddr,
    /// Seconds between reads, positive.
    pub refresh_seconds: u64,
    /// Seconds after which a directory is reported degraded.
    pub max_stale_seconds: u64,
    /// Adapters in document order.
    pub adapters: Vec<AdapterPolicy>,
}

/// One adapter of a resolver policy.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AdapterPolicy {
    /// Directory service.
    pub service: LogicalName,
    /// Consumer.
    pub consumer: ConsumerId,
    /// Declared bind; the allocator chooses and remembers one when absent (design, choices).
    pub bind: Option<std::net::SocketAddr>,
    /// Budget for dial or channel open; 10 s when absent.
    pub connect_seconds: Option<u64>,
    /// Present in the document: accepted, ignored, said once.
    pub idle_seconds: Option<u64>,
}

/// The `service_directory` block.
#[derive(Debug, Clone)]
pub struct ServiceDirectory {
    /// Who serves snapshots and takes writes.
    pub authority_target: TargetName,
    /// Absolute path of `stado` there.
    pub authority_command: String,
    /// Only ever rises.
    pub generation: Generation,
    /// Services in document order.
    pub services: IndexMap<LogicalName, DirectoryService>,
}

/// One service of the directory.
#[derive(Debug, Clone)]
pub struct DirectoryService {
    /// Where it is placed.
    pub active_host: TargetName,
    /// Addresses by host.
    pub endpoints: IndexMap<TargetName, Endpoint>,
    /// Authorized consumers → capabilities.
    pub consumers: IndexMap<ConsumerId, Vec<String>>,
    /// Placement profile, for placement-backed routes.
    pub placement_profile: Option<String>,
    /// What its active host says of it, when that host's mesh publishes it.
    pub published: Option<PublishedUnit>,
}

/// The unit of a service that a mesh publishes (keys of ours in `targets[].services`).
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct PublishedUnit {
    /// Name in the mesh of its host.
    pub mesh: String,
    /// Hostname, for a service that is routed by hostname.
    pub hostname: Option<String>,
    /// What it speaks; may be empty.
    pub app_protocol: String,
}

/// A placement in progress.
#[derive(Debug, Clone)]
pub struct PlacementTransaction {
    /// UUID text.
    pub id: String,
    /// Profile name.
    pub profile: String,
}

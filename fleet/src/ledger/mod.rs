//! The published files' types and their readers: state, waits, answers (fleet contract §4.6–4.8), routes.
mod publisher;
mod read;
mod refused;
mod routes;
mod silence;
mod waits;

pub use publisher::{Publisher, never_sentence, publisher};
pub use read::{answers, routes, waits};
pub use refused::RefusedRegistry;
pub use routes::{RouteFailure, RouteState};
pub use silence::{BEAT, behind_sentence, hung_sentence, unanswered_sentence};
pub use waits::{Held, UNDECLARED_REFRESH, blockers, held, overdue, wait_sentence, waited_seconds};

pub use crate::wire::Leaving;

use serde::{Deserialize, Deserializer, Serialize};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// Paths of the published files; siblings of the state file.
#[derive(Debug, Clone)]
pub struct PublishedPaths {
    /// `resolver-state.json`.
    pub state: PathBuf,
    /// `resolver-state.lock`.
    pub lock: PathBuf,
    /// `resolver-waiting.json`.
    pub waiting: PathBuf,
    /// `resolver-answers.json`.
    pub answers: PathBuf,
    /// `resolver-routes.json` (an addition of Stado).
    pub routes: PathBuf,
}
impl PublishedPaths {
    /// Derives all from the state file's path.
    pub fn beside(state: &Path) -> Self {
        Self {
            state: state.to_owned(),
            lock: state.with_file_name("resolver-state.lock"),
            waiting: state.with_file_name("resolver-waiting.json"),
            answers: state.with_file_name("resolver-answers.json"),
            routes: state.with_file_name("resolver-routes.json"),
        }
    }
}

/// An instant as the published files write it: RFC 3339 with microseconds and `+00:00`.
pub fn stamp(at: jiff::Timestamp) -> String {
    at.strftime("%Y-%m-%dT%H:%M:%S%.6f+00:00").to_string()
}

/// `resolver-state.json` (§4.6). Readers tolerate unknown and missing fields.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct ResolverState {
    /// When it was written, RFC 3339 with microseconds and `+00:00`.
    #[serde(deserialize_with = "null_is_missing")]
    pub updated_at: String,
    /// Target, null without one.
    pub target: Option<String>,
    /// Publishing process.
    #[serde(deserialize_with = "null_is_missing")]
    pub pid: u32,
    /// When that process took the lock; tells a restart under the same pid (an addition of Stado).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub started_at: Option<String>,
    /// Version of the publishing program; one that names it writes the file anew every [`BEAT`] at the latest (an addition of
    /// Stado).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub version: Option<String>,
    /// `starting`, `serving`, `backing_off`, `failed`.
    #[serde(deserialize_with = "null_is_missing")]
    pub state: String,
    /// Directory generation held.
    pub generation: Option<u64>,
    /// Store version held.
    pub store_version: Option<String>,
    /// When it was loaded.
    pub loaded_at: Option<String>,
    /// Why it is not serving.
    pub reason: Option<String>,
    /// Failed attempts in a row.
    #[serde(deserialize_with = "null_is_missing")]
    pub attempt: u64,
    /// When the next one is due.
    pub next_attempt_at: Option<String>,
    /// Why the last-known-good copy is not refreshed.
    pub last_good_refusal: Option<String>,
    /// Whether any listener is held.
    #[serde(deserialize_with = "null_is_missing")]
    pub listening: bool,
    /// Adapters that serve.
    #[serde(deserialize_with = "null_is_missing")]
    pub adapters: Vec<AdapterState>,
    /// Adapters (and other things) that do not, with reasons.
    #[serde(deserialize_with = "null_is_missing")]
    pub unserved: Vec<Unserved>,
    /// Resolution API that is bound (an addition of Stado).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub api_bind: Option<String>,
    /// Daemons that were taken over and still have streams (an addition of Stado).
    #[serde(deserialize_with = "null_is_missing", skip_serializing_if = "Vec::is_empty")]
    pub leaving: Vec<Leaving>,
    /// The process that is being taken over, until its pid is replaced in the lock: the state then belongs to the lock's
    /// holder although the pids differ (an addition of Stado).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub took_over_from: Option<u32>,
    /// Things worth saying that make nothing unserved: a half-bound frontend, an ignored key (an addition of Stado).
    #[serde(deserialize_with = "null_is_missing", skip_serializing_if = "Vec::is_empty")]
    pub warnings: Vec<String>,
    /// How streams reach each host that was asked for (an addition of Stado).
    #[serde(deserialize_with = "null_is_missing", skip_serializing_if = "Vec::is_empty")]
    pub links: Vec<LinkState>,
    /// Where the object API is that the daemon serves (an addition of Stado).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub object_api: Option<String>,
    /// The index of what is served by hostname, where the router runs (an addition of Stado).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub index: Option<String>,
    /// How changes of the registry are heard of: `watched`, or `read every refresh_seconds: <why>` (an addition of Stado).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub changes: Option<String>,
    /// Authority epoch of the registry held, from 1 on (an addition of Stado).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub epoch: Option<u64>,
    /// The registry that was read last and is not taken into force (an addition of Stado).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub refused: Option<RefusedRegistry>,
}
/// How streams reach a host.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct LinkState {
    /// Host.
    pub host: String,
    /// `multiplex` or `direct-tcpip`.
    pub carrier: String,
    /// Connection path of its session.
    pub path: String,
    /// Why it is not the multiplex, or what is odd about it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// Round trip in microseconds, once measured.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rtt_us: Option<u64>,
    /// Streams open in the multiplex.
    pub streams: u64,
}
/// A served adapter.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct AdapterState {
    /// Service.
    pub service: String,
    /// Consumer.
    pub consumer: String,
    /// `ip:port`.
    pub bind: String,
}
/// An adapter that is not served.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Unserved {
    /// Service (`mesh` for the mesh as a whole).
    pub service: String,
    /// Consumer.
    pub consumer: String,
    /// `ip:port`.
    pub bind: String,
    /// Why, in words a person can act on.
    pub reason: String,
    /// Since when (an addition of Stado).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub since: Option<String>,
    /// The directory leads the service back to an address of this resolver: whoever answers there is not the service (an
    /// addition of Stado).
    #[serde(deserialize_with = "null_is_missing", skip_serializing_if = "std::ops::Not::not")]
    pub led_back: bool,
}
/// One wait (§4.7).
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Wait {
    /// Service.
    pub service: String,
    /// Consumer.
    pub consumer: String,
    /// Adapter's bind.
    pub bind: String,
    /// Destination host.
    pub active_host: String,
    /// Destination endpoint `host:port`.
    pub endpoint: String,
    /// RFC 3339.
    pub since: String,
    /// `open` or `answer`; missing reads as `open`.
    #[serde(default = "open_phase")]
    pub phase: String,
    /// Address the client connected from.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub client: Option<String>,
    /// First request line.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub request: Option<String>,
}
/// One service's row of `resolver-answers.json` (§4.8); the file is an object keyed by service.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Answers {
    /// Last first byte of an answer.
    pub last_answered_at: Option<String>,
    /// First request that ended without an answer since then.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub first_unanswered_at: Option<String>,
    /// Latest such request.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_unanswered_at: Option<String>,
}
/// The whole answers file.
pub type AnswersFile = BTreeMap<String, Answers>;

/// Older publishers write null where they have nothing to say.
fn null_is_missing<'de, D: Deserializer<'de>, T: Deserialize<'de> + Default>(from: D) -> Result<T, D::Error> {
    Ok(Option::deserialize(from)?.unwrap_or_default())
}

fn open_phase() -> String {
    "open".into()
}

#[cfg(test)]
mod tests;

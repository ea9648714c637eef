//! What a daemon is started with. Values only: layers, environment and homes belong to the command line.
use super::identity::Host;
use crate::api::object;
use crate::{bridge, docker, gate, http, mesh};
use stado_fleet::authority::Refusals;
use stado_fleet::ledger::PublishedPaths;
use stado_fleet::link::LinkConfig;
use stado_fleet::name::TargetName;
use stado_fleet::store::RegistryStore;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;

/// One daemon.
#[derive(Debug, Clone)]
pub struct Config {
    /// The mesh of this host.
    pub mesh: mesh::Config,
    /// Where the metrics are served besides the control socket; a loopback address.
    pub metrics_bind: Option<SocketAddr>,
    /// The container adapter of the mesh; `None` is off.
    pub docker: Option<docker::Config>,
    /// The HTTP router of the mesh; `None` is off.
    pub http: Option<http::HttpConfig>,
    /// Sockets that a service manager opened for the router.
    pub inherited: http::Inherited,
    /// The fleet side; `None` is the mesh alone (`devmeshd`), which never touches `~/.stado`.
    pub fleet: Option<FleetConfig>,
    /// Version that the APIs report.
    pub version: &'static str,
    /// Whether everything is taken over from the daemon of this home, if one runs.
    pub take_over: bool,
}

/// The fleet side of a daemon.
#[derive(Debug, Clone)]
pub struct FleetConfig {
    /// `~/.stado`.
    pub home: PathBuf,
    /// `STADO_TARGET`, or `target` of the configuration: who this host is.
    pub target: Option<TargetName>,
    /// `--target`: who it has to be.
    pub asked: Option<TargetName>,
    /// The machine's hostname.
    pub hostname: String,
    /// The account this runs under.
    pub user: String,
    /// The registry store of this host.
    pub store: Arc<dyn RegistryStore>,
    /// `storage.stado.url`, when configured (§4.2).
    pub store_url: Option<String>,
    /// Keys, host keys and deadlines of the SSH link.
    pub link: LinkConfig,
    /// `api_bind` of `config.json`; outranks the registry's.
    pub api_bind: Option<SocketAddr>,
    /// The gate, when `gate.bind` is configured.
    pub gate: Option<gate::Config>,
    /// Where hosts of the fleet come in over sshd, when `sshd.authorized_keys` is configured.
    pub account: Option<stado_fleet::join::Account>,
    /// The object API, when the daemon serves it (`object_api.serve`); an error is why its configuration cannot be used.
    pub objects: Option<Result<object::Config, String>>,
    /// What this host's containers may publish.
    pub publish: bridge::Policy,
    /// Where state, waits, answers and the lock are.
    pub paths: PublishedPaths,
    /// Where the forward markers are.
    pub forwards_dir: PathBuf,
    /// Where reads that the authority did not answer are recorded (§3.2), when this host has a local store for it.
    pub refusals: Option<Refusals>,
}

impl FleetConfig {
    /// What is known about this host.
    pub fn host(&self) -> Host {
        Host {
            target: self.target.clone(),
            asked: self.asked.clone(),
            hostname: self.hostname.clone(),
            user: self.user.clone(),
        }
    }
}

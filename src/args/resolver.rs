use super::MeshFlags;
use clap::{Args, Subcommand, ValueEnum};

/// Where a port is set that no flag sets.
pub(super) const API_BIND: &str = "The resolution API has no flag: it listens at `api_bind` of ~/.stado/config.json, else at \
     `service_resolver.api_bind` of this host in the registry, else on 127.0.0.1:17600. `stado resolver api-reassign` moves the \
     registry's.";

/// `stado resolver …`.
#[derive(Debug, Subcommand)]
pub enum ResolverCommand {
    /// Run the daemon of this host until it is told to stop
    #[command(after_help = API_BIND)]
    Serve(Box<ResolverServe>),
    /// Stop the resolver of this home: open streams may end first, a second stop ends them
    Stop(LifeArgs),
    /// Let the resolver of this home end its streams and run its command again, with a new binary if there is one
    Restart(LifeArgs),
    /// Let the service manager of this machine run the daemon: writes its unit, and starts it
    Install(InstallArgs),
    /// Stop the daemon that `install` made the service manager run, and remove its unit
    Uninstall(UninstallArgs),
    /// Whether this host's routes work, and what stands in their way; exit 0 only when ready
    Status(StatusArgs),
    /// Ask the directory for one service as one consumer
    Resolve(DirectoryResolveArgs),
    /// Give the resolution API of a host another port, one that is free there
    ApiReassign(ApiReassignArgs),
    /// Print the registry and its store version on one line (run by other hosts over SSH)
    #[command(hide = true)]
    Snapshot(SnapshotArgs),
    /// Carry streams to services of this host over standard input and output (run by other hosts over SSH)
    #[command(hide = true)]
    Relay(RelayArgs),
    /// Tell each stored version of the registry as it comes (run by other hosts over SSH)
    #[command(hide = true)]
    Watch,
}

/// `resolver relay`.
#[derive(Debug, Clone, Args)]
pub struct RelayArgs {
    /// The key of the host that asks, where it is known
    #[arg(long)]
    pub key: Option<String>,
}

/// `resolver api-reassign`.
#[derive(Debug, Clone, Args)]
pub struct ApiReassignArgs {
    /// The host
    #[arg(long, value_name = "NAME")]
    pub target: String,
    /// One JSON document
    #[arg(long)]
    pub json: bool,
}

/// `resolver snapshot`.
#[derive(Debug, Clone, Default, Args)]
pub struct SnapshotArgs {
    /// Only that nothing changed, when the store still is at this version
    #[arg(long, value_name = "G")]
    pub if_newer_than: Option<String>,
}

/// `resolver serve`.
#[derive(Debug, Clone, Default, Args)]
pub struct ResolverServe {
    /// Serve only if this host has this name in the registry [who it is: STADO_TARGET, else by hostname]
    #[arg(long, value_name = "NAME")]
    pub target: Option<String>,
    #[command(flatten)]
    pub mesh: MeshFlags,
}

/// `serve --resolver`.
#[derive(Debug, Clone, Args)]
pub struct CombinedServe {
    /// The role to run
    #[arg(long, required = true)]
    pub resolver: bool,
    /// Find this host in the registry by its hostname (the default)
    #[arg(long, conflicts_with = "target")]
    pub auto: bool,
    #[command(flatten)]
    pub serve: ResolverServe,
}

/// `resolver stop` and `resolver restart`.
#[derive(Debug, Clone, Args)]
pub struct LifeArgs {
    /// Give up waiting after this long; what was asked for still happens
    #[arg(long = "for", default_value = "30s", value_name = "DURATION")]
    pub limit: String,
}

/// Which service manager, and whose.
#[derive(Debug, Clone, Default, Args)]
pub struct ManagerArgs {
    /// The machine's own manager instead of this account's: runs from boot on, and needs root
    #[arg(long)]
    pub system: bool,
    /// Manager to write for [default: this machine's own]
    #[arg(long, value_enum)]
    pub manager: Option<ServiceManager>,
}

/// Managers that are written for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum ServiceManager {
    /// Linux
    Systemd,
    /// macOS
    Launchd,
}

/// `resolver install`.
#[derive(Debug, Clone, Default, Args)]
pub struct InstallArgs {
    #[command(flatten)]
    pub manager: ManagerArgs,
    /// With --system: account that the daemon runs as [default: the one that called sudo]
    #[arg(long, value_name = "ACCOUNT", requires = "system")]
    pub run_as: Option<String>,
    /// Serve only if this host has this name in the registry, as `resolver serve --target`
    #[arg(long, value_name = "NAME")]
    pub target: Option<String>,
    /// Variable that the daemon gets with the value that it has here; may be given several times. Whoever may read the unit
    /// may read it
    #[arg(long = "env", value_name = "NAME")]
    pub variables: Vec<String>,
    /// Print the unit and change nothing
    #[arg(long)]
    pub print: bool,
    /// Write the unit and start nothing
    #[arg(long)]
    pub no_start: bool,
    /// Further arguments of `resolver serve`
    #[arg(last = true, value_name = "ARGUMENT")]
    pub arguments: Vec<String>,
}

/// `resolver uninstall`.
#[derive(Debug, Clone, Default, Args)]
pub struct UninstallArgs {
    #[command(flatten)]
    pub manager: ManagerArgs,
}

/// `resolver status`.
#[derive(Debug, Clone, Default, Args)]
pub struct StatusArgs {
    /// Host to report on [default: the one that published, else this one]
    #[arg(long, value_name = "NAME")]
    pub target: Option<String>,
    /// One JSON document
    #[arg(long)]
    pub json: bool,
    /// Show it again every so many seconds until it is ended; with --json one document a line
    #[arg(long, value_name = "SECONDS", num_args = 0..=1, require_equals = true, default_missing_value = "2",
          value_parser = clap::value_parser!(u64).range(1..=3600))]
    pub watch: Option<u64>,
}

/// `resolver resolve`.
#[derive(Debug, Clone, Args)]
pub struct DirectoryResolveArgs {
    /// Logical name, or stado://service/<name>
    pub service: String,
    /// Who asks
    #[arg(long)]
    pub consumer: String,
    /// One JSON document
    #[arg(long)]
    pub json: bool,
}

//! The clap tree of the three binaries, and nothing else: no defaults that come from files or the environment, no I/O.
#![allow(rustdoc::broken_intra_doc_links, rustdoc::invalid_html_tags, reason = "these comments are help texts")]
use clap::{Args, Parser, Subcommand, ValueEnum};
use std::path::PathBuf;

mod bridge;
mod database;
mod directory;
mod doctor;
mod fleet;
mod host;
mod mesh;
mod placement;
mod registry;
mod resolver;
mod route;
mod service;
mod shell;
mod status;
mod storage;
mod support;
mod tls;
mod vault;

pub use bridge::*;
pub use database::*;
pub use directory::*;
pub use doctor::*;
pub use fleet::*;
pub use host::*;
pub use mesh::*;
pub use placement::*;
pub use registry::*;
pub use resolver::*;
pub use route::*;
pub use service::*;
pub use shell::*;
pub use status::*;
pub use storage::*;
pub use support::*;
pub use tls::*;
pub use vault::*;

/// The version, with what it was built from.
const BUILD: &str = concat!(
    env!("CARGO_PKG_VERSION"),
    "\ncommit   ",
    env!("STADO_BUILD_COMMIT"),
    "\nprofile  ",
    env!("STADO_BUILD_PROFILE"),
    "\ntarget   ",
    env!("STADO_BUILD_TARGET"),
    "\ncompiler ",
    env!("STADO_BUILD_RUSTC"),
);

/// `stado`: everything.
#[derive(Debug, Parser)]
#[command(name = "stado", version, long_version = BUILD, about = "Connect by name: one stable local address per service, wherever it runs")]
#[command(subcommand_required = true, arg_required_else_help = true, disable_help_subcommand = true)]
pub struct Stado {
    #[command(flatten)]
    pub log: LogArgs,
    #[command(subcommand)]
    pub command: StadoCommand,
}

/// Groups of `stado`.
#[derive(Debug, Subcommand)]
pub enum StadoCommand {
    /// The daemon of this host, and what it knows
    #[command(subcommand)]
    Resolver(ResolverCommand),
    /// The same as `resolver serve` (with --resolver)
    #[command(after_help = resolver::API_BIND)]
    Serve(Box<CombinedServe>),
    /// Begin a fleet, let hosts in, join one, leave it
    #[command(subcommand)]
    Fleet(FleetCommand),
    /// The fleet's one document
    #[command(subcommand)]
    Registry(RegistryCommand),
    /// Services of this host, and where the fleet's services live
    #[command(subcommand)]
    Service(ServiceCommand),
    /// Forward markers of this host: files with the address of a service, for programs that read them
    #[command(subcommand)]
    Route(RouteCommand),
    /// Services on the move between hosts
    #[command(subcommand)]
    Placement(PlacementCommand),
    /// This host's store, for others
    #[command(subcommand)]
    Storage(StorageCommand),
    /// The hosts of the fleet: what they have, whether they answer
    #[command(subcommand)]
    Host(HostVerb),
    /// Databases by name, and who may use them
    #[command(subcommand)]
    Database(DatabaseCommand),
    /// Certificates for local names
    #[command(subcommand)]
    Tls(TlsCommand),
    /// Secrets of this host, encrypted, for consumers that were granted them
    #[command(subcommand)]
    Vault(VaultCommand),
    /// Check this host: daemon, loopback, registry, and what is placed here
    Doctor(Box<DoctorArgs>),
    /// Everything of this host on one screen, worst first; exit 0 when nothing has to be put right
    Status(OverviewArgs),
    /// The same as it changes: routes, rates, waits and sessions in this terminal; `?` explains the keys
    Top(TopArgs),
    /// For those who are to help
    #[command(subcommand)]
    Support(SupportCommand),
    /// Print the function that completes commands and names in a shell
    Completions(CompletionsArgs),
    /// Print a manual page, or write all of them
    Man(ManArgs),
}

/// `devmesh`: the commands of the local mesh.
#[derive(Debug, Parser)]
#[command(name = "devmesh", version, about = "Register local services and find their stable addresses")]
#[command(subcommand_required = true, arg_required_else_help = true, disable_help_subcommand = true)]
pub struct Devmesh {
    #[command(flatten)]
    pub log: LogArgs,
    #[command(subcommand)]
    pub command: DevmeshCommand,
}

/// Commands of `devmesh`.
#[derive(Debug, Subcommand)]
pub enum DevmeshCommand {
    /// List, resolve and inspect services
    #[command(subcommand)]
    Services(ServicesCommand),
    /// Register a backend under a name, and keep it registered until interrupted
    Register(RegisterArgs),
    /// Ask the daemon how it is
    Health(RowsArgs),
    /// Check this host: daemon, socket, loopback
    Doctor(RowsArgs),
}

/// `devmesh services …`.
#[derive(Debug, Subcommand)]
pub enum ServicesCommand {
    /// List services and their stable addresses
    List(ListArgs),
    /// Print the stable address of one service
    Resolve(ResolveArgs),
    /// Show what stands behind one service
    Inspect(NamedArgs),
}

/// `devmeshd`: the mesh alone.
#[derive(Debug, Parser)]
#[command(name = "devmeshd", version, about = "The daemon of the local mesh")]
#[command(subcommand_required = true, arg_required_else_help = true, disable_help_subcommand = true)]
pub struct Devmeshd {
    #[command(flatten)]
    pub log: LogArgs,
    #[command(subcommand)]
    pub command: DevmeshdCommand,
}

/// The only command of `devmeshd`.
#[derive(Debug, Subcommand)]
pub enum DevmeshdCommand {
    /// Run the daemon until it is told to stop
    Serve(MeshFlags),
}

/// Logs, on every command.
#[derive(Debug, Clone, Default, Args)]
pub struct LogArgs {
    /// Least severe level that is logged [default: info for daemons, warn for other commands]
    #[arg(long, global = true, value_enum)]
    pub log_level: Option<LogLevel>,
    /// Shape of the log lines
    #[arg(long, global = true, value_enum)]
    pub log_format: Option<LogFormat>,
    /// Write the log to this file instead of standard error; the date is added to its name when it is rotated
    #[arg(long, global = true, value_name = "PATH")]
    pub log_file: Option<PathBuf>,
    /// When a new log file is begun [default: daily]
    #[arg(long, global = true, value_enum, requires = "log_file")]
    pub log_rotate: Option<LogRotate>,
    /// Log files that are kept, the current one included [default: 7]
    #[arg(long, global = true, value_name = "N", requires = "log_file", value_parser = clap::value_parser!(u16).range(1..))]
    pub log_keep: Option<u16>,
}

/// Levels of the log.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum LogLevel {
    Error,
    Warn,
    Info,
    Debug,
    Trace,
}

/// Shapes of a log line.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum LogFormat {
    /// Lines for people
    Text,
    /// One JSON object a line
    Json,
}

/// When a log file is closed and a new one begun.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum LogRotate {
    /// One file, under exactly the given name
    Never,
    /// Every hour
    Hourly,
    /// Every day
    Daily,
}

/// How to reach the daemon of this host.
#[derive(Debug, Clone, Default, Args)]
pub struct DaemonArgs {
    /// Control socket of the daemon [env: DEVMESH_SOCKET; default: ~/.devmesh/run/devmesh.sock]
    #[arg(long, value_name = "PATH")]
    pub socket: Option<PathBuf>,
    /// How long one request may take, like 5s or 500ms [env: DEVMESH_TIMEOUT; default: 5s]
    #[arg(long, value_name = "DURATION")]
    pub timeout: Option<String>,
}

/// How rows are printed.
#[derive(Debug, Clone, Default, Args)]
pub struct OutputArgs {
    /// Shape of the output
    #[arg(long, value_enum, default_value_t = Format::Table)]
    pub format: Format,
    /// Only these columns, in this order
    #[arg(long, value_delimiter = ',', value_name = "NAMES")]
    pub output_fields: Vec<String>,
    /// At most this many rows; 0 is unlimited
    #[arg(long, default_value_t = 0, value_name = "N")]
    pub max_output_rows: usize,
}

/// Shapes of structured output.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
pub enum Format {
    #[default]
    Table,
    Json,
    Jsonl,
    Csv,
    Tsv,
    Yaml,
}

/// A command that asks the daemon and prints rows.
#[derive(Debug, Clone, Default, Args)]
pub struct RowsArgs {
    #[command(flatten)]
    pub daemon: DaemonArgs,
    #[command(flatten)]
    pub output: OutputArgs,
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;

    #[test]
    fn the_three_trees_are_consistent() {
        Stado::command().debug_assert();
        Devmesh::command().debug_assert();
        Devmeshd::command().debug_assert();
    }

    #[test]
    fn serve_with_the_role_flag_is_the_resolver() {
        let parsed = Stado::try_parse_from(["stado", "serve", "--resolver", "--target", "a", "--lease-ttl", "20s"]);
        let StadoCommand::Serve(serve) = parsed.unwrap().command else { panic!("not serve") };
        assert_eq!(serve.serve.target.as_deref(), Some("a"));
        assert_eq!(serve.serve.mesh.lease_ttl.as_deref(), Some("20s"));
    }

    #[test]
    fn a_negative_row_limit_is_refused() {
        assert!(Devmesh::try_parse_from(["devmesh", "services", "list", "--max-output-rows", "-1"]).is_err());
        assert!(Devmesh::try_parse_from(["devmesh", "services", "list", "--max-output-rows=-1"]).is_err());
    }

    #[test]
    fn bool_flags_take_an_optional_value() {
        let value = |text: &[&str]| {
            let all = ["devmeshd", "serve"].iter().chain(text);
            let DevmeshdCommand::Serve(flags) = Devmeshd::try_parse_from(all).unwrap().command;
            flags.docker_enabled
        };
        assert_eq!(value(&[]), None);
        assert_eq!(value(&["--docker-enabled"]).as_deref(), Some("true"));
        assert_eq!(value(&["--docker-enabled=false"]).as_deref(), Some("false"));
    }

    #[test]
    fn prune_cannot_be_scoped_is_left_to_the_verb() {
        let line = ["stado", "service", "directory", "publish", "--prune", "--service", "x"];
        assert!(Stado::try_parse_from(line).is_ok());
    }
}

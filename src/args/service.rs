use super::{
    DaemonArgs, DirectoryCommand, MoveArgs, OutputArgs, RowsArgs, ServicePublishArgs, UnpublishArgs, UnuseArgs, UseArgs,
};
use clap::{Args, Subcommand, ValueEnum};

/// `stado service …`.
#[derive(Debug, Subcommand)]
pub enum ServiceCommand {
    /// Register a backend under a name, and keep it registered until interrupted
    Register(RegisterArgs),
    /// List services and their stable addresses
    List(ListArgs),
    /// Print the stable address of one service
    Resolve(ResolveArgs),
    /// Show what stands behind one service
    Inspect(NamedArgs),
    /// Show who is connected to one service, who was, and what was refused
    Connections(ConnectionsArgs),
    /// Wait until a service has a backend, and print its stable address
    Wait(WaitArgs),
    /// Run a program as a service: it is given a port, registered when it listens, and unregistered when it ends
    Run(RunArgs),
    /// Print stable addresses as variables: for a shell, a .env file or Compose
    Env(EnvArgs),
    /// Forget a service that has no backend, and free its port
    Forget(ForgetArgs),
    /// Give a service a chosen port
    Pin(PinArgs),
    /// Give a service another name; its port goes with it
    Rename(RenameArgs),
    /// Offer a service of this host to the other hosts of the fleet
    Publish(ServicePublishArgs),
    /// Take back what this host offered
    Unpublish(UnpublishArgs),
    /// Give this host an address for a service of the fleet
    Use(UseArgs),
    /// Take that address back
    Unuse(UnuseArgs),
    /// Move a published service to another host that publishes it too
    Move(MoveArgs),
    /// Ask the daemon how it is
    Health(RowsArgs),
    /// Where the fleet's services live
    #[command(subcommand)]
    Directory(DirectoryCommand),
}

/// `register`.
#[derive(Debug, Clone, Args)]
pub struct RegisterArgs {
    /// Name of the service
    #[arg(long)]
    pub name: String,
    /// Where it listens now, host:port on loopback
    #[arg(long, value_name = "HOST:PORT")]
    pub backend: String,
    /// tcp or http
    #[arg(long, default_value = "tcp")]
    pub kind: String,
    /// What it speaks, for people and listings
    #[arg(long, default_value = "")]
    pub app_protocol: String,
    /// Hostname of an http service [default: <name with hyphens>.localhost]
    #[arg(long, default_value = "")]
    pub http_host: String,
    /// Port wished for the stable address
    #[arg(long, default_value_t = 0, allow_negative_numbers = true, value_name = "PORT")]
    pub preferred_port: i64,
    /// Lease in seconds, 3 to 3600
    #[arg(long, default_value_t = 15, allow_negative_numbers = true, value_name = "SECONDS")]
    pub ttl: i64,
    /// Register once and exit; the lease runs out by itself
    #[arg(long)]
    pub once: bool,
    #[command(flatten)]
    pub daemon: DaemonArgs,
    #[command(flatten)]
    pub output: OutputArgs,
}

/// `list`.
#[derive(Debug, Clone, Default, Args)]
pub struct ListArgs {
    /// Only names that contain this text
    #[arg(long, value_name = "TEXT")]
    pub name: Option<String>,
    /// Only services in this status (ready, unavailable)
    #[arg(long)]
    pub status: Option<String>,
    /// Only services of this owner key, or of keys that begin with it and a colon (docker:checkout)
    #[arg(long, value_name = "KEY")]
    pub owner: Option<String>,
    /// What containers ask for and do not get, with the reason and what to do
    #[arg(long, conflicts_with = "status")]
    pub refused: bool,
    #[command(flatten)]
    pub daemon: DaemonArgs,
    #[command(flatten)]
    pub output: OutputArgs,
}

/// `resolve`.
#[derive(Debug, Clone, Args)]
pub struct ResolveArgs {
    /// Name of the service
    pub name: String,
    /// Print the address and nothing else; fail when the service has no backend
    #[arg(long)]
    pub raw: bool,
    /// Wait this long for a backend
    #[arg(long, value_name = "DURATION")]
    pub wait: Option<String>,
    #[command(flatten)]
    pub daemon: DaemonArgs,
    #[command(flatten)]
    pub output: OutputArgs,
}

/// `connections`.
#[derive(Debug, Clone, Args)]
pub struct ConnectionsArgs {
    /// Name of the service
    pub name: String,
    /// Print one JSON object, with the counters
    #[arg(long, conflicts_with_all = ["format", "output_fields", "max_output_rows"])]
    pub json: bool,
    #[command(flatten)]
    pub daemon: DaemonArgs,
    #[command(flatten)]
    pub output: OutputArgs,
}

/// A command about one service.
#[derive(Debug, Clone, Args)]
pub struct NamedArgs {
    /// Name of the service
    pub name: String,
    #[command(flatten)]
    pub daemon: DaemonArgs,
    #[command(flatten)]
    pub output: OutputArgs,
}

/// `env`.
#[derive(Debug, Clone, Default, Args)]
pub struct EnvArgs {
    /// Names of the services [default: all that have an address]
    pub names: Vec<String>,
    /// Shape of the output
    #[arg(long, value_enum, default_value_t = EnvFormat::Shell)]
    pub format: EnvFormat,
    /// Of the fleet's services, the adapters of this consumer
    #[arg(long, value_name = "NAME")]
    pub consumer: Option<String>,
    /// Host to tell instead of the loopback address: host.docker.internal, for containers
    #[arg(long, value_name = "HOST")]
    pub host: Option<String>,
    #[command(flatten)]
    pub daemon: DaemonArgs,
}

/// Who reads the variables.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
pub enum EnvFormat {
    /// `export NAME=value`, for sh, bash and zsh
    #[default]
    Shell,
    /// `set -gx NAME value`
    Fish,
    /// `NAME=value`, a line each
    Dotenv,
    /// An `environment:` mapping
    Compose,
    /// One JSON object
    Json,
}

/// `wait`.
#[derive(Debug, Clone, Args)]
pub struct WaitArgs {
    /// Names of the services
    #[arg(required = true)]
    pub names: Vec<String>,
    /// Give up after this long [default: no limit]
    #[arg(long = "for", value_name = "DURATION")]
    pub limit: Option<String>,
    #[command(flatten)]
    pub daemon: DaemonArgs,
}

/// `forget`.
#[derive(Debug, Clone, Args)]
pub struct ForgetArgs {
    /// Name of the service
    pub name: String,
    /// Also a service that has a backend
    #[arg(long)]
    pub force: bool,
    #[command(flatten)]
    pub daemon: DaemonArgs,
}

/// `pin`.
#[derive(Debug, Clone, Args)]
pub struct PinArgs {
    /// Name of the service
    pub name: String,
    /// Port of its stable address
    #[arg(long, value_parser = clap::value_parser!(u16).range(1..))]
    pub port: u16,
    #[command(flatten)]
    pub daemon: DaemonArgs,
    #[command(flatten)]
    pub output: OutputArgs,
}

/// `rename`.
#[derive(Debug, Clone, Args)]
pub struct RenameArgs {
    /// Name now
    pub name: String,
    /// Name from now on
    pub new_name: String,
    #[command(flatten)]
    pub daemon: DaemonArgs,
    #[command(flatten)]
    pub output: OutputArgs,
}

/// `run`.
#[derive(Debug, Clone, Args)]
pub struct RunArgs {
    /// Name of the service
    pub name: String,
    /// Variable in which the program is told the port to listen on
    #[arg(long, default_value = "PORT", value_name = "VARIABLE")]
    pub port_env: String,
    /// Services it needs: waited for, and named to it as <NAME>_ADDR
    #[arg(long, value_name = "SERVICE")]
    pub with: Vec<String>,
    /// What it speaks, for people and listings
    #[arg(long, default_value = "")]
    pub app_protocol: String,
    /// Port wished for the stable address
    #[arg(long, default_value_t = 0, value_name = "PORT")]
    pub preferred_port: i64,
    /// How long its dependencies may take
    #[arg(long, default_value = "60s", value_name = "DURATION")]
    pub wait: String,
    #[command(flatten)]
    pub daemon: DaemonArgs,
    /// Program and its arguments
    #[arg(last = true, required = true, value_name = "COMMAND")]
    pub command: Vec<std::ffi::OsString>,
}

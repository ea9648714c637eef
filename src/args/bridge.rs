use super::DaemonArgs;
use clap::Args;

/// `service publish`.
#[derive(Debug, Clone, Args)]
pub struct ServicePublishArgs {
    /// Name in this host's mesh
    pub name: String,
    /// Name in the directory of the fleet [default: the same]
    #[arg(long = "as", value_name = "SERVICE")]
    pub service: Option<String>,
    /// Who may use it; may be repeated [default: fleet, which every host is]
    #[arg(long = "consumer", value_name = "CONSUMER")]
    pub consumers: Vec<String>,
    /// Stand by for the host that publishes the same service, so that it can be moved here
    #[arg(long)]
    pub standby: bool,
    #[command(flatten)]
    pub daemon: DaemonArgs,
    /// One JSON document
    #[arg(long)]
    pub json: bool,
}

/// `service unpublish`.
#[derive(Debug, Clone, Args)]
pub struct UnpublishArgs {
    /// Name in the directory
    pub service: String,
    /// Host that published it [default: this one]
    #[arg(long, value_name = "NAME")]
    pub host: Option<String>,
    #[command(flatten)]
    pub daemon: DaemonArgs,
    /// One JSON document
    #[arg(long)]
    pub json: bool,
}

/// `service use`.
#[derive(Debug, Clone, Args)]
pub struct UseArgs {
    /// Name in the directory
    #[arg(required_unless_present = "all")]
    pub service: Option<String>,
    /// Everything that is published for this host, now and later
    #[arg(long, conflicts_with_all = ["service", "port"])]
    pub all: bool,
    /// Port of the address here [default: one that is given out and remembered]
    #[arg(long, value_parser = clap::value_parser!(u16).range(1..))]
    pub port: Option<u16>,
    /// As whom this host uses it [default: its own name, else fleet]
    #[arg(long = "consumer", value_name = "CONSUMER")]
    pub consumers: Vec<String>,
    /// How long the daemon of this host may take to serve the address
    #[arg(long, default_value = "15s", value_name = "DURATION")]
    pub wait: String,
    /// One JSON document
    #[arg(long)]
    pub json: bool,
}

/// `service unuse`.
#[derive(Debug, Clone, Args)]
pub struct UnuseArgs {
    /// Name in the directory
    #[arg(required_unless_present = "all")]
    pub service: Option<String>,
    /// No longer take everything that is published for this host; what it has stays
    #[arg(long, conflicts_with_all = ["service", "consumer"])]
    pub all: bool,
    /// Only the address of this consumer
    #[arg(long, value_name = "CONSUMER")]
    pub consumer: Option<String>,
    /// One JSON document
    #[arg(long)]
    pub json: bool,
}

/// `service move`.
#[derive(Debug, Clone, Args)]
pub struct MoveArgs {
    /// Name in the directory
    pub service: String,
    /// Host that stands by for it
    #[arg(long, value_name = "HOST")]
    pub to: String,
    /// Do not ask that host whether the service is ready there
    #[arg(long)]
    pub unchecked: bool,
    /// One JSON document
    #[arg(long)]
    pub json: bool,
}

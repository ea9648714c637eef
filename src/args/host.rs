use clap::{Args, Subcommand};

/// `stado host …`.
#[derive(Debug, Subcommand)]
pub enum HostVerb {
    /// What a host really has: markers, sockets, binaries, against what the registry declares; nothing is changed there
    Inventory(HostInventoryArgs),
    /// Run a command on a host, over the first of its declared paths that answers
    Exec(HostExecArgs),
    /// Try every declared path to a host, each for itself; exit 0 when one answers
    Ping(HostPingArgs),
}

/// `host inventory`.
#[derive(Debug, Clone, Args)]
pub struct HostInventoryArgs {
    /// Name of the host
    pub target: String,
    /// How long the host may take
    #[arg(long, value_name = "DURATION", default_value = "120s")]
    pub timeout: String,
    /// One JSON document
    #[arg(long)]
    pub json: bool,
}

/// `host exec`.
#[derive(Debug, Clone, Args)]
pub struct HostExecArgs {
    /// Name of the host
    pub target: String,
    /// How long the command may take, connecting included
    #[arg(long, value_name = "DURATION", default_value = "120s")]
    pub timeout: String,
    /// Most of its output that is taken; a command that says more is ended there
    #[arg(long, value_name = "BYTES", default_value_t = 4 << 20)]
    pub max_output: usize,
    /// Give the command this standard input, to its end
    #[arg(long)]
    pub stdin: bool,
    /// Pass its output on byte for byte, also what steers a terminal
    #[arg(long, conflicts_with = "json")]
    pub raw: bool,
    /// One JSON document
    #[arg(long)]
    pub json: bool,
    /// A line for the host's shell; when there are more words, they are a program and its arguments, as they are
    #[arg(last = true, required = true, value_name = "COMMAND")]
    pub command: Vec<String>,
}

/// `host ping`.
#[derive(Debug, Clone, Args)]
pub struct HostPingArgs {
    /// Name of the host
    pub target: String,
    /// How long each path may take
    #[arg(long, value_name = "DURATION", default_value = "15s")]
    pub timeout: String,
    /// One JSON document
    #[arg(long)]
    pub json: bool,
}

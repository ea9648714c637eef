use super::DaemonArgs;
use clap::Args;

/// `stado status`.
#[derive(Debug, Clone, Default, Args)]
pub struct OverviewArgs {
    /// One JSON document, with every service
    #[arg(long)]
    pub json: bool,
    /// Every service, also where they are many
    #[arg(long)]
    pub all: bool,
    #[command(flatten)]
    pub daemon: DaemonArgs,
}

/// `stado top`.
#[derive(Debug, Clone, Args)]
pub struct TopArgs {
    /// Ask again every so many seconds
    #[arg(long, value_name = "SECONDS", default_value_t = 1, value_parser = clap::value_parser!(u64).range(1..=3600))]
    pub every: u64,
    #[command(flatten)]
    pub daemon: DaemonArgs,
}

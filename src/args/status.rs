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

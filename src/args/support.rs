use super::DaemonArgs;
use clap::{Args, Subcommand};
use std::path::PathBuf;

/// `stado support …`.
#[derive(Debug, Subcommand)]
pub enum SupportCommand {
    /// Pack what somebody needs who is to help, without secrets, and list what was removed
    Bundle(BundleArgs),
}

/// `support bundle`.
#[derive(Debug, Clone, Args)]
pub struct BundleArgs {
    /// File to write; one that exists is left alone [default: stado-support-<time>.tar here]
    #[arg(long, value_name = "PATH")]
    pub output: Option<PathBuf>,
    /// Also the end of this log file
    #[arg(long, value_name = "PATH")]
    pub log: Vec<PathBuf>,
    /// Write nothing: print what would be packed and what would be removed
    #[arg(long)]
    pub dry_run: bool,
    #[command(flatten)]
    pub daemon: DaemonArgs,
}

use super::RowsArgs;
use clap::Args;

/// `stado doctor`.
#[derive(Debug, Clone, Default, Args)]
pub struct DoctorArgs {
    /// One JSON document, with what to do about each finding
    #[arg(long, conflicts_with_all = ["format", "output_fields", "max_output_rows"])]
    pub json: bool,
    /// Say beside each finding what to do about it
    #[arg(long)]
    pub fix_hints: bool,
    /// Also what a deployment needs: no placement in progress, every host reached
    #[arg(long)]
    pub deployment_preflight: bool,
    /// Also what a release leaves: this host's binaries at their declared versions
    #[arg(long)]
    pub release_verification: bool,
    #[command(flatten)]
    pub rows: RowsArgs,
}

use super::JsonArgs;
use clap::{Args, Subcommand};

/// `stado route …`.
#[derive(Debug, Subcommand)]
pub enum RouteCommand {
    /// Every service: where it is placed, its addresses, and its forward marker on this host
    List(JsonArgs),
    /// Write this host's forward marker of one service
    Open(RouteOpenArgs),
    /// Remove this host's forward marker of one service
    Close(RouteArgs),
}

/// `route open`.
#[derive(Debug, Clone, Args)]
pub struct RouteOpenArgs {
    #[command(flatten)]
    pub route: RouteArgs,
    /// On this host, which is the only place there is
    #[arg(long)]
    pub local: bool,
}

/// One service.
#[derive(Debug, Clone, Args)]
pub struct RouteArgs {
    /// Name of the service
    pub service: String,
    /// One JSON document
    #[arg(long)]
    pub json: bool,
}

use super::JsonArgs;
use clap::{Args, Subcommand};

/// `stado placement …`.
#[derive(Debug, Subcommand)]
pub enum PlacementCommand {
    /// Move the services of a profile, with their state, to another of its hosts
    Move(PlacementMove),
    /// Take a service off a host: to the next host of its profile, or, where it is placed elsewhere, just away
    Evict(PlacementEvict),
    /// What is being moved, by whom, and what a move that was cut off has left
    Status(JsonArgs),
    /// Bring a move that was cut off to its end: finish it where that is near, else undo it
    Recover(PlacementRecover),
}

/// `placement move`.
#[derive(Debug, Clone, Args)]
pub struct PlacementMove {
    /// All services of one placement profile
    #[arg(required = true)]
    pub services: Vec<String>,
    /// Where they shall run
    #[arg(long, value_name = "HOST")]
    pub to_host: String,
    /// One JSON document
    #[arg(long)]
    pub json: bool,
}

/// `placement evict`.
#[derive(Debug, Clone, Args)]
pub struct PlacementEvict {
    /// A service of a placement profile
    pub service: String,
    /// Where it shall not run
    #[arg(long, value_name = "HOST")]
    pub host: String,
    /// One JSON document
    #[arg(long)]
    pub json: bool,
}

/// `placement recover`.
#[derive(Debug, Clone, Default, Args)]
pub struct PlacementRecover {
    /// Go back, also where finishing is near
    #[arg(long)]
    pub undo: bool,
    /// On the way back, release the claim also when the services do not come up where they were
    #[arg(long)]
    pub leave_down: bool,
    /// Go on without this host, which is gone for good: nothing is stopped or tidied there
    #[arg(long, value_name = "HOST")]
    pub without: Option<String>,
    /// One JSON document
    #[arg(long)]
    pub json: bool,
}

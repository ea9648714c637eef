use clap::{Args, Subcommand};
use std::path::PathBuf;

/// `stado registry …`.
#[derive(Debug, Subcommand)]
pub enum RegistryCommand {
    /// Check a document, or the stored one; every finding is printed
    Validate(ValidateArgs),
    /// Replace the stored document
    Push(PushArgs),
    /// Print the stored document, or a part of it
    Pull(PullArgs),
    /// Which target this host is
    #[command(name = "self")]
    Myself(SelfArgs),
    /// Change one field
    Set(SetArgs),
    /// Declare hosts
    #[command(subcommand)]
    Host(HostCommand),
}

/// `registry validate`.
#[derive(Debug, Clone, Default, Args)]
pub struct ValidateArgs {
    /// File to check; the stored document when left out, standard input when `-`
    pub path: Option<PathBuf>,
}

/// `registry push`.
#[derive(Debug, Clone, Args)]
pub struct PushArgs {
    /// File to push, or `-` for standard input
    pub path: PathBuf,
    /// Only when the stored document is at this version (0: when there is none)
    #[arg(long, value_name = "G")]
    pub if_generation: Option<String>,
    /// Push although it deletes sections or does not advance the directory
    #[arg(long)]
    pub force: bool,
    /// Push although it declares no target and the stored one does
    #[arg(long)]
    pub allow_empty_fleet: bool,
    /// Print the receipt as JSON
    #[arg(long)]
    pub json: bool,
}

/// `registry pull`.
#[derive(Debug, Clone, Default, Args)]
pub struct PullArgs {
    /// The document with its store version, from one read
    #[arg(long, conflicts_with_all = ["generation_only", "path"])]
    pub with_generation: bool,
    /// The store version only
    #[arg(long, conflicts_with = "path")]
    pub generation_only: bool,
    /// One value: keys, array indexes or element names, joined by dots
    #[arg(long, value_name = "A.B.C")]
    pub path: Option<String>,
    /// First copy on a new host: read it from this host over SSH and keep it as the last-known-good copy
    #[arg(long, value_name = "[USER@]HOST[:PORT]", requires = "command", conflicts_with_all = ["with_generation", "generation_only", "path"])]
    pub from: Option<String>,
    /// Absolute path of `stado` on that host
    #[arg(long, value_name = "PATH", requires = "from")]
    pub command: Option<String>,
}

/// `registry self`.
#[derive(Debug, Clone, Default, Args)]
pub struct SelfArgs {
    /// The name only
    #[arg(long)]
    pub name_only: bool,
}

/// `registry set`.
#[derive(Debug, Clone, Args)]
pub struct SetArgs {
    /// Field to change, as `registry pull --path` reads it
    #[arg(long, value_name = "A.B.C")]
    pub path: String,
    /// New value: JSON if it reads as JSON, else text
    #[arg(long, allow_hyphen_values = true)]
    pub value: String,
    /// Print the receipt as JSON
    #[arg(long)]
    pub json: bool,
}

/// `registry host …`.
#[derive(Debug, Subcommand)]
pub enum HostCommand {
    /// Declare a host
    Add(HostAddArgs),
}

/// `registry host add`.
#[derive(Debug, Clone, Args)]
pub struct HostAddArgs {
    /// Its name
    pub host: String,
    /// How to reach it, [user@]host[:port]
    #[arg(long)]
    pub ssh: String,
    /// darwin-arm64 or linux-amd64
    #[arg(long)]
    pub release_platform: String,
    /// Kind of target
    #[arg(long, default_value = "local")]
    pub kind: String,
}

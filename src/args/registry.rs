use super::JsonArgs;
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
    /// Hosts and how they are reached
    #[command(subcommand)]
    Host(HostCommand),
    /// Found a registry from a file, where there is none
    Import(ImportArgs),
    /// What the document declares and this host contradicts; exit 0 only when nothing does
    Doctor(JsonArgs),
    /// How long ago each host's resolver last published, as the hosts themselves say
    BeaconAge(BeaconAgeArgs),
    /// Which generation each host holds, and which it refuses and why
    Holders(HoldersArgs),
    /// Earlier versions: when, by whom
    History(HistoryArgs),
    /// What differs between two versions
    Diff(DiffArgs),
    /// Put an earlier version back, under a new generation
    Rollback(RollbackArgs),
    /// Make this host the authority, in the place of the one that its copy names
    Promote(PromoteArgs),
}

/// `registry promote`.
#[derive(Debug, Clone, Default, Args)]
pub struct PromoteArgs {
    /// Although the authority does not answer: from this host's copy of the registry
    #[arg(long)]
    pub from_copy: bool,
    /// Absolute path of `stado` on this host, for those who ask it over SSH [default: this program's]
    #[arg(long, value_name = "PATH")]
    pub command: Option<String>,
    /// One JSON document
    #[arg(long)]
    pub json: bool,
}

/// `registry validate`.
#[derive(Debug, Clone, Default, Args)]
pub struct ValidateArgs {
    /// File to check; the stored document when left out, standard input when `-`
    pub path: Option<PathBuf>,
    /// One JSON document
    #[arg(long)]
    pub json: bool,
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
    /// One JSON document
    #[arg(long, conflicts_with = "name_only")]
    pub json: bool,
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
    /// What the registry declares about a host
    Show(HostArgs),
    /// Take a host out of the registry
    Remove(HostArgs),
    /// The ways to a host, tried in order
    #[command(subcommand)]
    Path(PathCommand),
}

/// A host by its name.
#[derive(Debug, Clone, Args)]
pub struct HostArgs {
    /// Its name
    pub host: String,
    /// One JSON document
    #[arg(long)]
    pub json: bool,
}

/// `registry host path …`.
#[derive(Debug, Subcommand)]
pub enum PathCommand {
    /// In the order in which they are tried
    List(HostArgs),
    /// Declare a way, or point one elsewhere
    Set(PathSetArgs),
    /// Take a way away
    Remove(PathRemoveArgs),
}

/// `registry host path set`.
#[derive(Debug, Clone, Args)]
pub struct PathSetArgs {
    /// Name of the host
    pub host: String,
    /// Name of the way; `primary` is the host's own `ssh`
    pub path: String,
    /// Where it leads, [user@]host[:port]
    #[arg(long)]
    pub ssh: String,
    /// Place among the fallbacks, from 1 [default: where it is, else last]
    #[arg(long, value_name = "N")]
    pub priority: Option<usize>,
    /// One JSON document
    #[arg(long)]
    pub json: bool,
}

/// `registry host path remove`.
#[derive(Debug, Clone, Args)]
pub struct PathRemoveArgs {
    /// Name of the host
    pub host: String,
    /// Name of the way
    pub path: String,
    /// One JSON document
    #[arg(long)]
    pub json: bool,
}

/// `registry import`.
#[derive(Debug, Clone, Args)]
pub struct ImportArgs {
    /// File with the document, or `-` for standard input
    pub path: PathBuf,
    /// Print the receipt as JSON
    #[arg(long)]
    pub json: bool,
}

/// `registry history`.
#[derive(Debug, Clone, Args)]
pub struct HistoryArgs {
    /// Only the newest
    #[arg(long, value_name = "N", default_value_t = 20)]
    pub limit: usize,
    /// This host's own store, whoever the authority is (run by other hosts over SSH)
    #[arg(long, hide = true)]
    pub here: bool,
    /// One version's document on one line (run by other hosts over SSH)
    #[arg(long, hide = true, value_name = "G", requires = "here")]
    pub content: Option<String>,
    /// One JSON document
    #[arg(long)]
    pub json: bool,
}

/// `registry beacon-age`.
#[derive(Debug, Clone, Args)]
pub struct BeaconAgeArgs {
    /// How long each host may take
    #[arg(long, value_name = "DURATION", default_value = "15s")]
    pub timeout: String,
    /// One JSON document
    #[arg(long)]
    pub json: bool,
}

/// `registry holders`.
#[derive(Debug, Clone, Args)]
pub struct HoldersArgs {
    /// How long each host may take that has to be asked
    #[arg(long, value_name = "DURATION", default_value = "15s")]
    pub timeout: String,
    /// What hosts have told this one, on one line (run by other hosts over SSH)
    #[arg(long, hide = true, requires = "json")]
    pub here: bool,
    /// One JSON document
    #[arg(long)]
    pub json: bool,
}

/// `registry diff`.
#[derive(Debug, Clone, Args)]
pub struct DiffArgs {
    /// Earlier version, or the beginning of one [default: the one before]
    pub from: Option<String>,
    /// Later version [default: the one that is stored now]
    pub to: Option<String>,
    /// One JSON document
    #[arg(long)]
    pub json: bool,
}

/// `registry rollback`.
#[derive(Debug, Clone, Args)]
pub struct RollbackArgs {
    /// Version to put back, or the beginning of one [default: the one before]
    pub version: Option<String>,
    /// Put it back although it declares no target and the stored one does
    #[arg(long)]
    pub allow_empty_fleet: bool,
    /// One JSON document
    #[arg(long)]
    pub json: bool,
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
    /// One JSON document
    #[arg(long)]
    pub json: bool,
}

use clap::{Args, Subcommand};
use std::net::SocketAddr;
use std::path::PathBuf;

/// `stado fleet …`.
#[derive(Debug, Subcommand)]
pub enum FleetCommand {
    /// Make this host the first of a new fleet and its authority, and open its gate for others
    Init(FleetInit),
    /// Make an invitation that lets one host in, once; it is printed on one line
    Invite(FleetInvite),
    /// Join a fleet with an invitation, which is asked for: it is never an argument
    Join(FleetJoin),
    /// Take this host out of its fleet
    Leave(FleetLeave),
    /// The invitations of this host: what became of each, and who showed one in vain
    Invitations(FleetInvitations),
    /// Run what a host of the fleet asks for over sshd (a line of authorized_keys names this)
    #[command(hide = true)]
    Door(FleetDoor),
    /// Take in a host that shows an invitation (run by other hosts over SSH)
    #[command(hide = true)]
    Admit,
}

/// How a host is reached, and whether its daemon is started.
#[derive(Debug, Clone, Default, Args)]
pub struct FleetPlace {
    /// Name of this host in the fleet [default: `target` of ~/.stado/config.json, else its hostname]
    #[arg(long, value_name = "NAME")]
    pub name: Option<String>,
    /// Where other hosts reach this one
    #[arg(long, value_name = "[USER@]HOST[:PORT]")]
    pub address: Option<String>,
    /// Where this host's gate listens [default: every address, at the port of --address or 17622]
    #[arg(long, value_name = "IP:PORT")]
    pub gate: Option<SocketAddr>,
    /// Let other hosts in by this machine's sshd instead of a gate; --address is where it answers
    #[arg(long, conflicts_with = "gate", requires = "address")]
    pub sshd: bool,
    /// The file from which that sshd takes this account's keys [default: ~/.ssh/authorized_keys]
    #[arg(long, value_name = "PATH", requires = "sshd")]
    pub authorized_keys: Option<PathBuf>,
    /// Start no resolver; say the command instead
    #[arg(long)]
    pub no_start: bool,
    /// One JSON document
    #[arg(long)]
    pub json: bool,
}

/// `fleet init`.
#[derive(Debug, Clone, Default, Args)]
pub struct FleetInit {
    #[command(flatten)]
    pub place: FleetPlace,
}

/// `fleet invite`.
#[derive(Debug, Clone, Args)]
pub struct FleetInvite {
    /// Let in no host but one of this name
    #[arg(long, value_name = "NAME")]
    pub name: Option<String>,
    /// How long it can be used
    #[arg(long, value_name = "DURATION", default_value = "1h")]
    pub valid: String,
}

/// `fleet join`. Without an address this host uses the fleet's services and offers none.
#[derive(Debug, Clone, Default, Args)]
pub struct FleetJoin {
    /// File with the invitation [default: standard input]
    #[arg(long, value_name = "PATH")]
    pub file: Option<PathBuf>,
    #[command(flatten)]
    pub place: FleetPlace,
}

/// `fleet leave`.
#[derive(Debug, Clone, Default, Args)]
pub struct FleetLeave {
    /// Ask nobody: only forget the fleet here (`stado registry host remove` on another host does the rest)
    #[arg(long)]
    pub here: bool,
    /// One JSON document
    #[arg(long)]
    pub json: bool,
}

/// `fleet invitations`.
#[derive(Debug, Clone, Default, Args)]
pub struct FleetInvitations {
    /// Take an invitation back that nobody has used
    #[arg(long, value_name = "ID")]
    pub withdraw: Option<String>,
    /// End the warnings about invitations that were shown twice
    #[arg(long, conflicts_with = "withdraw")]
    pub seen: bool,
    /// One JSON document
    #[arg(long)]
    pub json: bool,
}

/// `fleet door`.
#[derive(Debug, Clone, Default, Args)]
pub struct FleetDoor {
    /// The key that came in
    #[arg(long)]
    pub key: String,
}

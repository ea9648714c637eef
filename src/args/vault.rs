use clap::{Args, Subcommand, ValueEnum};
use std::net::SocketAddr;
use std::path::PathBuf;

/// A certificate for a listener.
#[derive(Debug, Clone, Default, Args)]
pub struct PairArgs {
    /// Certificate (PEM): speak TLS [default: tls.cert_file of the same section of the configuration file]
    #[arg(long, value_name = "PATH", requires = "tls_key")]
    pub tls_cert: Option<PathBuf>,
    /// Its private key (PEM, not encrypted)
    #[arg(long, value_name = "PATH", requires = "tls_cert")]
    pub tls_key: Option<PathBuf>,
}

/// `stado vault …`.
#[derive(Debug, Subcommand)]
pub enum VaultCommand {
    /// Make an empty vault: a file that is encrypted as a whole
    Init(VaultInit),
    /// Keep a value, from standard input or made here, as a field of an item
    Put(VaultPut),
    /// Print one value
    Get(VaultGet),
    /// List items and grants, without values
    List(VaultList),
    /// Remove an item's values
    Remove(VaultRemove),
    /// Let a consumer read items; its first grant writes its token to a file
    Grant(VaultGrant),
    /// Take items from a consumer, or everything with its token
    Revoke(VaultRevoke),
    /// Serve the vault to consumers, on loopback or over TLS, until told to stop
    Serve(VaultServe),
}

/// Where the vault is.
#[derive(Debug, Clone, Default, Args)]
pub struct VaultPlace {
    /// Directory of the vault [default: vault.path of the configuration file, else ~/.stado/vault]
    #[arg(long, value_name = "PATH")]
    pub vault: Option<PathBuf>,
}

/// Where a vault's key is kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum KeyChoice {
    /// In a file beside the vault that only its owner can read
    File,
    /// In the keyring of this login session (secret-tool)
    Keyring,
}

/// `vault init`.
#[derive(Debug, Clone, Args)]
pub struct VaultInit {
    #[command(flatten)]
    pub place: VaultPlace,
    /// Where the key goes [default: the keyring where one answers, else a file]
    #[arg(long, value_enum)]
    pub key: Option<KeyChoice>,
}

/// `vault put`.
#[derive(Debug, Clone, Args)]
pub struct VaultPut {
    /// Item
    pub item: String,
    /// Field of the item
    #[arg(long, default_value = "token")]
    pub field: String,
    /// Make a random token instead of reading standard input
    #[arg(long)]
    pub generate: bool,
    /// Write the value to this new file too, readable by its owner alone
    #[arg(long, value_name = "FILE")]
    pub to: Option<PathBuf>,
    /// What kind of thing it is
    #[arg(long = "type", value_name = "TEXT")]
    pub kind: Option<String>,
    /// Tags, in place of those it has
    #[arg(long = "tag", value_delimiter = ',', value_name = "TEXT")]
    pub tags: Vec<String>,
    #[command(flatten)]
    pub place: VaultPlace,
}

/// `vault get`.
#[derive(Debug, Clone, Args)]
pub struct VaultGet {
    /// Item
    pub item: String,
    /// Field of the item
    #[arg(long, default_value = "token")]
    pub field: String,
    #[command(flatten)]
    pub place: VaultPlace,
}

/// `vault list`.
#[derive(Debug, Clone, Args)]
pub struct VaultList {
    /// Removed items too
    #[arg(long)]
    pub removed: bool,
    /// One JSON document
    #[arg(long)]
    pub json: bool,
    #[command(flatten)]
    pub place: VaultPlace,
}

/// `vault remove`.
#[derive(Debug, Clone, Args)]
pub struct VaultRemove {
    /// Item
    pub item: String,
    #[command(flatten)]
    pub place: VaultPlace,
}

/// `vault grant`.
#[derive(Debug, Clone, Args)]
pub struct VaultGrant {
    /// Consumer, as it names itself in X-Consumer
    pub consumer: String,
    /// Items that it may read; they may come later
    #[arg(required = true)]
    pub items: Vec<String>,
    /// New file for the consumer's token, readable by its owner alone; a consumer that has one gets a new token
    #[arg(long, value_name = "FILE")]
    pub token_file: Option<PathBuf>,
    #[command(flatten)]
    pub place: VaultPlace,
}

/// `vault revoke`.
#[derive(Debug, Clone, Args)]
pub struct VaultRevoke {
    /// Consumer
    pub consumer: String,
    /// Items; none for everything
    pub items: Vec<String>,
    #[command(flatten)]
    pub place: VaultPlace,
}

/// `vault serve`.
#[derive(Debug, Clone, Args)]
pub struct VaultServe {
    /// Address to listen on, loopback without TLS; port 0 for any [default: vault.bind of the configuration file]
    #[arg(long, value_name = "IP:PORT")]
    pub bind: Option<SocketAddr>,
    #[command(flatten)]
    pub tls: PairArgs,
    #[command(flatten)]
    pub place: VaultPlace,
}

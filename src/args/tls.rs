use clap::{Args, Subcommand, ValueEnum};
use std::path::PathBuf;

/// `stado tls …`.
#[derive(Debug, Subcommand)]
pub enum TlsCommand {
    /// Make an authority of your own, for local names only; the daemon makes certificates with it on demand
    Init(TlsInitArgs),
    /// Let this machine's programs trust the authority, or no longer
    Trust(TlsTrustArgs),
    /// Print the authority's certificate, or make one for a local name
    Export(TlsExportArgs),
    /// The authority, who trusts it, and the configured certificates
    Status(TlsStatusArgs),
}

/// Where the authority is kept.
#[derive(Debug, Clone, Default, Args)]
pub struct TlsPlace {
    /// Configuration file of the daemon [env: DEVMESH_CONFIG]
    #[arg(long, value_name = "PATH")]
    pub config: Option<String>,
    /// State file of the daemon: the authority is in the folder `tls` beside it [env: DEVMESH_STATE]
    #[arg(long, value_name = "PATH")]
    pub state: Option<String>,
}

/// `tls init`.
#[derive(Debug, Clone, Default, Args)]
pub struct TlsInitArgs {
    #[command(flatten)]
    pub place: TlsPlace,
    /// Make a new one in place of one that is there; take the old one's trust away first
    #[arg(long)]
    pub renew: bool,
    /// One JSON document
    #[arg(long)]
    pub json: bool,
}

/// Which stores.
#[derive(Debug, Clone, Default, Args)]
pub struct StoreArgs {
    /// Only these stores [default: all]
    #[arg(long = "store", value_enum, value_delimiter = ',', value_name = "NAMES")]
    pub stores: Vec<StoreName>,
    /// The system's store below this folder, as in an image or a chroot
    #[arg(long, value_name = "PATH")]
    pub root: Option<PathBuf>,
    /// A key store in place of Java's own
    #[arg(long, value_name = "PATH")]
    pub java_keystore: Option<PathBuf>,
}

/// Kinds of stores.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum StoreName {
    /// What the system's own programs trust
    System,
    /// Firefox, Chromium and their relatives
    Nss,
    /// Java
    Java,
}

/// `tls trust`.
#[derive(Debug, Clone, Default, Args)]
pub struct TlsTrustArgs {
    #[command(flatten)]
    pub place: TlsPlace,
    #[command(flatten)]
    pub stores: StoreArgs,
    /// Take the trust away again
    #[arg(long)]
    pub uninstall: bool,
    /// One JSON document
    #[arg(long)]
    pub json: bool,
}

/// `tls export`.
#[derive(Debug, Clone, Default, Args)]
pub struct TlsExportArgs {
    /// A local name or loopback address: make a certificate for it, with its key
    pub host: Option<String>,
    #[command(flatten)]
    pub place: TlsPlace,
    /// The authority's certificate in DER
    #[arg(long, conflicts_with = "host", requires = "output")]
    pub der: bool,
    /// File to write in place of standard output; for a name the folder that gets HOST.pem and HOST-key.pem [default: .]
    #[arg(long, value_name = "PATH")]
    pub output: Option<PathBuf>,
}

/// `tls status`.
#[derive(Debug, Clone, Default, Args)]
pub struct TlsStatusArgs {
    #[command(flatten)]
    pub place: TlsPlace,
    #[command(flatten)]
    pub stores: StoreArgs,
    /// One JSON document
    #[arg(long)]
    pub json: bool,
}

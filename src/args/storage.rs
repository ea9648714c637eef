use super::PairArgs;
use clap::{Args, Subcommand};
use std::net::SocketAddr;

/// `stado storage …`.
#[derive(Debug, Subcommand)]
pub enum StorageCommand {
    /// Serve this host's store to other hosts and programs as an object API, on loopback or over TLS, until told to stop
    Serve(StorageServe),
}

/// `storage serve`.
#[derive(Debug, Clone, Args)]
pub struct StorageServe {
    /// Address to listen on, loopback without TLS; port 0 for any [default: object_api.bind of the configuration file]
    #[arg(long, value_name = "IP:PORT")]
    pub bind: Option<SocketAddr>,
    #[command(flatten)]
    pub tls: PairArgs,
}

use clap::{Args, Subcommand};
use std::net::SocketAddr;

/// `stado storage …`.
#[derive(Debug, Subcommand)]
pub enum StorageCommand {
    /// Serve this host's store to other hosts and programs as an object API, on loopback, until told to stop
    Serve(StorageServe),
}

/// `storage serve`.
#[derive(Debug, Clone, Args)]
pub struct StorageServe {
    /// Loopback address to listen on; port 0 for any [default: object_api.bind of the configuration file]
    #[arg(long, value_name = "IP:PORT")]
    pub bind: Option<SocketAddr>,
}

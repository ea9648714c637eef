use clap::Args;

/// Settings of the mesh (mesh contract §3.3). Each has an environment variable `DEVMESH_<NAME>` and a configuration
/// key; `--print-parsed-fields` shows which of them counted. Values stay text here: `config::mesh` reads all layers alike.
#[derive(Debug, Clone, Default, Args)]
#[command(next_help_heading = "Mesh settings")]
pub struct MeshFlags {
    /// Configuration file of the mesh (JSON) [env: DEVMESH_CONFIG]
    #[arg(long, value_name = "PATH")]
    pub config: Option<String>,
    /// Control socket [default: ~/.devmesh/run/devmesh.sock]
    #[arg(long, value_name = "PATH")]
    pub socket: Option<String>,
    /// File of remembered ports [default: devmesh/state.json in the user's configuration directory]
    #[arg(long, value_name = "PATH")]
    pub state: Option<String>,
    /// Address that frontends are bound on [default: 127.0.0.1]
    #[arg(long, value_name = "ADDRESS")]
    pub tcp_frontend_host: Option<String>,
    /// First port of the frontend range [default: 15000]
    #[arg(long, value_name = "PORT")]
    pub tcp_frontend_min: Option<String>,
    /// Last port of the frontend range [default: 19999]
    #[arg(long, value_name = "PORT")]
    pub tcp_frontend_max: Option<String>,
    /// Lease of a registration that asks for none [default: 15s]
    #[arg(long, value_name = "DURATION")]
    pub lease_ttl: Option<String>,
    /// How long a frontend without a backend stays bound; 0 is for ever [default: 10m]
    #[arg(long, value_name = "DURATION")]
    pub frontend_idle_grace: Option<String>,
    /// How long a stop waits for open connections [default: 5s]
    #[arg(long, value_name = "DURATION")]
    pub shutdown_timeout: Option<String>,
    /// Bind frontends on these addresses too, such as a container bridge's, so that containers reach them
    #[arg(long, value_name = "ADDRESS", value_delimiter = ',')]
    pub also_bind: Vec<String>,
    /// Say a second time that this address may be bound although others than this machine reach it
    #[arg(long, value_name = "ADDRESS", value_delimiter = ',')]
    pub allow_beyond_this_machine: Vec<String>,
    /// Serve the metrics on this loopback address too; the control socket always has them
    #[arg(long, value_name = "ADDRESS")]
    pub metrics_bind: Option<String>,
    /// Watch containers [default: true]
    #[arg(long, num_args = 0..=1, require_equals = true, default_missing_value = "true", value_name = "BOOL")]
    pub docker_enabled: Option<String>,
    /// Accept container ports that are published beyond loopback [default: false]
    #[arg(long, num_args = 0..=1, require_equals = true, default_missing_value = "true", value_name = "BOOL")]
    pub docker_allow_non_loopback_published_ports: Option<String>,
    /// Serve HTTP services by hostname [default: false]
    #[arg(long, num_args = 0..=1, require_equals = true, default_missing_value = "true", value_name = "BOOL")]
    pub http_enabled: Option<String>,
    /// Address of the HTTP listener [default: 127.0.0.1:8088]
    #[arg(long, value_name = "ADDRESS")]
    pub http_addr: Option<String>,
    /// Address of the HTTPS listener [default: 127.0.0.1:8443]
    #[arg(long, value_name = "ADDRESS")]
    pub https_addr: Option<String>,
    /// Accepted for compatibility; nothing uses it
    #[arg(long, value_name = "DOMAIN")]
    pub http_base_domain: Option<String>,
    /// Certificate of the HTTPS listener (PEM)
    #[arg(long, value_name = "PATH")]
    pub http_cert_file: Option<String>,
    /// Key of the HTTPS listener (PEM)
    #[arg(long, value_name = "PATH")]
    pub http_key_file: Option<String>,
    /// Further certificates with their keys (PEM); a client is shown the one for the name it asks for
    #[arg(long, value_name = "CERT:KEY", value_delimiter = ',')]
    pub http_certificates: Vec<String>,
    /// Write every answered request into this file; off without it
    #[arg(long, value_name = "PATH")]
    pub http_access_log: Option<String>,
    /// Take everything over from the running daemon of this home: no connection is refused, no stream is cut
    #[arg(long)]
    pub take_over: bool,
    /// Print every setting with each source that set it, and exit
    #[arg(long)]
    pub print_parsed_fields: bool,
}

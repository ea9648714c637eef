use clap::{Args, Subcommand};

/// `stado service directory …`.
#[derive(Debug, Subcommand)]
pub enum DirectoryCommand {
    /// Every service, where it is placed and from where it is reached
    Show(JsonArgs),
    /// Placement profiles
    Profiles(JsonArgs),
    /// The declared address of one service as one host reaches it
    Endpoint(EndpointArgs),
    /// The address to connect to, checked
    Connect(ConnectArgs),
    /// The address a service has to listen on, on the host that serves it
    Bind(EndpointArgs),
    /// Write this host's forward markers, and list those that nobody declares
    Publish(PublishArgs),
    /// Who may use a service
    #[command(subcommand)]
    Consumer(ConsumerCommand),
}

/// Text or JSON.
#[derive(Debug, Clone, Default, Args)]
pub struct JsonArgs {
    /// One JSON document
    #[arg(long)]
    pub json: bool,
}

/// A service as one host sees it.
#[derive(Debug, Clone, Args)]
pub struct EndpointArgs {
    /// Name of the service
    pub name: String,
    /// Host that asks [default: this one]
    #[arg(long, value_name = "NAME")]
    pub target: Option<String>,
    /// One JSON document
    #[arg(long)]
    pub json: bool,
}

/// `connect`.
#[derive(Debug, Clone, Args)]
pub struct ConnectArgs {
    /// Name of the service
    pub name: String,
    /// Host that asks [default: this one]
    #[arg(long, value_name = "NAME")]
    pub target: Option<String>,
    /// Who asks
    #[arg(long)]
    pub consumer: Option<String>,
    /// Do not try the address
    #[arg(long)]
    pub no_verify: bool,
    /// One JSON document
    #[arg(long)]
    pub json: bool,
}

/// `publish`.
#[derive(Debug, Clone, Default, Args)]
pub struct PublishArgs {
    /// Only this service
    #[arg(long, value_name = "NAME")]
    pub service: Option<String>,
    /// Host whose markers are meant [default: this one]
    #[arg(long, value_name = "NAME")]
    pub target: Option<String>,
    /// Remove the markers that the directory does not declare
    #[arg(long)]
    pub prune: bool,
    /// One JSON document
    #[arg(long)]
    pub json: bool,
}

/// `consumer …`.
#[derive(Debug, Subcommand)]
pub enum ConsumerCommand {
    /// Let a consumer use a service
    Add(ConsumerAddArgs),
    /// Take a consumer's right away, with its adapters
    Remove(ConsumerRemoveArgs),
}

/// `consumer add`.
#[derive(Debug, Clone, Args)]
pub struct ConsumerAddArgs {
    /// Name of the service
    pub name: String,
    /// The consumer
    pub consumer: String,
    /// What it may do
    #[arg(long = "capability", value_name = "NAME")]
    pub capabilities: Vec<String>,
    /// Give it an adapter on this host
    #[arg(long, value_name = "NAME")]
    pub target: Option<String>,
    /// Give it another port when it has one
    #[arg(long, requires = "target")]
    pub reassign: bool,
    /// One JSON document
    #[arg(long)]
    pub json: bool,
}

/// `consumer remove`.
#[derive(Debug, Clone, Args)]
pub struct ConsumerRemoveArgs {
    /// Name of the service
    pub name: String,
    /// The consumer
    pub consumer: String,
    /// One JSON document
    #[arg(long)]
    pub json: bool,
}

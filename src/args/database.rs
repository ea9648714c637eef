use super::JsonArgs;
use clap::{Args, Subcommand, ValueEnum};

/// `stado database …`.
#[derive(Debug, Subcommand)]
pub enum DatabaseCommand {
    /// The databases that this host's configuration declares
    List(JsonArgs),
    /// What a consumer needs to know of a database: engine, scopes, credential item, and where it is placed
    Resolve(DatabaseResolveArgs),
    /// Declare a database, or change its scopes
    Declare(DatabaseDeclareArgs),
    /// Take a declaration away; the database itself is left alone
    Remove(DatabaseArgs),
    /// Let a consumer resolve a database
    Grant(DatabaseGrantArgs),
    /// Take that right away
    Revoke(DatabaseGrantArgs),
}

/// Engines of a database.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum EngineName {
    Postgres,
    Sqlite,
}

/// What may be done with a database.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum ScopeName {
    Read,
    Write,
}

/// A database by its name.
#[derive(Debug, Clone, Args)]
pub struct DatabaseArgs {
    /// Name of the database
    pub name: String,
    /// One JSON document
    #[arg(long)]
    pub json: bool,
}

/// `database resolve`.
#[derive(Debug, Clone, Args)]
pub struct DatabaseResolveArgs {
    /// Name of the database, or stado://database/<name>
    pub name: String,
    /// Who asks
    #[arg(long)]
    pub consumer: String,
    /// One JSON document
    #[arg(long)]
    pub json: bool,
}

/// `database declare`.
#[derive(Debug, Clone, Args)]
pub struct DatabaseDeclareArgs {
    /// Name of the database: that of its service in the directory, when it is placed
    pub name: String,
    /// What serves it
    #[arg(long, value_enum)]
    pub engine: EngineName,
    /// What its credentials allow
    #[arg(long = "scope", value_enum, required = true)]
    pub scopes: Vec<ScopeName>,
    /// Who may resolve it
    #[arg(long = "consumer", value_name = "NAME")]
    pub consumers: Vec<String>,
    /// One JSON document
    #[arg(long)]
    pub json: bool,
}

/// `database grant` and `database revoke`.
#[derive(Debug, Clone, Args)]
pub struct DatabaseGrantArgs {
    /// Name of the database
    pub name: String,
    /// The consumer
    pub consumer: String,
    /// One JSON document
    #[arg(long)]
    pub json: bool,
}

use clap::{Args, ValueEnum};
use std::path::PathBuf;

/// `stado completions`.
#[derive(Debug, Clone, Args)]
pub struct CompletionsArgs {
    /// The shell
    #[arg(value_enum)]
    pub shell: Shell,
}

/// Shells that are completed in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Shell {
    Bash,
    Zsh,
    Fish,
}

/// `stado man`.
#[derive(Debug, Clone, Args)]
pub struct ManArgs {
    /// Write the pages of all commands into this folder instead
    #[arg(long, value_name = "PATH", conflicts_with = "command")]
    pub dir: Option<PathBuf>,
    /// Words of the command [default: stado itself]
    #[arg(value_name = "COMMAND")]
    pub command: Vec<String>,
}

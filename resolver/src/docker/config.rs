//! What the adapter is started with. Values only: environment and files of the command line are read elsewhere.
use super::locate::Lookup;
use std::time::Duration;

/// Configuration of the container adapter.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Config {
    /// Where to look for the engine.
    pub lookup: Lookup,
    /// Serve containers that are published beyond loopback too, through 127.0.0.1.
    pub allow_exposed: bool,
    /// Waits and deadlines.
    pub timing: Timing,
}

/// Waits and deadlines (mesh contract §5.3).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Timing {
    /// Deadline of one call.
    pub call: Duration,
    /// Between lists while connected.
    pub list_every: Duration,
    /// Between inspections of everything, for what a list does not show.
    pub inspect_all_every: Duration,
    /// First wait after a lost engine.
    pub retry_first: Duration,
    /// Longest wait.
    pub retry_most: Duration,
    /// The same refusal is logged again after this long.
    pub repeat_log: Duration,
}

impl Default for Timing {
    fn default() -> Self {
        Self {
            call: Duration::from_secs(10),
            list_every: Duration::from_secs(5),
            inspect_all_every: Duration::from_secs(60),
            retry_first: Duration::from_millis(250),
            retry_most: Duration::from_secs(30),
            repeat_log: Duration::from_secs(60),
        }
    }
}

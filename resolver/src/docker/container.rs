//! What is known of one container: the few facts of an inspection that matter, in our own words.
use super::labels::Labels;
use jiff::Timestamp;
use std::collections::BTreeMap;

/// One container.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Container {
    /// Its id.
    pub id: String,
    /// Its name, without the slash.
    pub name: String,
    /// When it was started last, on the engine's clock.
    pub started_at: Option<Timestamp>,
    /// What it is doing.
    pub phase: Phase,
    /// What its health check says, when it has one.
    pub health: Option<Health>,
    /// Labels.
    pub labels: Labels,
    /// `5432/tcp` → where it is published.
    pub ports: BTreeMap<String, Vec<Binding>>,
    /// It shares a network namespace, so that nothing is published for it: `host` or `container:…`.
    pub shared_network: Option<String>,
}

/// What a container is doing.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Phase {
    /// It runs.
    Running,
    /// It is frozen.
    Paused,
    /// It does not run.
    #[default]
    Stopped,
}

/// What a health check says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Health {
    /// Not known yet.
    Starting,
    /// All is well.
    Healthy,
    /// It fails: checks in a row, and the last one's output.
    Unhealthy {
        /// Failed checks in a row.
        streak: i64,
        /// Last output, first line, shortened.
        output: String,
    },
}

/// Where a port of a container is published.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Binding {
    /// Host address, as the engine wrote it; may be empty.
    pub ip: String,
    /// Host port, as the engine wrote it; may be empty.
    pub port: String,
}

impl Container {
    /// How people call it: its name, else its short id.
    pub fn shown(&self) -> &str {
        if self.name.is_empty() { short(&self.id) } else { &self.name }
    }
}

/// The first twelve characters of an id.
pub fn short(id: &str) -> &str {
    id.get(..12).unwrap_or(id)
}

impl Health {
    /// The word of the engine.
    pub fn as_str(&self) -> &'static str {
        match self {
            Self::Starting => "starting",
            Self::Healthy => "healthy",
            Self::Unhealthy { .. } => "unhealthy",
        }
    }
}

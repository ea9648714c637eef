//! What each host holds of the registry, as it says itself over its watch: kept by the authority, one small file a host.
use super::exec::Exec;
use super::history::ask;
use super::{RegistryError, Source, envelope};
use crate::disk::{self, DiskError};
use crate::fault::Class;
use crate::ledger::{RefusedRegistry, ResolverState, stamp};
use crate::name::TargetName;
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use std::path::{Path, PathBuf};

const SCHEMA: &str = "stado.registry-holders.v1";
/// Of one host.
const LARGEST: u64 = 64 << 10;
/// A reason that is longer is cut: it is whole in the host's own state.
const REASON: usize = 2000;
/// Names that are not in the registry any more keep their file; more of them than this are not made.
const FILES: usize = 10_000;

/// What one host holds of the registry.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Holding {
    /// The host.
    pub target: String,
    /// `state` of its state file.
    pub state: String,
    /// Directory generation held.
    pub generation: Option<u64>,
    /// Store version held.
    pub store_version: Option<String>,
    /// Authority epoch held, from 1 on.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub epoch: Option<u64>,
    /// What it was given and did not take.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub refused: Option<RefusedRegistry>,
}

impl Holding {
    /// From a published state; `None` of a host that has no name yet.
    pub fn of(state: &ResolverState) -> Option<Self> {
        Some(Self {
            target: state.target.clone()?,
            state: state.state.clone(),
            generation: state.generation,
            store_version: state.store_version.clone(),
            epoch: state.epoch,
            refused: state.refused.clone(),
        })
    }

    /// As it is told: with a reason of bounded length.
    pub(super) fn told(&self) -> Self {
        let mut told = self.clone();
        if let Some(refused) = &mut told.refused {
            refused.reason = refused.reason.chars().take(REASON).collect();
        }
        told
    }
}

/// What a host said last, and when, by the clock of whom it was said to.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Heard {
    /// When, RFC 3339.
    pub at: String,
    /// When the watch ended over which it was said, while nothing was said over another one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub gone_at: Option<String>,
    /// What.
    #[serde(flatten)]
    pub holding: Holding,
}

/// What was heard on one host.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct HoldersReport {
    /// `stado.registry-holders.v1`.
    pub schema: String,
    /// Now, by that host's clock.
    pub now: String,
    /// By host.
    pub heard: Vec<Heard>,
}

/// The files of one home.
#[derive(Debug, Clone)]
pub struct Holders {
    dir: PathBuf,
}

impl Holders {
    /// Below `~/.stado`.
    pub fn new(stado_home: &Path) -> Self {
        Self { dir: stado_home.join("holders") }
    }

    /// Keeps what a host said; what is kept. `None` when it names no host. Blocks for a file write.
    ///
    /// # Errors
    /// It could not be written.
    pub fn record(&self, holding: &Holding, now: Timestamp) -> Result<Option<Heard>, DiskError> {
        let Some(path) = self.file(holding) else { return Ok(None) };
        if !path.exists() && self.names().len() >= FILES {
            return Ok(None);
        }
        let heard = Heard { at: stamp(now), gone_at: None, holding: holding.clone() };
        disk::publish(&path, &serde_json::to_vec(&heard).unwrap_or_default())?;
        Ok(Some(heard))
    }

    /// Notes that the watch has ended over which `last` was said, unless its host has said something since. Blocks for a file
    /// write.
    ///
    /// # Errors
    /// It could not be written.
    pub fn gone(&self, last: &Heard, now: Timestamp) -> Result<(), DiskError> {
        let Some(path) = self.file(&last.holding) else { return Ok(()) };
        if read(&path).as_ref() == Some(last) {
            let gone = Heard { gone_at: Some(stamp(now)), ..last.clone() };
            disk::publish(&path, &serde_json::to_vec(&gone).unwrap_or_default())?;
        }
        Ok(())
    }

    fn file(&self, holding: &Holding) -> Option<PathBuf> {
        let name = holding.target.parse::<TargetName>().ok()?;
        Some(self.dir.join(format!("{name}.json")))
    }

    /// Everything that was heard here, by host. A file that cannot be read is left out: its host says it again.
    pub fn report(&self, now: Timestamp) -> HoldersReport {
        let heard = self.names().iter().filter_map(|name| read(&self.dir.join(name))).collect();
        HoldersReport { schema: SCHEMA.into(), now: stamp(now), heard }
    }

    fn names(&self) -> Vec<String> {
        let entries = std::fs::read_dir(&self.dir).into_iter().flatten().flatten();
        let mut names: Vec<_> = entries.filter_map(|entry| entry.file_name().into_string().ok()).collect();
        names.retain(|name| name.ends_with(".json") && !name.starts_with('.'));
        names.sort();
        names
    }
}

fn read(path: &Path) -> Option<Heard> {
    serde_json::from_slice(&disk::read_unlinked(path, LARGEST).ok()??).ok()
}

/// What was heard by whoever is the authority: this host, or another one over SSH.
///
/// # Errors
/// The authority did not answer, or does not know the question.
pub async fn holders(source: &Source, own: &Holders, exec: &dyn Exec) -> Result<HoldersReport, RegistryError> {
    match source {
        Source::Store(_) => Ok(own.report(Timestamp::now())),
        Source::Remote(authority) => {
            let output = ask(authority, exec, "list of holders", "registry holders --here --json").await?;
            let heard = envelope::find::<HoldersReport>(&output.stdout).map_err(|why| {
                RegistryError::new(Class::Refused, format!("invalid registry authority response: {why}"))
            })?;
            Ok(heard.answer)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn holding(target: &str, generation: u64) -> Holding {
        Holding { target: target.into(), state: "serving".into(), generation: Some(generation), ..Holding::default() }
    }

    #[test]
    fn the_last_word_of_each_host_is_kept_and_no_name_leads_elsewhere() {
        let home = tempfile::tempdir().unwrap();
        let holders = Holders::new(home.path());
        let now: Timestamp = "2026-11-30T20:00:00Z".parse().unwrap();
        for (host, generation) in [("desk", 6), ("worker", 7), ("desk", 7)] {
            assert!(holders.record(&holding(host, generation), now).unwrap().is_some());
        }
        for stranger in ["../desk", "", "Desk", "a/b", ".hidden"] {
            assert_eq!(holders.record(&holding(stranger, 1), now).unwrap(), None, "{stranger:?}");
        }
        std::fs::write(home.path().join("holders/torn.json"), "{").unwrap();
        let report = holders.report(now);
        let said: Vec<_> = report.heard.iter().map(|h| (h.holding.target.as_str(), h.holding.generation)).collect();
        assert_eq!(said, [("desk", Some(7)), ("worker", Some(7))]);
        assert_eq!((report.schema.as_str(), report.now.as_str()), (SCHEMA, report.heard[0].at.as_str()));
    }

    #[test]
    fn the_end_of_a_watch_is_noted_unless_its_host_has_another_one() {
        let home = tempfile::tempdir().unwrap();
        let holders = Holders::new(home.path());
        let [first, later, end]: [Timestamp; 3] =
            ["2026-11-30T20:00:00Z", "2026-11-30T20:00:05Z", "2026-11-30T20:00:09Z"].map(|at| at.parse().unwrap());
        let gone = || holders.report(end).heard[0].gone_at.clone();
        let old = holders.record(&holding("desk", 7), first).unwrap().unwrap();
        let new = holders.record(&holding("desk", 7), later).unwrap().unwrap();
        holders.gone(&old, end).unwrap();
        assert_eq!(gone(), None, "it has said something over another watch since");
        holders.gone(&new, end).unwrap();
        assert_eq!(gone(), Some(stamp(end)));
        holders.record(&holding("desk", 8), end).unwrap();
        assert_eq!(gone(), None, "it is back");
    }

    #[test]
    fn what_is_told_is_what_the_state_says_with_a_bounded_reason() {
        let refused = RefusedRegistry { reason: "x".repeat(5000), generation: Some(4), ..RefusedRegistry::default() };
        let state = ResolverState {
            target: Some("desk".into()),
            generation: Some(5),
            refused: Some(refused),
            ..ResolverState::default()
        };
        let told = Holding::of(&state).unwrap().told();
        assert_eq!((told.target.as_str(), told.generation), ("desk", Some(5)));
        assert_eq!(told.refused.unwrap().reason.len(), REASON);
        assert_eq!(Holding::of(&ResolverState::default()), None);
    }
}

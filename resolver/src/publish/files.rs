//! What is on disk, as far as this process wrote it, and what differs from it now.
use serde::Serialize;
use stado_fleet::disk::{self, DiskError};
use stado_fleet::ledger::{Answers, AnswersFile, PublishedPaths, ResolverState, RouteState, Wait};

/// What this process published last; `None` before the first time.
#[derive(Debug, Clone, Default)]
pub(super) struct OnDisk {
    /// Without `updated_at`.
    pub(super) state: Option<ResolverState>,
    pub(super) waits: Option<Vec<Wait>>,
    pub(super) answers: Option<AnswersFile>,
    pub(super) routes: Option<Vec<RouteState>>,
}

/// One round of writing: what is to be on disk after it.
#[derive(Debug)]
pub(super) struct Round {
    pub(super) state: Option<ResolverState>,
    pub(super) waits: Vec<Wait>,
    pub(super) answers: AnswersFile,
    /// `None`: not this time.
    pub(super) routes: Option<Vec<RouteState>>,
    /// Whether a mere renewal of `last_answered_at` is written too.
    pub(super) routine: bool,
}

impl Round {
    /// Writes what differs, notes what was written, and says whether only routine is left. The first failure ends nothing:
    /// each file is tried.
    pub(super) fn write(self, paths: &PublishedPaths, on_disk: &mut OnDisk) -> Result<Left, DiskError> {
        let mut failure = None;
        let mut keep = |result: Result<(), DiskError>| match result {
            Ok(()) => true,
            Err(error) => {
                failure.get_or_insert(error);
                false
            }
        };
        // Before the state: whoever finds a resolver alive finds its list too.
        if on_disk.waits.as_ref() != Some(&self.waits) && keep(put(&paths.waiting, &self.waits)) {
            on_disk.waits = Some(self.waits);
        }
        if let Some(state) = self.state.filter(|state| on_disk.state.as_ref() != Some(state)) {
            let stamped =
                ResolverState { updated_at: stado_fleet::ledger::stamp(jiff::Timestamp::now()), ..state.clone() };
            if keep(put(&paths.state, &stamped)) {
                on_disk.state = Some(state);
            }
        }
        let mut left = Left::Nothing;
        if on_disk.answers.as_ref() != Some(&self.answers) {
            if !self.routine && on_disk.answers.as_ref().is_some_and(|old| only_renews(old, &self.answers)) {
                left = Left::Routine;
            } else if keep(put(&paths.answers, &self.answers)) {
                on_disk.answers = Some(self.answers);
            }
        }
        if let Some(routes) = self.routes.filter(|routes| on_disk.routes.as_ref() != Some(routes))
            && keep(put(&paths.routes, &routes))
        {
            on_disk.routes = Some(routes);
        }
        failure.map_or(Ok(left), Err)
    }
}

/// What a round left for later.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Left {
    Nothing,
    Routine,
}

fn put<T: Serialize>(path: &std::path::Path, value: &T) -> Result<(), DiskError> {
    let mut bytes = serde_json::to_vec(value).map_err(|error| DiskError {
        step: "write",
        path: path.to_owned(),
        source: std::io::Error::other(error),
    })?;
    bytes.push(b'\n');
    disk::publish(path, &bytes)
}

/// Whether nobody's silence began, went on or ended between two answers files.
fn only_renews(old: &AnswersFile, new: &AnswersFile) -> bool {
    let silence = |row: &Answers| (row.first_unanswered_at.clone(), row.last_unanswered_at.clone());
    old.len() == new.len() && new.iter().all(|(service, row)| old.get(service).map(silence) == Some(silence(row)))
}

//! Readers of the published files.
use super::{AnswersFile, PublishedPaths, ResolverState, RouteState, Wait};
use crate::disk;
use std::path::Path;

/// Largest published file that is read: far above 10,000 rows.
const LARGEST: u64 = 64 << 20;

/// Reads the state file; `None` when there is none. A sentence when it cannot be read.
pub(super) fn state(paths: &PublishedPaths) -> Result<Option<ResolverState>, String> {
    let Some(bytes) = whole("the resolver's state", &paths.state)? else { return Ok(None) };
    serde_json::from_slice(&bytes).map(Some).map_err(|e| {
        format!("the resolver's state at {} is not the state this build writes: {e}", paths.state.display())
    })
}

/// Reads the waiting list; `Ok(None)` when there is no file. Errors are §4.7's sentences.
pub fn waits(paths: &PublishedPaths) -> Result<Option<Vec<Wait>>, String> {
    let Some(bytes) = whole("the resolver's waiting list", &paths.waiting)? else { return Ok(None) };
    let foreign = |e: &dyn std::fmt::Display| {
        format!("the resolver's waiting list at {} is not the list this build writes: {e}", paths.waiting.display())
    };
    let waits: Vec<Wait> = serde_json::from_slice(&bytes).map_err(|e| foreign(&e))?;
    for wait in &waits {
        wait.since.parse::<jiff::Timestamp>().map_err(|e| foreign(&format!("since {:?}: {e}", wait.since)))?;
    }
    Ok(Some(waits))
}

/// Reads the answers file; empty when there is none. A sentence when it cannot be read.
pub fn answers(paths: &PublishedPaths) -> Result<AnswersFile, String> {
    let Some(bytes) = whole("the resolver's answers file", &paths.answers)? else { return Ok(AnswersFile::new()) };
    serde_json::from_slice(&bytes).map_err(|e| {
        format!("the resolver's answers file at {} is not the file this build writes: {e}", paths.answers.display())
    })
}

/// Reads the routes file; empty when there is none. A sentence when it cannot be read.
pub fn routes(paths: &PublishedPaths) -> Result<Vec<RouteState>, String> {
    let Some(bytes) = whole("the resolver's routes file", &paths.routes)? else { return Ok(Vec::new()) };
    serde_json::from_slice(&bytes).map_err(|e| {
        format!("the resolver's routes file at {} is not the file this build writes: {e}", paths.routes.display())
    })
}

fn whole(what: &str, path: &Path) -> Result<Option<Vec<u8>>, String> {
    disk::read(path, LARGEST).map_err(|e| format!("{what} at {} cannot be read: {}", path.display(), e.source))
}

//! What a standby holds of its authority: every version that it remembers, so that nothing is lost with its disk.
use super::exec::Exec;
use super::{RegistryError, Source, content, history};
use crate::name::StoreVersion;
use crate::store::history::History;
use std::collections::HashSet;

/// Takes over the versions of `source` that `into` does not hold yet, oldest first. How many there were.
///
/// # Errors
/// The authority did not answer, or this host cannot write; what was taken over until then is kept.
pub async fn mirror(source: &Source, exec: &dyn Exec, into: &dyn History) -> Result<usize, RegistryError> {
    let report = history(source, exec).await?;
    let known: HashSet<StoreVersion> = into.versions().await?.into_iter().map(|known| known.version).collect();
    let mut kept = 0;
    for facts in report.versions.iter().rev().filter(|facts| !known.contains(&facts.version)) {
        let document = content(source, exec, &facts.version).await?;
        into.keep(facts, document.shared_bytes()).await?;
        kept += 1;
    }
    Ok(kept)
}

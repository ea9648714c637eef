//! What a start does while the authority does not answer: this host's copy (fleet contract §3.4), and the record of the
//! refusal (§3.2).
use crate::daemon::identity::{Host, identify};
use stado_fleet::admit::{Snapshot, admit};
use stado_fleet::authority::{Refusals, RegistryError};
use stado_fleet::fault::Class;
use stado_fleet::last_good::{Copy, LastGood};
use stado_fleet::name::TargetName;

/// The copy, or why it cannot be used.
pub(super) async fn copy(last_good: &LastGood) -> Result<Option<Copy>, String> {
    let last_good = last_good.clone();
    let read = tokio::task::spawn_blocking(move || last_good.read()).await;
    read.unwrap_or_else(|error| Err(error.to_string()))
}

/// Who this host is by its own copy: what the authority is located with.
pub(super) fn me(copy: Option<&Copy>, host: &Host) -> Option<TargetName> {
    let by_copy = copy.and_then(|copy| identify(&copy.snapshot.valid.registry, host).ok());
    by_copy.or_else(|| host.target.clone())
}

/// The copy as a snapshot that was not read from the authority: its version becomes the literal of §4.1.
pub(super) fn snapshot(copy: Copy) -> Snapshot {
    let literal = "last-known-good".parse().unwrap_or_else(|_| copy.snapshot.store_version.clone());
    Snapshot { store_version: literal, ..copy.snapshot }
}

/// Why a snapshot read at start may not replace the copy: a generation does not go back over a restart either (design,
/// rule 2).
pub(super) fn refuses(copy: &Copy, snapshot: &Snapshot) -> Option<String> {
    admit(Some(&copy.snapshot), snapshot).err().map(|refused| refused.to_string())
}

/// Leaves a record of what a reader of this host was refused (§3.2); best effort, bounded.
pub(super) async fn record_refusal(
    refusals: Option<&Refusals>,
    authority: &TargetName,
    reason: &'static str,
    detail: &str,
) {
    let Some(refusals) = refusals.cloned() else { return };
    let (authority, detail) = (authority.clone(), detail.to_owned());
    let write = tokio::task::spawn_blocking(move || {
        refusals.record(&authority, "resolver", reason, &detail, jiff::Timestamp::now())
    });
    let written = tokio::time::timeout(std::time::Duration::from_secs(5), write).await;
    if let Ok(Ok(Err(error))) = written {
        tracing::debug!(target: "stado::fleet", "the reader refusal record was not written: {error}");
    }
}

/// Whether the transport failed: an oversized or invalid answer is no outage.
pub(super) fn is_outage(error: &RegistryError) -> bool {
    matches!(error.class, Class::InfraDown | Class::Timeout)
}

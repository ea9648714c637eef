//! Which authorities know `resolver snapshot --if-newer-than`: asked until one refuses it, and again after a while, since
//! it may have been replaced by a newer build.
use super::RemoteAuthority;
use crate::name::TargetName;
use std::collections::HashMap;
use std::sync::{LazyLock, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// How long a refusal counts.
const REMEMBERED: Duration = Duration::from_secs(600);

type Refused = HashMap<(TargetName, String), Instant>;
static REFUSED: LazyLock<Mutex<Refused>> = LazyLock::new(Mutex::default);

fn refused() -> MutexGuard<'static, Refused> {
    REFUSED.lock().unwrap_or_else(PoisonError::into_inner)
}

fn key(authority: &RemoteAuthority) -> (TargetName, String) {
    (authority.target.clone(), authority.command.clone())
}

/// Whether it is worth asking.
pub(super) fn asks(authority: &RemoteAuthority) -> bool {
    refused().get(&key(authority)).is_none_or(|at| at.elapsed() >= REMEMBERED)
}

/// It refused the flag and answered without.
pub(super) fn forget(authority: &RemoteAuthority) {
    refused().insert(key(authority), Instant::now());
}

//! What a deployment needs before, and what a release leaves behind.
use super::report::Check;
use crate::cmd::fleet::Fleet;
use crate::cmd::host::{try_all, unreached, version_drift};
use crate::cmd::remote::Remote;
use stado_fleet::authority::Answer;
use stado_fleet::document::Registry;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::Semaphore;
use tokio::task::JoinSet;

pub(super) const TRANSACTION: (&str, &str) = ("placement-transaction", "Placement in progress");
pub(super) const HOSTS: (&str, &str) = ("hosts", "Hosts reached");
pub(super) const VERSIONS: (&str, &str) = ("managed-versions", "Declared versions");
const PATIENCE: Duration = Duration::from_secs(15);
const INVENTORY: Duration = Duration::from_secs(120);
/// Hosts that are tried at a time.
const AT_ONCE: usize = 64;

/// `--deployment-preflight`: nothing is being moved, and every machine of the registry is reached from here.
pub(super) async fn preflight(fleet: &Fleet, answer: Option<&Answer>) -> Vec<Check> {
    let Some(answer) = answer else {
        return [TRANSACTION, HOSTS].map(|about| Check::skip(about, "the registry could not be read")).into();
    };
    let registry = &answer.snapshot.valid.registry;
    let mut checks = transactions(registry);
    checks.extend(reached(fleet, registry).await);
    checks
}

fn transactions(registry: &Registry) -> Vec<Check> {
    let moved = registry.transactions.iter().map(|transaction| {
        let detail = format!("transaction {} moves placement profile {}", transaction.id, transaction.profile);
        Check::fail(TRANSACTION, detail, "Let it end; `stado placement status` tells how far it is.")
    });
    let moved: Vec<Check> = moved.collect();
    if moved.is_empty() { vec![Check::ok(TRANSACTION, "nothing is being moved")] } else { moved }
}

async fn reached(fleet: &Fleet, registry: &Registry) -> Vec<Check> {
    let me = fleet.me(registry).ok().flatten();
    let slots = Arc::new(Semaphore::new(AT_ONCE));
    let mut tries = JoinSet::new();
    let others = registry.targets.values().filter(|target| target.kind == "local" && Some(&target.name) != me.as_ref());
    for target in others {
        let (link, target, slots) = (fleet.link.clone(), target.clone(), Arc::clone(&slots));
        tries.spawn(async move {
            let _slot = slots.acquire().await.ok();
            let tried = try_all(&link, &target.paths, PATIENCE).await;
            let answered = tried.iter().any(|tried| tried.answered());
            (!answered).then(|| (target.name.to_string(), unreached(target.name.as_str(), &tried).message))
        });
    }
    let all = tries.len();
    let mut silent: Vec<_> = tries.join_all().await.into_iter().flatten().collect();
    silent.sort();
    if silent.is_empty() {
        return vec![Check::ok(HOSTS, format!("{all} other host(s) reached"))];
    }
    let remedy = |host: &str| format!("`stado host ping {host}` tries each declared path again.");
    silent.into_iter().map(|(host, why)| Check::fail(HOSTS, why, remedy(&host))).collect()
}

/// `--release-verification`: this host's binaries are at their declared versions.
pub(super) async fn release(fleet: &Fleet, answer: Option<&Answer>) -> Vec<Check> {
    let Some(answer) = answer else { return vec![Check::skip(VERSIONS, "the registry could not be read")] };
    let registry = &answer.snapshot.valid.registry;
    let Some(me) = fleet.me(registry).ok().flatten() else {
        return vec![Check::skip(VERSIONS, "this host is no target of the registry")];
    };
    let drift = match Remote::of(fleet, registry, me.as_str()) {
        Ok(remote) => version_drift(&remote, answer, INVENTORY).await,
        Err(failure) => Err(failure),
    };
    match drift {
        Err(failure) => vec![Check::fail(VERSIONS, failure.message, "See `stado host inventory` of this host.")],
        Ok((0, _)) => vec![Check::skip(VERSIONS, "the registry declares no versions for this host")],
        Ok((all, drifted)) if drifted.is_empty() => {
            vec![Check::ok(VERSIONS, format!("{all} binaries at their declared versions"))]
        }
        Ok((_, drifted)) => {
            let remedy = format!("Install the declared version, or correct targets[{me}].managed_versions.");
            drifted.into_iter().map(|sentence| Check::fail(VERSIONS, sentence, remedy.clone())).collect()
        }
    }
}

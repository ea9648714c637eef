//! What the resolvers of hosts have published, asked from the hosts themselves: many at a time, over every declared path.
use crate::cmd::fleet::Fleet;
use crate::cmd::host::{Beacon, beacon, beacon_question, heard};
use crate::cmd::remote::{HERE, Remote};
use crate::exit::Failure;
use stado_fleet::document::{Registry, Target};
use stado_fleet::link::{ExecLimits, Link};
use stado_fleet::name::TargetName;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::Semaphore;
use tokio::task::JoinSet;

/// Hosts that are asked at a time.
const AT_ONCE: usize = 64;
/// Far above any state file.
const LARGEST: usize = 1 << 20;

/// What a host answered.
pub(super) enum Asked {
    /// What it has published, and where.
    Published(Box<Beacon>),
    /// No path answered.
    Unreachable(String),
    /// The host answered with something else.
    Unread(String),
}

/// Whether a host is expected to publish: a machine with a resolver.
pub(super) fn expected(target: &Target) -> bool {
    target.kind == "local" && target.resolver.is_some()
}

/// Asks each of `wanted` that is expected to publish and declares a path.
pub(super) async fn ask_others(
    link: &Link,
    wanted: impl Iterator<Item = &Target>,
    limit: Duration,
) -> BTreeMap<TargetName, Asked> {
    let slots = Arc::new(Semaphore::new(AT_ONCE));
    let mut asked = JoinSet::new();
    for target in wanted.filter(|target| expected(target) && !target.paths.is_empty()) {
        let (link, target, slots) = (link.clone(), target.clone(), Arc::clone(&slots));
        asked.spawn(async move {
            let _slot = slots.acquire().await.ok();
            let answer = ask(&link, &target, limit).await;
            (target.name, answer)
        });
    }
    asked.join_all().await.into_iter().collect()
}

async fn ask(link: &Link, target: &Target, limit: Duration) -> Asked {
    let (command, script) = beacon_question();
    let limits = ExecLimits { stdout: LARGEST, deadline: limit };
    match link.exec_cut(&target.name, &target.paths, command, script.as_bytes(), limits).await {
        Err(error) => Asked::Unreachable(error.to_string()),
        Ok(output) => match heard(&target.name, &output) {
            Ok(facts) => Asked::Published(Box::new(beacon(&facts))),
            Err(failure) => Asked::Unread(failure.message),
        },
    }
}

/// This host needs no path to itself.
pub(super) async fn ask_here(
    fleet: &Fleet,
    registry: &Registry,
    me: &TargetName,
    limit: Duration,
) -> Result<Asked, Failure> {
    let remote = Remote::of(fleet, registry, me.as_str())?;
    let (command, script) = beacon_question();
    let limits = ExecLimits { stdout: LARGEST, deadline: limit };
    let asked = remote.run(command, script.as_bytes(), limits).await.and_then(|output| heard(me, &output));
    Ok(match asked {
        Ok(facts) => Asked::Published(Box::new(beacon(&facts))),
        Err(failure) => Asked::Unread(format!("{HERE}: {}", failure.message)),
    })
}

//! `registry beacon-age`: how long ago the resolver of each host last published (fleet contract §6.8).
//!
//! A beacon is the state file that a host's resolver writes on every refresh. It is read from the host itself, over every
//! declared path; of a host that does not answer, the last one that was seen from here is told.
mod age;

use crate::args::BeaconAgeArgs;
use crate::cmd::age::span;
use crate::cmd::fleet::Fleet;
use crate::cmd::host::{beacon, beacon_question, heard, patience};
use crate::cmd::observations::{Observation, Observations, beacon_fact};
use crate::cmd::remote::{HERE, Remote};
use crate::config::Env;
use crate::exit::{Failure, Outcome, Verb};
use crate::ui;
use age::{Row, Seen, judge};
use jiff::Timestamp;
use serde_json::json;
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

/// `registry beacon-age`.
pub(crate) async fn beacon_age(args: BeaconAgeArgs, env: &Env) -> Verb {
    let limit = patience(&args.timeout)?;
    let fleet = Fleet::open(env)?;
    let answer = fleet.read(true).await?;
    let registry = &answer.snapshot.valid.registry;
    let me = fleet.me(registry)?;
    let mut seen = ask_others(&fleet.link, registry, me.as_ref(), limit).await;
    if let Some(me) = &me {
        seen.insert(me.clone(), ask_here(&fleet, registry, me, limit).await?);
    }
    let now = Timestamp::now();
    let before = Observations::read(&fleet.host.stado_home);
    let vantage = me.map_or_else(|| fleet.host.hostname.clone(), |me| me.to_string());
    let rows: Vec<Row> = registry
        .targets
        .values()
        .map(|target| {
            let last = before.newest(&beacon_fact(target.name.as_str()));
            judge(target, seen.remove(&target.name), last.map(|(at, detail)| (at, detail.to_owned())), now)
        })
        .collect();
    record(&fleet, &vantage, &rows, now);
    let location = answer.source.location();
    if args.json {
        ui::json(&json!({"registry": location, "hosts": rows}))?;
    } else {
        ui::print(&rows.iter().map(ToString::to_string).collect::<String>())?;
    }
    Ok(Outcome::Done)
}

/// Asks every other host that is expected to have a beacon and declares a path, many at a time.
async fn ask_others(
    link: &Link,
    registry: &Registry,
    me: Option<&TargetName>,
    limit: Duration,
) -> BTreeMap<TargetName, Seen> {
    let slots = Arc::new(Semaphore::new(AT_ONCE));
    let mut asked = JoinSet::new();
    let others = registry.targets.values().filter(|target| Some(&target.name) != me);
    for target in others.filter(|target| age::expected(target) && !target.paths.is_empty()) {
        let (link, target, slots) = (link.clone(), target.clone(), Arc::clone(&slots));
        asked.spawn(async move {
            let _slot = slots.acquire().await.ok();
            let seen = ask(&link, &target, limit).await;
            (target.name, seen)
        });
    }
    asked.join_all().await.into_iter().collect()
}

async fn ask(link: &Link, target: &Target, limit: Duration) -> Seen {
    let (command, script) = beacon_question();
    let limits = ExecLimits { stdout: LARGEST, deadline: limit };
    match link.exec_cut(&target.name, &target.paths, command, script.as_bytes(), limits).await {
        Err(error) => Seen::Unreachable(error.to_string()),
        Ok(output) => match heard(&target.name, &output) {
            Ok(facts) => Seen::of(beacon(&facts)),
            Err(failure) => Seen::Unread(failure.message),
        },
    }
}

/// This host needs no path to itself.
async fn ask_here(fleet: &Fleet, registry: &Registry, me: &TargetName, limit: Duration) -> Result<Seen, Failure> {
    let remote = Remote::of(fleet, registry, me.as_str())?;
    let (command, script) = beacon_question();
    let limits = ExecLimits { stdout: LARGEST, deadline: limit };
    let asked = remote.run(command, script.as_bytes(), limits).await.and_then(|output| heard(me, &output));
    Ok(match asked {
        Ok(facts) => Seen::of(beacon(&facts)),
        Err(failure) => Seen::Unread(format!("{HERE}: {}", failure.message)),
    })
}

/// Keeps what was seen, for the day on which a host does not answer.
fn record(fleet: &Fleet, vantage: &str, rows: &[Row], now: Timestamp) {
    let fresh = rows.iter().filter(|row| row.read_now);
    let row = |row: &Row| {
        let at = row.reported_at.clone()?;
        Some(Observation::seen(beacon_fact(&row.host), vantage, "observed", at, now))
    };
    let rows: Vec<Observation> = fresh.filter_map(row).collect();
    if !rows.is_empty() {
        Observations::record(&fleet.host.stado_home, rows);
    }
}

impl std::fmt::Display for Row {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let age = self.age_seconds.map_or("-".to_owned(), span);
        write!(f, "{}  {}  {}  age={age}", self.host, self.kind, self.status)?;
        if let Some(beacon) = &self.beacon {
            write!(f, "  {beacon}")?;
        }
        match &self.detail {
            Some(detail) => writeln!(f, "  {}", ui::clean::line(detail)),
            None => writeln!(f),
        }
    }
}

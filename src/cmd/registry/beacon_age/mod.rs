//! `registry beacon-age`: how long ago the resolver of each host last published (fleet contract §6.8).
//!
//! A beacon is the state file that a host's resolver writes on every refresh. It is read from the host itself, over every
//! declared path; of a host that does not answer, the last one that was seen from here is told.
mod age;

use super::beacons::{ask_here, ask_others};
use crate::args::BeaconAgeArgs;
use crate::cmd::age::span;
use crate::cmd::fleet::Fleet;
use crate::cmd::host::patience;
use crate::cmd::observations::{Observation, Observations, beacon_fact};
use crate::config::Env;
use crate::exit::{Outcome, Verb};
use crate::ui;
use age::{Row, Seen, judge};
use jiff::Timestamp;
use serde_json::json;

/// `registry beacon-age`.
pub(crate) async fn beacon_age(args: BeaconAgeArgs, env: &Env) -> Verb {
    let limit = patience(&args.timeout)?;
    let fleet = Fleet::open(env)?;
    let answer = fleet.read(true).await?;
    let registry = &answer.snapshot.valid.registry;
    let me = fleet.me(registry)?;
    let others = registry.targets.values().filter(|target| Some(&target.name) != me.as_ref());
    let mut asked = ask_others(&fleet.link, others, limit).await;
    if let Some(me) = &me {
        asked.insert(me.clone(), ask_here(&fleet, registry, me, limit).await?);
    }
    let now = Timestamp::now();
    let before = Observations::read(&fleet.host.stado_home);
    let vantage = me.map_or_else(|| fleet.host.hostname.clone(), |me| me.to_string());
    let rows: Vec<Row> = registry
        .targets
        .values()
        .map(|target| {
            let last = before.newest(&beacon_fact(target.name.as_str()));
            judge(
                target,
                asked.remove(&target.name).map(Seen::heard),
                last.map(|(at, detail)| (at, detail.to_owned())),
                now,
            )
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

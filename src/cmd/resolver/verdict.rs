//! What `resolver status` concludes from what it has seen (fleet contract §4.10). Pure: facts and `now` in, report out.
use jiff::Timestamp;
use serde::Serialize;
use stado_fleet::ledger::{self, LinkState, Publisher, RefusedRegistry, ResolverState, Wait};
use std::path::PathBuf;
use std::time::Duration;

/// What was seen.
#[derive(Debug, Clone)]
pub(crate) struct Facts {
    /// Host that is reported on; `None` for a mesh without a fleet.
    pub(crate) target: Option<String>,
    /// This host, as it calls itself.
    pub(crate) here: String,
    /// Whether the target is this host; only then were its binds tried.
    pub(crate) is_here: bool,
    /// Who published, if anybody.
    pub(crate) publisher: Publisher,
    /// Where the state is published.
    pub(crate) state_file: PathBuf,
    /// The waiting list.
    pub(crate) waits: Result<Vec<Wait>, String>,
    /// What the registry declares for the target; `None` for a mesh without a fleet.
    pub(crate) policy: Option<Policy>,
    /// The resolution API, when known, and whether somebody listens there.
    pub(crate) api: Option<(String, Option<bool>)>,
    /// Declared adapters.
    pub(crate) adapters: Vec<Adapter>,
    /// How the registry was read.
    pub(crate) authority: Authority,
    /// Age of the copy that was read instead of the authority.
    pub(crate) registry_staleness_seconds: Option<u64>,
}

/// The declared intervals, in seconds.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Policy {
    pub(crate) refresh_seconds: u64,
    pub(crate) max_stale_seconds: u64,
}

/// One declared adapter.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct Adapter {
    pub(crate) service: String,
    pub(crate) consumer: String,
    /// `None` for an adapter that was given no port yet.
    pub(crate) bind: Option<String>,
    /// `None` when it was not tried.
    pub(crate) listening: Option<bool>,
}

/// How the authority answered.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct Authority {
    pub(crate) target: Option<String>,
    /// `local` or `ssh`.
    pub(crate) source: &'static str,
    pub(crate) reachable: bool,
    pub(crate) generation: Option<u64>,
    pub(crate) detail: Option<String>,
    /// Authority epoch of the registry that was read, from 1 on (an addition of Stado).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) epoch: Option<u64>,
}

/// The resolution API.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct Api {
    pub(crate) bind: Option<String>,
    pub(crate) listening: Option<bool>,
}

/// One wait with its age.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct Waiting {
    #[serde(flatten)]
    pub(crate) wait: Wait,
    pub(crate) waited_seconds: u64,
}

/// The answer; field order is the order of the JSON.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct Report {
    pub(crate) target: Option<String>,
    pub(crate) state: String,
    pub(crate) pid: Option<u32>,
    pub(crate) updated_at: Option<String>,
    pub(crate) api: Api,
    pub(crate) bind_probe: String,
    pub(crate) adapters: Vec<Adapter>,
    pub(crate) waiting_opens: Vec<Waiting>,
    pub(crate) authority: Authority,
    pub(crate) generation: Option<u64>,
    pub(crate) generation_age_seconds: Option<u64>,
    pub(crate) max_stale_seconds: Option<u64>,
    pub(crate) stale: bool,
    pub(crate) registry_staleness_seconds: Option<u64>,
    pub(crate) reason: Option<String>,
    pub(crate) attempt: u64,
    pub(crate) next_attempt_at: Option<String>,
    pub(crate) verdict: &'static str,
    pub(crate) blockers: Vec<String>,
    /// Things worth saying that stand in nobody's way (an addition of Stado).
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) warnings: Vec<String>,
    /// Daemons that were taken over and still have streams (an addition of Stado).
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) leaving: Vec<ledger::Leaving>,
    /// How streams reach each host that was asked for (an addition of Stado).
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) links: Vec<LinkState>,
    /// Where the object API is that the daemon serves (an addition of Stado).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) object_api: Option<String>,
    /// How changes of the registry are heard of (an addition of Stado).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) changes: Option<String>,
    /// Authority epoch of the registry held, from 1 on (an addition of Stado).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) epoch: Option<u64>,
    /// The registry that was read last and is not taken into force (an addition of Stado).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) refused: Option<RefusedRegistry>,
}

/// Concludes.
pub(crate) fn conclude(facts: Facts, now: Timestamp) -> Report {
    // What is published here speaks of this host only.
    let alive = facts.publisher.alive().filter(|_| facts.is_here).cloned();
    let published = match &facts.publisher {
        Publisher::Alive(state) | Publisher::Dead { state, .. } if facts.is_here => Some(state.clone()),
        _ => None,
    };
    let generation = alive.as_ref().and_then(|s| s.generation);
    let age = alive.as_ref().and_then(|s| seconds_since(s.loaded_at.as_deref()?, now));
    let stale = facts.policy.filter(|_| facts.is_here).is_some_and(|policy| {
        generation.is_none()
            || facts.authority.generation > generation
            || age.is_some_and(|age| age > policy.max_stale_seconds)
    });
    let blockers = blockers(&facts, alive.as_ref(), generation, age, now);
    let (api_bind, api_listening) = facts.api.clone().map_or((None, None), |(bind, seen)| (Some(bind), seen));
    let state = alive.as_ref().map_or_else(|| "unpublished".to_owned(), |s| s.state.clone());
    let verdict = match blockers.is_empty() {
        true => "ready",
        // An API that was not tried is not known to be down.
        false if api_listening == Some(false) && state != "serving" => "down",
        false => "degraded",
    };
    let waiting = |wait: Wait| Waiting { waited_seconds: ledger::waited_seconds(&wait, now), wait };
    Report {
        target: facts.target.clone(),
        pid: alive.as_ref().map(|s| s.pid),
        updated_at: published.map(|s| s.updated_at),
        api: Api { bind: api_bind, listening: api_listening },
        bind_probe: bind_probe(&facts),
        waiting_opens: facts.waits.unwrap_or_default().into_iter().map(waiting).collect(),
        adapters: facts.adapters,
        authority: facts.authority,
        generation,
        generation_age_seconds: age,
        max_stale_seconds: facts.policy.map(|p| p.max_stale_seconds),
        stale,
        registry_staleness_seconds: facts.registry_staleness_seconds,
        reason: alive.as_ref().and_then(|s| s.reason.clone()),
        attempt: alive.as_ref().map_or(0, |s| s.attempt),
        next_attempt_at: alive.as_ref().and_then(|s| s.next_attempt_at.clone()),
        leaving: alive.as_ref().map(|s| s.leaving.clone()).unwrap_or_default(),
        object_api: alive.as_ref().and_then(|s| s.object_api.clone()),
        changes: alive.as_ref().and_then(|s| s.changes.clone()),
        links: alive.as_ref().map(|s| s.links.clone()).unwrap_or_default(),
        epoch: alive.as_ref().and_then(|s| s.epoch),
        refused: alive.as_ref().and_then(|s| s.refused.clone()),
        warnings: alive.map(|s| s.warnings).unwrap_or_default(),
        state,
        verdict,
        blockers,
    }
}

fn seconds_since(text: &str, now: Timestamp) -> Option<u64> {
    let at: Timestamp = text.parse().ok()?;
    Some(u64::try_from(now.duration_since(at).as_secs()).unwrap_or(0))
}

fn bind_probe(facts: &Facts) -> String {
    let target = facts.target.as_deref().unwrap_or(&facts.here);
    if facts.is_here {
        format!("probed: these binds are loopback addresses on {target}, which is this host")
    } else {
        format!(
            "not probed: these binds are loopback addresses on {target}, and this command ran on {}; ask that host with \
             `stado host inventory {target}`",
            facts.here
        )
    }
}

/// Everything that stands in the way, in the contract's order.
fn blockers(
    facts: &Facts,
    alive: Option<&ResolverState>,
    generation: Option<u64>,
    age: Option<u64>,
    now: Timestamp,
) -> Vec<String> {
    let mut all = Vec::new();
    if !facts.is_here {
        let target = facts.target.as_deref().unwrap_or("-");
        all.push(format!(
            "what the resolver of {target} holds is published on {target} only, and this command ran on {}: run `stado \
             resolver status` there",
            facts.here
        ));
    } else if facts.publisher == Publisher::Never {
        all.push(ledger::never_sentence(&facts.state_file));
    }
    all.extend(alive.and_then(not_serving));
    all.extend(not_listening(facts, alive));
    all.extend(authority(facts, generation));
    if let (Some(age), Some(policy)) = (age, facts.policy)
        && age > policy.max_stale_seconds
    {
        all.push(format!(
            "the snapshot the resolver holds is {age}s old, past the {}s max-stale window this target declares",
            policy.max_stale_seconds
        ));
    }
    if let Some(age) = facts.registry_staleness_seconds {
        all.push(format!("this answer read a registry copy {age}s old rather than the authority"));
    }
    if let Some(kind) = alive.and_then(|s| s.last_good_refusal.as_deref()) {
        all.push(format!(
            "the resolver is not refreshing this host's last-known-good registry copy ({kind}), so the fallback stays at \
             the generation it last accepted"
        ));
    }
    all.extend(held(facts, now));
    all.extend(alive.into_iter().flat_map(|s| &s.unserved).map(unserved));
    all.extend(facts.publisher.dead_sentence().filter(|_| facts.is_here));
    all
}

fn not_serving(state: &ResolverState) -> Option<String> {
    if state.state == "serving" {
        return None;
    }
    let mut sentence = format!("the resolver reports state {}", state.state);
    if let Some(reason) = &state.reason {
        sentence.push_str(&format!(": {reason}"));
    }
    if state.attempt > 0 {
        let due = state.next_attempt_at.as_deref().unwrap_or("-");
        sentence.push_str(&format!(" (failed attempt {}, next read due {due})", state.attempt));
    }
    Some(sentence)
}

/// Binds where nobody listens; an adapter that the resolver itself calls unserved is left to that sentence.
fn not_listening(facts: &Facts, alive: Option<&ResolverState>) -> Vec<String> {
    let mut all = Vec::new();
    if let Some((bind, Some(false))) = &facts.api {
        all.push(format!("nothing is listening on the resolution API at {bind}"));
    }
    let named = |adapter: &Adapter| {
        alive.is_some_and(|s| s.unserved.iter().any(|u| u.service == adapter.service && u.consumer == adapter.consumer))
    };
    for adapter in facts.adapters.iter().filter(|a| a.listening == Some(false) && !named(a)) {
        let Adapter { service, consumer, bind, .. } = adapter;
        let bind = bind.as_deref().unwrap_or("a port that was not handed out yet");
        all.push(format!("nothing is listening on the {service} adapter for consumer {consumer} at {bind}"));
    }
    all
}

fn authority(facts: &Facts, generation: Option<u64>) -> Vec<String> {
    let mut all = Vec::new();
    let Authority { target, reachable, generation: published, detail, .. } = &facts.authority;
    if !reachable {
        let detail = detail.as_deref().map(|d| format!(": {d}")).unwrap_or_default();
        all.push(format!("the registry authority {} is unreachable{detail}", target.as_deref().unwrap_or("-")));
    }
    if let (Some(held), Some(published)) = (generation, published)
        && *reachable
        && held != *published
    {
        all.push(format!(
            "the resolver holds service directory generation {held} and the authority publishes {published}"
        ));
    }
    all
}

fn held(facts: &Facts, now: Timestamp) -> Vec<String> {
    match (&facts.waits, facts.policy) {
        (Err(sentence), _) => vec![sentence.clone()],
        (Ok(waits), Some(policy)) => ledger::blockers(waits, now, Duration::from_secs(policy.refresh_seconds)),
        (Ok(_), None) => Vec::new(),
    }
}

fn unserved(row: &ledger::Unserved) -> String {
    let ledger::Unserved { service, consumer, bind, reason, .. } = row;
    if consumer.is_empty() {
        format!("the resolver does not serve the {service} at {bind}: {reason}")
    } else {
        format!("the resolver does not serve the {service} adapter for consumer {consumer} at {bind}: {reason}")
    }
}

#[cfg(test)]
#[path = "verdict_tests.rs"]
mod tests;
